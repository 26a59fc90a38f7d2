import Glibc

/// The host's identity, where the system has one.
enum MachineID {
  static func read(from path: String = "/etc/machine-id") -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let text = String(decoding: bytes[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
