import HostKit

/// Why a mutation was refused (Kizuna wire contract §6).
public enum RejectionReason: String, Sendable, CaseIterable {
  case columnDenied = "COLUMN_DENIED"
  case constraint = "CONSTRAINT"
  case deleteWins = "DELETE_WINS"
  case precondition = "PRECONDITION"
  case rlsDenied = "RLS_DENIED"
  case superseded = "SUPERSEDED"
}

/// What became of one mutation.
struct Verdict {
  let id: String
  let reason: RejectionReason?
  /// The row the caller is shown: required (null when there is none) for a rejection, optional otherwise.
  let row: JSONValue?

  static func applied(_ id: String, row: JSONValue?) -> Verdict { Verdict(id: id, reason: nil, row: row) }

  static func rejected(_ id: String, _ reason: RejectionReason, row: JSONValue?) -> Verdict {
    Verdict(id: id, reason: reason, row: row)
  }

  var json: JSONValue {
    var members: [String: JSONValue] = ["mutation_id": .string(id)]
    if let reason {
      members["verdict"] = "rejected"
      members["reason"] = .string(reason.rawValue)
      members["server_row"] = row ?? .null
    } else {
      members["verdict"] = "applied"
      if let row { members["server_row"] = row }
    }
    return .object(members)
  }

  /// The answer to an atomic batch that this rejection aborted.
  var abort: JSONValue {
    [
      "batch": [
        "outcome": "aborted", "offender_mutation_id": .string(id), "reason": .string(orNull: reason?.rawValue),
        "server_row": row ?? .null,
      ]
    ]
  }
}
