import CLibwebsockets

/// Keeps libwebsockets from printing. What matters to a user reaches him as the error of a connection.
enum LwsLog {
  private static let installed: Void = lws_set_log_level(0) { _, _ in }

  static func install() {
    _ = installed
  }
}
