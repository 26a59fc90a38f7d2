/// Tells a database that was copied or restored from the one this host used last.
///
/// The file holds a random name that is renewed at every start and stop; the newest one also stands in a file beside the
/// lock. A copy that is put back, or put elsewhere, holds a name that is not the one beside it.
struct InstanceCheck: Equatable {
  enum Verdict: Equatable {
    /// Nobody has named the file yet.
    case new
    case same
    case fromAnotherHost
    /// The file is another state of the one that was here, such as a backup that was put back.
    case restored
    /// No file beside it tells of it: it was moved or copied here, or that file was removed.
    case unknownHere

    var isCopy: Bool {
      switch self {
      case .new, .same: false
      case .fromAnotherHost, .restored, .unknownHere: true
      }
    }

    var sentence: String {
      switch self {
      case .new, .same: "the database is the one this host used last"
      case .fromAnotherHost: "the database was copied from another host; it goes on as a client of its own"
      case .restored:
        "the database is not the one this host used last, such as a backup that was put back; it goes on as a client of its own"
      case .unknownHere:
        "the database was moved or copied here, or the file beside it was removed; it goes on as a client of its own"
      }
    }
  }

  /// What the database holds.
  var machine: String?
  var instance: String?
  /// The name before `instance`: a renewal that was cut short leaves it beside the file.
  var former: String?

  /// - Parameters:
  ///   - machine: this host's identity, where the system has one.
  ///   - beside: what the file beside the database holds.
  func verdict(machine: String?, beside: String?) -> Verdict {
    if let known = self.machine, let machine, known != machine { return .fromAnotherHost }
    guard let instance else { return .new }
    guard let beside else { return .unknownHere }
    return beside == instance || beside == former ? .same : .restored
  }
}
