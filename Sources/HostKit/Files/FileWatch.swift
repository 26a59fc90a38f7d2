/// Tells when a file may have been replaced or rewritten, without polling.
///
/// Folders are watched, not the file, because careful writers replace files by renaming, and mounted secrets are links
/// that are turned to another folder: the folder of the path, and of each link on the way, among its folders too, and of
/// each file it leads to.
public final class FileWatch: Sendable {
  private struct State {
    /// One for each folder and name on the way.
    var watches: [LinkPath.Step: FileEventWatch] = [:]
    var isStopped = false
  }

  private let path: String
  private let changed: @Sendable () -> Void
  private let state = Locked(State())

  /// - Parameter changed: called after a change is complete, on the thread of `FileEvents`. Must be short.
  /// - Throws: `HostFileError` when the folder cannot be watched.
  public init(_ path: String, changed: @escaping @Sendable () -> Void) throws(HostFileError) {
    self.path = path
    self.changed = changed
    // Links among the folders and the file itself may come later; this folder must be there.
    let first = LinkPath.place(of: path)
    let watch = try watch(first)
    state.withLock { $0.watches[first] = watch }
    follow()
  }

  deinit { stop() }

  /// Afterwards `changed` is not called any more, except for a call already under way. Idempotent.
  public func stop() {
    let watches = state.withLock { state in
      state.isStopped = true
      defer { state.watches = [:] }
      return state.watches
    }
    for watch in watches.values { watch.cancel() }
  }

  private func watch(_ step: LinkPath.Step) throws(HostFileError) -> FileEventWatch {
    try FileEvents.shared.watch(step.folder, for: [.closedAfterWriting, .created, .movedIn]) {
      [weak self] kinds, name in
      // The file itself was closed after writing or put in place, or something it may point through was.
      if name == step.name || !kinds.isDisjoint(with: [.movedIn, .overflow]) { self?.happened() }
    }
  }

  private func happened() {
    // First, so that a change of where the links lead to now is not missed.
    follow()
    changed()
  }

  /// Watches where the links lead now. A folder that cannot be watched is left out: the first one can.
  private func follow() {
    let steps = LinkPath.steps(of: path)
    let known = state.withLock { Set($0.watches.keys) }
    var new: [LinkPath.Step: FileEventWatch] = [:]
    for step in steps.subtracting(known) { new[step] = try? watch(step) }
    let obsolete = state.withLock { state -> [FileEventWatch] in
      if state.isStopped { return Array(new.values) }
      var obsolete: [FileEventWatch] = []
      for (step, watch) in new { if let old = state.watches.updateValue(watch, forKey: step) { obsolete.append(old) } }
      for step in state.watches.keys where !steps.contains(step) {
        if let old = state.watches.removeValue(forKey: step) { obsolete.append(old) }
      }
      return obsolete
    }
    for watch in obsolete { watch.cancel() }
  }
}
