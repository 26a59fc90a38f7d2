import HostKit
import KizunaDoorbell

/// Prints findings: a line or two for each as they come, or one JSON object at the end.
final class DoctorReport: Sendable {
  private let isJSON: Bool
  private let findings = Locked<[Finding]>([])

  init(isJSON: Bool) {
    self.isJSON = isJSON
  }

  func add(_ finding: Finding) {
    findings.withLock { $0.append(finding) }
    if !isJSON { StandardStreams.print(Self.text(finding)) }
  }

  func add(_ new: [Finding]) { new.forEach(add) }

  /// - Returns: how the command ends.
  func end() -> ExitCode {
    let all = findings.withLock { $0 }
    if isJSON {
      StandardStreams.print(JSONWriter.text(Self.json(all)))
    } else {
      let counts = Finding.Status.allCases.map { status in
        "\(all.filter { $0.status == status }.count) \(status.rawValue)"
      }
      StandardStreams.print(counts.joined(separator: ", "))
    }
    return all.exitCode
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
