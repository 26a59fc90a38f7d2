import CLinux
import Glibc

/// Tells when a file may have been replaced or rewritten, without polling.
///
/// The folder is watched, not the file, because careful writers replace files by renaming, and mounted secrets are links
/// that are turned to another folder. A file rewritten behind a link in another folder is not noticed.
public final class FileWatch: Sendable {
  private let core: Core

  /// - Parameter changed: called on the watch's own thread, after a change is complete. Must be short.
  /// - Throws: `HostFileError` when the folder cannot be watched.
  public init(_ path: String, changed: @escaping @Sendable () -> Void) throws(HostFileError) {
    core = try Core(path, changed)
    let core = core
    HostThread.detach(name: "kizuna-file") { core.run() }
  }

  deinit { core.stop() }

  /// Afterwards `changed` is not called any more, except for a call already under way. Idempotent.
  public func stop() { core.stop() }

  private final class Core: Sendable {
    private let name: [UInt8]
    private let changed: @Sendable () -> Void
    private let isStopped = Locked(false)
    private let notifications: Int32
    private let bell: Int32

    init(_ path: String, _ changed: @escaping @Sendable () -> Void) throws(HostFileError) {
      let folder = HostFile.directory(of: path)
      name = Array((path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]).utf8)
      self.changed = changed
      notifications = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
      guard notifications >= 0 else { throw HostFileError(path: folder, code: errno) }
      let mask = UInt32(IN_CLOSE_WRITE) | UInt32(IN_CREATE) | UInt32(IN_MOVED_TO) | UInt32(IN_ONLYDIR)
      guard inotify_add_watch(notifications, folder, mask) >= 0 else {
        let reason = errno
        close(notifications)
        throw HostFileError(path: folder, code: reason)
      }
      bell = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    }

    deinit {
      close(notifications)
      close(bell)
    }

    func stop() {
      isStopped.withLock { $0 = true }
      var one: UInt64 = 1
      _ = write(bell, &one, 8)
    }

    func run() {
      while true {
        var descriptors = [
          pollfd(fd: notifications, events: Int16(POLLIN), revents: 0),
          pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&descriptors, 2, -1)
        if isStopped.withLock({ $0 }) { return }
        if take() { changed() }
      }
    }

    private func take() -> Bool {
      var isChange = false
      withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: MemoryLayout<inotify_event>.alignment) { buffer in
        while true {
          let count = read(notifications, buffer.baseAddress, buffer.count)
          if count <= 0 { return }
          var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
          while rest.count >= MemoryLayout<inotify_event>.size {
            let event = rest.load(as: inotify_event.self)
            let end = MemoryLayout<inotify_event>.size + Int(event.len)
            let changedName = rest[MemoryLayout<inotify_event>.size..<end].prefix { $0 != 0 }
            if isChangeOfFile(event.mask, changedName) { isChange = true }
            rest = UnsafeRawBufferPointer(rebasing: rest[end...])
          }
        }
      }
      return isChange
    }

    /// The file itself was closed after writing or put in place, or something it may point through was.
    private func isChangeOfFile(_ mask: UInt32, _ changedName: some Sequence<UInt8>) -> Bool {
      if mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
      let isOwn = changedName.elementsEqual(name)
      if mask & UInt32(IN_CLOSE_WRITE) != 0 { return isOwn }
      return isOwn || mask & UInt32(IN_MOVED_TO) != 0
    }
  }
}
