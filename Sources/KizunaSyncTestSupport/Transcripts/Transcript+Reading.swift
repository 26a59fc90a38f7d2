import HostKit

extension Transcript {
  /// Reads a transcript. An unknown step kind, fault, check or operation is an error, so that a newer grammar cannot
  /// pass for one that was checked.
  ///
  /// - Throws: `JSONSyntaxError` or `TranscriptError`.
  public init(parsing bytes: [UInt8]) throws {
    try self.init(TranscriptObject(try JSONValue(parsing: bytes), at: "transcript"))
  }

  private init(_ object: TranscriptObject) throws(TranscriptError) {
    name = try object.string("case")
    title = try object.string("title")
    cites = try object.strings("cites")
    priority = try object.string("priority")
    status = try object.string("status")
    fencing = try object.string("fencing")
    context = try Context(try object.object("context"))
    steps = try object.objects("steps").map { step throws(TranscriptError) in try Step(step) }
    postconditions = try object.objects("postconditions").map { check throws(TranscriptError) in try Check(check) }
    for (index, step) in steps.enumerated() where step.n != index + 1 {
      throw TranscriptError(place: "steps.\(index)", reason: "n is \(step.n), expected \(index + 1)")
    }
  }
}

extension Transcript.Context {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    let server = try object.object("server")
    clientID = try object.string("client_id")
    userID = try object.string("user_id")
    schemaVersion = try object.integer("schema_version")
    notes = object.has("notes") ? try object.strings("notes") : []
    minSchemaVersion = try server.integer("min_schema_version")
    tombstoneTTLDays = try server.integer("tombstone_ttl_days")
    maxPullScan = server.has("max_pull_scan") ? try server.integer("max_pull_scan") : nil
    tables = [:]
    let declared = try server.object("tables")
    for name in try declared.members().keys { tables[name] = try Transcript.Table(try declared.object(name)) }
  }
}

extension Transcript.Table {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    bucketColumn = object.has("bucket_column") ? try object.string("bucket_column") : nil
    keyColumns = object.has("key_columns") ? try object.strings("key_columns") : []
    conflictMode = object.has("conflict_mode") ? try object.string("conflict_mode") : "arrival"
    guard ["arrival", "hlc"].contains(conflictMode) else { throw object.unknown("conflict_mode", conflictMode) }
    conflictJournal = object.has("conflict_journal") ? try object.boolean("conflict_journal") : false
    softDeleteColumn = object.has("soft_delete_column") ? try object.string("soft_delete_column") : nil
  }
}

extension Transcript.Step {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    n = try object.integer("n")
    let kind = try object.string("kind")
    switch kind {
    case "server": self.kind = .server(try Transcript.ServerOperation(object))
    case "local": self.kind = .local(try Transcript.LocalWrite(object))
    case "rpc":
      self.kind = .rpc(
        try object.function("rpc"), request: try object.value("request"), response: try object.value("response"))
    case "fault": self.kind = .fault(try Transcript.Fault(object))
    case "assert":
      self.kind = .assert(
        try object.objects("checks").map { check throws(TranscriptError) in try Transcript.Check(check) })
    default: throw object.unknown("kind", kind)
    }
  }
}

extension Transcript.ServerOperation {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    let op = try object.string("op")
    switch op {
    case "upsert":
      self = .upsert(
        table: try object.string("table"), pk: try object.string("pk"), columns: try object.object("columns").members(),
        hlc: object.has("hlc") ? try object.string("hlc") : nil)
    case "delete": self = .delete(table: try object.string("table"), pk: try object.string("pk"))
    case "reap": self = .reap
    default: throw object.unknown("op", op)
    }
  }
}

extension Transcript.LocalWrite {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    let op = try object.string("op")
    guard let known = Op(rawValue: op) else { throw object.unknown("op", op) }
    self.op = known
    table = try object.string("table")
    pk = try object.string("pk")
    columns = object.has("columns") ? try object.object("columns").members() : [:]
    mutationID = try object.string("mutation_id")
    precondition = object.has("precondition") ? try object.object("precondition").members() : nil
    transforms = object.has("transforms") ? try object.object("transforms").members() : nil
    hlc = object.has("hlc") ? try object.string("hlc") : nil
    expectedError = object.has("expect_error") ? try object.string("expect_error") : nil
  }
}

extension Transcript.Fault {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    let target = try object.function("target")
    let fault = try object.string("fault")
    switch fault {
    case "drop-ack": self = .dropAck(target, request: try object.value("request"))
    case "transport-error":
      self = .transportError(target, request: object.optionalValue("request"))
    default: throw object.unknown("fault", fault)
    }
  }
}

extension Transcript.Check {
  fileprivate init(_ object: TranscriptObject) throws(TranscriptError) {
    let check = try object.string("check")
    switch check {
    case "local-row":
      self = .localRow(
        table: try object.string("table"), pk: try object.string("pk"),
        row: try object.value("row").isNull ? nil : try object.object("row").members())
    case "cursor": self = .cursor(try object.string("value"))
    case "outbox-depth": self = .outboxDepth(try object.integer("value"))
    case "event": self = .event(try object.string("event"))
    case "no-intermediate-commit": self = .noIntermediateCommit
    default: throw object.unknown("check", check)
    }
  }
}

/// An object of a transcript that knows where it stands.
private struct TranscriptObject {
  private let json: JSONValue
  private let place: String

  init(_ json: JSONValue, at place: String) throws(TranscriptError) {
    guard json.objectValue != nil else { throw TranscriptError(place: place, reason: "expected an object") }
    self.json = json
    self.place = place
  }

  private func path(_ name: String) -> String { place == "transcript" ? name : "\(place).\(name)" }

  private func expected(_ what: String, _ name: String) -> TranscriptError {
    TranscriptError(place: path(name), reason: "expected \(what)")
  }

  func unknown(_ name: String, _ value: String) -> TranscriptError {
    TranscriptError(place: path(name), reason: "unknown: \(value)")
  }

  /// Present and not null.
  func has(_ name: String) -> Bool { json[name].map { !$0.isNull } ?? false }

  func value(_ name: String) throws(TranscriptError) -> JSONValue {
    guard let value = json[name] else { throw expected("a value", name) }
    return value
  }

  /// Nil when absent. (A plain `nil` would be read as JSON's null.)
  func optionalValue(_ name: String) -> JSONValue? { json[name] }

  func members() throws(TranscriptError) -> [String: JSONValue] { json.objectValue ?? [:] }

  func string(_ name: String) throws(TranscriptError) -> String {
    guard let value = json[name]?.stringValue else { throw expected("a string", name) }
    return value
  }

  func integer(_ name: String) throws(TranscriptError) -> Int {
    guard let value = json[name]?.intValue else { throw expected("an integer", name) }
    return value
  }

  func boolean(_ name: String) throws(TranscriptError) -> Bool {
    guard let value = json[name]?.boolValue else { throw expected("a boolean", name) }
    return value
  }

  func strings(_ name: String) throws(TranscriptError) -> [String] {
    guard let values = json[name]?.arrayValue else { throw expected("an array of strings", name) }
    return try values.map { value throws(TranscriptError) in
      guard let string = value.stringValue else { throw expected("an array of strings", name) }
      return string
    }
  }

  func object(_ name: String) throws(TranscriptError) -> TranscriptObject {
    try TranscriptObject(try value(name), at: path(name))
  }

  func objects(_ name: String) throws(TranscriptError) -> [TranscriptObject] {
    guard let values = json[name]?.arrayValue else { throw expected("an array", name) }
    return try values.enumerated().map { index, value throws(TranscriptError) in
      try TranscriptObject(value, at: "\(path(name)).\(index)")
    }
  }

  func function(_ name: String) throws(TranscriptError) -> Transcript.Function {
    let text = try string(name)
    guard let function = Transcript.Function(rawValue: text) else { throw unknown(name, text) }
    return function
  }
}
