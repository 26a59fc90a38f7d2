import HostKit

/// Where a PostgreSQL is and who signs in, as libpq writes it: `postgresql://user:password@host:port/database?sslmode=…`.
///
/// It becomes variables of a program's environment, so that nothing of it stands in a command line.
public struct DatabaseURL: Sendable, Hashable, CustomStringConvertible {
  /// Variables that libpq reads.
  public let environment: [String: String]

  /// - Throws: `DatabaseURLError`, which never quotes the address.
  public init(_ text: String) throws(DatabaseURLError) {
    let scheme = ["postgresql://", "postgres://"].first { text.hasPrefix($0) }
    guard let scheme else {
      throw DatabaseURLError("the database's address must begin with postgresql://")
    }
    var variables: [String: String] = [:]
    let rest = text.dropFirst(scheme.count)
    let query = rest.firstIndex(of: "?")
    var place = query.map { rest[..<$0] } ?? rest
    if let slash = place.firstIndex(of: "/") {
      variables["PGDATABASE"] = Self.decoded(place[place.index(after: slash)...])
      place = place[..<slash]
    }
    if let at = place.lastIndex(of: "@") {
      let parts = place[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      variables["PGUSER"] = Self.decoded(parts[0])
      if parts.count > 1 { variables["PGPASSWORD"] = Self.decoded(parts[1]) }
      place = place[place.index(after: at)...]
    }
    let (hosts, ports) = try Self.hosts(place)
    variables["PGHOST"] = hosts
    variables["PGPORT"] = ports
    if let query {
      for pair in rest[rest.index(after: query)...].split(separator: "&") {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let variable = Self.parameters[String(parts[0])] else {
          let known = Self.parameters.keys.sorted().joined(separator: ", ")
          throw DatabaseURLError("the database's address has a parameter that is not known; known are \(known)")
        }
        variables[variable] = Self.decoded(parts[1])
      }
    }
    environment = variables.filter { !$0.value.isEmpty }
    if environment.values.contains(where: { $0.utf8.contains(0) }) {
      throw DatabaseURLError("the database's address must not hold a NUL")
    }
  }

  /// Names nothing: it would be the password's place.
  public var description: String { "postgresql://…" }

  private static func decoded(_ text: Substring) -> String { PercentCoding.decode(text) }

  /// Several hosts are separated by commas; a literal IPv6 address stands in brackets.
  private static func hosts(_ text: Substring) throws(DatabaseURLError) -> (hosts: String, ports: String) {
    var hosts: [String] = []
    var ports: [String] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      var host = part
      var port: Substring = ""
      if part.hasPrefix("["), let end = part.firstIndex(of: "]") {
        host = part[part.index(after: part.startIndex)..<end]
        let after = part[part.index(after: end)...]
        if after.hasPrefix(":") { port = after.dropFirst() }
      } else if let colon = part.lastIndex(of: ":") {
        host = part[..<colon]
        port = part[part.index(after: colon)...]
      }
      guard port.isEmpty || UInt16(port).map({ $0 > 0 }) == true else {
        throw DatabaseURLError("the port in the database's address must be a number from 1 to 65535")
      }
      hosts.append(decoded(host))
      ports.append(String(port))
    }
    return (hosts.joined(separator: ","), ports.allSatisfy(\.isEmpty) ? "" : ports.joined(separator: ","))
  }

  private static let parameters = [
    "application_name": "PGAPPNAME", "channel_binding": "PGCHANNELBINDING", "connect_timeout": "PGCONNECT_TIMEOUT",
    "dbname": "PGDATABASE", "gssencmode": "PGGSSENCMODE", "host": "PGHOST", "hostaddr": "PGHOSTADDR",
    "options": "PGOPTIONS", "passfile": "PGPASSFILE", "password": "PGPASSWORD", "port": "PGPORT",
    "service": "PGSERVICE", "sslcert": "PGSSLCERT", "sslcrl": "PGSSLCRL", "sslkey": "PGSSLKEY", "sslmode": "PGSSLMODE",
    "sslnegotiation": "PGSSLNEGOTIATION", "sslrootcert": "PGSSLROOTCERT",
    "target_session_attrs": "PGTARGETSESSIONATTRS", "user": "PGUSER",
  ]
}

/// Why a text is no address of a database: one sentence, without the text.
public struct DatabaseURLError: Error, Sendable, Hashable, CustomStringConvertible {
  public let message: String

  init(_ message: String) {
    self.message = message
  }

  public var description: String { message }
}
