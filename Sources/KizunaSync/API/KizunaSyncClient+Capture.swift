/// For apps that change the schema of their own tables.
extension KizunaSyncClient {
  /// Ends capture on all tables and refuses every write to them, of any process, so that an app can drop a column of its
  /// own table: SQLite refuses that while a trigger names the column. Call ``dispose()`` next, change the schema, and
  /// ``create(_:)`` again, which turns capture on.
  public func turnCaptureOff() async throws {
    try await engine().turnCaptureOff()
  }
}
