@testable import KizunaSync

extension Replica {
  /// What must hold between any two transactions, in words where it does not.
  func brokenInvariants() throws -> [String] {
    var broken: [String] = []
    let queued = Set(
      try database.map("SELECT DISTINCT tbl, pk FROM _kizunasync_outbox") {
        RowID(table: $0.string(0), pk: $0.string(1))
      })
    let images = Set(
      try database.map("SELECT tbl, pk FROM _kizunasync_image") { RowID(table: $0.string(0), pk: $0.string(1)) })
    if queued != images { broken.append("images and queued rows differ") }
    for id in queued.intersection(images) {
      let layout = try layout(id.table)
      func plain(_ row: RowMap?) -> RowMap? {
        row?.filter { name, _ in layout[name].map { !$0.isKey && !$0.isLocalOnly } ?? true }
      }
      let image = try image(id.table, pk: id.pk)!
      let wanted = Overlay.visible(image: image, entries: try entries(id.table, pk: id.pk))
      let seen = try row(id.table, pk: id.pk)
      if plain(wanted) != plain(seen) {
        let queue = try entries(id.table, pk: id.pk).map {
          "\($0.seq) \($0.op) \($0.columns) \($0.transforms ?? "") \($0.state)"
        }
        broken.append(
          "\(id.pk) shows \(seen.map { "\($0)" } ?? "nothing"), not \(wanted.map { "\($0)" } ?? "nothing"): \(image) with \(queue)"
        )
      }
    }
    if try database.exists("SELECT 1 FROM _kizunasync_ctl WHERE applying <> 0") { broken.append("left applying") }
    if try database.exists("SELECT 1 FROM _kizunasync_group") { broken.append("left a group open") }
    if database.isInTransaction { broken.append("left a transaction open") }
    return broken
  }
}
