import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync

/// A sync that another process does: the running gateway is woken, and the queue watched until it is empty.
enum SyncBesideRun {
  private static let patience: UInt64 = .seconds(30)
  /// The queue is looked at this often; nothing tells another process that it is empty.
  private static let interval: UInt64 = .milliseconds(20)

  static func run(_ configuration: GatewayConfiguration, pid: Int32, log: HostLog) async throws -> ExitCode {
    let started = SystemClock.monotonic
    let before = try await status(of: configuration)
    guard kill(pid, SIGHUP) == 0 else {
      throw CommandFailure(
        .locked, "process \(pid) synchronises the database and cannot be woken: \(String(cString: strerror(errno)))")
    }
    log.info("sync.asked", ["pid": .int(Int(pid))])
    var status = before
    while status.outboxDepth > 0, SystemClock.monotonic - started < patience {
      try await SystemClock.shared.sleep(nanoseconds: interval)
      status = try await self.status(of: configuration)
    }
    let rejected = max(0, status.rejections - before.rejections)
    let isDelivered = status.outboxDepth == 0 && rejected == 0 && status.softBlock == nil
    StandardStreams.print(
      JSONWriter.text([
        "ok": .bool(isDelivered), "outbox_depth": .int(status.outboxDepth), "rejected": .int(rejected),
        "cursor": .string(status.cursor), "blocked": .string(orNull: status.softBlock),
        "duration_ms": .int(Int((SystemClock.monotonic - started).inMilliseconds.rounded())), "by": "run",
      ]))
    if let block = status.softBlock { StandardStreams.printError("kizuna-doorbell: \(SoftBlock.sentence(block))") }
    return isDelivered ? .ok : .workLeft
  }

  private static let thread = SerialThread(name: "kizuna-status")

  private static func status(of configuration: GatewayConfiguration) async throws -> KizunaSyncReplicaStatus {
    try await withCheckedThrowingContinuation { continuation in
      thread.run {
        continuation.resume(with: Result { try KizunaSyncReplicaStatus.read(databasePath: configuration.database) })
      }
    }
  }
}
