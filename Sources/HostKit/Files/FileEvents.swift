import CLinux
import Glibc

/// What happens to files, told by the kernel (inotify).
///
/// One instance serves the whole process, because the kernel gives all processes of a user only 128 of them. Its thread
/// starts with the first watch, sleeps between events and never ends.
public final class FileEvents: Sendable {
  public static let shared = FileEvents()

  public struct Kinds: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let modified = Kinds(rawValue: UInt32(IN_MODIFY))
    public static let closedAfterWriting = Kinds(rawValue: UInt32(IN_CLOSE_WRITE))
    /// In a watched folder.
    public static let created = Kinds(rawValue: UInt32(IN_CREATE))
    /// Into a watched folder.
    public static let movedIn = Kinds(rawValue: UInt32(IN_MOVED_TO))
    /// From a watched folder.
    public static let removed = Kinds(rawValue: UInt32(IN_DELETE))
    /// Out of a watched folder.
    public static let movedOut = Kinds(rawValue: UInt32(IN_MOVED_FROM))
    /// The watched file or folder itself.
    public static let selfRemoved = Kinds(rawValue: UInt32(IN_DELETE_SELF))
    public static let selfMoved = Kinds(rawValue: UInt32(IN_MOVE_SELF))
    /// Events were lost; anything may have happened. Always told.
    public static let overflow = Kinds(rawValue: UInt32(IN_Q_OVERFLOW))
  }

  /// - Parameters:
  ///   - kinds: usually one.
  ///   - name: of the file within a watched folder; empty for a watched file.
  public typealias Handler = @Sendable (_ kinds: Kinds, _ name: String) -> Void

  private struct Entry {
    let kinds: Kinds
    let handler: Handler
  }

  private struct State {
    var descriptor: Int32 = -1
    /// By the kernel's number of the watch, which all entries for the same file share.
    var entries: [Int32: [UInt64: Entry]] = [:]
    var nextID: UInt64 = 0
  }

  private let state = Locked(State())

  private init() {}

  /// Calls `handler` for each event of the file or folder at `path`, links followed, until the watch is let go. Calls come
  /// on one thread for the whole process, so they must be short. A file that is removed is not watched any more.
  /// - Throws: `HostFileError`.
  public func watch(_ path: String, for kinds: Kinds, _ handler: @escaping Handler) throws(HostFileError)
    -> FileEventWatch
  {
    // The lock keeps the thread from handing out events before their entry is there.
    let outcome = state.withLock { state -> Result<FileEventWatch, HostFileError> in
      if state.descriptor < 0 {
        state.descriptor = inotify_init1(Int32(IN_CLOEXEC))
        guard state.descriptor >= 0 else {
          return .failure(HostFileError(path: path, reason: Self.reason(errno, "fs.inotify.max_user_instances")))
        }
        let descriptor = state.descriptor
        HostThread.detach(name: "kizuna-inotify") { self.run(descriptor) }
      }
      let number = inotify_add_watch(state.descriptor, path, kinds.rawValue | UInt32(IN_MASK_ADD))
      guard number >= 0 else {
        let code = errno
        return .failure(
          code == ENOSPC
            ? HostFileError(path: path, reason: Self.reason(code, "fs.inotify.max_user_watches"))
            : HostFileError(path: path, code: code))
      }
      state.nextID += 1
      state.entries[number, default: [:]][state.nextID] = Entry(kinds: kinds, handler: handler)
      return .success(FileEventWatch(self, number: number, id: state.nextID))
    }
    return try outcome.get()
  }

  private static func reason(_ code: Int32, _ setting: String) -> String {
    "\(String(cString: strerror(code))); raise \(setting)"
  }

  fileprivate func remove(number: Int32, id: UInt64) {
    state.withLock { state in
      state.entries[number]?[id] = nil
      guard state.entries[number]?.isEmpty == true else { return }
      state.entries[number] = nil
      inotify_rm_watch(state.descriptor, number)
    }
  }

  // MARK: On the thread

  /// Milliseconds from one look at the events to the next, so that a burst costs two wake-ups and not one each.
  private static let pause: Int32 = 2

  private func run(_ descriptor: Int32) {
    let size = 16 << 10
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: size, alignment: MemoryLayout<inotify_event>.alignment)
    while true {
      let count = read(descriptor, buffer.baseAddress, size)
      // Nothing but an interruption can go wrong with a descriptor that is ours alone.
      if count <= 0 { continue }
      var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      while rest.count >= MemoryLayout<inotify_event>.size {
        let event = rest.load(as: inotify_event.self)
        let end = MemoryLayout<inotify_event>.size + Int(event.len)
        let name = rest[MemoryLayout<inotify_event>.size..<end].prefix { $0 != 0 }
        tell(event, name: String(decoding: name, as: UTF8.self))
        rest = UnsafeRawBufferPointer(rebasing: rest[end...])
      }
      // One commit is a dozen writes; those that follow are told as one.
      _ = poll(nil, 0, Self.pause)
    }
  }

  private func tell(_ event: inotify_event, name: String) {
    let happened = Kinds(rawValue: event.mask)
    let handlers = state.withLock { state -> [Handler] in
      if event.mask & UInt32(IN_IGNORED) != 0 {
        // The file is gone, and its number with it.
        state.entries[event.wd] = nil
        return []
      }
      if happened.contains(.overflow) { return state.entries.values.flatMap(\.values).map(\.handler) }
      return (state.entries[event.wd] ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        .filter { !$0.kinds.isDisjoint(with: happened) }.map(\.handler)
    }
    for handler in handlers { handler(happened, name) }
  }
}

/// Ends with `cancel()`, or when it is let go.
public final class FileEventWatch: Sendable {
  private let events: FileEvents
  private let number: Int32
  private let id: UInt64

  init(_ events: FileEvents, number: Int32, id: UInt64) {
    self.events = events
    self.number = number
    self.id = id
  }

  deinit { cancel() }

  /// Afterwards the handler is not called any more, except for a call already under way. Idempotent.
  public func cancel() {
    events.remove(number: number, id: id)
  }
}
