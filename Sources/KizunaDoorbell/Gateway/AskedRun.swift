import KizunaSync

/// A run that another process was asked for, and how its end is told from those of runs that had begun before. Pure.
package struct AskedRun: Sendable, Equatable {
  package enum Step: Sendable, Equatable {
    /// The holder has not said yet that it takes requests.
    case wait
    /// It takes them: ask.
    case ask
    /// It is about to let go of the database by itself.
    case waitForRelease
    /// It does not: it is no gateway, or one inside an app that has not said how it is woken.
    case refuse
    /// A run that began after the request ended well.
    case succeeded
    case failed(GatewayError)
  }

  /// The process that holds the database.
  private let holder: Int32
  /// When it was asked, `CLOCK_MONOTONIC`, which all processes of a host share; nil before.
  private var askedAt: UInt64?

  package init(holder: Int32) {
    self.holder = holder
  }

  package var isAsked: Bool { askedAt != nil }

  /// - Parameter record: what the database's record says now.
  package func step(_ record: RunRecord?) -> Step {
    guard let record, record.processID == holder else { return .wait }
    guard let askedAt else {
      return switch record.manner {
      case .wokenByHangup: .ask
      case .brief: .waitForRelease
      case .deaf: .refuse
      }
    }
    // A run that began before may have missed what was written since.
    guard record.startedAt >= askedAt else { return .wait }
    return record.failure.map { .failed(GatewayError($0)) } ?? .succeeded
  }

  /// The request is about to be sent, or is to be answered by yet another run.
  package mutating func ask(at now: UInt64) {
    askedAt = now
  }
}

extension GatewayError {
  /// A process that holds a database has not said that it can be asked for a run. Looks whether it could have.
  package static func takesNoRequests(_ pid: Int32, database: String) -> GatewayError {
    let file = RunRecordFile.path(ofDatabase: database)
    let reason =
      RunRecordFile.isThere(ofDatabase: database)
      ? "it is not kizuna-doorbell run; stop it first"
      : "the file \(file), through which it is asked, is not there. If it is kizuna-doorbell run, somebody deleted that file; "
        + "restart it, and it makes another. If it is another program, stop it first"
    return GatewayError(
      .locked, "process \(pid) synchronises the database and cannot be asked for a run: \(reason)")
  }

  /// What another process noted.
  init(_ failure: RunRecord.Failure) {
    self.init(Kind(rawValue: failure.kind) ?? .other, failure.message)
  }
}
