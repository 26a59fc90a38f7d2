import HostKit
import PostgresTestSupport
import Testing

/// Values of every common column type come through a pull, a change of another column and a push as they were.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct ValueTests {
  private static let table = """
    create type public.mood as enum ('happy', 'so so');
    create domain public.percent as numeric(5, 2) check (value between 0 and 100);
    create table public.todos (
      id uuid primary key, owner_id uuid not null, title text,
      b boolean, i2 smallint, i4 integer, i8 bigint, num numeric, num2 numeric(20, 6), f4 real, f8 double precision,
      t text, v varchar(20), c char(4), u uuid, d date, tz timestamptz, ts timestamp, tm time, iv interval,
      j json, jb jsonb, by bytea, ta text[], ia integer[], e public.mood, ip inet, p public.percent,
      twice integer generated always as (i4 * 2) stored);
    create index on public.todos (owner_id);
    alter table public.todos enable row level security;
    create policy own on public.todos to authenticated
    using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
    select kizunasync.sync_table('todos', bucket_column => 'owner_id');
    insert into public.todos values (
      '\(Name.row(1))', '\(Name.ann)', 'before',
      true, -32768, 1073741823, 9223372036854775807, 123456789012345678901234567890.123456789, 1.500000, 0.1, 1e-300,
      E'quote '' \\\\ backslash \\n newline é 𝄞', 'varchar', 'ab', '\(Name.bob)', '2024-02-29',
      '2024-02-29 12:34:56.123456+02', '1999-12-31 23:59:59.999999', '23:59:59.5', '1 year 2 mons 3 days 04:05:06.7',
      '{"b": 1, "a": [1, 2.50, null]}', '{"b": 1, "a": [1, 2.50, null]}', '\\xdeadbeef00', '{a,NULL,"b c","{}"}',
      '{1,-2,NULL}', 'so so', '192.168.1.0/24', 99.95);
    insert into public.todos (id, owner_id) values ('\(Name.row(2))', '\(Name.ann)');
    insert into public.todos (id, owner_id, f8, num, f4) values ('\(Name.row(3))', '\(Name.ann)', 'Infinity', 'NaN', '-Infinity');

    """

  /// As the client does with a row that it holds: every column of it goes back, with one changed.
  @Test(arguments: [1, 2, 3])
  func comeBackAsTheyWere(row: Int) async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(Self.table)
      let images =
        "select (to_jsonb(t.*) - 'title')::text, t.num::text, t.c || '|' from public.todos as t where id = '\(Name.row(row))'"
      let before = try await pack.sql(images)
      let rows = try await pack.pull(Name.ann)["rows"]?.arrayValue ?? []
      var cells = try #require(rows.first { $0["pk"] == .string(Name.row(row)) }?["row"]?.objectValue)
      #expect(cells.count == 29)
      cells["title"] = "after"
      for name in ["id", "twice"] { cells[name] = nil }
      #expect(try await pack.verdict(Name.ann, mutation("update", row, cells)) == .applied)
      #expect(try await pack.sql(images) == before)
      #expect(try await pack.sql("select title from public.todos where id = '\(Name.row(row))'") == ["after"])

      // A new row with the same values.
      #expect(try await pack.verdict(Name.ann, mutation("insert", 9, cells)) == .applied)
      let differences = try await pack.sql(
        """
        select a.key from jsonb_each_text((select to_jsonb(t.*) from public.todos as t where id = '\(Name.row(row))')) as a
        join jsonb_each_text((select to_jsonb(t.*) from public.todos as t where id = '\(Name.row(9))')) as b on b.key = a.key
        where a.value is distinct from b.value and a.key <> 'id'
        """)
      #expect(differences == [])
    }
  }

  @Test func comeAsTheProtocolSpellsThem() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql("alter database \(pack.database.name) set timezone = 'Asia/Tokyo'")
      try await pack.sql("alter database \(pack.database.name) set intervalstyle = 'iso_8601'")
      try await pack.sql("alter database \(pack.database.name) set bytea_output = 'escape'")
      try await pack.sql(Self.table)
      let cells = try await pack.pull(Name.ann)["rows"]?[0]?["row"]?.objectValue ?? [:]
      let expected: [String: String] = [
        "b": "true", "i2": "-32768", "i8": "9223372036854775807", "num": "123456789012345678901234567890.123456789",
        "num2": "1.500000", "f4": "0.1", "d": "\"2024-02-29\"", "tz": "\"2024-02-29T10:34:56.123456+00:00\"",
        "ts": "\"1999-12-31T23:59:59.999999\"", "tm": "\"23:59:59.5\"", "iv": "\"1 year 2 mons 3 days 04:05:06.7\"",
        "jb": "{\"a\":[1,2.50,null],\"b\":1}", "by": "\"\\\\xdeadbeef00\"", "ta": "[\"a\",null,\"b c\",\"{}\"]",
        "ia": "[1,-2,null]", "e": "\"so so\"", "ip": "\"192.168.1.0/24\"", "p": "99.95",
      ]
      for (name, text) in expected {
        #expect(cells[name].map { JSONWriter.text($0) } == text, "\(name)")
      }
    }
  }

  /// Columns are named as the app likes, even as the pack's own SQL names its things.
  @Test func columnsMayHaveAnyName() async throws {
    let names = [
      "r", "t", "k", "v", "c", "n", "i", "image", "pk", "x", "o", "y", "order", "select", "user", "Upper", "a b",
    ]
    try await PackDatabase.with { pack in
      try await pack.sql(
        """
        create table public.todos (
          id uuid primary key, owner_id uuid not null, \(names.map { "\"\($0)\" text" }.joined(separator: ", ")), labels text[]);
        create index on public.todos (owner_id);
        alter table public.todos enable row level security;
        create policy own on public.todos to authenticated
        using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));
        insert into public.todos (id, owner_id, r, t) values ('\(Name.row(1))', '\(Name.ann)', 'first', 'first');
        select kizunasync.sync_table('todos', bucket_column => 'owner_id', conflict_journal => true);
        """)
      let cells = Dictionary(uniqueKeysWithValues: names.map { ($0, JSONValue.string("new \($0)")) })
      let union: JSONValue = ["op": "arrayUnion", "values": ["b", "a", "b"]]
      let change = mutation("update", 1, cells, ["precondition": ["r": "first"], "transforms": ["labels": union]])
      #expect(try await pack.verdict(Name.ann, change).bare == .applied)
      let owned = cells.merging(["owner_id": .string(Name.ann)]) { $1 }
      #expect(try await pack.verdict(Name.ann, mutation("insert", 2, owned)) == .applied)
      let rows = try await pack.pull(Name.ann)["rows"]?.arrayValue ?? []
      #expect(rows.count == 2)
      for row in rows {
        for name in names { #expect(row["row"]?[name] == .string("new \(name)")) }
      }
      #expect(rows.first?["row"]?["labels"] == ["b", "a"])
      try await pack.sql("update public.todos set r = r")
      #expect(try await pack.sql("select count(*), max(seq) from kizunasync.changes") == ["2|3"])
    }
  }

  @Test func bothSpellingsOfNumbersAreTaken() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(Self.table)
      let columns: [String: JSONValue] = [
        "i8": "-9223372036854775808", "num": "0.10", "i4": 7, "f8": "1e3", "b": "true",
      ]
      #expect(try await pack.verdict(Name.ann, mutation("update", 2, columns)) == .applied)
      let row = try await pack.sql("select i8, num, i4, f8, b from public.todos where id = '\(Name.row(2))'")
      #expect(row == ["-9223372036854775808|0.10|7|1000|t"])
      for columns in [["i2": 32768], ["i4": 1.5.asJSON], ["e": "sad"], ["p": 101], ["u": "x"], ["ta": "x"], ["b": 7]]
        as [[String: JSONValue]]
      {
        #expect(try await pack.verdict(Name.ann, mutation("update", 2, columns)).reason == "CONSTRAINT", "\(columns)")
      }
    }
  }

  @Test func preconditionsCompareAsTheTypesDo() async throws {
    try await PackDatabase.with { pack in
      try await pack.sql(Self.table)
      let rows = try await pack.pull(Name.ann)["rows"]?.arrayValue ?? []
      let cells = try #require(rows.first?["row"]?.objectValue)
      let all = mutation("update", 1, ["title": "held"], ["precondition": .object(cells)])
      #expect(try await pack.verdict(Name.ann, all) == .applied)
      for (name, value) in [
        ("num2", "1.5"), ("tz", "2024-02-29T12:34:56.123456+02:00"), ("i8", "9223372036854775807"), ("title", "held"),
      ] {
        let held = mutation("update", 1, ["title": "held"], ["precondition": .object([name: .string(value)])])
        #expect(try await pack.verdict(Name.ann, held) == .applied, "\(name)")
      }
      for (name, value) in [("num2", "1.6"), ("jb", "{}"), ("u", "nothing"), ("no_such", "x"), ("t", nil)]
        as [(String, String?)]
      {
        let broken = mutation("update", 1, ["title": "x"], ["precondition": .object([name: .string(orNull: value)])])
        #expect(try await pack.verdict(Name.ann, broken).reason == "PRECONDITION", "\(name)")
      }
      let none = mutation("update", 2, ["title": "x"], ["precondition": ["t": nil]])
      #expect(try await pack.verdict(Name.ann, none) == .applied)
    }
  }
}

extension Double {
  fileprivate var asJSON: JSONValue { JSONNumber(self).map(JSONValue.number) ?? .null }
}
