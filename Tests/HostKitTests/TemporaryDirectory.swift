import Glibc
import HostKit

/// A folder that is gone when `body` returns.
func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  var template = Array("/tmp/kizuna-host-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { throw HostFileError(path: "/tmp", code: errno) }
  let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer {
    if let entries = opendir(folder) {
      while let entry = readdir(entries) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        unlink(folder + "/" + name)
      }
      closedir(entries)
    }
    rmdir(folder)
  }
  return try body(folder)
}

func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode)
  guard descriptor >= 0 else { throw HostFileError(path: path, code: errno) }
  defer { close(descriptor) }
  fchmod(descriptor, mode)
  guard
    Glibc.write(descriptor, bytes, bytes.count) == bytes.count
  else { throw HostFileError(path: path, code: errno) }
}
