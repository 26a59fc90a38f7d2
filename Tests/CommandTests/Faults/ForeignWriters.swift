import HostKit

/// Programs that write to a database by themselves: the `sqlite3` shell, which knows nothing of this package.
enum ForeignWriters {
  static let shell = "/usr/bin/sqlite3"

  /// A program that makes one transaction after the other until the file `stop` exists: it inserts a row, changes a
  /// counter and one of the `shared` rows, and mostly deletes the row it inserted twenty transactions ago. It prints the
  /// number of each transaction that was committed, and ends with 1 when one was not.
  static func endless(
    _ name: String, database: String, shared: Int, stop: String, _ scratch: Scratch
  ) throws -> ChildProcess {
    let script = try scratch.write(
      "writer.sh",
      """
      database=$1 name=$2 shared=$3 stop=$4 number=0
      while [ ! -e "$stop" ]; do
        number=$((number + 1))
        old=$((number - 20))
        [ $((old % 10)) -eq 0 ] && old=0
        \(shell) -bail -cmd '.timeout 60000' "$database" "
          BEGIN IMMEDIATE;
          INSERT INTO todos(title, n) VALUES ('$name-$number', $number);
          UPDATE todos SET n = $number WHERE title = '$name-count';
          UPDATE todos SET n = $number WHERE title = 'shared-$((number % shared))';
          DELETE FROM todos WHERE title = '$name-$old';
          COMMIT;" > /dev/null || exit 1
        echo "$number"
        sleep 0.02
      done
      """)
    return try ChildProcess(executable: "/bin/sh", arguments: [script, database, name, "\(shared)", stop])
  }

  /// The titles that such a program leaves after so many transactions.
  static func titles(_ name: String, transactions: Int) -> [String] {
    ["\(name)-count"]
      + (1...transactions).filter { $0 > transactions - 20 || $0.isMultiple(of: 10) }.map { "\(name)-\($0)" }
  }

  /// A program that inserts so many rows and ends: every other ten of them in one transaction, the others one by one.
  static func inserting(_ rows: Int, as name: String, database: String, _ scratch: Scratch) throws -> ChildProcess {
    var script = ".timeout 120000\n"
    for number in 1...rows {
      let isGrouped = (number - 1) / 10 % 2 == 0
      if isGrouped, number % 10 == 1 { script += "BEGIN IMMEDIATE;\n" }
      script += "INSERT INTO todos(title, n) VALUES ('\(name)-\(number)', \(number));\n"
      if isGrouped, number % 10 == 0 || number == rows { script += "COMMIT;\n" }
    }
    let file = try scratch.write("\(name).sql", script)
    return try ChildProcess(executable: shell, arguments: ["-bail", database, ".read \(file)"])
  }
}
