import HostKit
import KizunaDoorbell

/// Prints findings: a line or two for each as they come, or one JSON object at the end.
final class DoctorReport: Sendable {
  private let isJSON: Bool
  private let findings = Locked<[Finding]>([])
  /// Skipped for one and the same reason, and not printed yet: they make one line.
  private let alike = Locked<[Finding]>([])

  init(isJSON: Bool) {
    self.isJSON = isJSON
  }

  func add(_ finding: Finding) {
    findings.withLock { $0.append(finding) }
    guard !isJSON else { return }
    let lines = alike.withLock { alike -> [String] in
      if finding.isBareSkip, alike.first.map({ $0.text == finding.text }) != false {
        alike.append(finding)
        return []
      }
      let before = Self.folded(alike)
      alike = finding.isBareSkip ? [finding] : []
      return finding.isBareSkip ? before : before + [Self.text(finding)]
    }
    for line in lines { StandardStreams.print(line) }
  }

  func add(_ new: [Finding]) { new.forEach(add) }

  /// - Returns: how the command ends.
  func end() -> ExitCode {
    let all = findings.withLock { $0 }
    if isJSON {
      StandardStreams.print(JSONWriter.text(Self.json(all)))
    } else {
      for line in alike.withLock({ Self.folded($0) }) { StandardStreams.print(line) }
      let counts = Finding.Status.allCases.map { status in
        "\(all.filter { $0.status == status }.count) \(status.rawValue)"
      }
      StandardStreams.print(counts.joined(separator: ", "))
    }
    return all.exitCode
  }

  /// A line for each of a few, one for all of many.
  private static func folded(_ alike: [Finding]) -> [String] {
    guard alike.count > 3 else { return alike.map(text) }
    var names: [String] = []
    for name in alike.map(\.check.rawValue) where names.last != name { names.append(name) }
    return [
      "\(pad(Finding.Status.skipped.rawValue, 8)) \(pad("\(alike.count) checks", 16)) \(alike[0].text): "
        + names.joined(separator: ", ")
    ]
  }

  static func text(_ finding: Finding) -> String {
    let check = finding.check.rawValue + (finding.subject.map { " " + $0 } ?? "")
    let line = "\(pad(finding.status.rawValue, 8)) \(pad(check, 16)) \(finding.text)"
    return finding.remedy.map { "\(line)\n\(pad("", 25)) → \($0)" } ?? line
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  static func json(_ findings: [Finding]) -> JSONValue {
    let list = findings.map { finding -> JSONValue in
      [
        "check": .string(finding.check.rawValue), "table": .string(orNull: finding.subject),
        "status": .string(finding.status.rawValue), "text": .string(finding.text),
        "remedy": .string(orNull: finding.remedy),
      ]
    }
    return ["checks": .array(list), "exit_code": .int(Int(findings.exitCode.rawValue))]
  }
}

extension Finding {
  /// Skipped, and nothing is to be said but why.
  fileprivate var isBareSkip: Bool { status == .skipped && remedy == nil }
}
