import HostKit

/// Draws how many gateways come back in each three seconds after the return, as multiples of the even load.
struct StormPlot {
  private let report: StormReport

  init(_ report: StormReport) { self.report = report }

  private static let width = 960.0
  private static let height = 440.0
  private static let frame = (left: 60.0, right: 800.0, top: 56.0, bottom: 390.0)
  /// Seconds shown.
  private static let span = 30.0
  private static let colours = ["#b9bfc7", "#9aa3ad", "#7c8793", "#5f6b78", "#0072b2", "#009e73", "#d55e00"]

  /// Largest multiple shown; short outages go beyond it, and the legend says how far.
  private static let top = 3.0

  private func x(_ seconds: Double) -> String {
    Self.text(Self.frame.left + (Self.frame.right - Self.frame.left) * seconds / Self.span)
  }

  private func y(_ multiple: Double) -> String {
    Self.text(Self.frame.bottom - (Self.frame.bottom - Self.frame.top) * min(multiple, Self.top) / Self.top)
  }

  private static func text(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

  var svg: String {
    ([
      #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(Int(Self.width)) \#(Int(Self.height))" font-family="sans-serif" font-size="12" fill="dimgray">"#,
      #"<rect width="100%" height="100%" fill="white"/>"#,
      #"<text x="60" y="24" font-size="16">\#(report.storm.gateways) gateways come back after an outage</text>"#,
      #"<text x="60" y="42">arrivals in 3 s, as multiples of an even spread over \#(Int(report.storm.policy.reconnect.cap.inSeconds)) s</text>"#,
    ] + axes + limitLine + report.results.indices.flatMap(line) + ["</svg>", ""]).joined(separator: "\n")
  }

  private var axes: [String] {
    let rows = stride(from: 0, through: Self.top, by: 0.5).flatMap { multiple in
      [
        #"<line x1="\#(x(0))" x2="\#(x(Self.span))" y1="\#(y(multiple))" y2="\#(y(multiple))" stroke="gainsboro"/>"#,
        #"<text x="52" y="\#(y(multiple))" dy="4" text-anchor="end">\#(multiple)</text>"#,
      ]
    }
    let columns = stride(from: 0, through: Self.span, by: 5).map { seconds in
      #"<text x="\#(x(seconds))" y="408" text-anchor="middle">\#(Int(seconds))</text>"#
    }
    return rows + columns + [
      #"<text x="\#(x(Self.span / 2))" y="430" text-anchor="middle">seconds since the server is back</text>"#
    ]
  }

  private var limitLine: [String] {
    let height = y(StormReport.limit)
    return [
      #"<line x1="\#(x(0))" x2="\#(x(Self.span))" y1="\#(height)" y2="\#(height)" stroke="crimson" stroke-dasharray="6 4"/>"#,
      #"<text x="\#(x(Self.span))" y="\#(height)" dx="-4" dy="-5" text-anchor="end" fill="crimson">limit \#(StormReport.limit)</text>"#,
    ]
  }

  private func line(_ index: Int) -> [String] {
    let result = report.results[index]
    let colour = Self.colours[index % Self.colours.count]
    let isLimited = StormReport.isLimited(result)
    let points = stride(from: 0, through: Self.span, by: 0.1).map { seconds in
      x(seconds) + "," + y(Double(result.arrivals(from: .seconds(seconds))) / result.mean)
    }
    let legend = Self.frame.top + 20 * Double(index)
    let name = "\(StormReport.name(result.outage)): \(StormReport.number(result.peakToMean))"
    return [
      #"<polyline fill="none" stroke="\#(colour)" stroke-width="\#(isLimited ? 2 : 1)" points="\#(points.joined(separator: " "))"/>"#,
      #"<line x1="816" x2="840" y1="\#(legend)" y2="\#(legend)" stroke="\#(colour)" stroke-width="\#(isLimited ? 2 : 1)"/>"#,
      #"<text x="848" y="\#(legend)" dy="4">\#(name)</text>"#,
    ]
  }
}
