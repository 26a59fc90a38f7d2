/// Tells when a file may have been replaced or rewritten, without polling.
///
/// The folder is watched, not the file, because careful writers replace files by renaming, and mounted secrets are links
/// that are turned to another folder. A file rewritten behind a link in another folder is not noticed.
public final class FileWatch: Sendable {
  private let watch: FileEventWatch

  /// - Parameter changed: called after a change is complete, on the thread of `FileEvents`. Must be short.
  /// - Throws: `HostFileError` when the folder cannot be watched.
  public init(_ path: String, changed: @escaping @Sendable () -> Void) throws(HostFileError) {
    let file = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    watch = try FileEvents.shared.watch(
      HostFile.directory(of: path), for: [.closedAfterWriting, .created, .movedIn]
    ) { kinds, name in
      // The file itself was closed after writing or put in place, or something it may point through was.
      if name == file || !kinds.isDisjoint(with: [.movedIn, .overflow]) { changed() }
    }
  }

  /// Afterwards `changed` is not called any more, except for a call already under way. Idempotent.
  public func stop() { watch.cancel() }
}
