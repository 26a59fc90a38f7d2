import CLibwebsockets

/// Hands one item of a send queue to libwebsockets.
enum LwsWriter {
  /// - Returns: below zero when the connection is lost.
  static func write(_ item: SendQueue.Item, to wsi: OpaquePointer) -> Int32 {
    switch item {
    case .ping: write(EmptyCollection<UInt8>(), LWS_WRITE_PING, wsi)
    case .message(.text(let text)): write(text.utf8, LWS_WRITE_TEXT, wsi)
    case .message(.binary(let bytes)): write(bytes, LWS_WRITE_BINARY, wsi)
    }
  }

  /// libwebsockets writes the frame header in front of the payload and masks it in place, so it gets a copy with room.
  private static func write(
    _ payload: some Collection<UInt8>, _ kind: lws_write_protocol, _ wsi: OpaquePointer
  ) -> Int32 {
    let room = kd_lws_pre()
    let count = payload.count
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: room + count) { buffer in
      _ = UnsafeMutableBufferPointer(rebasing: buffer[room...]).update(fromContentsOf: payload)
      // The buffer has at least `room` bytes.
      return lws_write(wsi, buffer.baseAddress! + room, count, kind)
    }
  }
}
