/// How a command ends when it could not do what was asked: an exit code and a sentence with the remedy.
///
/// Libraries throw their own errors; a command turns them into this once, at the top, where it is printed.
public struct CommandFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public let exitCode: ExitCode
  public let message: String

  public init(_ exitCode: ExitCode, _ message: String) {
    self.exitCode = exitCode
    self.message = message
  }

  public var description: String { message }
}
