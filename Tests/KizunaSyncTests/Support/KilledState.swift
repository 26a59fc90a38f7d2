import Foundation
import HostKit
import SyncServer

@testable import KizunaSync

/// What a process that is killed now leaves behind: the files as they are, and what the server has done until then.
struct KilledState: Equatable {
  var database: [UInt8]
  var log: [UInt8]
  var instance: String?
  var server: String

  /// Writes the files as they were; everybody else's memory of them is gone with the process.
  func restore(_ path: String) throws {
    let files = DatabaseFiles(path)
    for old in [path, files.writeAheadLog, files.sharedMemory, files.instance] { unlink(old) }
    try Data(database).write(to: URL(fileURLWithPath: path))
    if !log.isEmpty { try Data(log).write(to: URL(fileURLWithPath: files.writeAheadLog)) }
    if let instance { try InstanceFile(path).write(instance) }
  }
}

/// Notes every state that a kill could leave behind while something runs.
final class KillRecorder: Sendable {
  private struct State {
    var descriptors: [String: Int32] = [:]
    var states: [(files: KilledState, server: SyncServerState)] = []
    /// How often it was looked.
    var moments = 0
  }

  private let path: String
  private let transport: ModelTransport
  private let state = Locked(State())

  init(_ path: String, _ transport: ModelTransport) {
    self.path = path
    self.transport = transport
  }

  var moments: Int { state.withLock { $0.moments } }
  var states: [(files: KilledState, server: SyncServerState)] { state.withLock { $0.states } }

  func start() {
    // What readers run changes nothing, and may run at any moment.
    StatementSpy.watch(path) { [self] _, writes in if writes { note() } }
    transport.afterAnswer.withLock { $0 = { [self] in note() } }
  }

  func stop() {
    StatementSpy.watch(path, nil)
    transport.afterAnswer.withLock { $0 = nil }
    state.withLock { state in
      for descriptor in state.descriptors.values { close(descriptor) }
      state.descriptors = [:]
    }
  }

  private func note() {
    let server = transport.server.withLock { $0 }
    state.withLock { state in
      state.moments += 1
      let files = DatabaseFiles(path)
      let now = KilledState(
        database: Self.bytes(path, &state.descriptors), log: Self.bytes(files.writeAheadLog, &state.descriptors),
        instance: InstanceFile(path).read(), server: server.dump())
      if state.states.last?.files != now { state.states.append((now, server)) }
    }
  }

  /// Closing any descriptor of a database takes its locks from this whole process, so they stay open to the end.
  private static func bytes(_ path: String, _ descriptors: inout [String: Int32]) -> [UInt8] {
    if descriptors[path] == nil {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 { descriptors[path] = descriptor }
    }
    guard let descriptor = descriptors[path] else { return [] }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
  }
}
