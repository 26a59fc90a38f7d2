import HostKit

/// A configuration file is refused with problems that have a place in the text, or read; JSON is always read, and as
/// the JSON reader reads it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  let text = String(decoding: bytes, as: UTF8.self)
  let lines = text.utf8.count(where: { $0 == 0x0A || $0 == 0x0D }) + 1
  do throws(ConfigurationError) {
    // A table of tables, as both programs have them, and one of everything else.
    _ = try ConfigurationDocument.decode(file: "/nonexistent/fuzz.json", text: text) { root -> Int? in
      _ = root.string("host")
      _ = root.integer("port", in: 0...65_535)
      _ = root.path("directory")
      _ = TableDeclaration.decodeTables(root)
      return 1
    }
  } catch {
    precondition(!error.problems.isEmpty, "refused without a problem")
    for problem in error.problems {
      guard let position = problem.position else { preconditionFailure("a problem without a place") }
      precondition(position.line >= 1 && position.line <= lines, "a problem outside of the text")
      precondition(position.column >= 1, "a problem before the line")
      precondition(!problem.message.isEmpty, "a problem without words")
    }
    precondition(!error.description.isEmpty)
  }
  return 0
}
