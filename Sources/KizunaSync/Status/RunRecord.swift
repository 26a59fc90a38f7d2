import HostKit

/// How the last run of whoever synchronises a database ended: what `status` shows as the last error, and what another
/// process waits for when it asks for a run.
package struct RunRecord: Sendable, Equatable {
  /// Why a run failed. The sentence holds no token, key, full address or row value.
  package struct Failure: Sendable, Hashable {
    /// For programs, and for the exit code of whoever asked.
    package var kind: String
    /// A code of the catalogue.
    package var code: String
    package var message: String
    /// Milliseconds since 1970.
    package var at: Int64

    package init(kind: String, code: String, message: String, at: Int64) {
      self.kind = kind
      self.code = code
      self.message = message
      self.at = at
    }
  }

  /// How the process that holds a database deals with others that want a run.
  package enum Manner: String, Sendable, Hashable, CaseIterable {
    /// It takes SIGHUP as the wish for one. Others would die of it.
    case wokenByHangup = "woken_by_hangup"
    /// It does one run and lets go.
    case brief
    /// It runs when it wants.
    case deaf
  }

  /// How the doorbell of the process stands.
  package struct Doorbell: Sendable, Hashable {
    /// A word for programs; `ready` when every ring is heard.
    package var state: String
    /// Why it is not ready, where that is known: a sentence without token, key or address.
    package var reason: String?
    /// Milliseconds since 1970.
    package var since: Int64

    package init(state: String, reason: String? = nil, since: Int64) {
      self.state = state
      self.reason = reason
      self.since = since
    }
  }

  /// The process whose runs these are.
  package var processID: Int32
  package var manner: Manner
  /// Runs that ended since the file was made, over all processes.
  package var number: Int64
  /// When the last one of this process began, `CLOCK_MONOTONIC`; 0 before the first.
  package var startedAt: UInt64
  /// Why the last one failed; nil after a success.
  package var failure: Failure?
  /// When the last one that ended well did, milliseconds since 1970.
  package var succeededAt: Int64?
  /// Nil for a process without one.
  package var doorbell: Doorbell?

  package init(
    processID: Int32, manner: Manner = .deaf, number: Int64 = 0, startedAt: UInt64 = 0, failure: Failure? = nil,
    succeededAt: Int64? = nil, doorbell: Doorbell? = nil
  ) {
    self.processID = processID
    self.manner = manner
    self.number = number
    self.startedAt = startedAt
    self.failure = failure
    self.succeededAt = succeededAt
    self.doorbell = doorbell
  }

  /// The true end of the run that the database's own note stands for: that note is renewed only once a minute. Nil when
  /// this file tells of another database, one that was put back for one.
  package func success(notedAs noted: Int64?) -> Int64? {
    guard let noted, let succeededAt, (0...2 * 60_000).contains(succeededAt - noted) else { return nil }
    return succeededAt
  }
}

/// The text of the file: always the same number of bytes, with a check at the front, because readers take no lock.
extension RunRecord {
  /// One page, so that it is rewritten in place also when the disk is full.
  package static let size = 4096

  var bytes: [UInt8] {
    var text = text(message: failure?.message ?? "")
    // Sentences are short; this is for a path that is not.
    var kept = failure?.message.count ?? 0
    while text.utf8.count >= Self.size, kept > 0 {
      kept /= 2
      text = self.text(message: (failure?.message.prefix(kept)).map { $0 + "…" } ?? "")
    }
    return Array(text.utf8) + [UInt8](repeating: UInt8(ascii: " "), count: max(0, Self.size - 1 - text.utf8.count))
      + [UInt8(ascii: "\n")]
  }

  private static func beginning(_ text: String) -> String {
    var kept = text.prefix(400)
    while kept.utf8.count > 400 { kept = kept.prefix(kept.count / 2) }
    return String(kept)
  }

  private func text(message: String) -> String {
    var failed: JSONValue = nil
    if let failure {
      failed = [
        "kind": .string(failure.kind), "code": .string(failure.code), "message": .string(message),
        "at": .int(failure.at),
      ]
    }
    let rung = doorbell.map { doorbell -> JSONValue in
      [
        "state": .string(doorbell.state), "reason": .string(orNull: doorbell.reason.map(Self.beginning)),
        "since": .int(doorbell.since),
      ]
    }
    let body = JSONWriter.text([
      "pid": .int(Int(processID)), "manner": .string(manner.rawValue), "runs": .int(number),
      "started_ns": .int(Int64(clamping: startedAt)), "failure": failed,
      "succeeded_at": succeededAt.map { .int($0) } ?? nil, "doorbell": rung ?? nil,
    ])
    return "\(Fingerprint.of(body)) \(body)"
  }

  /// - Returns: nil for anything but a whole record, also for one that is being rewritten right now.
  init?(_ bytes: [UInt8]) {
    guard let text = String(validating: bytes, as: UTF8.self), let space = text.firstIndex(of: " ") else { return nil }
    var body = text[text.index(after: space)...]
    while let last = body.last, last == " " || last == "\n" { body.removeLast() }
    guard text[..<space] == Fingerprint.of(String(body)), let value = try? JSONValue(parsing: Array(body.utf8)),
      let pid = value["pid"]?.intValue, let number = value["runs"]?.intValue
    else { return nil }
    processID = Int32(clamping: pid)
    manner = value["manner"]?.stringValue.flatMap(Manner.init) ?? .deaf
    self.number = Int64(number)
    startedAt = UInt64(clamping: value["started_ns"]?.intValue ?? 0)
    succeededAt = value["succeeded_at"]?.intValue.map { Int64($0) }
    if let doorbell = value["doorbell"], let state = doorbell["state"]?.stringValue,
      let since = doorbell["since"]?.intValue
    {
      self.doorbell = Doorbell(state: state, reason: doorbell["reason"]?.stringValue, since: Int64(since))
    }
    if let failed = value["failure"], let kind = failed["kind"]?.stringValue, let code = failed["code"]?.stringValue,
      let message = failed["message"]?.stringValue, let at = failed["at"]?.intValue
    {
      failure = Failure(kind: kind, code: code, message: message, at: Int64(at))
    }
  }
}
