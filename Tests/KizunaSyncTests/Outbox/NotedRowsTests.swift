import HostKit
import Testing

@testable import KizunaSync

/// What the journal says of rows that a statement may have displaced.
@Suite struct NotedRowsTests {
  private func row(_ number: Int64, base: Int64 = 1, _ key: SQLiteValue, _ cells: [SQLiteValue]) -> NotedRows.Row {
    NotedRows.Row(number: number, base: base, key: [key], cells: [key] + cells)
  }

  private func write(
    _ rows: inout NotedRows, _ key: SQLiteValue, was old: SQLiteValue? = nil, _ slug: SQLiteValue
  ) -> NotedRows.Outcome {
    rows.write([key], was: old.map { [$0] }, cells: [key, slug]) { $0.cells[1] == slug }
  }

  @Test func anInsertReplacesItsOwnKeyAndDisplacesOthers() {
    var rows = NotedRows()
    rows.note(row(1, "a", ["p"]))
    rows.note(row(2, "b", ["q"]))
    rows.note(row(3, "c", ["r"]))
    let outcome = write(&rows, "a", "q")
    #expect(outcome.replaced?.number == 1 && outcome.displaced.map(\.number) == [2])
    #expect(rows.rows.map(\.number) == [3])
  }

  @Test func aRowIsFollowedWhateverChangesIt() {
    var rows = NotedRows()
    rows.note(row(1, "a", ["p"]))
    #expect(write(&rows, "a", was: "a", "q") == NotedRows.Outcome())
    #expect(write(&rows, "b", "p") == NotedRows.Outcome())
    // To another key.
    #expect(write(&rows, "z", was: "a", "r") == NotedRows.Outcome())
    #expect(write(&rows, "a", "s") == NotedRows.Outcome())
    let outcome = write(&rows, "c", "r")
    #expect(outcome.displaced.map(\.key) == [["z"]] && outcome.displaced.map(\.cells) == [["z", "r"]])
    #expect(rows.isEmpty)
    rows.note(row(2, "d", ["t"]))
    rows.delete(["d"])
    #expect(write(&rows, "e", "t") == NotedRows.Outcome())
  }

  @Test func anUpdateDisplacesTheRowOfItsNewKey() {
    var rows = NotedRows()
    rows.note(row(1, "a", ["p"]))
    rows.note(row(2, "b", ["q"]))
    let outcome = write(&rows, "b", was: "a", "p")
    #expect(outcome.displaced.map(\.number) == [2] && outcome.replaced == nil)
    #expect(rows.rows.map(\.key) == [["b"]])
  }

  /// One statement may note any number of rows; those of statements before it were in vain.
  @Test func onlyOldNotesAreGivenUp() {
    var rows = NotedRows()
    for number in 1...Int64(2 * NotedRows.most) {
      rows.note(row(number, base: 5, .integer(number), [.integer(number)]))
    }
    #expect(rows.rows.count == 2 * NotedRows.most)
    rows.note(row(1000, base: 6, "a", ["p"]))
    #expect(rows.rows.count == NotedRows.most && rows.rows.last?.number == 1000)
  }
}
