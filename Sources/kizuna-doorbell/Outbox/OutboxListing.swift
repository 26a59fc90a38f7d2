import HostKit
import KizunaSync

/// What `outbox list` shows.
struct OutboxListing {
  var captured: [KizunaSyncOutbox.Captured]
  var queued: [KizunaSyncOutbox.Queued]
  var refused: [KizunaSyncOutbox.Refused]
  var parked: [KizunaSyncOutbox.Parked]
  var showsValues: Bool
  /// Milliseconds since 1970.
  var now: Int64

  var json: JSONValue {
    [
      "queued": .array(queued.map(json)), "refused": .array(refused.map(json)),
      "captured": .array(captured.map { ["table": .string($0.table), "changes": .int($0.changes)] }),
      "parked": .array(
        parked.map { ["table": .string($0.table), "pk": .string($0.pk), "reason": .string($0.reason)] }),
    ]
  }

  private func json(_ write: KizunaSyncOutbox.Queued) -> JSONValue {
    [
      "mutation_id": .string(write.mutationId), "table": .string(write.table), "pk": .string(write.pk),
      "op": .string(write.op.rawValue), "columns": .array(write.columns.map(JSONValue.string)),
      "group": .string(orNull: write.group), "sent": .bool(write.isSent), "attempts": .int(write.attempts),
      "last_error": .string(orNull: write.lastError), "age_s": .int(age(write.at)),
    ]
  }

  private func json(_ write: KizunaSyncOutbox.Refused) -> JSONValue {
    let rejection = write.rejection
    var members: [String: JSONValue] = [
      "mutation_id": .string(rejection.mutationId), "kind": .string(rejection.kind),
      "reason": .string(reason(rejection)), "table": .string(rejection.table), "pk": .string(rejection.pk),
      "columns": .array(rejection.changedColumns.map(JSONValue.string)), "dismissed": .bool(rejection.dismissed),
      "at": .string(UTCTimestamp.text(milliseconds: rejection.at)),
      "members": .array(write.members.map(JSONValue.string)),
    ]
    if showsValues {
      members["writes"] = .array(write.memberJson.map { (try? JSONValue(parsing: $0)) ?? .null })
      members["server_row"] = (try? JSONValue(parsing: rejection.serverRowJson)) ?? .null
    }
    return .object(members)
  }

  var text: [String] {
    var lines: [String] = []
    for write in queued {
      let columns = write.columns.isEmpty ? "" : " (\(write.columns.joined(separator: ", ")))"
      lines.append(
        "waits    \(write.mutationId)  \(write.op.rawValue) \(write.table) \(write.pk)\(columns), \(age(write.at)) s old"
          + (write.isSent ? ", sent" : ""))
      if let error = write.lastError {
        lines.append("         \(Counted.of(write.attempts, "attempt")), last error: \(error)")
      }
    }
    for table in captured {
      let changes = Counted.of(table.changes, "change")
      lines.append("waits    \(changes) of \(table.table) by plain SQL, which the next run or sync takes up")
    }
    for write in refused {
      let rejection = write.rejection
      lines.append(
        "refused  \(rejection.mutationId)  \(rejection.table) \(rejection.pk): \(rejection.kind), \(reason(rejection)), "
          + UTCTimestamp.text(milliseconds: rejection.at) + (rejection.dismissed ? ", dismissed" : ""))
      if write.members.count > 1 {
        lines.append("         with \(Counted.of(write.members.count - 1, "other")), all or nothing")
      }
      if showsValues { lines += write.memberJson.map { "         \($0)" } }
    }
    for row in parked { lines.append("parked   \(row.table) \(row.pk): the server's row is kept aside, \(row.reason)") }
    return lines.isEmpty ? ["nothing waits, and nothing was refused"] : lines
  }

  /// A code, alone or with a sentence of ours; any other text may be a server's and quote a row.
  private func reason(_ rejection: KizunaSyncRejection) -> String {
    let reason = rejection.reason
    return showsValues || CodeWord.isCode(reason) || DeadLetterReason.parts(of: reason) != nil
      ? reason : "(text withheld; --values shows it)"
  }

  private func age(_ at: Int64) -> Int64 { max(0, (now - at) / 1000) }
}
