import HostKit

/// One synced table: writes and reads of the local replica. Nothing here touches the network.
public final class KizunaSyncTable: @unchecked Sendable {  // immutable
  let client: KizunaSyncClient
  let name: String

  init(client: KizunaSyncClient, name: String) {
    self.client = client
    self.name = name
  }

  /// Inserts one row and queues it. A lone `id` key that is left out is minted; an owner column that is left out is
  /// filled with the signed-in user once one is known.
  /// - Throws: `LOCAL_CONSTRAINT` for a missing key column or a key that exists, `LOCAL_UNSUPPORTED` for a pull-only table.
  public func insert(_ columns: [String: Any]) async throws {
    let columns = try PlainValue.json(from: columns, at: name)
    _ = try await client.apply(LocalWrite(table: name, op: .insert, columns: columns))
  }

  /// Starts an update of the rows the filters match.
  /// - Parameters:
  ///   - transforms: column → `["op": "increment", "by": 1]`, `["op": "arrayUnion", "values": […]]` or `arrayRemove`.
  ///   - precondition: column → the value the server must find, `NSNull()` for null.
  public func update(
    _ columns: [String: Any], transforms: [String: Any]? = nil, precondition: [String: Any]? = nil
  ) -> KizunaSyncWriteBuilder {
    KizunaSyncWriteBuilder(self, .update, columns: columns, transforms: transforms, precondition: precondition)
  }

  /// Starts a delete of the rows the filters match. On a soft-delete table it stamps the soft-delete column instead.
  public func delete(precondition: [String: Any]? = nil) -> KizunaSyncWriteBuilder {
    KizunaSyncWriteBuilder(self, .delete, columns: [:], transforms: nil, precondition: precondition)
  }

  /// Starts a read.
  /// - Parameters:
  ///   - columns: names separated by commas, or `*`.
  ///   - head: only the count, no rows.
  ///   - count: the answer also tells how many rows match, whatever limit and range say.
  public func select(
    _ columns: String = "*", head: Bool = false, count: KizunaSyncCountOption? = nil
  ) -> KizunaSyncSelectBuilder {
    KizunaSyncSelectBuilder(self, columns: columns, head: head, count: count != nil)
  }
}
