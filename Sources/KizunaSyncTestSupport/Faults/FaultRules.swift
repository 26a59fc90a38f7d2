/// What a ``FaultProxy`` does with the connections that go through it. The default passes everything on as it comes.
public struct FaultRules: Sendable, Hashable {
  /// What becomes of a client that connects.
  public enum Admission: Sendable, Hashable {
    /// It is connected to the server.
    case forwarded
    /// Nobody listens: the system answers with "connection refused".
    case refused
    /// Nobody accepts: the system completes the connection, and it waits until the rule changes.
    case held
    /// It is accepted, what it sends is thrown away, and it never hears anything. It stays so when the rule changes.
    case unanswered
    /// It is accepted and reset at once.
    case reset
  }

  /// What becomes of the bytes of one direction.
  public enum Flow: Sendable, Hashable {
    case passed
    /// They wait, as while packets are lost and sent again, and arrive when the rule changes.
    case held
    /// They are thrown away, and so is the end of the stream: half of a connection whose peer vanished. A connection
    /// that lost bytes so is reset when the rule changes.
    case swallowed
  }

  /// One direction of all connections.
  public struct Direction: Sendable, Hashable {
    public var flow = Flow.passed
    /// Nanoseconds each byte takes.
    public var delay: UInt64 = 0
    /// Most bytes one packet carries; nil leaves that to the system.
    public var bytesPerPacket: Int?

    public init(flow: Flow = .passed, delay: UInt64 = 0, bytesPerPacket: Int? = nil) {
      self.flow = flow
      self.delay = delay
      self.bytesPerPacket = bytesPerPacket
    }
  }

  public var admission = Admission.forwarded
  /// From clients to the server.
  public var fromClient = Direction()
  /// From the server to clients.
  public var fromServer = Direction()

  public init() {}

  /// Both directions at once.
  public mutating func setBoth(_ direction: Direction) {
    fromClient = direction
    fromServer = direction
  }

  /// Bytes vanish in both directions: the peer, or the way to it, is gone without a word.
  public static var vanished: FaultRules {
    var rules = FaultRules()
    rules.setBoth(Direction(flow: .swallowed))
    return rules
  }
}

/// One end of a connection through a ``FaultProxy``.
public enum FaultOrigin: Sendable, Hashable, CaseIterable {
  case client, server
}

/// How a ``FaultProxy`` ends a connection, for both sides.
public enum FaultEnding: Sendable, Hashable, CaseIterable {
  /// An orderly end of the stream.
  case fin
  /// A reset; what was on its way is lost.
  case reset
}
