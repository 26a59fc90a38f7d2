/// How the commands of this package end.
public enum ExitCode: Int32, Sendable, CaseIterable {
  case ok = 0
  /// Something failed that has no code of its own.
  case failure = 1
  /// The command line was wrong.
  case usage = 2
  /// Everything went well, but writes are left in the queue or were refused, or a database is not as provisioned.
  case workLeft = 3
  /// The configuration was wrong.
  case configuration = 4
  /// The server or the session owner refused the credentials.
  case authentication = 5
  /// Another process holds the database.
  case locked = 6
  /// The database or the disk failed.
  case database = 7
  /// The server could not be reached.
  case unreachable = 8
  /// The address to listen on is taken.
  case addressInUse = 9
  /// Stopped by a signal before the work was done.
  case interrupted = 130

  /// A few words for the help.
  var meaning: String {
    switch self {
    case .ok: "everything was done"
    case .failure: "failed, for a reason without a code of its own"
    case .usage: "the command line is wrong"
    case .workLeft: "writes are left in the queue, the server refused some, or a database is not as provisioned"
    case .configuration: "the configuration is wrong"
    case .authentication: "the server refused the credentials"
    case .locked: "another process holds the database"
    case .database: "the database or the disk failed"
    case .unreachable: "the server cannot be reached"
    case .addressInUse: "the address to listen on cannot be used"
    case .interrupted: "interrupted before the work was done"
    }
  }
}
