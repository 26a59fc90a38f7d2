import Glibc
import HostKit
import KizunaDoorbell
import ServerPack

/// A session of `psql` that inserts rows, each in a transaction of its own, and knows when it sent the `COMMIT`.
actor BenchSQL {
  private let process: ChildProcess
  private let pipe: Int32
  private var number = 0

  /// Provisions a database for a table `bench`, which it makes, runs `body`, and drops the table again.
  ///
  /// - Parameter folder: where the session's pipe is made.
  /// - Throws: `CommandFailure`, for example when a table `bench` is there already.
  static func with<Result>(
    _ address: String, _ tables: [String: TableDeclaration], folder: String, _ body: (BenchSQL) async throws -> Result
  ) async throws -> Result {
    let url: DatabaseURL
    do { url = try DatabaseURL(address) } catch { throw CommandFailure(.usage, "--postgres: \(error.message)") }
    let psql = try Psql(url)
    _ = try await psql.run(
      """
      begin;
      create table public.bench (
        id uuid primary key default gen_random_uuid(), owner_id uuid not null, title text, n double precision);
      create index on public.bench (owner_id);
      alter table public.bench enable row level security;
      create policy own on public.bench to authenticated using (owner_id = auth.uid()) with check (owner_id = auth.uid());
      grant select, insert, update, delete on public.bench to authenticated;
      commit
      """)
    do {
      _ = try await psql.run(ProvisionPlan(tables: tables).script)
      let session = try BenchSQL(psql, folder: folder)
      let result = try await body(session)
      await session.end()
      _ = try await psql.run(removal)
      return result
    } catch {
      _ = try? await psql.run(removal)
      throw error
    }
  }

  private static let removal = """
    begin;
    do $$
    begin
      -- Not there when the provisioning failed.
      if to_regprocedure('kizunasync.unsync_table(text)') is not null then
        perform kizunasync.unsync_table('bench');
      end if;
    end
    $$;
    drop table public.bench;
    commit
    """

  private init(_ psql: Psql, folder: String) throws {
    let path = folder + "/bench-sql"
    guard mkfifo(path, 0o600) == 0 else { throw HostFileError(path: path, code: errno) }
    // Also for reading, so that opening it does not wait for the reader.
    pipe = open(path, O_RDWR | O_CLOEXEC)
    guard pipe >= 0 else { throw HostFileError(path: path, code: errno) }
    process = try ChildProcess(
      executable: psql.executable,
      arguments: ["--no-psqlrc", "--no-password", "--quiet", "--set=ON_ERROR_STOP=1", "--file=\(path)"],
      environment: ["PGAPPNAME": "kizuna-doorbell bench"].merging(psql.database.environment) { $1 })
  }

  deinit { close(pipe) }

  /// Inserts a row.
  ///
  /// - Returns: when the `COMMIT` was handed to the session, `CLOCK_MONOTONIC`.
  /// - Throws: `CommandFailure` when the database refuses the row.
  func insert(owner: String) async throws -> UInt64 {
    number += 1
    let values = "('\(owner.filter { $0 != "'" })', 'row number \(number)', \(number))"
    try await send(
      "begin; insert into public.bench (owner_id, title, n) values \(values);\n\\echo written\n", "written")
    let start = SystemClock.monotonic
    try await send("commit;\n\\echo committed\n", "committed")
    return start
  }

  private func send(_ text: String, _ answer: String) async throws {
    guard StandardStreams.write(text, to: pipe) else {
      throw CommandFailure(.failure, "the SQL session of the bench cannot be written to")
    }
    do {
      _ = try await process.line(of: .output, within: .seconds(20)) { $0 == answer }
    } catch {
      let ending = await process.stop()
      throw CommandFailure(
        .failure, "the SQL session of the bench ended: \(ending.errors.last ?? "no reason is known")")
    }
  }

  private func end() async {
    await process.stop()
  }
}
