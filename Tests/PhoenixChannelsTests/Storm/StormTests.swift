import HostKit
import PhoenixChannels
import Testing

@testable import kizuna_storm

/// The simulation itself: what it measures is what happened.
@Suite struct StormTests {
  private static func storm(_ gateways: Int) -> Storm {
    var storm = Storm()
    storm.gateways = gateways
    return storm
  }

  @Test func everyGatewayArrivesOnceAndComesBack() async throws {
    let result = try await Self.storm(200).run(Outage(seconds: 120))
    #expect(result.arrivals.count == 200)
    #expect(result.attemptsInVain > 200 * 6)
    // Within the longest delay and the way to the server and back, three times: connecting, joining, ringing.
    #expect(result.lastBack < .seconds(31.5))
    #expect(result.lastBack > .seconds(15))
  }

  @Test func theSameSeedGivesTheSameFigures() async throws {
    let first = try await Self.storm(100).run(Outage(seconds: 60))
    let second = try await Self.storm(100).run(Outage(seconds: 60))
    #expect(first.arrivals == second.arrivals)
    var other = Self.storm(100)
    other.seed = 2
    #expect(try await other.run(Outage(seconds: 60)).arrivals != first.arrivals)
  }

  @Test func theDelaysSpreadTheGateways() async throws {
    let result = try await Self.storm(2_000).run(Outage(seconds: 600))
    // More chance than with 10,000, therefore more room.
    #expect(result.peakToMean < 1.7)
  }

  /// Without chance everybody comes at once, and the figure says so.
  @Test func delaysWithoutChanceAreFoundOut() async throws {
    var storm = Self.storm(500)
    storm.draw = { _ in 1 }
    let result = try await storm.run(Outage(seconds: 120))
    #expect(result.peakToMean > 8)
    #expect(!StormReport(storm: storm, results: [result]).isWithinLimit)
  }

  @Test func theFullestBinMayBeginAnywhere() {
    let times = [100, 3_900, 4_000, 6_800, 6_899, 6_900, 20_000].map { UInt64.milliseconds($0) }
    let outage = Outage(seconds: 1)
    let histories = times.map {
      StormGateway.History(arrivals: [outage.start, outage.end + $0], backAt: outage.end + $0)
    }
    let result = StormResult(histories, outage, cap: .seconds(30))
    #expect(result.peak == 4)
    #expect(result.attemptsInVain == 7)
    #expect(abs(result.mean - 0.7) < 0.001)
    #expect(result.arrivals(from: .seconds(3.9)) == 4)
    #expect(result.arrivals(from: .seconds(7)) == 0)
    #expect(result.lastBack == .seconds(20))
  }

  @Test func theReportNamesTheWorstOfTheLimited() async throws {
    let storm = Self.storm(50)
    var results: [StormResult] = []
    for seconds in [5.0, 120] { results.append(try await storm.run(Outage(seconds: seconds))) }
    let report = StormReport(storm: storm, results: results)
    #expect(report.peakToMean == results[1].peakToMean)
    let json = try JSONValue(parsing: JSONWriter.text(report.json))
    #expect(json["peak_to_mean"]?.numberValue != nil)
    #expect(json["outages"]?.arrayValue?.count == 2)
    #expect(report.table.split(separator: "\n").count == 4)
    #expect(StormPlot(report).svg.contains("2 min: \(StormReport.number(results[1].peakToMean))"))
  }
}
