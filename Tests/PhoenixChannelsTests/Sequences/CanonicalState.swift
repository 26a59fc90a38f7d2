import HostKit
import Testing

@testable import PhoenixChannels

/// A machine's state and the account of its rules, without what makes no difference to the future: times are counted
/// from now, references and transports are named in the order they occur, numbers that only grow are left out.
struct CanonicalState: Hashable {
  private(set) var bytes: [UInt8] = []

  init(_ driver: MachineDriver) {
    var writer = Writer(now: driver.now, current: driver.transport)
    writer.write(driver.machine)
    writer.write(driver)
    writer.write(driver.rules)
    bytes = writer.bytes
  }

  /// What of each value is written, or left out with a reason. A value with a new field does not match.
  static let fields: [(value: any Sendable, written: [String], leftOut: [String])] = [
    (
      ConnectionMachine(),
      [
        "plan", "link", "channels", "credentials", "schedule", "heartbeat", "serverQueue", "rings", "lastFailure",
        "pathSatisfied", "isStable", "joinWindow", "joinsHeldUntil", "joinsAwaitRoom", "announcedClose",
        "lastReplacement",
        "stopIsPending",
      ],
      // The policy is the same for all; the driver's timers are these; counters and numbers only grow.
      ["policy", "timers", "counters", "lastTransport", "lastRef"]
    ),
    (
      Channel(MachineDriver.topic("a")),
      [
        "topic", "subscribers", "phase", "failedJoins", "streak", "lastFailure", "notice", "tokenSerial", "tokenSince",
        "joinNumber",
      ],
      []
    ),
    (
      Credentials(required: true),
      [
        "required", "token", "serial", "refusedSerial", "isWithdrawn", "isEnding", "isAsking", "freshAsked",
        "wantsFresh",
        "unavailableStreak",
      ], []
    ),
    // A few steps cannot spend the budget.
    (ReconnectSchedule(), ["streak", "serverErrors", "notBefore"], ["attempts"]),
    // The round trip is for people.
    (Heartbeat(), ["pendingRef", "oldest", "lastReceived", "lastSent"], ["pendingSentAt", "lastRoundTrip"]),
    (ServerQueue(), ["entries"], []),
    (RingCollector(), ["topics"], ["receivedAt"]),
  ]
}

private struct Writer {
  let now: UInt64
  let current: TransportID?
  var bytes: [UInt8] = []
  private let policy = ConnectionPolicy()
  private var references: [String: Int] = [:]

  init(now: UInt64, current: TransportID?) {
    self.now = now
    self.current = current
  }

  // MARK: Values

  /// Few bytes for small numbers, which most are.
  private mutating func write(_ number: Int) {
    var left = UInt64(bitPattern: Int64((number << 1) ^ (number >> 63)))
    while left >= 0x80 {
      bytes.append(UInt8(left & 0x7F) | 0x80)
      left >>= 7
    }
    bytes.append(UInt8(left))
  }

  private mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// Relative to now, in milliseconds; 0 means never.
  private mutating func write(time: UInt64?) {
    guard let time, time > 0 else { return write(Int.max) }
    write((Int(time) - Int(now)) / 1_000_000)
  }

  /// Nil for a moment that is as good as any earlier one.
  private func recent(_ time: UInt64?, within window: UInt64) -> UInt64? {
    time.flatMap { now < $0 + window ? $0 : nil }
  }

  private mutating func write(reference: String?) {
    guard let reference else { return write(0) }
    let number = references[reference] ?? references.count + 1
    references[reference] = number
    write(number)
  }

  private mutating func write(text: String?) {
    guard let text else { return write(-1) }
    write(text.utf8.count)
    bytes += text.utf8
  }

  private mutating func write(_ report: FailureReport?) {
    write(text: report?.failureClass.rawValue)
    write(text: report?.text)
  }

  // MARK: The machine

  mutating func write(_ machine: ConnectionMachine) {
    switch machine.plan {
    case .stopped: write(0)
    case .disconnected: write(1)
    case .live: write(2)
    case .awaitingCredentials: write(3)
    case .waiting(let until):
      write(4)
      write(time: until)
    case .suspended(let until):
      write(5)
      write(time: until)
    }
    switch machine.link {
    case .none: write(0)
    case .connecting(let id): write(id == current ? 1 : 2)
    case .open(let id): write(id == current ? 3 : 4)
    case .closing(let id): write(id == current ? 5 : 6)
    }
    write(machine.channels.count)
    for channel in machine.channels { write(channel, serial: machine.credentials.serial) }
    // Whose turn to join is first.
    for index in machine.channels.indices.sorted(by: {
      (machine.channels[$0].joinNumber, $0) < (machine.channels[$1].joinNumber, $1)
    }) { write(index) }
    write(machine.credentials)
    write(machine.schedule.streak)
    write(machine.schedule.serverErrors)
    write(time: machine.schedule.notBefore)
    write(reference: machine.heartbeat.pendingRef)
    write(time: machine.heartbeat.oldest?.sentAt)
    write(time: machine.heartbeat.oldest?.answerBy)
    write(time: machine.heartbeat.lastReceived)
    write(time: recent(machine.heartbeat.lastSent, within: policy.heartbeat.probeSpacing))
    for entry in machine.serverQueue.entries {
      write(reference: entry.joinRef)
      write(reference: entry.leaveRef)
      write(time: entry.joinSentAt)
      write(time: entry.until)
    }
    for topic in machine.rings.topics { write(text: topic.name) }
    write(machine.lastFailure)
    for flag in [machine.pathSatisfied, machine.isStable, machine.stopIsPending, machine.joinsAwaitRoom] { write(flag) }
    write(machine.joinWindow)
    write(time: machine.joinsHeldUntil)
    write(machine.announcedClose)
    write(time: machine.lastReplacement)
  }

  private mutating func write(_ channel: Channel, serial: Int) {
    write(text: channel.topic.name)
    write(channel.subscribers)
    switch channel.phase {
    case .idle: write(0)
    case .joining(let ref, let sentAt):
      write(1)
      write(reference: ref)
      write(time: sentAt)
    case .joined(let ref, let since):
      write(2)
      write(reference: ref)
      write(time: since)
    case .backingOff(let until):
      write(3)
      write(time: until)
    case .denied(let report):
      write(4)
      write(report)
    }
    write(channel.failedJoins)
    write(channel.streak)
    write(channel.lastFailure)
    write(channel.notice?.report)
    write(serial - channel.tokenSerial)
    // Only while it shows less than a token that is good, and only of a joined channel.
    write(time: channel.isJoined ? recent(channel.tokenSince, within: policy.reconnect.stabilityWindow) : nil)
  }

  private mutating func write(_ credentials: Credentials) {
    write(text: credentials.token)
    write(credentials.refusedSerial.map { credentials.serial - $0 } ?? -1)
    for flag in [
      credentials.required, credentials.isWithdrawn, credentials.isEnding, credentials.isAsking,
      credentials.freshAsked,
      credentials.wantsFresh,
    ] {
      write(flag)
    }
    write(credentials.unavailableStreak)
  }

  // MARK: Around it

  mutating func write(_ driver: MachineDriver) {
    let timers = driver.timers.map { (kind: Self.code($0.token.kind), at: $0.at) }
    for timer in timers.sorted(by: { $0.kind < $1.kind }) {
      write(timer.kind)
      write(time: timer.at)
    }
    for topic in ["a", "b"] {
      write(reference: driver.joinRef(topic))
      write(reference: driver.earlierJoinRef(topic))
      write(reference: driver.leaveRef(topic))
    }
    for ref in driver.heartbeatRefs { write(reference: ref) }
    write(driver.earlierTransport != nil)
  }

  private static func code(_ kind: TimerToken.Kind) -> Int {
    switch kind {
    case .reconnect: 0
    case .handshake: 1
    case .close: 2
    case .heartbeat: 3
    case .answer: 4
    case .stability: 5
    case .idle: 6
    case .credentials: 7
    case .ring: 8
    case .joinHold: 9
    // The two topics of the check.
    case .join(let topic): topic.name == "a" ? 10 : 11
    case .rejoin(let topic): topic.name == "a" ? 12 : 13
    }
  }

  mutating func write(_ rules: MachineRules) {
    for flag in [
      rules.transport != nil, rules.isOpen, rules.isClosing, rules.isStopped, rules.stopIsComplete, rules.isRefused,
      rules.isWithdrawn,
    ] {
      write(flag)
    }
    for (topic, ref) in rules.newestJoins.sorted(by: { $0.key < $1.key }) {
      write(text: topic)
      write(reference: ref)
      write(rules.outstanding[ref] != nil)
      write(rules.joinTokens[ref].map { rules.tokenNumber - $0 } ?? -1)
    }
    for (topic, since) in rules.unrung.sorted(by: { $0.key < $1.key }) {
      write(text: topic)
      write(time: since)
    }
    for ref in rules.heartbeats { write(reference: ref) }
    write(time: rules.busyUntil)
    write(time: rules.settledSince)
    write(rules.freshAsks)
    for (topic, since) in rules.goodSince.sorted(by: { $0.key < $1.key }) {
      write(text: topic)
      write(time: recent(since, within: policy.reconnect.stabilityWindow))
    }
    write(text: rules.token)
  }
}
