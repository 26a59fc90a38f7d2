import HostKit

// Changes as JSON, one object each: `{"k":"row","t":"todos","pk":"…", …}`. Seqs are text, as on the wire.
extension StateChange {
  public var json: JSONValue {
    switch self {
    case .nextSeq(let seq): return ["k": "seq", "seq": .string(String(seq))]
    case .reapHorizon(let seq): return ["k": "horizon", "seq": .string(String(seq))]
    case .row(let table, let key, let row):
      var members: [String: JSONValue] = ["k": "row", "t": .string(table), "pk": .string(key.text)]
      if let row { members["row"] = row.json }
      return .object(members)
    case .tombstone(let table, let place, let tombstone):
      var members: [String: JSONValue] = [
        "k": "tombstone", "t": .string(table), "pk": .string(place.key.text),
        "bucket": .string(orNull: place.bucket?.text),
      ]
      if let tombstone {
        members["seq"] = .string(String(tombstone.seq))
        members["at"] = .int(tombstone.deletedAt)
      }
      return .object(members)
    case .grant(let grant, let held):
      return [
        "k": "grant", "user": .string(grant.user.text), "t": .string(grant.table),
        "bucket": .string(orNull: grant.bucket?.text), "held": .bool(held),
      ]
    case .verdict(let id, let entry):
      var members: [String: JSONValue] = ["k": "verdict", "id": .string(id)]
      if let entry { members["entry"] = entry.json }
      return .object(members)
    }
  }

  /// Nil when the value is not a change.
  public init?(_ json: JSONValue) {
    func seq() -> Int64? { json["seq"]?.stringValue.flatMap { Int64($0) } }
    func bucket() -> ByteKey? { json["bucket"]?.stringValue.map { ByteKey($0) } }
    switch json["k"]?.stringValue {
    case "seq":
      guard let seq = seq() else { return nil }
      self = .nextSeq(seq)
    case "horizon":
      guard let seq = seq() else { return nil }
      self = .reapHorizon(seq)
    case "row":
      guard let table = json["t"]?.stringValue, let key = json["pk"]?.stringValue else { return nil }
      guard let member = json["row"] else {
        self = .row(table: table, key: ByteKey(key), nil)
        return
      }
      guard let row = StoredRow(member) else { return nil }
      self = .row(table: table, key: ByteKey(key), row)
    case "tombstone":
      guard let table = json["t"]?.stringValue, let key = json["pk"]?.stringValue else { return nil }
      let place = TombstoneKey(key: ByteKey(key), bucket: bucket())
      guard json["seq"] != nil else {
        self = .tombstone(table: table, place, nil)
        return
      }
      guard let seq = seq(), let at = json["at"]?.numberValue?.int64 else { return nil }
      self = .tombstone(table: table, place, Tombstone(seq: seq, deletedAt: at))
    case "grant":
      guard let user = json["user"]?.stringValue, let table = json["t"]?.stringValue, let held = json["held"]?.boolValue
      else { return nil }
      self = .grant(Grant(user: ByteKey(user), table: table, bucket: bucket()), held: held)
    case "verdict":
      guard let id = json["id"]?.stringValue else { return nil }
      guard let member = json["entry"] else {
        self = .verdict(id: id, nil)
        return
      }
      guard let entry = LedgerEntry(member) else { return nil }
      self = .verdict(id: id, entry)
    default: return nil
    }
  }
}

extension StoredRow {
  var json: JSONValue {
    var members: [String: JSONValue] = [
      "cells": .object(cells), "seq": .string(String(seq)), "bucket": .string(orNull: bucket?.text),
    ]
    if !clocks.isEmpty { members["clocks"] = .object(clocks.mapValues { .string($0.description) }) }
    if !overwritten.isEmpty {
      members["overwritten"] = .array(
        overwritten.map {
          [
            "column": .string($0.column), "value": $0.value, "winner": .string($0.winner),
            "mode": .string($0.mode.rawValue),
          ]
        })
    }
    return .object(members)
  }

  init?(_ json: JSONValue) {
    guard let cells = json["cells"]?.objectValue, let seq = json["seq"]?.stringValue.flatMap({ Int64($0) }) else {
      return nil
    }
    self.init(cells: cells, seq: seq, bucket: json["bucket"]?.stringValue.map { ByteKey($0) })
    for (column, text) in json["clocks"]?.objectValue ?? [:] {
      guard let stamp = text.stringValue.flatMap(HLCStamp.init) else { return nil }
      clocks[column] = stamp
    }
    for cell in json["overwritten"]?.arrayValue ?? [] {
      guard let column = cell["column"]?.stringValue, let value = cell["value"],
        let winner = cell["winner"]?.stringValue,
        let mode = cell["mode"]?.stringValue.flatMap(SyncTable.ConflictMode.init(rawValue:))
      else { return nil }
      overwritten.append(OverwrittenCell(column: column, value: value, winner: winner, mode: mode))
    }
  }
}

extension LedgerEntry {
  var json: JSONValue {
    [
      "reason": .string(orNull: reason?.rawValue), "user": .string(user), "t": .string(table), "pk": .string(key.text),
      "row": .bool(showsRow), "at": .int(decidedAt),
    ]
  }

  init?(_ json: JSONValue) {
    guard let user = json["user"]?.stringValue, let table = json["t"]?.stringValue, let key = json["pk"]?.stringValue,
      let showsRow = json["row"]?.boolValue, let at = json["at"]?.numberValue?.int64, let reason = json["reason"]
    else { return nil }
    let known = reason.stringValue.flatMap(RejectionReason.init(rawValue:))
    guard reason.isNull || known != nil else { return nil }
    self.init(reason: known, user: user, table: table, key: ByteKey(key), showsRow: showsRow, decidedAt: at)
  }
}
