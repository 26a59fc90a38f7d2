#if Postgres
  import CPostgres
  import Glibc
  import HostKit
  import LocalStack

  /// Reads what transactions put into `realtime.messages`: after their commit, in commit order, and none of those that
  /// were rolled back, because notifications are given so.
  ///
  /// It has a thread and a session of its own. When the session is lost it makes another, and reads the messages that
  /// were committed meanwhile from the table, in the order in which they were written.
  final class MessageListener: Sendable {
    struct Message: Sendable {
      var id: String
      var topic: String
      var event: String
      var payload: [String: JSONValue]
      var isPrivate: Bool
    }

    private struct State {
      var isStopped = false
      var isListening = false
      var whenEnded: CheckedContinuation<Void, Never>?
      var hasEnded = false
    }

    static let channel = "kizuna_realtime"
    /// How far back messages are looked for after a loss, beyond its length: a transaction may have begun that much
    /// earlier.
    private static let margin: UInt64 = .seconds(600)

    private let address: PostgresAddress
    private let log: HostLog
    private let wake: WakePipe
    private let state = Locked(State())
    private let deliver: @Sendable ([Message], _ notifiedAt: UInt64) -> Void
    private let schemaChanged: @Sendable () -> Void

    /// - Parameters:
    ///   - deliver: called on the listener's thread, in commit order; with the time on `CLOCK_MONOTONIC` at which the
    ///     notification was there.
    ///   - schemaChanged: called for `NOTIFY pgrst`, which migrations send to PostgREST.
    init(
      _ address: PostgresAddress, log: HostLog, deliver: @escaping @Sendable ([Message], UInt64) -> Void,
      schemaChanged: @escaping @Sendable () -> Void
    ) throws(PostgresError) {
      self.address = address
      self.log = log
      self.deliver = deliver
      self.schemaChanged = schemaChanged
      guard let wake = WakePipe() else { throw PostgresError("53300", "no pipe can be made: too many open files") }
      self.wake = wake
    }

    /// Begins, and returns when notifications are received.
    func start() async throws(PostgresError) {
      let result = await withCheckedContinuation { (started: CheckedContinuation<PostgresError?, Never>) in
        HostThread.detach(name: "kizuna-listen") { self.loop(started) }
      }
      if let result { throw result }
    }

    /// Ends the thread and its session; returns when that is done.
    func stop() async {
      await withCheckedContinuation { continuation in
        let hasEnded = state.withLock { state -> Bool in
          state.isStopped = true
          if !state.hasEnded { state.whenEnded = continuation }
          return state.hasEnded
        }
        if hasEnded { continuation.resume() } else { wake.raise() }
      }
    }

    var isListening: Bool { state.withLock { $0.isListening } }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    // MARK: The thread

    private func loop(_ started: CheckedContinuation<PostgresError?, Never>) {
      var started: CheckedContinuation<PostgresError?, Never>? = started
      var seen = SeenMessages(margin: Self.margin)
      var delay: Int32 = 100
      while !isStopped {
        do throws(PostgresError) {
          let handle = try PostgresHandle(address, name: "kizuna-localstack realtime")
          try handle.script("LISTEN \(Self.channel); LISTEN pgrst")
          try catchUp(handle, &seen, isFirst: started != nil)
          delay = 100
          started?.resume(returning: nil)
          if started == nil { log.info("realtime.listening_again") }
          started = nil
          state.withLock { $0.isListening = true }
          try listen(handle, &seen)
        } catch {
          state.withLock { $0.isListening = false }
          if let waiting = started {
            started = nil
            end()
            return waiting.resume(returning: error)
          }
          if !isStopped { log.warning("realtime.listening_lost", ["code": .string(error.code)]) }
        }
        if !isStopped {
          wake.wait(milliseconds: delay)
          delay = min(delay * 2, 5_000)
        }
      }
      end()
    }

    private func end() {
      let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
        state.hasEnded = true
        defer { state.whenEnded = nil }
        return state.whenEnded
      }
      waiting?.resume()
    }

    private func listen(_ handle: PostgresHandle, _ seen: inout SeenMessages) throws(PostgresError) {
      while !isStopped {
        guard PQconsumeInput(handle.pointer) == 1 else {
          throw PostgresError("08006", "the connection to the database was lost")
        }
        let at = SystemClock.monotonic
        var ids: [String] = []
        var isSchemaChanged = false
        while let notification = PQnotifies(handle.pointer) {
          let channel = String(cString: notification.pointee.relname)
          let text = String(cString: notification.pointee.extra)
          PQfreemem(notification)
          if channel == Self.channel {
            // The id of the row, and when its transaction began.
            if let id = text.split(separator: " ").first { ids.append(String(id)) }
          } else {
            isSchemaChanged = true
          }
        }
        if isSchemaChanged { schemaChanged() }
        guard ids.isEmpty else {
          let fresh = seen.fresh(ids, at: at)
          do throws(PostgresError) {
            if !fresh.isEmpty { deliver(try messages(fresh, handle), at) }
          } catch {
            // They are found in the table once there is a session again.
            seen.forget(fresh)
            throw error
          }
          continue
        }
        wake.wait(with: PQsocket(handle.pointer))
      }
    }

    /// The rows of some ids, in that order.
    private func messages(_ ids: [String], _ handle: PostgresHandle) throws(PostgresError) -> [Message] {
      let list = "{" + ids.map { "\"\($0.filter { $0 != "\"" && $0 != "\\" })\"" }.joined(separator: ",") + "}"
      let rows = try handle.run(
        PostgresStatement(
          """
          SELECT m.id, m.topic, m.event, m.payload, m.private
          FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS wanted (id, n)
          JOIN realtime.messages m ON m.id = wanted.id::uuid
          WHERE m.extension = 'broadcast' ORDER BY wanted.n
          """, [list]))
      return Self.messages(rows)
    }

    private static func messages(_ rows: PostgresRows) -> [Message] {
      (0..<rows.count).compactMap { row in
        guard let id = rows.text(row, 0), let topic = rows.text(row, 1),
          let payload = rows.bytes(row, 3).flatMap({ try? JSONValue(parsing: $0) })?.objectValue
        else { return nil }
        return Message(
          id: id, topic: topic, event: rows.text(row, 2) ?? "", payload: payload, isPrivate: rows.text(row, 4) == "t")
      }
    }

    /// Delivers what was committed while nobody listened; at the first start only remembers what is there.
    private func catchUp(
      _ handle: PostgresHandle, _ seen: inout SeenMessages, isFirst: Bool
    ) throws(PostgresError) {
      let now = SystemClock.monotonic
      let seconds = (now - min(now, seen.lastHealthyAt ?? now) + Self.margin) / 1_000_000_000
      let rows = try handle.run(
        PostgresStatement(
          """
          SELECT id, topic, event, payload, private FROM realtime.messages
          WHERE extension = 'broadcast' AND inserted_at > (now() - make_interval(secs => $1::bigint))::timestamp
          ORDER BY inserted_at, id
          """, ["\(seconds)"]))
      let missed = seen.catchUp(Self.messages(rows).map(\.id), at: now)
      guard !isFirst, !missed.isEmpty else { return }
      deliver(Self.messages(rows).filter { missed.contains($0.id) }, now)
    }
  }
#endif
