/// Why the development server could not start.
public enum StackServerError: Error, Sendable, Hashable, CustomStringConvertible {
  case addressInUse(String)
  case invalidAddress(String)
  /// Host and port, and the system's word for it.
  case cannotListen(String, reason: String)
  case certificate(String)
  case library

  public var description: String {
    switch self {
    case .addressInUse(let address): "Another program already listens on \(address)."
    case .invalidAddress(let host): "\(host) is not an address of this machine; use for example 127.0.0.1."
    case .cannotListen(let address, let reason): "The server cannot listen on \(address): \(reason)."
    case .certificate(let file): "The TLS certificate or key \(file) could not be read."
    case .library: "libwebsockets could not be started."
    }
  }
}
