import HostKit

/// What `push` answered (Kizuna wire contract §5.2), checked as a whole before anything local is touched.
enum PushReply: Equatable {
  /// One per mutation, in their order.
  case verdicts([Verdict])
  /// The all-or-nothing batch was rolled back at this member.
  case aborted(offender: String, reason: String, serverRow: RowMap?)
  case resetRequired

  struct Verdict: Equatable {
    var mutationID: String
    /// nil: applied.
    var reason: String?
    var serverRow: RowMap?
  }

  static let reasons: Set<String> = [
    "COLUMN_DENIED", "CONSTRAINT", "DELETE_WINS", "PRECONDITION", "RLS_DENIED", "SUPERSEDED",
  ]

  /// - Throws: `RemoteFailure` with one of the codes that say the server broke the contract.
  init(parsing body: [UInt8], answering entries: [OutboxEntry]) throws {
    // Down to the columns of a server row: a verdict holds whatever else the row does, and the pull brings what is left out.
    let reply = try? body.withUnsafeBytes { buffer in
      var cursor = JSONCursor(buffer)
      let value = try cursor.readValue(leavingOutDownTo: 4)
      try cursor.expectEnd()
      return value
    }
    guard let members = reply?.objectValue else {
      throw RemoteFailure.notJSON(function: "push")
    }
    let arms = ["verdicts", "batch", "signal"].filter { members[$0].map { !$0.isNull } ?? false }
    guard arms.count == 1, let arm = arms.first, let value = members[arm] else {
      throw RemoteFailure.malformed(
        .malformedPushResponse, "kizunasync.push must answer with exactly one of verdicts, batch and signal")
    }
    switch arm {
    case "verdicts": self = .verdicts(try Self.verdicts(value, answering: entries))
    case "batch": self = try Self.abort(value, answering: entries)
    default:
      guard value["type"]?.stringValue == "RESET_REQUIRED" else {
        throw RemoteFailure.malformed(.unknownSignal, "kizunasync.push sent a signal this client does not know")
      }
      self = .resetRequired
    }
  }

  private static func verdicts(_ value: JSONValue, answering entries: [OutboxEntry]) throws -> [Verdict] {
    guard let list = value.arrayValue else {
      throw RemoteFailure.malformed(.malformedPushResponse, "the verdicts of kizunasync.push are not an array")
    }
    let ids = list.map { $0["mutation_id"]?.stringValue?.lowercased() }
    guard ids == entries.map({ $0.mutationID }) else {
      throw RemoteFailure.malformed(
        .verdictBijection,
        "kizunasync.push answered \(list.count) verdicts that do not match its \(entries.count) mutations")
    }
    return try zip(list, entries).map { item, entry in
      let reason = item["reason"]?.stringValue
      switch item["verdict"]?.stringValue {
      case "applied":
        return Verdict(mutationID: entry.mutationID, reason: nil, serverRow: item["server_row"]?.objectValue)
      case "rejected" where reason.map(reasons.contains) ?? false:
        return Verdict(mutationID: entry.mutationID, reason: reason, serverRow: item["server_row"]?.objectValue)
      default:
        throw RemoteFailure.malformed(
          .unknownVerdictReason, "kizunasync.push answered a verdict or a reason this client does not know")
      }
    }
  }

  private static func abort(_ value: JSONValue, answering entries: [OutboxEntry]) throws -> PushReply {
    guard entries.first?.group != nil, value["outcome"]?.stringValue == "aborted" else {
      throw RemoteFailure.malformed(
        .malformedPushResponse, "kizunasync.push answered for a batch that was not all-or-nothing, or not aborted")
    }
    guard let offender = value["offender_mutation_id"]?.stringValue?.lowercased(),
      entries.contains(where: { $0.mutationID == offender })
    else {
      throw RemoteFailure.malformed(
        .unknownBatchOffender, "kizunasync.push blamed a mutation that was not part of the batch")
    }
    guard let reason = value["reason"]?.stringValue, reasons.contains(reason) else {
      throw RemoteFailure.malformed(
        .unknownVerdictReason, "kizunasync.push aborted for a reason this client does not know")
    }
    return .aborted(offender: offender, reason: reason, serverRow: value["server_row"]?.objectValue)
  }
}
