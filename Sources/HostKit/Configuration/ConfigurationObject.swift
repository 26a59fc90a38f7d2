/// One object of a configuration file while it is decoded. See `ConfigurationDocument`.
///
/// When a key is here twice the last one counts; the problem is on record already.
public final class ConfigurationObject {
  private let report: ConfigurationReport
  private let path: [String]
  private let members: [String: ConfigurationNode.Member]
  private var known: [String] = []
  /// Where the object starts.
  public let position: SourcePosition

  init?(_ node: ConfigurationNode, path: [String], report: ConfigurationReport) {
    guard case .object(let members) = node.value else {
      report.problems.append(
        .init(
          position: node.position, path: path.joined(separator: "."),
          message: "an object { … } is expected here, not \(node.kind)"))
      return nil
    }
    self.report = report
    self.path = path
    self.members = Dictionary(members.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last })
    position = node.position
  }

  // MARK: Reporting

  private func path(of key: String?) -> String {
    (path + (key.map { [$0] } ?? [])).joined(separator: ".")
  }

  private func place(of key: String?) -> SourcePosition {
    key.flatMap { members[$0]?.value.position } ?? position
  }

  /// Puts a problem on record, at the value of `key` or, when it is nil or absent, at the object.
  public func problem(_ key: String?, _ message: String) {
    report.problems.append(.init(position: place(of: key), path: path(of: key), message: message))
  }

  /// Puts something on record that does not stop the program.
  public func warning(_ key: String?, _ message: String) {
    report.warnings.append(.init(position: place(of: key), path: path(of: key), message: message))
  }

  /// Refuses every key that no getter asked for.
  func refuseUnknownKeys() {
    for member in members.values where !known.contains(member.key) {
      let open = known.filter { members[$0] == nil }
      let hint = NearestName.among(open, to: member.key) ?? NearestName.among(known, to: member.key)
      let remedy = hint.map { "did you mean \"\($0)\"?" } ?? "known are \(known.joined(separator: ", "))"
      report.problems.append(
        .init(position: member.position, path: path(of: member.key), message: "unknown key; \(remedy)"))
    }
  }

  /// Takes these keys for known without looking at their values, which are another program's business.
  public func passOver(_ keys: [String]) {
    known += keys
  }

  // MARK: Getting

  /// The names of all members, in no order.
  public var keys: [String] { Array(members.keys) }

  /// True when the key is there, even with a wrong value.
  public func has(_ key: String) -> Bool { members[key] != nil }

  /// Puts it on record where one of these keys is null: null means absent elsewhere, and here it would mean something that
  /// nobody meant.
  func refuseNull(_ expected: [String: String]) {
    for (key, what) in expected {
      guard let node = members[key]?.value, node.value == .null else { continue }
      self.expected(what, key, node)
    }
  }

  /// The node of a key; nil when it is absent or null. With `required`, absence is a problem.
  private func node(_ key: String, required meaning: String?) -> ConfigurationNode? {
    if !known.contains(key) { known.append(key) }
    if let node = members[key]?.value, node.value != .null { return node }
    if let meaning {
      problem(members[key] == nil ? nil : key, "\"\(key)\" is missing; add it: \(meaning)")
    }
    return nil
  }

  private func expected(_ what: String, _ key: String, _ node: ConfigurationNode) {
    problem(key, "\(what) is expected here, not \(node.kind)")
  }

  /// - Parameters:
  ///   - meaning: what the key is for; when given, the key must be there.
  ///   - check: nil when the text is acceptable, else what is wrong and the remedy.
  public func string(
    _ key: String, required meaning: String? = nil, check: (String) -> String? = { _ in nil }
  ) -> String? {
    guard let node = node(key, required: meaning) else { return nil }
    guard case .string(let text) = node.value else {
      expected("a string", key, node)
      return nil
    }
    if text.isEmpty {
      problem(key, "must not be empty")
      return nil
    }
    if let wrong = check(text) ?? SecretText.controlProblem(text) {
      problem(key, wrong)
      return nil
    }
    return text
  }

  /// A string, a number or a boolean that `accepts` allows.
  func scalar(_ key: String, accepts: (JSONValue) -> Bool) -> JSONValue? {
    guard let node = node(key, required: nil) else { return nil }
    let value: JSONValue? =
      switch node.value {
      case .string(let text): .string(text)
      case .number(let number): .number(number)
      case .bool(let flag): .bool(flag)
      case .null, .array, .object: nil
      }
    guard let value, accepts(value) else {
      expected("a string, a whole number, true or false", key, node)
      return nil
    }
    return value
  }

  public func bool(_ key: String) -> Bool? {
    guard let node = node(key, required: nil) else { return nil }
    guard case .bool(let value) = node.value else {
      expected("true or false", key, node)
      return nil
    }
    return value
  }

  public func integer(_ key: String, in range: ClosedRange<Int>) -> Int? {
    guard let node = node(key, required: nil) else { return nil }
    guard case .number(let number) = node.value, let value = number.int64.map({ Int($0) }), range.contains(value) else {
      problem(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
      return nil
    }
    return value
  }

  /// Seconds, with or without a fraction, as nanoseconds.
  public func seconds(_ key: String, in range: ClosedRange<Double>) -> UInt64? {
    guard let node = node(key, required: nil) else { return nil }
    guard case .number(let number) = node.value, range.contains(number.double) else {
      problem(
        key,
        "must be seconds, a number from \(JSONNumber.text(range.lowerBound)) to \(JSONNumber.text(range.upperBound))")
      return nil
    }
    return .seconds(number.double)
  }

  /// One of the raw values of an enumeration.
  public func choice<Choice: RawRepresentable & CaseIterable>(_ key: String, of type: Choice.Type) -> Choice?
  where Choice.RawValue == String {
    guard let node = node(key, required: nil) else { return nil }
    let known = Choice.allCases.map(\.rawValue)
    guard case .string(let text) = node.value else {
      problem(key, "must be one of \(quoted(known))")
      return nil
    }
    guard let choice = Choice(rawValue: text) else {
      problem(key, "must be one of \(quoted(known))\(NearestName.hint(known, for: text))")
      return nil
    }
    return choice
  }

  /// An array of strings that are not empty.
  public func strings(_ key: String, check: (String) -> String? = { _ in nil }) -> [String]? {
    guard let node = node(key, required: nil) else { return nil }
    guard case .array(let elements) = node.value else {
      expected("an array of strings", key, node)
      return nil
    }
    var result: [String] = []
    for (index, element) in elements.enumerated() {
      let path = path(of: key) + ".\(index)"
      guard case .string(let text) = element.value, !text.isEmpty else {
        report.problems.append(.init(position: element.position, path: path, message: "a string is expected here"))
        continue
      }
      if let wrong = check(text) ?? SecretText.controlProblem(text) {
        report.problems.append(.init(position: element.position, path: path, message: wrong))
      }
      result.append(text)
    }
    return result
  }

  /// A nested object; its unknown keys are refused when `body` is done.
  public func object<Result>(
    _ key: String, required meaning: String? = nil, _ body: (ConfigurationObject) -> Result?
  ) -> Result? {
    guard let node = node(key, required: meaning),
      let object = ConfigurationObject(node, path: path + [key], report: report)
    else { return nil }
    let result = body(object)
    object.refuseUnknownKeys()
    return result
  }

  /// Every member of this object as an object of its own, for maps with free keys, in the order of the keys' bytes.
  public func members<Result>(_ body: (String, ConfigurationObject) -> Result?) -> [String: Result] {
    var results: [String: Result] = [:]
    for key in members.keys.sorted(by: JSONWriter.bytewise) {
      if let result = object(key, required: nil, { body(key, $0) }) { results[key] = result }
      if members[key]?.value.value == .null { problem(key, "an object { … } is expected here, not null") }
    }
    return results
  }

  /// Every member of this object as a choice, for maps with free keys.
  public func choices<Choice: RawRepresentable & CaseIterable>(of type: Choice.Type) -> [String: Choice]
  where Choice.RawValue == String {
    var results: [String: Choice] = [:]
    for key in members.keys.sorted(by: JSONWriter.bytewise) { results[key] = choice(key, of: type) }
    return results
  }

  /// A path, relative to the folder of the configuration file.
  public func path(_ key: String, required meaning: String? = nil) -> String? {
    string(key, required: meaning) { text in
      text.utf8.contains(0) ? "a path cannot hold a NUL character" : nil
    }.map { HostFile.resolve($0, in: report.directory) }
  }

  /// A secret: a string, `{"file": path}` or `{"env": name}`. It is read at once, so that a missing file is reported
  /// with everything else.
  ///
  /// - Parameters:
  ///   - form: what it may consist of.
  ///   - isPublic: true for what may be seen by anyone; then nothing warns about who can read it.
  public func secret(
    _ key: String, form: SecretText.Form = .text, required meaning: String? = nil, isPublic: Bool = false
  ) -> ConfigurationSecret? {
    guard let node = node(key, required: meaning) else { return nil }
    switch node.value {
    case .string(let text):
      // Kept as it is written: only what comes out of a file or a variable has blanks at its ends by accident.
      if let wrong = text.trimmed.isEmpty ? "must not be empty" : SecretText.problem(text, form) {
        problem(key, wrong)
        return nil
      }
      if report.fileIsWorldReadable, !isPublic {
        warning(
          key,
          "every user of this host can read this secret; chmod 600 the configuration, or give it as {\"file\": …} or {\"env\": …}"
        )
      }
      return ConfigurationSecret(literal: text)
    case .object:
      return object(key) { object in
        let file = object.path("file")
        let variable = object.string("env")
        switch (file, variable) {
        case (let file?, nil): return object.read(.file(path: file), form, key: "file", isPublic: isPublic)
        case (nil, let variable?):
          return object.read(.environment(variable: variable), form, key: "env", isPublic: isPublic)
        default:
          if object.has("file") == object.has("env") {
            object.problem(nil, "give either {\"file\": path} or {\"env\": name}")
          }
          return nil
        }
      }
    default:
      problem(key, "a string, {\"file\": path} or {\"env\": name} is expected here, not \(node.kind)")
      return nil
    }
  }

  /// A secret whose key names the file itself, as in `"passwordFile": "…"`.
  public func secretFile(
    _ key: String, form: SecretText.Form = .text, required meaning: String? = nil
  ) -> ConfigurationSecret? {
    path(key, required: meaning).flatMap { read(.file(path: $0), form, key: key, isPublic: false) }
  }

  private func read(
    _ source: ConfigurationSecret.Source, _ form: SecretText.Form, key: String, isPublic: Bool
  ) -> ConfigurationSecret? {
    do throws(ConfigurationSecretError) {
      let secret = try ConfigurationSecret(reading: source, form: form)
      if case .file(let path) = source, !isPublic, HostFile.isWorldReadable(path) {
        warning(key, "every user of this host can read the secret file \(path); chmod 600 it")
      }
      return secret
    } catch {
      if report.secrets == .ifReadable { return ConfigurationSecret(unread: source, form: form) }
      problem(key, error.message)
      return nil
    }
  }

  private func quoted(_ names: [String]) -> String {
    names.map { "\"\($0)\"" }.joined(separator: ", ")
  }
}

extension JSONNumber {
  static func text(_ value: Double) -> String { JSONNumber(value)?.lexeme ?? "\(value)" }
}
