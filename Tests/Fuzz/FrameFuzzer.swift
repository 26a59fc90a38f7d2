import HostKit
import PhoenixChannels

/// Whatever a peer sends is refused or read, in both versions and both directions, and the machine survives it.
///
/// The first byte chooses: bit 0 the version, bit 1 binary, bit 2 the side; "0" to "7" in the corpus. The rest is the
/// message.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrames(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let choice = bytes.first else { return 0 }
  let version = choice & 1 == 0 ? PhoenixVersion.v1 : .v2
  let isClient = choice & 4 == 0
  let content = Array(bytes.dropFirst())
  let message: PhoenixMessage =
    choice & 2 == 0 ? .text(String(decoding: content, as: UTF8.self)) : .binary(content)

  guard let frame = try? PhoenixSerializer(version, side: isClient ? .client : .server).decode(message) else {
    return 0
  }
  // What was read is written by the other side and read again as the same.
  if let again = try? PhoenixSerializer(version, side: isClient ? .server : .client).encode(frame) {
    let second = try? PhoenixSerializer(version, side: isClient ? .client : .server).decode(again)
    // Version 1.0.0 has no place for it on the way to the client.
    var expected = frame
    if version == .v1, isClient { expected.joinRef = nil }
    precondition(second == expected, "read again as another frame")
  }
  var machine = joinedMachine
  let effects = machine.handle(
    .transport(joinedTransport, .frame(.success(frame), receivedAt: 1)), now: 2_000_000_000, jitter: { 0.5 })
  precondition(effects.count < 20, "one frame, many effects")
  return 0
}

/// A machine with one joined topic, and its transport.
private let (joinedMachine, joinedTransport): (ConnectionMachine, TransportID) = {
  var policy = ConnectionPolicy()
  policy.usesCredentials = false
  var machine = ConnectionMachine(policy)
  var transport: TransportID?
  var join: PhoenixFrame?
  func feed(_ event: ConnectionEvent) {
    for effect in machine.handle(event, now: 1_000_000_000, jitter: { 0.5 }) {
      switch effect {
      case .connect(let id): transport = id
      case .send(_, let frame): join = frame
      default: break
      }
    }
  }
  if let topic = try? ChannelTopic("kizunasync:todos") { feed(.subscribe(topic)) }
  feed(.start)
  guard let id = transport else { preconditionFailure("no attempt") }
  feed(.transport(id, .opened))
  guard let join else { preconditionFailure("no join") }
  let reply = PhoenixFrame(
    joinRef: join.joinRef, ref: join.ref, topic: join.topic, event: "phx_reply", ["status": "ok", "response": [:]])
  feed(.transport(id, .frame(.success(reply), receivedAt: 1)))
  precondition(machine.status.isReady)
  return (machine, id)
}()
