import Glibc
import HostKit

/// One connection through a proxy: two sockets and what is on its way between them.
struct FaultLink {
  private enum Phase {
    case connecting, open
    /// Accepted, and never told anything.
    case unanswered
    /// Both sides were told the end; what they still send is thrown away.
    case leaving
    case over
  }

  private struct End {
    var descriptor: Int32?
    /// What this end sent.
    var pipe = FaultPipe()
    var readingIsOver = false
    var writingIsOver = false
  }

  private var phase: Phase
  private var client: End
  private var server: End

  /// - Parameter server: a socket that is being connected; nil for a client that is never answered.
  init(client: Int32, server: Int32?) {
    self.client = End(descriptor: client)
    self.server = End(descriptor: server)
    phase = server == nil ? .unanswered : .connecting
  }

  var isOver: Bool { phase == .over }
  /// As the counts see it: a connection that both sides were told the end of is none any more.
  var isOpen: Bool { phase != .over && phase != .leaving }

  private subscript(_ origin: FaultOrigin) -> End {
    get { origin == .client ? client : server }
    set { if origin == .client { client = newValue } else { server = newValue } }
  }

  // MARK: Work

  /// Moves what can be moved now.
  mutating func work(_ rules: FaultRules, now: UInt64, cut: inout FaultCut?, counts: inout FaultCounts) {
    switch phase {
    case .connecting:
      guard let descriptor = server.descriptor, let isConnected = FaultSocket.isConnected(descriptor) else { return }
      guard isConnected else {
        counts.unreachable += 1
        return finish(.reset)
      }
      phase = .open
      move(rules, now: now, cut: &cut, counts: &counts)
    case .open: move(rules, now: now, cut: &cut, counts: &counts)
    case .unanswered, .leaving:
      for origin in FaultOrigin.allCases { drain(origin, counts: &counts) }
      if client.descriptor == nil, server.descriptor == nil { phase = .over }
    case .over: break
    }
  }

  private mutating func move(_ rules: FaultRules, now: UInt64, cut: inout FaultCut?, counts: inout FaultCounts) {
    for origin in FaultOrigin.allCases {
      // Where bytes are missing, what follows them makes no sense to anybody.
      if self[origin].pipe.hasLoss, rules[origin].flow != .swallowed { return finish(.reset) }
    }
    for origin in FaultOrigin.allCases where phase == .open {
      read(origin, rules[origin], now: now, counts: &counts)
      switch rules[origin].flow {
      case .held: break
      case .swallowed: counts.swallowed(self[origin].pipe.swallow(), from: origin)
      case .passed: pass(from: origin, rules[origin], now: now, cut: &cut, counts: &counts)
      }
    }
    guard phase == .open else { return }
    let both = [client, server]
    let nothingComes = both.allSatisfy(\.readingIsOver) && both.contains { $0.descriptor == nil }
    if nothingComes || both.allSatisfy(\.writingIsOver) { close() }
  }

  private mutating func read(
    _ origin: FaultOrigin, _ rule: FaultRules.Direction, now: UInt64, counts: inout FaultCounts
  ) {
    guard rule.flow != .held else { return }
    /// Counted from the reading: what came after `now` would be early otherwise.
    var due: UInt64 { rule.delay == 0 ? now : SystemClock.monotonic + rule.delay }
    while let descriptor = self[origin].descriptor, !self[origin].readingIsOver, self[origin].pipe.hasRoom {
      switch FaultSocket.read(descriptor) {
      case .nothing: return
      case .bytes(let bytes):
        counts.came(bytes.count, from: origin)
        self[origin].pipe.add(bytes, due: due)
        if rule.flow == .swallowed { counts.swallowed(self[origin].pipe.swallow(), from: origin) }
      case .end:
        self[origin].readingIsOver = true
        self[origin].pipe.add(.fin, due: due)
      case .failure: lost(origin, due: due)
      }
    }
  }

  private mutating func pass(
    from origin: FaultOrigin, _ rule: FaultRules.Direction, now: UInt64, cut: inout FaultCut?,
    counts: inout FaultCounts
  ) {
    while let descriptor = self[origin.other].descriptor {
      let left = cut?.origin == origin ? cut?.bytes ?? .max : .max
      guard let piece = self[origin].pipe.next(now: now, limit: min(rule.bytesPerPacket ?? .max, max(left, 1))) else {
        break
      }
      if left == 0 { return carryOut(&cut, counts: &counts) }
      guard let sent = FaultSocket.write(piece, to: descriptor) else {
        lost(origin.other, due: now)
        break
      }
      if sent == 0 { return }
      self[origin].pipe.sent(sent)
      if cut?.origin == origin {
        cut?.bytes -= sent
        if cut?.bytes == 0 { return carryOut(&cut, counts: &counts) }
      }
    }
    if self[origin.other].descriptor == nil { self[origin].pipe.discard() }
    switch self[origin].pipe.takeEnding(now: now) {
    case nil: break
    case .reset: finish(.reset)
    case .fin:
      self[origin.other].descriptor.map(FaultSocket.endWriting)
      self[origin.other].writingIsOver = true
    }
  }

  private mutating func carryOut(_ cut: inout FaultCut?, counts: inout FaultCounts) {
    if let ending = cut?.ending { finish(ending) }
    cut = nil
    counts.cut += 1
  }

  private mutating func drain(_ origin: FaultOrigin, counts: inout FaultCounts) {
    while let descriptor = self[origin].descriptor {
      switch FaultSocket.read(descriptor) {
      case .nothing: return
      case .bytes(let bytes):
        counts.came(bytes.count, from: origin)
        counts.swallowed(bytes.count, from: origin)
      case .end, .failure:
        FaultSocket.close(descriptor)
        self[origin].descriptor = nil
      }
    }
  }

  /// The socket of this end failed; the other end learns it when the bytes under way have arrived.
  private mutating func lost(_ origin: FaultOrigin, due: UInt64) {
    self[origin].descriptor.map(FaultSocket.close)
    self[origin].descriptor = nil
    self[origin].readingIsOver = true
    self[origin].pipe.add(.reset, due: due)
  }

  // MARK: Ending

  /// The server's end is reset; the client is not told, and never will be.
  mutating func vanish() {
    guard phase == .connecting || phase == .open else { return }
    server.descriptor.map(FaultSocket.reset)
    server.descriptor = nil
    phase = .unanswered
  }

  mutating func finish(_ ending: FaultEnding) {
    switch ending {
    case .reset:
      for origin in FaultOrigin.allCases {
        self[origin].descriptor.map(FaultSocket.reset)
        self[origin].descriptor = nil
      }
      phase = .over
    case .fin:
      // Closing a socket with unread bytes would be a reset, so the bytes are read until the peer ends, too.
      for origin in FaultOrigin.allCases { self[origin].descriptor.map(FaultSocket.endWriting) }
      phase = .leaving
    }
  }

  mutating func close() {
    for origin in FaultOrigin.allCases {
      self[origin].descriptor.map(FaultSocket.close)
      self[origin].descriptor = nil
    }
    phase = .over
  }

  // MARK: Waiting

  /// What has to happen before `work` has something to do.
  func addInterests(_ rules: FaultRules, now: UInt64, to entries: inout [pollfd]) {
    switch phase {
    case .connecting: add(server, POLLOUT, to: &entries)
    case .open:
      for origin in FaultOrigin.allCases {
        var events: Int32 = 0
        let end = self[origin]
        if rules[origin].flow != .held, !end.readingIsOver, end.pipe.hasRoom { events |= POLLIN }
        if rules[origin.other].flow == .passed, self[origin.other].pipe.next(now: now, limit: 1) != nil {
          events |= POLLOUT
        }
        add(end, events, to: &entries)
      }
    case .unanswered, .leaving: for end in [client, server] { add(end, POLLIN, to: &entries) }
    case .over: break
    }
  }

  private func add(_ end: End, _ events: Int32, to entries: inout [pollfd]) {
    // Without a wanted event the system would still report every hang-up, again and again.
    guard let descriptor = end.descriptor, events != 0 else { return }
    entries.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
  }

  /// When `work` has something to do even if nothing happens.
  func nextDue(_ rules: FaultRules) -> UInt64? {
    guard phase == .open else { return nil }
    return FaultOrigin.allCases.compactMap { origin in
      rules[origin].flow == .passed ? self[origin].pipe.nextDue : nil
    }.min()
  }
}

/// A connection is to be ended inside what one side sends.
struct FaultCut {
  let origin: FaultOrigin
  var bytes: Int
  let ending: FaultEnding
}

extension FaultOrigin {
  var other: FaultOrigin { self == .client ? .server : .client }
}

extension FaultRules {
  subscript(_ origin: FaultOrigin) -> Direction { origin == .client ? fromClient : fromServer }
}

extension FaultCounts {
  mutating func came(_ bytes: Int, from origin: FaultOrigin) {
    switch origin {
    case .client: bytesFromClients += bytes
    case .server: bytesFromServer += bytes
    }
  }

  mutating func swallowed(_ bytes: Int, from origin: FaultOrigin) {
    switch origin {
    case .client: swallowedFromClients += bytes
    case .server: swallowedFromServer += bytes
    }
  }
}
