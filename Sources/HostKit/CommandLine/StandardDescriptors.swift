import Glibc

/// Descriptors 0 to 2 as every program expects them: open.
public enum StandardDescriptors {
  /// Opens `/dev/null` in the place of each that is closed, else the next file, pipe or socket would take its number, and
  /// be read, written to or closed as the standard stream. First of all, in every program.
  ///
  /// Standard output cannot be written then, as while it was closed: a result that nobody gets is told as lost.
  public static func fill() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one, because those below are open by now.
      _ = open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR)
    }
  }
}
