import HostKit

/// The lossless JSON reader refuses or reads; what it read is written and read again as the same; stepping over a
/// document agrees with building it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeRawBufferPointer(start: start, count: count)
  let value = try? JSONValue(parsing: bytes)
  var cursor = JSONCursor(bytes)
  let isSkipped: Bool
  do {
    _ = try cursor.skipValue()
    try cursor.expectEnd()
    isSkipped = true
  } catch { isSkipped = false }
  // Stepping over looks at less than building; it may only be the more lenient of the two.
  precondition(value == nil || isSkipped, "built and not stepped over")
  guard let value else { return 0 }
  let text = JSONWriter.data(value)
  guard let second = try? JSONValue(parsing: text) else { preconditionFailure("wrote what cannot be read") }
  precondition(second == value, "read again as another value")
  precondition(JSONWriter.data(second) == text, "written again as another text")
  return 0
}
