import CLinux
import Glibc

/// The kernel's notices (inotify) that a database's write-ahead log changed, was made, or was put in place.
final class LogNotifications: Sendable {
  /// Readable when `take` has something to do.
  let descriptor: Int32
  private let files: DatabaseFiles
  private let logName: String

  /// - Throws: `ForeignCommitWatcherError` when the folder cannot be watched.
  init(_ files: DatabaseFiles) throws(ForeignCommitWatcherError) {
    self.files = files
    logName = DatabaseFiles.name(of: files.writeAheadLog)
    descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard descriptor >= 0 else { throw ForeignCommitWatcherError(directory: files.directory, errno: errno) }
    // The folder too, because the log may not exist yet, and goes with the last connection.
    guard inotify_add_watch(descriptor, files.directory, Self.folderMask) >= 0 else {
      // `deinit` closes the descriptor, because all properties are set.
      throw ForeignCommitWatcherError(directory: files.directory, errno: errno)
    }
    watchLog()
  }

  deinit { close(descriptor) }

  private static let folderMask = UInt32(IN_CREATE) | UInt32(IN_MOVED_TO) | UInt32(IN_ONLYDIR)

  /// Adding the same file again changes nothing; a missing one is added once the folder tells of it.
  private func watchLog() {
    _ = inotify_add_watch(descriptor, files.writeAheadLog, UInt32(IN_MODIFY))
  }

  /// Empties the queue without waiting; true when it held a sign that somebody may have committed.
  func take() -> Bool {
    var isSign = false
    withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: MemoryLayout<inotify_event>.alignment) { buffer in
      while true {
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count <= 0 { return }
        var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        while rest.count >= MemoryLayout<inotify_event>.size {
          let event = rest.load(as: inotify_event.self)
          let end = MemoryLayout<inotify_event>.size + Int(event.len)
          let name = rest[MemoryLayout<inotify_event>.size..<end].prefix { $0 != 0 }
          if isSignOfCommit(event.mask, name: name) { isSign = true }
          rest = UnsafeRawBufferPointer(rebasing: rest[end...])
        }
      }
    }
    return isSign
  }

  private func isSignOfCommit(_ mask: UInt32, name: some Sequence<UInt8>) -> Bool {
    // Notices were lost: any of them may have been one of ours.
    let isOverflow = mask & UInt32(IN_Q_OVERFLOW) != 0
    let isNewFile = mask & (UInt32(IN_CREATE) | UInt32(IN_MOVED_TO)) != 0
    if isOverflow || isNewFile && name.elementsEqual(logName.utf8) {
      watchLog()
      return true
    }
    return mask & UInt32(IN_MODIFY) != 0
  }
}

/// Why foreign commits cannot be noticed.
struct ForeignCommitWatcherError: Error, Sendable, Hashable, CustomStringConvertible {
  let directory: String
  let errno: Int32

  var description: String {
    let reason = String(cString: strerror(errno))
    return switch errno {
    case EMFILE: "the changes in \(directory) cannot be watched: \(reason); raise fs.inotify.max_user_instances"
    case ENOSPC: "the changes in \(directory) cannot be watched: \(reason); raise fs.inotify.max_user_watches"
    default: "the changes in \(directory) cannot be watched: \(reason)"
    }
  }
}
