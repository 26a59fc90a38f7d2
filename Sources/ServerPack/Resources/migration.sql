-- A server for Kizuna row sync: schema kizunasync with pull and push, for PostgreSQL 15 and later, on Supabase or beside
-- PostgREST. Applied in one transaction by the role that owns the synced tables; applying it again changes nothing.
-- It syncs no table by itself: kizunasync.sync_table does, once per table.
--
-- Who may what. pull and push belong to the installing role and keep the books; they are all that `authenticated` may
-- call. Rows of the app are read and written only by the functions that belong to kizunasync_rows, a role without
-- privileges of its own that is a member of `authenticated` and under row-level security.

set local client_min_messages = warning;

do $$
begin
  -- One after the other: what two make at once, of which neither sees the other's, fails for one of them.
  perform pg_catalog.pg_advisory_xact_lock(
    ('x' || pg_catalog.substr(pg_catalog.md5('kizunasync installation'), 1, 16))::bit(64)::bigint);
  if current_setting('server_version_num')::int < 150000 then
    raise exception 'kizunasync needs PostgreSQL 15 or later, this is %', current_setting('server_version');
  end if;
  if not exists (select from pg_catalog.pg_roles where rolname = 'authenticated') then
    raise exception 'there is no role "authenticated"; this is not a Supabase project, and not prepared as one';
  end if;
  if pg_catalog.to_regclass('kizunasync.installation') is null and exists (
    select from pg_catalog.pg_proc as p where p.pronamespace = pg_catalog.to_regnamespace('kizunasync'))
  then
    raise exception 'schema kizunasync has functions of another server pack, which are left as they are'
      using errcode = 'KZPRV', hint = 'A project that has one needs no other; remove it first, if it is to be replaced.';
  end if;
end
$$;

-- ── The role that reads and writes rows ────────────────────────────────────────────────────────────────────────────
-- Roles belong to the whole cluster: another database may have made it, even at this moment.
do $$
declare
  may_become boolean;
begin
  if not exists (select from pg_catalog.pg_roles where rolname = 'kizunasync_rows') then
    begin
      create role kizunasync_rows nologin inherit nobypassrls;
    exception
      when duplicate_object or unique_violation then null;
    end;
  end if;
  if exists (select from pg_catalog.pg_roles where rolname = 'kizunasync_rows' and (rolsuper or rolbypassrls)) then
    raise exception 'role kizunasync_rows goes past row-level security; alter role kizunasync_rows nosuperuser nobypassrls';
  end if;
  if not pg_catalog.pg_has_role('kizunasync_rows', 'authenticated', 'usage') then
    begin
      if current_setting('server_version_num')::int >= 160000 then
        execute 'grant authenticated to kizunasync_rows with inherit true';
      else
        grant authenticated to kizunasync_rows;
      end if;
    exception
      when insufficient_privilege then
        raise exception 'role % may not grant "authenticated" to kizunasync_rows', current_user
          using hint = 'Let a role that may do it once: grant authenticated to kizunasync_rows';
    end;
  end if;
  -- To give functions to it, one must be able to become it. Since PostgreSQL 16 who makes a role is a member, but not so.
  if current_setting('server_version_num')::int >= 160000 then
    execute $check$select pg_catalog.pg_has_role(current_user, 'kizunasync_rows', 'set')$check$ into may_become;
  else
    may_become := pg_catalog.pg_has_role(current_user, 'kizunasync_rows', 'member');
  end if;
  if not may_become then
    begin
      execute pg_catalog.format('grant kizunasync_rows to %I', current_user);
    exception
      when insufficient_privilege then
        raise exception 'role % may not become kizunasync_rows, which another role has made', current_user
          using hint = pg_catalog.format('Let a role that may do it once: grant kizunasync_rows to %I', current_user);
    end;
  end if;
end
$$;

create schema if not exists kizunasync;

-- ── Tables ─────────────────────────────────────────────────────────────────────────────────────────────────────────
-- One row: what the operator may set.
create table if not exists kizunasync.settings (
  only_row boolean primary key default true check (only_row),
  max_pull_scan integer not null default 5000 check (max_pull_scan >= 1),
  max_batch_size integer default 500 check (max_batch_size >= 1),
  require_atomic boolean not null default false,
  hlc_max_skew_ms bigint not null default 5000 check (hlc_max_skew_ms >= 0),
  tombstone_ttl_days integer not null default 30 check (tombstone_ttl_days >= 0),
  client_ttl_days integer not null default 90 check (client_ttl_days >= 0),
  max_clients_per_user integer not null default 100 check (max_clients_per_user >= 1),
  reap_schedule text not null default '16 3 * * *',
  compact_schedule text not null default '47 3 * * *',
  prune_schedule text not null default '31 3 * * *'
);

-- One row: what outlives the entries of the log.
create table if not exists kizunasync.horizon (
  only_row boolean primary key default true check (only_row),
  -- The highest seq among the tombstones that are gone. Never lowered.
  reaped bigint not null default 0
);
-- Of an earlier release. Here and below: what is there already is not even asked for, because that takes locks which the
-- app's transactions wait for, or which wait for them.
do $$
begin
  if (
    select pg_catalog.count(*) from pg_catalog.pg_attribute as a
    where a.attrelid = 'kizunasync.horizon'::pg_catalog.regclass and a.attname in ('base', 'highest', 'place')
      and not a.attisdropped
  ) < 3 then
    alter table kizunasync.horizon
      -- What is added to a seq before a client sees it. A log that was made anew, or that was put back to an earlier
      -- state, gets another base than it had: higher than every seq that clients have seen, so that their cursors are
      -- known to be none of this log, and low enough for everything that keeps whole numbers exactly.
      add column if not exists base bigint not null default 0,
      -- The highest seq among the entries that are gone for another reason.
      add column if not exists highest bigint not null default 0,
      -- Where the log stands, see place().
      add column if not exists place text;
  end if;
end
$$;

-- One row: which release of the pack this is, and a digest of its functions.
create table if not exists kizunasync.installation (
  only_row boolean primary key default true check (only_row),
  pack text not null,
  functions text not null
);

create table if not exists kizunasync.tables (
  table_name text collate "C" primary key,
  key_columns text[] not null,
  bucket_column text,
  sync_mode text not null default 'read-write' check (sync_mode in ('read-write', 'pull-only')),
  conflict_mode text not null default 'arrival' check (conflict_mode in ('arrival', 'hlc')),
  conflict_journal boolean not null default false,
  min_schema_version integer not null default 1 check (min_schema_version >= 1),
  register_clients boolean not null default false,
  tombstone_ttl_days integer check (tombstone_ttl_days >= 0)
);

-- Drawn one by one, under the lock of commit order only.
create sequence if not exists kizunasync.seq as bigint cache 1;

-- The newest change of each row, and the tombstones: one for each row and bucket value it was taken out of. The bucket
-- is the text of the bucket column, empty where the table has none.
create table if not exists kizunasync.changes (
  seq bigint not null,
  table_name text collate "C" not null,
  pk text collate "C" not null,
  bucket text collate "C",
  deleted_at timestamptz
);

-- What the running transactions have changed, in order. Nothing here outlives its transaction, so nobody else ever sees
-- a row of it, and a crash may empty it.
create unlogged table if not exists kizunasync.uncommitted (
  n bigint generated always as identity,
  tx xid8 not null default pg_catalog.pg_current_xact_id(),
  table_name text collate "C" not null,
  pk text collate "C" not null,
  bucket text collate "C",
  -- `row`: now stands in this bucket; `left`: moved out of it; `gone`: deleted from it.
  what text not null check (what in ('row', 'left', 'gone'))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- One row for each running transaction that has changed something; its deferred trigger gives out the seqs.
create unlogged table if not exists kizunasync.commits (
  tx xid8 primary key,
  round smallint not null default 1
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create table if not exists kizunasync.grants (
  user_id text collate "C" not null,
  table_name text collate "C" not null,
  bucket text collate "C" not null,
  primary key (user_id, table_name, bucket)
);

create table if not exists kizunasync.verdicts (
  mutation_id uuid primary key,
  user_id text collate "C" not null,
  table_name text not null,
  pk text not null,
  verdict text,
  reason text,
  shows_row boolean not null default false,
  decided_at timestamptz not null default pg_catalog.now()
);

-- Of tables in mode hlc: the clock reading each column was last written with by push.
create table if not exists kizunasync.clocks (
  table_name text collate "C" not null,
  pk text collate "C" not null,
  column_name text collate "C" not null,
  instant text collate "C" not null,
  logical numeric not null,
  node text collate "C" not null,
  primary key (table_name, pk, column_name)
);

-- The conflict journal: values that pushes have written over. Without a seq until the commit. It goes to whoever may read
-- the row now, whatever the policies said when the value stood there: not for tables whose rows are shared later on.
create table if not exists kizunasync.overwrites (
  n bigint generated always as identity primary key,
  table_name text collate "C" not null,
  pk text collate "C" not null,
  column_name text collate "C" not null,
  loser_value jsonb not null,
  winner_mutation_id uuid not null,
  winner_seq bigint,
  conflict_mode text not null
);

create table if not exists kizunasync.clients (
  client_id uuid primary key,
  user_id text collate "C" not null,
  cursor text,
  last_mutation_id uuid,
  schema_version integer,
  last_seen timestamptz not null default pg_catalog.now()
);

do $$
begin
  -- For the horizon. Upside down, so that nothing reads a page by it, past the entries of other buckets.
  if pg_catalog.to_regclass('kizunasync.changes_newest') is null then
    create unique index changes_newest on kizunasync.changes ((- seq));
  end if;
  if pg_catalog.to_regclass('kizunasync.changes_row') is null then
    create unique index changes_row on kizunasync.changes (table_name, pk) where deleted_at is null;
  end if;
  if pg_catalog.to_regclass('kizunasync.changes_tombstone') is null then
    create unique index changes_tombstone on kizunasync.changes (table_name, pk, bucket) nulls not distinct
    where deleted_at is not null;
  end if;
  if pg_catalog.to_regclass('kizunasync.changes_feed') is null then
    create index changes_feed on kizunasync.changes (table_name, bucket, seq);
  end if;
  if pg_catalog.to_regclass('kizunasync.changes_age') is null then
    create index changes_age on kizunasync.changes (table_name, deleted_at) where deleted_at is not null;
  end if;
  if pg_catalog.to_regclass('kizunasync.uncommitted_row') is null then
    create index uncommitted_row on kizunasync.uncommitted (tx, table_name, pk, n);
  end if;
  if pg_catalog.to_regclass('kizunasync.verdicts_age') is null then
    create index verdicts_age on kizunasync.verdicts (decided_at);
  end if;
  if pg_catalog.to_regclass('kizunasync.overwrites_row') is null then
    create index overwrites_row on kizunasync.overwrites (table_name, pk, winner_seq);
  end if;
  if pg_catalog.to_regclass('kizunasync.clients_user') is null then
    create index clients_user on kizunasync.clients (user_id, last_seen);
  end if;
end
$$;

-- What somebody has taken away of them.
do $$
declare
  lost record;
begin
  for lost in
    select k.name, k.columns
    from (values
      ('settings', 'only_row'), ('horizon', 'only_row'), ('installation', 'only_row'), ('tables', 'table_name'),
      ('commits', 'tx'), ('grants', 'user_id, table_name, bucket'), ('verdicts', 'mutation_id'),
      ('clocks', 'table_name, pk, column_name'), ('overwrites', 'n'), ('clients', 'client_id')) as k (name, columns)
    where not exists (
      select from pg_catalog.pg_constraint as c
      where c.conrelid = pg_catalog.to_regclass('kizunasync.' || k.name) and c.contype = 'p')
  loop
    execute pg_catalog.format('alter table kizunasync.%I add constraint %I primary key (%s)', lost.name,
      lost.name || '_pkey', lost.columns);
  end loop;
end
$$;
insert into kizunasync.settings default values on conflict do nothing;
insert into kizunasync.horizon (base)
values ((extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint) on conflict do nothing;

-- ── Keys and columns ───────────────────────────────────────────────────────────────────────────────────────────────
-- The key text of a row image; null when it lacks a key column. Without a search path of its own, so that it can be
-- merged into the statements that use it.
create or replace function kizunasync.key_text(image jsonb, key_columns text[]) returns text
language sql immutable parallel safe
as $$
  select case
    when pg_catalog.cardinality(key_columns) = 1 then image ->> key_columns[1]
    else (
      select case when pg_catalog.bool_and(image ->> k.name is not null)
        then pg_catalog.jsonb_agg(image ->> k.name order by k.place)::pg_catalog.text end
      from pg_catalog.unnest(key_columns) with ordinality as k (name, place))
  end
$$;

create or replace function kizunasync.refuse_columns(table_name text) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'table % is synced by a key or bucket column that it no longer has', table_name
    using hint = 'Provision it again, or stop syncing it with kizunasync.unsync_table.';
end
$$;

-- Key and bucket of a row. (One expression each, without settings of their own: so they are put into the query that calls
-- them instead of being called for every row.)
create or replace function kizunasync.key_in(image jsonb, key_columns text[], table_name text) returns text
language sql
return coalesce(
  case when cardinality(key_columns) = 1 then image ->> key_columns[1] else kizunasync.key_text(image, key_columns) end,
  kizunasync.refuse_columns(table_name));

create or replace function kizunasync.bucket_in(image jsonb, bucket_column text, table_name text) returns text
language sql
return case
  when bucket_column is null then ''
  when image ? bucket_column then image ->> bucket_column
  else kizunasync.refuse_columns(table_name)
end;

-- The columns of a synced table: type as written in SQL, and what tells how to treat it. (In PL/pgSQL, as are the next
-- ones, whose plans last as long as the session.)
create or replace function kizunasync.columns_of(table_name text)
returns table (name text, type text, base_type text, category "char", is_generated boolean)
language plpgsql stable rows 20
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select a.attname::text, format_type(a.atttypid, a.atttypmod),
    case when t.typtype <> 'd' then format_type(t.oid, null) else (
      with recursive base (oid) as (
        select t.typbasetype
        union all
        select d.typbasetype from base as b join pg_type as d on d.oid = b.oid where d.typtype = 'd'
      )
      select format_type(b.oid, null) from base as b join pg_type as d on d.oid = b.oid where d.typtype <> 'd')
    end,
    t.typcategory, a.attgenerated <> ''
  from pg_attribute as a join pg_type as t on t.oid = a.atttypid
  where a.attrelid = to_regclass(format('public.%I', columns_of.table_name)) and a.attnum > 0 and not a.attisdropped;
end
$$;

-- For each key column, in order: its name, and the SQL of its value in the key text `source`.
create or replace function kizunasync.key_values(table_name text, key_columns text[], source text)
returns table (place bigint, name text, value text)
language plpgsql stable rows 2
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select k.place, k.name,
    case when cardinality(key_columns) = 1 then format('(%s)::%s', source, c.type)
    else format('((%s)::jsonb ->> %s)::%s', source, k.place - 1, c.type) end
  from unnest(key_columns) with ordinality as k (name, place)
  join kizunasync.columns_of(table_name) as c on c.name = k.name;
end
$$;

-- The SQL condition that a row `t` has the key text `source`.
create or replace function kizunasync.key_condition(table_name text, key_columns text[], source text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(format('t.%I = %s', v.name, v.value), ' and ' order by v.place)
    from kizunasync.key_values(table_name, key_columns, source) as v);
end
$$;

-- ── Capture: every writer counts ───────────────────────────────────────────────────────────────────────────────────
create or replace function kizunasync.await_commit() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into kizunasync.commits (tx) values (pg_current_xact_id()) on conflict do nothing
$$;

-- Runs once per statement on a synced table and notes what has become of which row.
create or replace function kizunasync.capture() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
set jit = off
as $$
declare
  config record;
  noted bigint;
begin
  select t.key_columns, t.bucket_column into config
  from kizunasync.tables as t where t.table_name = tg_table_name;
  if not found then return null; end if;
  if tg_op = 'INSERT' then
    insert into kizunasync.uncommitted (table_name, pk, bucket, what)
    select tg_table_name, kizunasync.key_in(i.image, config.key_columns, tg_table_name),
      kizunasync.bucket_in(i.image, config.bucket_column, tg_table_name), 'row'
    from (select to_jsonb(r.*) as image from new_rows as r) as i;
  elsif tg_op = 'DELETE' then
    insert into kizunasync.uncommitted (table_name, pk, bucket, what)
    select tg_table_name, kizunasync.key_in(i.image, config.key_columns, tg_table_name),
      kizunasync.bucket_in(i.image, config.bucket_column, tg_table_name), 'gone'
    from (select to_jsonb(r.*) as image from old_rows as r) as i;
  elsif tg_op = 'UPDATE' then
    -- Paired by key: a row whose key has changed is one that is gone and another that has come.
    insert into kizunasync.uncommitted (table_name, pk, bucket, what)
    select tg_table_name, e.pk, e.bucket, e.what
    from (
      select kizunasync.key_in(i.image, config.key_columns, tg_table_name) as pk, i.image,
        kizunasync.bucket_in(i.image, config.bucket_column, tg_table_name) as bucket
      from (select to_jsonb(r.*) as image from old_rows as r) as i
    ) as o
    full join (
      select kizunasync.key_in(i.image, config.key_columns, tg_table_name) as pk, i.image,
        kizunasync.bucket_in(i.image, config.bucket_column, tg_table_name) as bucket
      from (select to_jsonb(r.*) as image from new_rows as r) as i
    ) as n on n.pk = o.pk
    cross join lateral (values
      (1, o.pk, o.bucket, case when n.pk is null then 'gone' when o.bucket is distinct from n.bucket then 'left' end),
      (2, n.pk, n.bucket, 'row')
    ) as e (step, pk, bucket, what)
    where o.image is distinct from n.image and e.pk is not null and e.what is not null
    order by coalesce(o.pk, n.pk), e.step;
  elsif tg_op = 'TRUNCATE' then
    insert into kizunasync.uncommitted (table_name, pk, bucket, what)
    select tg_table_name, s.pk, s.bucket, 'gone'
    from (
      select distinct on (c.pk) c.pk, c.bucket, c.what
      from (
        select c.pk, c.bucket, 'row' as what, 0 as n from kizunasync.changes as c
        where c.table_name = tg_table_name and c.deleted_at is null
        union all
        select u.pk, u.bucket, u.what, u.n from kizunasync.uncommitted as u
        where u.tx = pg_current_xact_id() and u.table_name = tg_table_name and u.what <> 'left'
      ) as c
      order by c.pk, c.n desc
    ) as s
    where s.what = 'row';
  end if;
  get diagnostics noted = row_count;
  if noted > 0 then perform kizunasync.await_commit(); end if;
  return null;
end
$$;

-- ── Seqs ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- The highest seq that was given out and committed.
create or replace function kizunasync.last_seq() returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return greatest(
    -(select min(-c.seq) from kizunasync.changes as c),
    (select greatest(h.reaped, h.highest) from kizunasync.horizon as h), 0);
end
$$;

-- A sequence that was set back, or made anew, goes on where the log ends.
create or replace function kizunasync.settle_seq() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(pg_sequence_last_value('kizunasync.seq'), 0) >= kizunasync.last_seq() then return; end if;
  perform pg_advisory_xact_lock(('x' || substr(md5('kizunasync commit order'), 1, 16))::bit(64)::bigint);
  if coalesce(pg_sequence_last_value('kizunasync.seq'), 0) < kizunasync.last_seq() then
    perform setval('kizunasync.seq', kizunasync.last_seq());
  end if;
end
$$;

-- Notes that entries of the log are gone that no tombstone stands for.
create or replace function kizunasync.keep_highest(seq bigint) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update kizunasync.horizon as h set highest = keep_highest.seq where h.highest < keep_highest.seq
$$;

-- Where the log stands: the cluster and its timeline, which a recovery to a point in time and the promotion of a standby
-- change, the database, and the table. Another place than before means that the log was copied or put back, and that
-- seqs were given out elsewhere that this one does not know.
create or replace function kizunasync.place() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  cluster text;
begin
  begin
    cluster := concat_ws('/', (select s.system_identifier from pg_control_system() as s),
      left(pg_walfile_name(pg_current_wal_lsn()), 8));
  exception
    -- Hosts may keep this to themselves.
    when others then cluster := '-';
  end;
  return concat_ws('/', cluster, (select d.oid from pg_database as d where d.datname = current_database()),
    to_regclass('kizunasync.changes')::oid);
end
$$;

-- Makes all cursors expire: clients read everything again, and keep what they have not pushed. For a log that was put back
-- to an earlier state in a way that place() does not show, as by a snapshot of the disk.
create or replace function kizunasync.expire_cursors() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update kizunasync.horizon as h
  set base = greatest((extract(epoch from clock_timestamp()) * 1000000)::bigint, h.base + kizunasync.last_seq() + 1),
    place = kizunasync.place()
$$;

create or replace function kizunasync.notice_place() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  here text := kizunasync.place();
begin
  update kizunasync.horizon as h set place = here where h.place is null;
  if not exists (select from kizunasync.horizon as h where h.place <> here) then return; end if;
  -- Others may have noticed it, too.
  perform from kizunasync.horizon as h where h.place <> here for update;
  if found then perform kizunasync.expire_cursors(); end if;
end
$$;

-- ── Commit order ───────────────────────────────────────────────────────────────────────────────────────────────────
-- Deferred to the commit. The first round only comes back later, so that whatever else was deferred, such as checks of
-- foreign keys, is done: the lock that makes the order is the last one a transaction takes. Who holds it has drawn its
-- seqs and commits before the next one draws, so whoever sees a seq sees all the lower ones. What is planned once for a
-- few rows must do for many: every table is reached by an index.
create or replace function kizunasync.stamp() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
as $$
declare
  touched text;
begin
  if new.round = 1 then
    update kizunasync.commits set round = 2 where tx = new.tx;
    return null;
  end if;
  delete from kizunasync.commits where tx = new.tx;
  perform pg_advisory_xact_lock(('x' || substr(md5('kizunasync commit order'), 1, 16))::bit(64)::bigint);
  perform kizunasync.settle_seq();

  for touched in
    with events as materialized (
      delete from kizunasync.uncommitted as u where u.tx = new.tx returning u.n, u.table_name, u.pk, u.bucket, u.what
    ), latest as materialized (
      select distinct on (e.table_name, e.pk) e.n, e.table_name, e.pk, e.bucket, e.what
      from events as e where e.what <> 'left'
      order by e.table_name, e.pk, e.n desc
    ), drawn as materialized (
      select o.*, nextval('kizunasync.seq') as seq
      from (
        select l.n, l.table_name, l.pk, l.bucket, false as is_tombstone from latest as l where l.what = 'row'
        union all
        select max(e.n), e.table_name, e.pk, e.bucket, true from events as e where e.what <> 'row'
        group by e.table_name, e.pk, e.bucket
        order by 1
      ) as o
    ), gone as (
      delete from kizunasync.changes as c using latest as l
      where l.what = 'gone' and c.table_name = l.table_name and c.pk = l.pk and c.deleted_at is null
    ), stopped as (
      delete from kizunasync.clocks as c using latest as l
      where l.what = 'gone' and c.table_name = l.table_name and c.pk = l.pk
    ), superseded as (
      -- What a row held in another bucket is nobody's business in this one.
      delete from kizunasync.overwrites as o where o.n = any (array(
        select p.n from drawn as d cross join lateral (
          select q.n from kizunasync.overwrites as q
          where q.table_name = d.table_name and q.pk = d.pk and (q.winner_seq is not null or d.is_tombstone)
          offset 0) as p))
    ), journalled as (
      update kizunasync.overwrites as o
      set winner_seq = (
        select d.seq from drawn as d where d.table_name = o.table_name and d.pk = o.pk and not d.is_tombstone)
      where o.n = any (array(
        select p.n from drawn as d cross join lateral (
          select q.n from kizunasync.overwrites as q
          where q.table_name = d.table_name and q.pk = d.pk and q.winner_seq is null offset 0) as p
        where not d.is_tombstone and not exists (
          select from drawn as l where l.table_name = d.table_name and l.pk = d.pk and l.is_tombstone)))
    ), entries as (
      insert into kizunasync.changes as c (seq, table_name, pk, bucket)
      select d.seq, d.table_name, d.pk, d.bucket from drawn as d where not d.is_tombstone
      on conflict (table_name, pk) where deleted_at is null
      do update set seq = excluded.seq, bucket = excluded.bucket
    ), tombstones as (
      insert into kizunasync.changes as c (seq, table_name, pk, bucket, deleted_at)
      select d.seq, d.table_name, d.pk, d.bucket, clock_timestamp() from drawn as d where d.is_tombstone
      on conflict (table_name, pk, bucket) where deleted_at is not null
      do update set seq = excluded.seq, deleted_at = excluded.deleted_at
    )
    select d.table_name from drawn as d group by d.table_name order by min(d.n)
  loop
    perform kizunasync.ring(touched, touched);
  end loop;
  return null;
end
$$;

-- Whether the trigger that gives out seqs stands as it was made. (Its type: for each row, after insert or update.)
create or replace function kizunasync.has_stamp() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from pg_trigger as t
    where t.tgrelid = to_regclass('kizunasync.commits') and t.tgname = 'give_out_seqs'
      and t.tgfoid = 'kizunasync.stamp()'::regprocedure and t.tgtype = 21 and t.tgenabled in ('O', 'A')
      and t.tgdeferrable and t.tginitdeferred and t.tgqual is null and t.tgattr::text = '')
$$;

do $$
begin
  if not kizunasync.has_stamp() then
    drop trigger if exists give_out_seqs on kizunasync.commits;
    create constraint trigger give_out_seqs after insert or update on kizunasync.commits
    deferrable initially deferred for each row execute function kizunasync.stamp();
  end if;
end
$$;

-- The doorbell, once per room and transaction. It never fails one: whoever misses it polls.
create or replace function kizunasync.ring(room text, name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The transaction and the rooms it has rung in; what is rolled back takes its part of this along.
  rung text[] := string_to_array(current_setting('kizunasync.rung', true), ' ');
  tx text := pg_current_xact_id()::text;
begin
  if to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then return; end if;
  if rung[1] is distinct from tx then rung := array[tx]; end if;
  if room = any (rung[2:]) then return; end if;
  perform realtime.send(jsonb_build_object('t', name), 'changed', 'kizunasync:' || room, true);
  perform set_config('kizunasync.rung', array_to_string(rung || room, ' '), true);
exception
  when others then
    raise warning 'kizunasync could not ring: %', sqlerrm;
end
$$;

-- ── Rows, as the caller ────────────────────────────────────────────────────────────────────────────────────────────
-- These belong to kizunasync_rows (see the end): what they run is under the caller's policies and column privileges.
-- The statements are composed here, from names and types of the catalog, never from text of a request. The search path
-- is the app's, for its triggers and for functions in its policies.
create or replace function kizunasync.read_rows(query text, pks text[])
returns table (pk text, image jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, public, extensions, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
as $$
begin
  -- A dump that is restored without owners gives these to whoever restores it, and no policy binds a superuser.
  if current_user <> 'kizunasync_rows' or exists (
    select from pg_catalog.pg_roles as r where r.rolname = current_user and (r.rolsuper or r.rolbypassrls))
  then
    raise exception 'no rows: what reads and writes them does not run as kizunasync_rows under row-level security'
      using hint = 'Provision again.';
  end if;
  if query is not null then return query execute query using pks; end if;
end
$$;

create or replace function kizunasync.write_row(statement text, cells jsonb, pk text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, public, extensions, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres'
as $$
declare
  written bigint;
begin
  -- A dump that is restored without owners gives these to whoever restores it, and no policy binds a superuser.
  if current_user <> 'kizunasync_rows' or exists (
    select from pg_catalog.pg_roles as r where r.rolname = current_user and (r.rolsuper or r.rolbypassrls))
  then
    raise exception 'no rows: what reads and writes them does not run as kizunasync_rows under row-level security'
      using hint = 'Provision again.';
  end if;
  execute statement using cells, pk;
  get diagnostics written = row_count;
  return written;
end
$$;

-- The query that reads rows of a table by key text, restricted by a condition; null when no column may be read. Key by
-- key, by the index (the limit sees to it): whatever the planner thinks of the policies, it does not read the table.
create or replace function kizunasync.rows_query(table_name text, key_columns text[], condition text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  relation regclass := to_regclass(format('public.%I', rows_query.table_name));
begin
  return (
    select format(
      'select k.pk, pg_catalog.to_jsonb(r.*) from pg_catalog.unnest($1) as k (pk) '
      'cross join lateral (select %s from public.%I as t where %s and (%s) limit 1) as r',
      string_agg(format('t.%I', c.name), ', '), rows_query.table_name,
      kizunasync.key_condition(rows_query.table_name, rows_query.key_columns, 'k.pk'), rows_query.condition)
    from kizunasync.columns_of(rows_query.table_name) as c
    where has_column_privilege('kizunasync_rows', relation, c.name, 'select')
    having count(*) > 0);
end
$$;

-- The user of the request: the subject of its verified token.
create or replace function kizunasync.caller() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  subject text := coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub');
begin
  if subject is null or subject = '' then
    raise exception 'no user is signed in' using errcode = '42501';
  end if;
  return subject;
end
$$;

-- Whether a client of this version must reset before it may sync these tables.
create or replace function kizunasync.needs_reset(version integer, names text[]) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select version is null or version < coalesce(
    (select max(t.min_schema_version) from kizunasync.tables as t where t.table_name = any (names)),
    (select max(t.min_schema_version) from kizunasync.tables as t), 1)
$$;

create or replace function kizunasync.register(
  caller text, client uuid, names text[], cursor text, last_mutation_id uuid, version integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if not exists (select from kizunasync.tables as t where t.register_clients and t.table_name = any (names)) then
    return;
  end if;
  client := coalesce(client, (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'session_id')::uuid);
  if client is null then return; end if;
  insert into kizunasync.clients as c (client_id, user_id, cursor, last_mutation_id, schema_version)
  values (client, caller, register.cursor, register.last_mutation_id, version)
  on conflict (client_id) do update
  set cursor = coalesce(excluded.cursor, c.cursor),
    last_mutation_id = coalesce(excluded.last_mutation_id, c.last_mutation_id),
    schema_version = excluded.schema_version, last_seen = now()
  where c.user_id = excluded.user_id;
  if not found then
    raise exception 'this client_id belongs to another user' using errcode = '42501';
  end if;
  -- Whoever has too many loses those unseen for longest.
  delete from kizunasync.clients as c where c.client_id in (
    select o.client_id from kizunasync.clients as o where o.user_id = caller and o.client_id <> client
    order by o.last_seen desc, o.client_id offset (select s.max_clients_per_user - 1 from kizunasync.settings as s));
  perform kizunasync.ring('clients', '_clients');
end
$$;

-- ── pull ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- The next entries of the merged stream. Planned for the values at hand and by the index of the feed only, whatever the
-- statistics say, so that a page costs the same however long the log is.
create or replace function kizunasync.next_entries(
  names text[], buckets text[], high bigint, holes bigint[], after bigint, most bigint
) returns table (seq bigint, table_name text, pk text, bucket text, deleted_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = 'force_custom_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
  select e.seq, e.table_name, e.pk, e.bucket, e.deleted_at
  from unnest(names, buckets) as s (name, bucket)
  cross join lateral (
    (
      select c.seq, c.table_name, c.pk, c.bucket, c.deleted_at from kizunasync.changes as c
      where c.table_name = s.name and c.bucket = s.bucket and c.seq > greatest(after, high)
      order by c.seq limit most
    )
    union all
    select c.seq, c.table_name, c.pk, c.bucket, c.deleted_at from kizunasync.changes as c
    where cardinality(holes) > 0 and c.seq = any (holes) and c.seq > after and c.table_name = s.name and c.bucket = s.bucket
  ) as e
  order by e.seq
  limit most;
end
$$;

create or replace function kizunasync.signal_page(type text, cursor text) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'rows', '[]'::jsonb, 'tombstones', '[]'::jsonb, 'cursor', cursor, 'has_more', false,
    'signal', jsonb_build_object('type', type))
$$;

-- Answers a pull without writing anything: all of it reads one snapshot, so that the horizon fits the page. Returns the
-- answer and the buckets that rows were delivered of.
create or replace function kizunasync.page(
  caller text, buckets jsonb, cursor text, version integer, page_limit integer, out answer jsonb, out shown jsonb
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO, MDY'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
as $$
#variable_conflict use_variable
declare
  parts text[];
  start bigint;
  high bigint;
  holes bigint[];
  names text[];
  entry record;
  param record;
  config record;
  condition text;
  conditions jsonb := '{}';
  queries jsonb := '{}';
  scope_names text[] := '{}';
  scope_buckets text[] := '{}';
  cast_value text;
  label text;
  cap integer;
  base bigint;
  reaped bigint;
  last_seq bigint := kizunasync.last_seq();
  after bigint;
  most bigint;
  met bigint;
  examined bigint := 0;
  delivered bigint := 0;
  last_examined bigint;
  last_delivered bigint;
  continues_after bigint;
  ended boolean := false;
  page_rows jsonb[] := '{}';
  tombstones jsonb[] := '{}';
  conflicts jsonb;
begin
  shown := '[]';
  page_limit := coalesce(page_limit, 500);
  if page_limit < 1 then raise exception 'limit must be at least 1' using errcode = '22023'; end if;
  if buckets is null or jsonb_typeof(buckets) <> 'array' then
    raise exception 'buckets must be an array' using errcode = '22023';
  end if;
  if jsonb_array_length(buckets) > 64 then
    raise exception 'a pull names at most 64 buckets' using errcode = '22023';
  end if;

  if cursor is null or cursor !~ '^((0|[1-9][0-9]*):)?(0|[1-9][0-9]*)(~[1-9][0-9]*([.][1-9][0-9]*)*)?$' then
    raise exception 'the cursor cannot be read';
  end if;
  parts := regexp_match(cursor, '^(?:([0-9]+):)?([0-9]+)(?:~([0-9.]+))?$');
  begin
    high := parts[2]::bigint;
    start := coalesce(parts[1]::bigint, high);
    holes := coalesce(string_to_array(parts[3], '.')::bigint[], '{}');
  exception
    when data_exception then raise exception 'the cursor cannot be read';
  end;
  if exists (
    select from unnest(holes) with ordinality as h (hole, place)
    where h.hole >= high or h.place > 1 and h.hole <= holes[h.place - 1]
  ) then
    raise exception 'the cursor cannot be read';
  end if;

  for entry in select b.value, b.place from jsonb_array_elements(buckets) with ordinality as b (value, place) loop
    if jsonb_typeof(entry.value) <> 'object' or jsonb_typeof(entry.value -> 'table') is distinct from 'string'
      or jsonb_typeof(entry.value -> 'params') is distinct from 'object'
    then
      raise exception 'bucket %: a table and an object of params are expected', entry.place using errcode = '22023';
    end if;
    if exists (
      select from jsonb_each(entry.value -> 'params') as p
      where jsonb_typeof(p.value) not in ('string', 'number', 'boolean'))
    then
      raise exception 'bucket %: a param is a string, an integer or a boolean', entry.place using errcode = '22023';
    end if;
  end loop;
  names := array(select distinct e ->> 'table' from jsonb_array_elements(buckets) as e);
  if kizunasync.needs_reset(version, names) then
    answer := kizunasync.signal_page('RESET_REQUIRED', cursor);
    return;
  end if;

  for entry in
    select t.table_name, t.bucket_column
    from jsonb_array_elements(buckets) with ordinality as e (value, place)
    join kizunasync.tables as t on t.table_name = e.value ->> 'table'
    where not (e.value -> 'params') ? t.bucket_column
    order by e.place
  loop
    raise exception 'table % is pulled by %, which the params do not name', entry.table_name, entry.bucket_column
      using errcode = 'KZL01';
  end loop;
  for config in
    select t.table_name
    from kizunasync.tables as t
    cross join lateral unnest(t.key_columns || t.bucket_column) as n (name)
    join kizunasync.columns_of(t.table_name) as c on c.name = n.name
    where t.table_name = any (names)
      and not has_column_privilege('kizunasync_rows', to_regclass(format('public.%I', t.table_name)), c.name, 'select')
  loop
    raise exception 'a key or bucket column of table % cannot be read', config.table_name using errcode = 'KZL02';
  end loop;

  -- A checkpoint whose deletions are forgotten; a place in a log that there was before this one, and one that this log has
  -- not reached, because it was put back. A transfer from the start goes on, unless its pages are of another log.
  select h.base, h.reaped into base, reaped from kizunasync.horizon as h;
  base := coalesce(base, 0);
  if start > 0 and start < base + reaped or high > 0 and high < base or greatest(start, high) > base + last_seq then
    answer := kizunasync.signal_page('CHECKPOINT_EXPIRED', cursor);
    return;
  end if;
  high := greatest(high - base, 0);
  holes := array(select h.hole - base from unnest(holes) with ordinality as h (hole, place) order by h.place);

  for entry in
    select e.value -> 'params' as params, t.table_name, t.key_columns, t.bucket_column
    from jsonb_array_elements(buckets) with ordinality as e (value, place)
    join kizunasync.tables as t on t.table_name = e.value ->> 'table'
    where to_regclass(format('public.%I', t.table_name)) is not null
    order by e.place
  loop
    condition := null;
    label := '';
    for param in
      select p.key as name, p.value, c.type
      from jsonb_each_text(entry.params) as p
      left join kizunasync.columns_of(entry.table_name) as c on c.name = p.key
        and has_column_privilege('kizunasync_rows', to_regclass(format('public.%I', entry.table_name)), c.name, 'select')
    loop
      if param.type is null then
        raise exception 'table % has no column for one of the params', entry.table_name using errcode = '22023';
      end if;
      execute format('select to_jsonb($1::%s) #>> ''{}''', param.type) into cast_value using param.value;
      if param.name = entry.bucket_column then label := cast_value; end if;
      condition := concat_ws(' and ', condition, format('t.%I = %L::%s', param.name, param.value, param.type));
    end loop;
    if not exists (
      select from unnest(scope_names, scope_buckets) as s (name, bucket)
      where s.name = entry.table_name and s.bucket = label
    ) then
      scope_names := scope_names || entry.table_name;
      scope_buckets := scope_buckets || label;
    end if;
    conditions := conditions || jsonb_build_object(entry.table_name,
      concat_ws(' or ', conditions ->> entry.table_name, format('(%s)', coalesce(condition, 'true'))));
    queries := queries || jsonb_build_object(entry.table_name,
      kizunasync.rows_query(entry.table_name, entry.key_columns, conditions ->> entry.table_name));
  end loop;

  select s.max_pull_scan into cap from kizunasync.settings as s;
  after := case when cardinality(holes) = 0 then high else 0 end;
  while not ended and continues_after is null loop
    most := least(greatest(page_limit - delivered + 1, 64), cap - examined + 1);
    met := 0;
    for entry in
      with candidates as materialized (
        select e.* from kizunasync.next_entries(scope_names, scope_buckets, high, holes, after, most) as e
      ), images as materialized (
        select g.table_name, r.pk, r.image
        from (select c.table_name, array_agg(distinct c.pk) as pks from candidates as c group by c.table_name) as g
        cross join lateral kizunasync.read_rows(queries ->> g.table_name, g.pks) as r
      )
      select c.seq, c.table_name, c.pk, c.bucket, c.deleted_at, i.image,
        case
          when c.deleted_at is null then i.image is not null
          else i.image is null and exists (
            select from kizunasync.grants as g
            where g.user_id = caller and g.table_name = c.table_name and g.bucket = c.bucket)
        end as is_deliverable
      from candidates as c left join images as i on i.table_name = c.table_name and i.pk = c.pk
      order by c.seq
    loop
      met := met + 1;
      if examined = cap then
        continues_after := last_examined;
        exit;
      end if;
      if entry.is_deliverable and delivered = page_limit then
        continues_after := last_delivered;
        exit;
      end if;
      examined := examined + 1;
      last_examined := entry.seq;
      after := entry.seq;
      if not entry.is_deliverable then continue; end if;
      delivered := delivered + 1;
      last_delivered := entry.seq;
      if entry.deleted_at is null then
        page_rows := page_rows || jsonb_build_object(
          'table', entry.table_name, 'pk', entry.pk, 'row', entry.image, 'seq', (base + entry.seq)::text);
        if not shown @> jsonb_build_array(jsonb_build_array(entry.table_name, entry.bucket)) then
          shown := shown || jsonb_build_array(jsonb_build_array(entry.table_name, entry.bucket));
        end if;
      else
        tombstones := tombstones || jsonb_build_object(
          'table', entry.table_name, 'pk', entry.pk, 'seq', (base + entry.seq)::text,
          'deleted_at', to_char(entry.deleted_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
      end if;
    end loop;
    ended := met < most;
  end loop;

  if exists (select from kizunasync.tables as t where t.conflict_journal and t.table_name = any (scope_names)) then
    select jsonb_agg(jsonb_build_object(
        'table', o.table_name, 'pk', o.pk, 'column_name', o.column_name, 'loser_value', o.loser_value,
        'winner_mutation_id', o.winner_mutation_id, 'winner_seq', (base + o.winner_seq)::text,
        'conflict_mode', o.conflict_mode) order by o.table_name, o.pk, o.column_name, o.n)
    into conflicts
    from unnest(page_rows) as r
    join kizunasync.overwrites as o
      on o.table_name = r ->> 'table' and o.pk = r ->> 'pk' and o.winner_seq = (r ->> 'seq')::bigint - base
    where (r -> 'row') ? o.column_name;
  end if;
  answer := jsonb_build_object(
    'rows', to_jsonb(page_rows), 'tombstones', to_jsonb(tombstones), 'has_more', continues_after is not null,
    'cursor', coalesce(start::text || ':' || (base + continues_after)::text, (base + greatest(last_seq, high))::text),
    'signal', null);
  if conflicts is not null then answer := answer || jsonb_build_object('conflicts', conflicts); end if;
end
$$;

create or replace function kizunasync.pull(
  buckets jsonb, cursor text, schema_version integer, "limit" integer default 500, client_id uuid default null
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  caller text := kizunasync.caller();
  answer jsonb;
  shown jsonb;
begin
  perform kizunasync.notice_place();
  -- One statement, one snapshot.
  select p.answer, p.shown into answer, shown
  from kizunasync.page(caller, buckets, cursor, schema_version, "limit") as p;
  if answer ->> 'signal' is not null then return answer; end if;
  -- Only now: a tombstone needs a grant from an earlier pull. In one order, so that two pulls do not wait for each other.
  insert into kizunasync.grants as held
  select caller, s ->> 0, s ->> 1 from jsonb_array_elements(shown) as s
  where not exists (
    select from kizunasync.grants as g where g.user_id = caller and g.table_name = s ->> 0 and g.bucket = s ->> 1)
  order by 2, 3
  on conflict do nothing;
  perform kizunasync.register(caller, client_id,
    array(select e ->> 'table' from jsonb_array_elements(buckets) as e), answer ->> 'cursor', null, schema_version);
  return answer;
end
$$;

-- ── push ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What a request needs to know of a synced table, looked up once: its columns with the caller's privileges, and the SQL
-- that reads and locks its rows by key text. Null when there is no such table.
create or replace function kizunasync.shape_of(name text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  config kizunasync.tables;
  relation regclass := to_regclass(format('public.%I', name));
begin
  select * into config from kizunasync.tables as t where t.table_name = name;
  if not found or relation is null then return null; end if;
  return jsonb_build_object(
    'table', config.table_name, 'keys', config.key_columns, 'bucket', config.bucket_column, 'hlc', config.conflict_mode = 'hlc',
    'conflict_mode', config.conflict_mode, 'journal', config.conflict_journal,
    'deletes', has_table_privilege('kizunasync_rows', relation, 'delete'),
    'columns', (
      select jsonb_object_agg(c.name, jsonb_build_object(
        'type', c.type, 'base', c.base_type, 'generated', c.is_generated,
        'compares', c.category in ('N', 'S', 'B', 'D', 'T', 'I', 'E') or c.base_type in ('uuid', 'bytea', 'jsonb'),
        'select', has_column_privilege('kizunasync_rows', relation, c.name, 'select'),
        'insert', has_column_privilege('kizunasync_rows', relation, c.name, 'insert'),
        'update', has_column_privilege('kizunasync_rows', relation, c.name, 'update')))
      from kizunasync.columns_of(config.table_name) as c),
    'read', kizunasync.rows_query(config.table_name, config.key_columns, 'true'),
    'lock', format(
      'select from public.%I as t join pg_catalog.unnest($1) with ordinality as k (pk, place) on %s '
      'order by k.place for no key update of t',
      config.table_name, kizunasync.key_condition(config.table_name, config.key_columns, 'k.pk')),
    'key', kizunasync.key_condition(config.table_name, config.key_columns, '$2'),
    'key_values', (
      select jsonb_object_agg(v.name, v.value)
      from kizunasync.key_values(config.table_name, config.key_columns, '$2') as v),
    'spelling', (
      select case when count(*) = 1 then format('select (%s)::text', min(v.value))
        else format('select jsonb_build_array(%s)::text', string_agg(format('(%s)::text', v.value), ', ' order by v.place))
      end
      from kizunasync.key_values(config.table_name, config.key_columns, '$1') as v));
end
$$;

-- Whether a text is the one spelling of a key of the table.
create or replace function kizunasync.is_key(shape jsonb, pk text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  parts integer := jsonb_array_length(shape -> 'keys');
  spelt text;
begin
  if parts > 1 then
    if jsonb_typeof(pk::jsonb) <> 'array' then return false; end if;
    if jsonb_array_length(pk::jsonb) <> parts
      or exists (select from jsonb_array_elements(pk::jsonb) as e where jsonb_typeof(e) <> 'string')
    then
      return false;
    end if;
  end if;
  execute shape ->> 'spelling' into spelt using pk;
  return spelt is not distinct from pk;
exception
  when data_exception then return false;
end
$$;

-- One row as the caller sees it; null when there is none.
create or replace function kizunasync.visible_row(shape jsonb, pk text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select r.image from kizunasync.read_rows(shape ->> 'read', array[visible_row.pk]) as r);
end
$$;

-- SQL of a record `v` with the typed values of some columns, from a JSON object.
create or replace function kizunasync.cells_as_record(shape jsonb, cells jsonb, source text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format('pg_catalog.jsonb_to_record(%s) as v (%s)', source,
    string_agg(format('%I %s', c, shape -> 'columns' -> c ->> 'type'), ', '))
  from jsonb_object_keys(cells) as c
$$;

-- Refuses a whole request for its shape: 22023 names the mutation, counted from 1.
create or replace function kizunasync.check_batch(batch jsonb, shapes jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  m record;
  shape jsonb;
  wrong text;
begin
  if batch is null or jsonb_typeof(batch -> 'mutations') is distinct from 'array' then
    raise exception 'batch must be an object with an array of mutations' using errcode = '22023';
  end if;
  if jsonb_typeof(coalesce(batch -> 'atomic', 'null')) not in ('boolean', 'null') then
    raise exception 'batch.atomic must be true or false' using errcode = '22023';
  end if;
  for m in select e.value, e.place from jsonb_array_elements(batch -> 'mutations') with ordinality as e (value, place) loop
    wrong := null;
    if jsonb_typeof(m.value) <> 'object' then
      wrong := 'not an object';
    elsif jsonb_typeof(m.value -> 'mutation_id') is distinct from 'string'
      or m.value ->> 'mutation_id' !~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
    then
      wrong := 'mutation_id must be a uuid';
    elsif jsonb_typeof(m.value -> 'op') is distinct from 'string'
      or m.value ->> 'op' not in ('insert', 'update', 'delete')
    then
      wrong := 'op must be insert, update or delete';
    elsif jsonb_typeof(m.value -> 'table') is distinct from 'string' then
      wrong := 'table must be a string';
    elsif jsonb_typeof(m.value -> 'pk') is distinct from 'string' or m.value ->> 'pk' = '' then
      wrong := 'pk must be a non-empty string';
    elsif jsonb_typeof(coalesce(m.value -> 'columns', 'null')) not in ('object', 'null') then
      wrong := 'columns must be an object';
    elsif jsonb_typeof(coalesce(m.value -> 'precondition', 'null')) not in ('object', 'null') then
      wrong := 'precondition must be an object';
    else
      shape := shapes -> (m.value ->> 'table');
      if shape is not null and not kizunasync.is_key(shape, m.value ->> 'pk') then
        wrong := 'pk is not the canonical key text of a row of the table';
      elsif (shape -> 'hlc')::boolean and (
        jsonb_typeof(m.value -> 'hlc') is distinct from 'string'
        or m.value ->> 'hlc' !~ '^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z\|\d+\|.+$')
      then
        wrong := 'hlc must be a clock reading';
      end if;
      wrong := coalesce(wrong, kizunasync.wrong_transforms(m.value));
    end if;
    if wrong is not null then
      raise exception 'mutation %: %', m.place, wrong using errcode = '22023';
    end if;
  end loop;
end
$$;

create or replace function kizunasync.wrong_transforms(mutation jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  transforms jsonb := nullif(mutation -> 'transforms', 'null');
  x record;
begin
  if transforms is null then return null; end if;
  if jsonb_typeof(transforms) <> 'object' then return 'transforms must be an object'; end if;
  if mutation ->> 'op' <> 'update' then return 'transforms belong to an update'; end if;
  for x in select t.key, t.value from jsonb_each(transforms) as t loop
    if nullif(mutation -> 'columns', 'null') ? x.key then return 'a column is both assigned and transformed'; end if;
    if jsonb_typeof(x.value) <> 'object' then return 'a transform must be an object'; end if;
    if x.value ->> 'op' = 'increment' then
      if not (
        jsonb_typeof(x.value -> 'by') = 'number' and (x.value ->> 'by')::numeric = trunc((x.value ->> 'by')::numeric)
        or jsonb_typeof(x.value -> 'by') = 'string' and x.value ->> 'by' ~ '^-?(0|[1-9][0-9]*)$'
      ) is true then
        return 'by must be a whole number';
      end if;
    elsif x.value ->> 'op' in ('arrayUnion', 'arrayRemove') then
      if jsonb_typeof(x.value -> 'values') is distinct from 'array' then return 'values must be an array'; end if;
      if jsonb_array_length(x.value -> 'values') = 0 or exists (
        select from jsonb_array_elements(x.value -> 'values') as v where jsonb_typeof(v) in ('array', 'object')
      ) then
        return 'values must hold scalars';
      end if;
    else
      return 'a transform is increment, arrayUnion or arrayRemove';
    end if;
  end loop;
  return null;
end
$$;

-- Locks rows until the end of the transaction, in one order, so that pushes do not wait for each other in a circle. Only
-- rows that the caller sees: to be made to wait for another's row would tell that it is there. Returns their keys.
create or replace function kizunasync.lock_rows(shape jsonb, pks text[]) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  visible text[] := array(
    select r.pk from kizunasync.read_rows(shape ->> 'read', lock_rows.pks) as r order by r.pk collate "C");
begin
  if cardinality(visible) > 0 then execute shape ->> 'lock' using visible; end if;
  return to_jsonb(visible);
end
$$;

-- Whether a row was deleted and has not come back: null when not, else whether the caller may know.
create or replace function kizunasync.deletion_known(caller text, table_name text, pk text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  latest record;
begin
  select u.what, u.bucket into latest from kizunasync.uncommitted as u
  where u.tx = pg_current_xact_id_if_assigned() and u.table_name = table_name and u.pk = pk and u.what <> 'left'
  order by u.n desc limit 1;
  if found then
    if latest.what = 'row' then return null; end if;
  else
    -- One look-up in the index of the tombstones, one in that of the rows.
    select c.bucket into latest from kizunasync.changes as c
    where c.table_name = table_name and c.pk = pk and c.deleted_at is not null
      and c.seq > coalesce((
        select r.seq from kizunasync.changes as r
        where r.table_name = table_name and r.pk = pk and r.deleted_at is null), 0)
    order by c.seq desc limit 1;
    if not found then return null; end if;
  end if;
  return exists (
    select from kizunasync.grants as g
    where g.user_id = caller and g.table_name = table_name and g.bucket = latest.bucket);
end
$$;

-- The column rules that need no row: null, or the reason of a refusal.
create or replace function kizunasync.column_violation(shape jsonb, mutation jsonb) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  op text := mutation ->> 'op';
  k text;
  is_part boolean;
begin
  if op = 'delete' then return case when not (shape -> 'deletes')::boolean then 'COLUMN_DENIED' end; end if;
  if exists (
    select from (
      select jsonb_object_keys(coalesce(nullif(mutation -> 'columns', 'null'), '{}'))
      union
      select jsonb_object_keys(coalesce(nullif(mutation -> 'transforms', 'null'), '{}'))
    ) as named (name)
    cross join lateral (select shape -> 'columns' -> named.name as c) as x
    where c is null or (c -> 'generated')::boolean or not (c -> op)::boolean
      or op = 'update' and shape -> 'keys' ? named.name
  ) then
    return 'COLUMN_DENIED';
  end if;
  if op = 'insert' then
    -- A named key column must spell its part of the key text, which decides.
    for k in
      select n from jsonb_array_elements_text(shape -> 'keys') as n where nullif(mutation -> 'columns', 'null') ? n
    loop
      begin
        execute format('select $1::%s = %s', shape -> 'columns' -> k ->> 'type', shape -> 'key_values' ->> k)
        into is_part using mutation -> 'columns' ->> k, mutation ->> 'pk';
      exception
        when data_exception then is_part := false;
      end;
      if is_part is not true then return 'CONSTRAINT'; end if;
    end loop;
  end if;
  return null;
end
$$;

-- Whether the row has the expected values. A column that cannot be read, or a value the type refuses, never matches.
create or replace function kizunasync.holds(shape jsonb, pk text, expected jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  condition text;
begin
  if expected is null or expected = '{}' or expected = 'null' then return true; end if;
  if exists (
    select from jsonb_object_keys(expected) as e where (shape -> 'columns' -> e -> 'select')::boolean is not true
  ) then
    return false;
  end if;
  -- As the type compares; what has no such comparison, as JSON.
  select string_agg(
    case
      when (shape -> 'columns' -> e -> 'compares')::boolean then format('t.%1$I is not distinct from v.%1$I', e)
      else format('pg_catalog.to_jsonb(t.%1$I) is not distinct from pg_catalog.to_jsonb(v.%1$I)', e)
    end, ' and ')
  into condition
  from jsonb_object_keys(expected) as e;
  return exists (
    select from kizunasync.read_rows(
      format('select k.pk, null::jsonb from (select ($1)[1] as pk) as k join public.%I as t on %s cross join %s where %s',
        shape ->> 'table', replace(shape ->> 'key', '$2', 'k.pk'),
        kizunasync.cells_as_record(shape, expected, format('%L::jsonb', expected)), condition),
      array[holds.pk]) as r);
exception
  when data_exception then return false;
end
$$;

-- SQL of a column's new value under a transform; null when its type cannot take it.
create or replace function kizunasync.transformed(name text, base_type text, transform jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  elements text;
begin
  if transform ->> 'op' = 'increment' then
    if base_type in ('smallint', 'integer', 'bigint', 'numeric') then
      return format('coalesce(t.%I::numeric, 0) + %L::numeric', name, transform ->> 'by');
    elsif base_type in ('real', 'double precision') then
      return format('coalesce(t.%I::float8, 0) + %L::float8', name, transform ->> 'by');
    end if;
    return null;
  end if;
  if base_type <> 'text[]' then return null; end if;
  elements := format('%L::text[]', array(select jsonb_array_elements_text(transform -> 'values')));
  if transform ->> 'op' = 'arrayUnion' then
    return format(
      'coalesce(t.%1$I, ''{}''::text[]) || array(select n.x from pg_catalog.unnest(%2$s) with ordinality as n (x, i) '
      'where not exists (select from pg_catalog.unnest(t.%1$I) as o (y) where o.y is not distinct from n.x) '
      'group by n.x order by pg_catalog.min(n.i))', name, elements);
  end if;
  return format(
    'array(select o.y from pg_catalog.unnest(t.%1$I) with ordinality as o (y, i) '
    'where not exists (select from pg_catalog.unnest(%2$s) as n (x) where n.x is not distinct from o.y) order by o.i)',
    name, elements);
end
$$;

-- Inserts or changes a row as the caller; returns the reason of a refusal, or null. Errors of the database are the
-- caller's to translate.
create or replace function kizunasync.write(shape jsonb, mutation jsonb, old jsonb) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  name text := shape ->> 'table';
  keys text[] := array(select jsonb_array_elements_text(shape -> 'keys'));
  cells jsonb := coalesce(nullif(mutation -> 'columns', 'null'), '{}') - keys;
  transforms jsonb := coalesce(nullif(mutation -> 'transforms', 'null'), '{}');
  pk text := mutation ->> 'pk';
  stamp text[];
  statement text;
  source text;
  new jsonb;
begin
  if old is not null then
    -- An insert of a row that stands changes the columns it names.
    if mutation ->> 'op' = 'insert' and cells = '{}' then return null; end if;
    if exists (
      select from jsonb_object_keys(cells) as c where not (shape -> 'columns' -> c -> 'update')::boolean
    ) then
      return 'COLUMN_DENIED';
    end if;
  end if;

  if (shape -> 'hlc')::boolean then
    stamp := regexp_match(mutation ->> 'hlc', '^([^|]*)\|([0-9]+)\|(.+)$');
    stamp[1] := least(stamp[1] collate "C", (
      select to_char((clock_timestamp() at time zone 'UTC') + s.hlc_max_skew_ms * interval '1 millisecond',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      from kizunasync.settings as s));
    select coalesce(jsonb_object_agg(c.key, c.value), '{}') into new
    from jsonb_each(cells) as c
    left join kizunasync.clocks as k on k.table_name = name and k.pk = pk and k.column_name = c.key
    where k.pk is null
      or (k.instant, k.logical, k.node) < (stamp[1] collate "C", stamp[2]::numeric, stamp[3] collate "C");
    if new = '{}' and cells <> '{}' and transforms = '{}' then return 'SUPERSEDED'; end if;
    cells := new;
  end if;

  source := case when cells = '{}' then '' else ' from ' || kizunasync.cells_as_record(shape, cells, '$1') end;
  if old is null then
    select format('insert into public.%I (%s) select %s', name,
      string_agg(format('%I', x.name), ', ' order by x.name), string_agg(x.value, ', ' order by x.name)) || source
    into statement
    from (
      select v.key as name, v.value from jsonb_each_text(shape -> 'key_values') as v
      union all
      select c, format('v.%I', c) from jsonb_object_keys(cells) as c
    ) as x;
  else
    if exists (
      select from jsonb_each(transforms) as x
      where kizunasync.transformed(x.key, shape -> 'columns' -> x.key ->> 'base', x.value) is null
    ) then
      return 'CONSTRAINT';
    end if;
    select format('update public.%I as t set %s', name, string_agg(format('%I = %s', x.name, x.value), ', ' order by x.name))
      || source || ' where ' || (shape ->> 'key')
    into statement
    from (
      select c as name, format('v.%I', c) as value from jsonb_object_keys(cells) as c
      union all
      select x.key, kizunasync.transformed(x.key, shape -> 'columns' -> x.key ->> 'base', x.value)
      from jsonb_each(transforms) as x
    ) as x;
  end if;
  -- Rows that the caller may read but not write are not changed and raise nothing; neither does a trigger's refusal.
  if kizunasync.write_row(statement, cells, pk) = 0 then return 'RLS_DENIED'; end if;

  if (shape -> 'hlc')::boolean then
    insert into kizunasync.clocks as k
    select name, pk, c, stamp[1], stamp[2]::numeric, stamp[3] from jsonb_object_keys(cells) as c
    on conflict on constraint clocks_pkey
    do update set instant = excluded.instant, logical = excluded.logical, node = excluded.node;
  end if;
  if (shape -> 'journal')::boolean and old is not null then
    new := kizunasync.visible_row(shape, pk);
    -- Who gets the row from now on may not have been allowed to see what it held.
    if new is null or old -> (shape ->> 'bucket') is distinct from new -> (shape ->> 'bucket') then return null; end if;
    -- The seq comes with the commit, unless somebody has asked for deferred checks early.
    insert into kizunasync.overwrites
      (table_name, pk, column_name, loser_value, winner_mutation_id, winner_seq, conflict_mode)
    select name, pk, c, old -> c, (mutation ->> 'mutation_id')::uuid,
      case when not exists (select from kizunasync.commits as w where w.tx = pg_current_xact_id()) then (
        select e.seq from kizunasync.changes as e
        where e.table_name = name and e.pk = pk and e.deleted_at is null)
      end,
      shape ->> 'conflict_mode'
    from jsonb_object_keys(cells) as c
    where old -> c <> 'null' and old -> c is distinct from new -> c;
  end if;
  return null;
end
$$;

-- Decides one mutation, with its effect: null when applied, else the reason. A refused one has changed nothing.
create or replace function kizunasync.outcome(caller text, shape jsonb, mutation jsonb, is_locked boolean) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name text := shape ->> 'table';
  op text := mutation ->> 'op';
  pk text := mutation ->> 'pk';
  old jsonb := kizunasync.visible_row(shape, pk);
  is_known boolean;
  reason text;
  state text;
  conflicting text;
begin
  -- Under the lock, so that what is decided on is what is written to.
  if old is not null and not is_locked then
    perform kizunasync.lock_rows(shape, array[pk]);
    old := kizunasync.visible_row(shape, pk);
  end if;
  is_known := kizunasync.deletion_known(caller, name, pk);
  if is_known is not null then return case when is_known then 'DELETE_WINS' else 'RLS_DENIED' end; end if;
  reason := kizunasync.column_violation(shape, mutation);
  if reason is not null then return reason; end if;
  if old is null and op <> 'insert' then return 'RLS_DENIED'; end if;
  if not kizunasync.holds(shape, pk, mutation -> 'precondition') then return 'PRECONDITION'; end if;
  if op = 'update' and coalesce(nullif(mutation -> 'columns', 'null'), '{}') = '{}'
    and coalesce(nullif(mutation -> 'transforms', 'null'), '{}') = '{}'
  then
    return 'RLS_DENIED';
  end if;

  begin
    if op = 'delete' then
      if kizunasync.write_row(format('delete from public.%I as t where %s', name, shape ->> 'key'), null, pk) = 0 then
        return 'RLS_DENIED';
      end if;
      return null;
    end if;
    reason := kizunasync.write(shape, mutation, old);
    if reason is not null then raise exception using errcode = 'KZREF'; end if;
    return null;
  exception
    when sqlstate 'KZREF' then return reason;
    when unique_violation then
      -- Not to be told from a row the caller may not make: another's row has this very key.
      get stacked diagnostics conflicting = constraint_name;
      if op = 'insert' and old is null and exists (
        select from pg_constraint as c
        where c.conrelid = to_regclass(format('public.%I', name)) and c.contype = 'p' and c.conname = conflicting)
      then
        -- Unless it came this moment, and the caller sees it.
        return case when kizunasync.visible_row(shape, pk) is not null then 'AGAIN' else 'RLS_DENIED' end;
      end if;
      return 'CONSTRAINT';
    when others then
      get stacked diagnostics state = returned_sqlstate;
      if state = '42501' then return 'RLS_DENIED'; end if;
      if state ~ '^(22|23)' or state in ('P0001', '428C9') then return 'CONSTRAINT'; end if;
      raise;
  end;
end
$$;

-- The verdict on one mutation, recorded with its effect.
create or replace function kizunasync.decide(
  caller text, shapes jsonb, mutation jsonb, deleted_here jsonb, is_locked boolean
) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  id uuid := (mutation ->> 'mutation_id')::uuid;
  shape jsonb := shapes -> (mutation ->> 'table');
  recorded kizunasync.verdicts;
  reason text;
  with_row boolean := coalesce(nullif(mutation -> 'transforms', 'null'), '{}') <> '{}';
  server_row jsonb;
  verdict jsonb;
begin
  -- To claim the id waits for whoever is deciding it at this moment.
  insert into kizunasync.verdicts (mutation_id, user_id, table_name, pk, shows_row)
  values (id, caller, mutation ->> 'table', mutation ->> 'pk', with_row) on conflict do nothing;
  if not found then
    select * into recorded from kizunasync.verdicts as v where v.mutation_id = id;
    if recorded.user_id is distinct from caller then
      return jsonb_build_object('mutation_id', id, 'verdict', 'rejected', 'reason', 'RLS_DENIED', 'server_row', null);
    end if;
    shape := coalesce(shapes -> recorded.table_name, kizunasync.shape_of(recorded.table_name));
    if shape is not null then server_row := kizunasync.visible_row(shape, recorded.pk); end if;
    verdict := jsonb_build_object('mutation_id', id, 'verdict', recorded.verdict);
    if recorded.verdict = 'rejected' then
      return verdict || jsonb_build_object('reason', recorded.reason, 'server_row', server_row);
    elsif recorded.shows_row and server_row is not null then
      return verdict || jsonb_build_object('server_row', server_row);
    end if;
    return verdict;
  end if;

  if shape is null then
    raise exception 'a table of the batch is not synced' using errcode = '0A000';
  end if;
  if deleted_here @> jsonb_build_array(jsonb_build_array(shape -> 'table', mutation -> 'pk')) then
    reason := 'DELETE_WINS';
  else
    reason := kizunasync.outcome(caller, shape, mutation, is_locked);
    if reason = 'AGAIN' then reason := kizunasync.outcome(caller, shape, mutation, false); end if;
    if reason = 'AGAIN' then reason := 'CONSTRAINT'; end if;
  end if;
  if reason is not null and reason <> 'DELETE_WINS' or reason is null and with_row then
    server_row := kizunasync.visible_row(shape, mutation ->> 'pk');
  end if;
  verdict := jsonb_build_object('mutation_id', id, 'verdict', case when reason is null then 'applied' else 'rejected' end);
  if reason is not null then
    verdict := verdict || jsonb_build_object('reason', reason, 'server_row', server_row);
  elsif server_row is not null then
    verdict := verdict || jsonb_build_object('server_row', server_row);
  end if;
  update kizunasync.verdicts as v set verdict = verdict ->> 'verdict', reason = reason where v.mutation_id = id;
  return verdict;
end
$$;

create or replace function kizunasync.decide_all(caller text, shapes jsonb, mutations jsonb, atomic boolean)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  touched record;
  locked jsonb := '{}';
  mutation jsonb;
  verdict jsonb;
  verdicts jsonb[] := '{}';
  deleted_here jsonb := '[]';
begin
  for touched in
    select m ->> 'table' as name, array_agg(distinct m ->> 'pk') as pks
    from jsonb_array_elements(mutations) as m where shapes ? (m ->> 'table')
    group by 1 order by 1
  loop
    locked := locked || jsonb_build_object(touched.name, kizunasync.lock_rows(shapes -> touched.name, touched.pks));
  end loop;
  for mutation in select m from jsonb_array_elements(mutations) with ordinality as e (m, i) order by i loop
    verdict := kizunasync.decide(caller, shapes, mutation, deleted_here,
      coalesce(locked -> (mutation ->> 'table') ? (mutation ->> 'pk'), false));
    if atomic and verdict ->> 'verdict' = 'rejected' then
      raise exception using errcode = 'KZABT', message = jsonb_build_object('batch', jsonb_build_object(
        'outcome', 'aborted', 'offender_mutation_id', verdict -> 'mutation_id', 'reason', verdict -> 'reason',
        'server_row', verdict -> 'server_row'))::text;
    end if;
    verdicts := verdicts || verdict;
    if mutation ->> 'op' = 'delete' and verdict ->> 'verdict' = 'applied' then
      deleted_here := deleted_here || jsonb_build_array(jsonb_build_array(mutation -> 'table', mutation -> 'pk'));
    end if;
  end loop;
  return jsonb_build_object('verdicts', to_jsonb(verdicts));
end
$$;

create or replace function kizunasync.push(
  batch jsonb, last_mutation_id uuid, schema_version integer, client_id uuid default null
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
#variable_conflict use_variable
declare
  caller text := kizunasync.caller();
  names text[];
  shapes jsonb;
  atomic boolean;
  settings kizunasync.settings;
  refused text;
  answer jsonb;
begin
  names := array(
    select distinct m ->> 'table'
    from jsonb_array_elements(case jsonb_typeof(batch -> 'mutations') when 'array' then batch -> 'mutations' else '[]' end) as m
    where jsonb_typeof(m -> 'table') = 'string');
  if kizunasync.needs_reset(schema_version, names) then
    return jsonb_build_object('signal', jsonb_build_object('type', 'RESET_REQUIRED'));
  end if;
  shapes := coalesce((
    select jsonb_object_agg(x.name, x.shape)
    from (select n as name, kizunasync.shape_of(n) as shape from unnest(names) as n offset 0) as x
    where x.shape is not null), '{}');
  perform kizunasync.check_batch(batch, shapes);
  select t.table_name into refused from kizunasync.tables as t
  where t.table_name = any (names) and t.sync_mode = 'pull-only' order by 1 limit 1;
  if found then raise exception 'table % is pull-only', refused using errcode = 'KZP01'; end if;
  select * into settings from kizunasync.settings;
  if jsonb_array_length(batch -> 'mutations') > settings.max_batch_size then
    raise exception 'a batch may carry at most % mutations', settings.max_batch_size using errcode = 'KZP02';
  end if;
  atomic := coalesce(batch -> 'atomic' = 'true', false);
  if settings.require_atomic and not atomic then
    raise exception 'this server takes atomic batches only' using errcode = 'KZP03';
  end if;

  if atomic then
    begin
      answer := kizunasync.decide_all(caller, shapes, batch -> 'mutations', true);
    exception
      when sqlstate 'KZABT' then return sqlerrm::jsonb;
    end;
  else
    answer := kizunasync.decide_all(caller, shapes, batch -> 'mutations', false);
  end if;
  perform kizunasync.register(caller, client_id, names, null, (
    select (v.value ->> 'mutation_id')::uuid from jsonb_array_elements(answer -> 'verdicts') with ordinality as v (value, place)
    where v.value ->> 'verdict' = 'applied' order by v.place desc limit 1), schema_version);
  return answer;
end
$$;

-- ── Retention ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- Forgets tombstones past their time. Clients whose cursor is older must read everything again.
create or replace function kizunasync.reap_tombstones() returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  reaped record;
begin
  with old as (
    delete from kizunasync.changes as c
    where c.deleted_at < now() - interval '1 day' * coalesce(
      (select t.tombstone_ttl_days from kizunasync.tables as t where t.table_name = c.table_name),
      (select s.tombstone_ttl_days from kizunasync.settings as s))
    returning c.seq
  )
  select count(*) as number, max(o.seq) as seq into reaped from old as o;
  update kizunasync.horizon as h set reaped = greatest(h.reaped, reaped.seq) where reaped.number > 0;
  return reaped.number;
end
$$;

-- Forgets what is kept for tables that are no longer synced. The log itself holds one entry for each row already.
create or replace function kizunasync.compact_changelog() returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  removed bigint;
  newest bigint;
begin
  delete from kizunasync.overwrites as o where not exists (
    select from kizunasync.changes as c
    where c.table_name = o.table_name and c.pk = o.pk and c.deleted_at is null and c.seq = o.winner_seq);
  delete from kizunasync.clocks as k where k.table_name not in (select t.table_name from kizunasync.tables as t);
  delete from kizunasync.grants as g where g.table_name not in (select t.table_name from kizunasync.tables as t);
  with gone as (
    delete from kizunasync.changes as c where c.table_name not in (select t.table_name from kizunasync.tables as t)
    returning c.seq
  )
  select count(*), max(g.seq) into removed, newest from gone as g;
  perform kizunasync.keep_highest(newest);
  return removed;
end
$$;

-- Forgets clients that stay away and verdicts so old that nobody asks for them again.
create or replace function kizunasync.prune_clients() returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  oldest timestamptz := now() - interval '1 day' * (select s.client_ttl_days from kizunasync.settings as s);
  removed bigint;
begin
  delete from kizunasync.verdicts as v where v.decided_at < oldest;
  delete from kizunasync.clients as c where c.last_seen < oldest;
  get diagnostics removed = row_count;
  return removed;
end
$$;

-- ── Tables to sync ─────────────────────────────────────────────────────────────────────────────────────────────────
-- Why a table cannot be synced so, one sentence each.
create or replace function kizunasync.problems(
  table_name text, key_columns text[], bucket_column text, named_columns text[] default null
) returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  relation regclass;
  class pg_class;
  primary_key text[];
  c record;
begin
  if table_name is null or table_name !~ '^[a-z][a-z0-9_]*$' then
    return next 'a table name starts with a lower-case letter and holds only a to z, 0 to 9 and _';
    return;
  end if;
  relation := to_regclass(format('public.%I', table_name));
  if relation is null then
    return next format('there is no table public.%s', table_name);
    return;
  end if;
  select * into class from pg_class as r where r.oid = relation;
  if class.relkind <> 'r' then
    return next format('public.%s is %s; only plain tables can be synced', table_name, case class.relkind
      when 'p' then 'a partitioned table' when 'v' then 'a view' when 'm' then 'a materialized view'
      when 'f' then 'a foreign table' else 'no table' end);
    return;
  end if;
  if exists (select from pg_inherits as i where relation in (i.inhrelid, i.inhparent)) then
    return next format('table %s inherits or is inherited from; only plain tables can be synced', table_name);
  end if;
  if class.relpersistence <> 'p' then
    return next format('table %s does not survive a crash; alter table public.%s set logged', table_name, table_name);
  end if;
  if not pg_has_role(class.relowner, 'usage') then
    return next format('table %s belongs to %s; provision as that role, which alone can make triggers', table_name,
      pg_get_userbyid(class.relowner));
  end if;
  if not class.relrowsecurity then
    return next format(
      'row-level security is off for table %s, so every user would get every row; alter table public.%s enable row level security',
      table_name, table_name);
  elsif not class.relforcerowsecurity and pg_has_role('kizunasync_rows', class.relowner, 'usage') then
    return next format(
      'the policies of table %s do not bind its owner %s, whose rights users have here through kizunasync_rows; alter table public.%s force row level security, or give the table to another role',
      table_name, pg_get_userbyid(class.relowner), table_name);
  end if;

  primary_key := array(
    select a.attname::text
    from pg_index as i cross join lateral unnest(i.indkey::smallint[]) with ordinality as k (number, place)
    join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.number
    where i.indrelid = relation and i.indisprimary and k.place <= i.indnkeyatts order by k.place);
  if cardinality(primary_key) = 0 then
    return next format('table %s has no primary key', table_name);
  elsif key_columns is not null and key_columns <> primary_key then
    return next format('the key of table %s is declared as (%s), but its primary key is (%s)', table_name,
      array_to_string(key_columns, ', '), array_to_string(primary_key, ', '));
  end if;
  for c in
    select k.name, format_type(a.atttypid, null) as type, l.collisdeterministic
    from unnest(primary_key) with ordinality as k (name, place)
    join pg_attribute as a on a.attrelid = relation and a.attname = k.name
    left join pg_collation as l on l.oid = a.attcollation
    order by k.place
  loop
    if c.type not in ('uuid', 'text', 'character varying', 'smallint', 'integer', 'bigint') then
      return next format(
        'key column %s of table %s has type %s; possible are uuid, text, varchar, smallint, integer and bigint', c.name,
        table_name, c.type);
    elsif not c.collisdeterministic then
      return next format('key column %s of table %s takes different texts for equal; give it a deterministic collation',
        c.name, table_name);
    end if;
  end loop;

  if bucket_column is not null then
    if not exists (select from kizunasync.columns_of(table_name) as a where a.name = bucket_column) then
      return next format('table %s has no bucket column %s', table_name, bucket_column);
    elsif not exists (
      select from pg_index as i join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = relation and a.attname = bucket_column and i.indisvalid and i.indpred is null
    ) then
      return next format(
        'bucket column %s of table %s has no index, and policies that name it would read the whole table; create index on public.%s (%s)',
        bucket_column, table_name, table_name, bucket_column);
    end if;
  end if;
  for c in
    select n.name from unnest(named_columns) as n (name)
    where n.name <> all (coalesce(key_columns, '{}') || coalesce(bucket_column, ''))
      and n.name not in (select a.name from kizunasync.columns_of(table_name) as a)
    order by n.name
  loop
    return next format('table %s has no column %s, which the configuration names', table_name, c.name);
  end loop;
  for c in
    select a.name from kizunasync.columns_of(table_name) as a
    where a.name = any (primary_key || bucket_column)
      and not has_column_privilege('authenticated', relation, a.name, 'select')
    order by a.name
  loop
    return next format(
      'role authenticated may not read column %s of table %s, without which no row can be pulled; grant select (%s) on public.%s to authenticated',
      c.name, table_name, c.name, table_name);
  end loop;
end
$$;

-- Whether the triggers of a table stand as they were made, and no others that capture. (The types: after each statement.)
create or replace function kizunasync.has_triggers(table_name text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select count(e.name) = 4 and count(*) = 4
  from pg_trigger as t
  left join (values
    ('kizunasync_insert', 4, null, 'new_rows'), ('kizunasync_update', 16, 'old_rows', 'new_rows'),
    ('kizunasync_delete', 8, 'old_rows', null), ('kizunasync_truncate', 32, null, null)
  ) as e (name, type, old_rows, new_rows)
    on t.tgname = e.name and t.tgtype = e.type and t.tgfoid = 'kizunasync.capture()'::regprocedure
    and t.tgoldtable is not distinct from e.old_rows and t.tgnewtable is not distinct from e.new_rows
    and t.tgenabled in ('O', 'A') and t.tgqual is null and t.tgattr::text = '' and t.tgconstraint = 0
  where t.tgrelid = to_regclass(format('public.%I', table_name)) and (
    t.tgfoid = 'kizunasync.capture()'::regprocedure
    or t.tgname in ('kizunasync_insert', 'kizunasync_update', 'kizunasync_delete', 'kizunasync_truncate'))
$$;

-- Keeps writers of a table, or everybody, away until the end of the transaction. Only for a short while does it wait at a time, since new
-- writers wait behind it, and less than it takes until a deadlock is noticed, so that it is never the app that is ended.
create or replace function kizunasync.keep_others_away(table_name text, readers_too boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '700ms'
as $$
begin
  for attempt in 1..15 loop
    begin
      execute format('lock table public.%I in %s mode', table_name,
        case when readers_too then 'access exclusive' else 'share row exclusive' end);
      return;
    exception
      when lock_not_available or deadlock_detected then null;
    end;
  end loop;
  raise exception 'table % is being written to all the time, or by a transaction that does not end', table_name
    using errcode = 'lock_not_available', hint = 'Nothing was changed. Provision again when it is.';
end
$$;

-- Syncs a table, or changes how: what is null stays as it is, or takes the default. Rows that stand already are entered
-- into the log. Raises one exception that names every reason against it; changes nothing when nothing is to change.
create or replace function kizunasync.sync_table(
  table_name text, key_columns text[] default null, bucket_column text default null,
  sync_mode text default null, conflict_mode text default null, conflict_journal boolean default null,
  min_schema_version integer default null, register_clients boolean default null,
  tombstone_ttl_days integer default null
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
set row_security = off
as $$
#variable_conflict use_variable
declare
  wrong text[] := array(select p from kizunasync.problems(table_name, key_columns, bucket_column) as p);
  before kizunasync.tables;
  is_new boolean;
  entered bigint;
  other text;
  -- The owner is bound to the policies too, and would not see the rows that are to be entered.
  is_forced boolean := exists (
    select from pg_class as c where c.oid = to_regclass(format('public.%I', table_name)) and c.relforcerowsecurity)
    and not exists (select from pg_roles as r where r.rolname = current_user and (r.rolsuper or r.rolbypassrls));
begin
  if cardinality(wrong) > 0 then
    raise exception '%', array_to_string(wrong, e'\n');
  end if;
  for look in 1..2 loop
    key_columns := array(
      select a.attname::text
      from pg_index as i cross join lateral unnest(i.indkey::smallint[]) with ordinality as k (number, place)
      join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.number
      where i.indrelid = to_regclass(format('public.%I', table_name)) and i.indisprimary and k.place <= i.indnkeyatts
      order by k.place);
    select * into before from kizunasync.tables as t where t.table_name = table_name;
    is_new := not found or before.key_columns <> key_columns or before.bucket_column is distinct from bucket_column
      or not kizunasync.has_triggers(table_name);
    exit when not is_new or look = 2;
    -- No writer is at work between the look at the rows and the triggers.
    perform kizunasync.keep_others_away(table_name, is_forced);
  end loop;

  insert into kizunasync.tables as t (table_name, key_columns, bucket_column, sync_mode, conflict_mode,
    conflict_journal, min_schema_version, register_clients, tombstone_ttl_days)
  values (table_name, key_columns, bucket_column, coalesce(sync_mode, before.sync_mode, 'read-write'),
    coalesce(conflict_mode, before.conflict_mode, 'arrival'), coalesce(conflict_journal, before.conflict_journal, false),
    coalesce(min_schema_version, before.min_schema_version, 1), coalesce(register_clients, before.register_clients, false),
    coalesce(tombstone_ttl_days, before.tombstone_ttl_days))
  on conflict on constraint tables_pkey do update
  set key_columns = excluded.key_columns, bucket_column = excluded.bucket_column, sync_mode = excluded.sync_mode,
    conflict_mode = excluded.conflict_mode, conflict_journal = excluded.conflict_journal,
    min_schema_version = excluded.min_schema_version, register_clients = excluded.register_clients,
    tombstone_ttl_days = excluded.tombstone_ttl_days
  where t is distinct from excluded;
  if not is_new then return case when found then 'changed' else 'unchanged' end; end if;

  -- Those that stand in the way, and those that would capture twice.
  for other in
    select t.tgname from pg_trigger as t
    where t.tgrelid = to_regclass(format('public.%I', table_name)) and case
      when t.tgname in ('kizunasync_insert', 'kizunasync_update', 'kizunasync_delete', 'kizunasync_truncate')
      then t.tgconstraint <> 0 else t.tgfoid = 'kizunasync.capture()'::regprocedure end
  loop
    execute format('drop trigger %I on public.%I', other, table_name);
  end loop;
  execute format(
    'create or replace trigger kizunasync_insert after insert on public.%I referencing new table as new_rows '
    'for each statement execute function kizunasync.capture()', table_name);
  execute format(
    'create or replace trigger kizunasync_update after update on public.%I referencing old table as old_rows new table as new_rows '
    'for each statement execute function kizunasync.capture()', table_name);
  execute format(
    'create or replace trigger kizunasync_delete after delete on public.%I referencing old table as old_rows '
    'for each statement execute function kizunasync.capture()', table_name);
  execute format(
    'create or replace trigger kizunasync_truncate after truncate on public.%I '
    'for each statement execute function kizunasync.capture()', table_name);
  execute format('alter table public.%I enable trigger kizunasync_insert, enable trigger kizunasync_update, '
    'enable trigger kizunasync_delete, enable trigger kizunasync_truncate', table_name);

  if is_forced then execute format('alter table public.%I no force row level security', table_name); end if;
  -- Nobody knows what was changed meanwhile: every row counts as changed, and entries without a row as deleted.
  execute format($seed$
    with standing as materialized (
      select kizunasync.key_text(i.image, $2) as pk, case when $3 is null then '' else i.image ->> $3 end as bucket
      from (select to_jsonb(t.*) as image from public.%I as t) as i
    )
    insert into kizunasync.uncommitted (table_name, pk, bucket, what)
    select $1, e.pk, e.bucket, e.what
    from (
      select c.pk, c.bucket, case when s.pk is null then 'gone' else 'left' end as what
      from kizunasync.changes as c left join standing as s on s.pk = c.pk
      where c.table_name = $1 and c.deleted_at is null and (s.pk is null or s.bucket is distinct from c.bucket)
      union all
      select s.pk, s.bucket, 'row' from standing as s
    ) as e
    order by e.what = 'row', e.pk $seed$, table_name) using table_name, key_columns, bucket_column;
  get diagnostics entered = row_count;
  if is_forced then execute format('alter table public.%I force row level security', table_name); end if;
  if entered > 0 then perform kizunasync.await_commit(); end if;
  return format('synced, %s rows entered', entered);
end
$$;

-- Enters all rows of a table anew, after changes that its triggers did not see: made while they were disabled, under
-- session_replication_role, or while the table had another name.
create or replace function kizunasync.resync_table(table_name text) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  known kizunasync.tables;
begin
  select * into known from kizunasync.tables as t where t.table_name = table_name;
  if not found then
    raise exception 'table % is not synced', table_name using hint = 'kizunasync.sync_table does that.';
  end if;
  perform kizunasync.keep_others_away(table_name, true);
  execute format('drop trigger if exists kizunasync_insert on public.%I', table_name);
  return kizunasync.sync_table(table_name, bucket_column => known.bucket_column);
end
$$;

-- Stops syncing a table and forgets what was kept for it. Should it be synced again, nobody knows what was deleted
-- meanwhile: only a sweep of the clients finds that.
create or replace function kizunasync.unsync_table(table_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  name text;
  newest bigint;
begin
  if to_regclass(format('public.%I', table_name)) is not null then
    for name in
      select t.tgname from pg_trigger as t
      where t.tgrelid = to_regclass(format('public.%I', table_name)) and t.tgfoid = 'kizunasync.capture()'::regprocedure
    loop
      execute format('drop trigger %I on public.%I', name, table_name);
    end loop;
  end if;
  delete from kizunasync.tables as t where t.table_name = table_name;
  with gone as (delete from kizunasync.changes as c where c.table_name = table_name returning c.seq)
  select max(g.seq) into newest from gone as g;
  perform kizunasync.keep_highest(newest);
  delete from kizunasync.grants as g where g.table_name = table_name;
  delete from kizunasync.clocks as k where k.table_name = table_name;
  delete from kizunasync.overwrites as o where o.table_name = table_name;
end
$$;

-- Syncs the declared tables: [{"table", "key": […], "bucket", "sync_mode", "conflict_mode", "columns": […]}, …]. Returns
-- what was done for each. Raises one exception that names every reason against any of them.
create or replace function kizunasync.provision(declared jsonb) returns setof text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  wrong text[];
  d record;
begin
  wrong := array(
    select p
    from jsonb_to_recordset(declared) as x ("table" text, key text[], bucket text, columns text[])
    cross join lateral kizunasync.problems(x."table", x.key, x.bucket, x.columns) as p);
  if cardinality(wrong) > 0 then
    raise exception '%', array_to_string(wrong, e'\n') using errcode = 'KZPRV';
  end if;
  for d in
    select * from jsonb_to_recordset(declared)
      as x ("table" text, key text[], bucket text, sync_mode text, conflict_mode text)
    order by x."table"
  loop
    return next format('%s: %s', d."table",
      kizunasync.sync_table(d."table", d.key, d.bucket, d.sync_mode, d.conflict_mode));
  end loop;
end
$$;

-- What tells whether somebody has changed the functions since they were installed.
create or replace function kizunasync.functions_digest() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select md5(string_agg(pg_get_functiondef(p.oid) || coalesce(p.proowner::regrole::text, ''), '' order by p.oid::regprocedure::text))
  from pg_proc as p where p.pronamespace = 'kizunasync'::regnamespace
$$;

create or replace function kizunasync.record_installation(pack text) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into kizunasync.installation as i (pack, functions) values (record_installation.pack, kizunasync.functions_digest())
  on conflict (only_row) do update set pack = excluded.pack, functions = excluded.functions
  where i is distinct from excluded
$$;

-- Whether signed-in users may listen to the doorbell, and to nothing else by the pack's doing.
create or replace function kizunasync.has_policy() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from pg_policy as p
    where p.polrelid = to_regclass('realtime.messages') and p.polname = 'kizunasync wakeup receive' and p.polcmd = 'r'
      and p.polpermissive and p.polroles = array['authenticated'::regrole::oid]
      and pg_get_expr(p.polqual, p.polrelid)
        = '((extension = ''broadcast''::text) AND starts_with(realtime.topic(), ''kizunasync:''::text))');
end
$$;

-- What is wrong with the doorbell, one sentence each.
create or replace function kizunasync.doorbell_problems() returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  messages regclass := to_regclass('realtime.messages');
  caller text := current_setting('request.jwt.claims', true);
  topic text := current_setting('realtime.topic', true);
  policy record;
  admits boolean;
begin
  if messages is null or to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then
    return next format('there is no %s here: nothing rings, and clients poll; set up Realtime for this database',
      case when messages is null then 'realtime.messages' else 'function realtime.send(jsonb, text, text, boolean)' end);
  end if;
  if messages is null then return; end if;
  if not (select c.relrowsecurity from pg_class as c where c.oid = messages) then
    return next 'row-level security is off for realtime.messages, so everybody may listen and ring; '
      'alter table realtime.messages enable row level security';
  end if;
  -- A policy of the app's for rooms of its own is none of ours: it must only keep out of these.
  perform set_config('realtime.topic', 'kizunasync:check', true),
    set_config('request.jwt.claims', '{"sub": "00000000-0000-4000-8000-000000000000", "role": "authenticated"}', true);
  for policy in
    select p.polname as name, pg_get_expr(coalesce(p.polwithcheck, p.polqual), p.polrelid) as condition
    from pg_policy as p
    where p.polrelid = messages and p.polpermissive and p.polcmd in ('a', '*')
      and p.polroles && array[0, 'authenticated'::regrole::oid, coalesce(to_regrole('anon')::oid, 0)]
    order by 1
  loop
    begin
      execute format(
        'select (%s) from jsonb_populate_record(null::realtime.messages, '
        '''{"topic": "kizunasync:check", "extension": "broadcast", "event": "changed", "private": true, "payload": {}}'') as messages',
        coalesce(policy.condition, 'true')) into admits;
    exception
      when others then admits := true;
    end;
    if admits then
      return next format('policy %I lets clients ring; drop policy %I on realtime.messages, or keep topics that begin with '
        'kizunasync: out of it', policy.name, policy.name);
    end if;
  end loop;
  perform set_config('realtime.topic', topic, true), set_config('request.jwt.claims', caller, true);
end
$$;

-- Who else may do what only pull and push should, one sentence each.
create or replace function kizunasync.exposures() returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  d record;
begin
  for d in
    with objects as (
      select 'call ' || p.oid::regprocedure::text as deed, p.proowner as owner,
        coalesce(p.proacl, acldefault('f', p.proowner)) as acl, p.proname in ('pull', 'push') as is_open
      from pg_proc as p where p.pronamespace = 'kizunasync'::regnamespace
      union all
      select case c.relkind when 'S' then 'use sequence ' else 'use table ' end || c.oid::regclass::text, c.relowner,
        coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's'::"char" else 'r' end, c.relowner)), false
      from pg_class as c where c.relnamespace = 'kizunasync'::regnamespace and c.relkind in ('r', 'S')
      union all
      select format('use column %s of table %s', a.attname, c.oid::regclass), c.relowner, a.attacl, false
      from pg_class as c join pg_attribute as a on a.attrelid = c.oid
      where c.relnamespace = 'kizunasync'::regnamespace and a.attacl is not null
      union all
      select 'use schema kizunasync', n.nspowner, n.nspacl, false from pg_namespace as n where n.nspname = 'kizunasync'
    ), holders as (
      select o.deed, x.grantee as holder, o.is_open or x.privilege_type = 'USAGE' and o.deed = 'use schema kizunasync' as is_open
      from objects as o cross join lateral aclexplode(o.acl) as x
      union
      select o.deed, o.owner, false from objects as o
    ), found as (
      select r.rolname as role, h.deed, case when h.holder not in (0, r.oid) then (
        select min(p.rolname) from pg_auth_members as m join pg_roles as p on p.oid = m.roleid
        where m.member = r.oid and pg_has_role(r.oid, p.oid, 'usage') and pg_has_role(p.oid, h.holder, 'usage'))
      end as parent
      from holders as h join pg_roles as r on r.rolname in ('anon', 'authenticated', 'kizunasync_rows')
      where not r.rolsuper and (h.holder = 0 or pg_has_role(r.oid, h.holder, 'usage'))
        and not (h.is_open and r.rolname <> 'anon')
        and not (r.rolname = 'kizunasync_rows' and h.deed in (
          'call kizunasync.read_rows(text,text[])', 'call kizunasync.write_row(text,jsonb,text)'))
    )
    select f.role, f.deed, f.parent from found as f where f.parent is null
    union
    -- What a role has through another one, the other one is told of.
    select f.role, 'use parts of the server pack', f.parent from found as f
    where f.parent not in ('anon', 'authenticated', 'kizunasync_rows')
    order by 1, 2, 3
  loop
    return next case when d.parent is null then format('role %s may %s; provision again', d.role, d.deed)
      else format('role %s may %s, because it is a member of %s; revoke %I from %I', d.role, d.deed, d.parent, d.parent,
        d.role) end;
  end loop;
  for d in
    select r.rolname as role from pg_roles as r
    where r.rolname in ('anon', 'authenticated', 'kizunasync_rows') and r.rolsuper order by 1
  loop
    return next format('role %s is a superuser, and so may do everything; alter role %I nosuperuser', d.role, d.role);
  end loop;
end
$$;

-- What of the pack belongs to another role than pull does, which all the rest must be open to.
create or replace function kizunasync.strays() returns table (kind text, name text, owner text, proper text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with rest as (
    select p.proowner as owner from pg_proc as p
    where p.oid = to_regprocedure('kizunasync.pull(jsonb, text, integer, integer, uuid)')
  ), parts as (
    select 1 as step, 'schema' as kind, n.nspname::text as name, n.nspowner as owner
    from pg_namespace as n where n.nspname = 'kizunasync'
    union all
    select 2, case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text, c.relowner
    from pg_class as c
    where c.relnamespace = 'kizunasync'::regnamespace and c.relkind in ('r', 'S')
      -- Sequences of columns go with their tables.
      and not exists (
        select from pg_depend as x
        where x.classid = 'pg_class'::regclass and x.objid = c.oid and x.deptype in ('a', 'i') and x.refobjsubid > 0)
    union all
    select 3, 'function', p.oid::regprocedure::text, p.proowner
    from pg_proc as p
    where p.pronamespace = 'kizunasync'::regnamespace and p.proname not in ('read_rows', 'write_row')
  )
  select p.kind, p.name, pg_get_userbyid(p.owner)::text, pg_get_userbyid(r.owner)::text
  from parts as p cross join rest as r where p.owner <> r.owner order by p.step, p.name;
end
$$;

-- In what the database differs from what provisioning the declared tables with this pack would leave.
create or replace function kizunasync.drift(declared jsonb, pack text) returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  installed kizunasync.installation;
  d record;
  t kizunasync.tables;
  place text;
begin
  select * into installed from kizunasync.installation;
  if installed.pack is distinct from drift.pack then
    return next 'the server pack is of another release; provision again';
  elsif installed.functions is distinct from kizunasync.functions_digest() then
    return next 'functions of the server pack were changed by hand; provision again';
  end if;
  if not kizunasync.has_stamp() then
    return next 'the trigger that gives out seqs is missing, disabled or changed; provision again';
  end if;
  if not exists (select from kizunasync.settings) then
    return next 'table kizunasync.settings is empty; provision again, which brings back the defaults';
  end if;
  for d in select x.kind, x.name, x.owner, x.proper from kizunasync.strays() as x loop
    return next format('%s %s belongs to %s and not to %s, as the rest does; provision again', d.kind, d.name, d.owner,
      d.proper);
  end loop;
  if not exists (select from kizunasync.horizon) then
    return next 'table kizunasync.horizon is empty, so cursors that have expired are not noticed; provision again';
  elsif exists (select from kizunasync.horizon as h where h.place <> kizunasync.place()) then
    return next 'the database is a copy, or was put back to an earlier state, so cursors of before must expire; they do when '
      'one is next pulled by, or provision again';
  end if;
  if to_regclass('kizunasync.seq') is null then
    return next 'sequence kizunasync.seq is missing, and nothing can be written; provision again';
  elsif coalesce(pg_sequence_last_value(to_regclass('kizunasync.seq')), 0) < kizunasync.last_seq() then
    return next format('sequence kizunasync.seq was set back: it stands below %s, which was given out; provision again',
      kizunasync.last_seq());
  end if;
  if exists (select from pg_roles as r where r.rolname = 'kizunasync_rows' and (r.rolbypassrls or r.rolsuper)) then
    return next 'role kizunasync_rows goes past row-level security; alter role kizunasync_rows nosuperuser nobypassrls';
  end if;
  if not pg_has_role('kizunasync_rows', 'authenticated', 'usage') then
    return next 'role kizunasync_rows is no member of authenticated; provision again';
  end if;
  if not has_schema_privilege('authenticated', 'kizunasync', 'usage')
    or not has_function_privilege('authenticated', 'kizunasync.pull(jsonb, text, integer, integer, uuid)', 'execute')
    or not has_function_privilege('authenticated', 'kizunasync.push(jsonb, uuid, integer, uuid)', 'execute')
  then
    return next 'role authenticated may not call pull and push; provision again';
  end if;
  return query select x from kizunasync.exposures() as x;
  return query select x from kizunasync.doorbell_problems() as x;
  if to_regclass('realtime.messages') is not null and not kizunasync.has_policy() then
    return next 'the policy that lets users listen is missing from realtime.messages, or is another; provision again';
  end if;
  for place in
    select n.name
    from unnest(array[
      'changes_newest', 'changes_row', 'changes_tombstone', 'changes_feed', 'changes_age', 'uncommitted_row',
      'verdicts_age', 'overwrites_row', 'clients_user', 'settings_pkey', 'horizon_pkey', 'installation_pkey', 'tables_pkey',
      'commits_pkey', 'grants_pkey', 'verdicts_pkey', 'clocks_pkey', 'overwrites_pkey', 'clients_pkey']) as n (name)
    where not exists (
      select from pg_class as c join pg_index as i on i.indexrelid = c.oid
      where c.relnamespace = 'kizunasync'::regnamespace and c.relname = n.name and i.indisvalid)
  loop
    return next format('index kizunasync.%s is missing or not valid; drop it if it is there, and provision again', place);
  end loop;

  for d in
    select * from jsonb_to_recordset(declared)
      as x ("table" text, key text[], bucket text, sync_mode text, conflict_mode text, columns text[])
    order by x."table"
  loop
    for place in select p from kizunasync.problems(d."table", d.key, d.bucket, d.columns) as p loop
      return next place;
    end loop;
    select * into t from kizunasync.tables as c where c.table_name = d."table";
    if not found then
      return next format('table %s is not synced; provision again', d."table");
      continue;
    end if;
    if t.key_columns is distinct from d.key then
      return next format('table %s is synced by key (%s), not (%s); provision again', d."table",
        array_to_string(t.key_columns, ', '), array_to_string(d.key, ', '));
    end if;
    if t.bucket_column is distinct from d.bucket then
      return next format('table %s is synced by bucket column %s, not %s; provision again, which enters all rows anew, or '
        'change the configuration: gateways that name another column are refused', d."table",
        coalesce(t.bucket_column, '(none)'), coalesce(d.bucket, '(none)'));
    end if;
    if t.sync_mode is distinct from d.sync_mode then
      return next format('table %s is %s, not %s; provision again, or change the configuration', d."table", t.sync_mode,
        d.sync_mode);
    end if;
    if t.conflict_mode is distinct from d.conflict_mode then
      return next format('table %s settles conflicts by %s, not %s; provision again, or change the configuration',
        d."table", t.conflict_mode, d.conflict_mode);
    end if;
    if not kizunasync.has_triggers(d."table") then
      return next format('triggers of table %s are missing, disabled or changed, so changes may be lost; provision again',
        d."table");
    end if;
  end loop;
end
$$;

do $$
begin
  perform kizunasync.notice_place();
  perform kizunasync.settle_seq();
end
$$;

-- What another role has added when it brought the pack up to date belongs to whom the rest belongs to.
do $$
declare
  stray record;
begin
  for stray in select x.kind, x.name, x.proper from kizunasync.strays() as x loop
    execute pg_catalog.format('alter %s %s owner to %I', stray.kind, stray.name, stray.proper);
  end loop;
end
$$;

-- ── Who may what ───────────────────────────────────────────────────────────────────────────────────────────────────
revoke all on schema kizunasync from public;
revoke all on all tables in schema kizunasync from public;
revoke all on all sequences in schema kizunasync from public;
revoke all on all functions in schema kizunasync from public;

do $$
declare
  role text;
begin
  -- Default privileges may have opened the schema to the API's roles.
  for role in select r.rolname from pg_catalog.pg_roles as r where r.rolname in ('anon', 'authenticated', 'service_role') loop
    execute pg_catalog.format('revoke all on all tables in schema kizunasync from %I', role);
    execute pg_catalog.format('revoke all on all sequences in schema kizunasync from %I', role);
    execute pg_catalog.format('revoke all on all functions in schema kizunasync from %I', role);
    execute pg_catalog.format('revoke all on schema kizunasync from %I', role);
  end loop;
  revoke all on all tables in schema kizunasync from kizunasync_rows;
  revoke all on all sequences in schema kizunasync from kizunasync_rows;
  if exists (select from pg_catalog.pg_roles where rolname = 'service_role') then
    grant usage on schema kizunasync to service_role;
    grant select on all tables in schema kizunasync to service_role;
    grant execute on function kizunasync.reap_tombstones(), kizunasync.compact_changelog(), kizunasync.prune_clients()
    to service_role;
  end if;

  -- An owner must be able to create in the schema at the moment it becomes one.
  if exists (
    select from pg_catalog.pg_proc as p
    where p.oid in ('kizunasync.read_rows(text, text[])'::regprocedure, 'kizunasync.write_row(text, jsonb, text)'::regprocedure)
      and p.proowner <> (select r.oid from pg_catalog.pg_roles as r where r.rolname = 'kizunasync_rows')
  ) then
    grant create on schema kizunasync to kizunasync_rows;
    alter function kizunasync.read_rows(text, text[]) owner to kizunasync_rows;
    alter function kizunasync.write_row(text, jsonb, text) owner to kizunasync_rows;
    revoke create on schema kizunasync from kizunasync_rows;
  end if;
  execute pg_catalog.format(
    'grant execute on function kizunasync.read_rows(text, text[]), kizunasync.write_row(text, jsonb, text) to %I',
    (select pg_catalog.pg_get_userbyid(p.proowner) from pg_catalog.pg_proc as p
      where p.oid = 'kizunasync.pull(jsonb, text, integer, integer, uuid)'::regprocedure));
end
$$;

grant usage on schema kizunasync to authenticated;
grant execute on function
  kizunasync.pull(jsonb, text, integer, integer, uuid),
  kizunasync.push(jsonb, uuid, integer, uuid)
to authenticated;

-- ── The doorbell's room ────────────────────────────────────────────────────────────────────────────────────────────
-- Signed-in users may listen. Nobody gets a policy to send.
do $$
declare
  problem text;
begin
  for problem in select x from kizunasync.doorbell_problems() as x loop
    raise warning '%', problem;
  end loop;
  if pg_catalog.to_regclass('realtime.messages') is not null and not kizunasync.has_policy() then
    drop policy if exists "kizunasync wakeup receive" on realtime.messages;
    create policy "kizunasync wakeup receive" on realtime.messages for select to authenticated
    using (extension = 'broadcast' and pg_catalog.starts_with(realtime.topic(), 'kizunasync:'));
  end if;
end
$$;

-- ── Schedule ───────────────────────────────────────────────────────────────────────────────────────────────────────
do $$
declare
  job record;
  jobs text[];
begin
  if pg_catalog.to_regprocedure('cron.schedule(text, text, text)') is null then return; end if;
  for job in
    select v.* from kizunasync.settings as s cross join lateral (values
      ('kizunasync reap', s.reap_schedule, 'select kizunasync.reap_tombstones()'),
      ('kizunasync compact', s.compact_schedule, 'select kizunasync.compact_changelog()'),
      ('kizunasync prune', s.prune_schedule, 'select kizunasync.prune_clients()')
    ) as v (name, schedule, command)
  loop
    execute 'select array(select j.jobname from cron.job as j where j.jobname = $1 and j.schedule = $2 and j.command = $3)'
    into jobs using job.name, job.schedule, job.command;
    if pg_catalog.cardinality(jobs) = 0 then
      execute 'select cron.schedule($1, $2, $3)' using job.name, job.schedule, job.command;
    end if;
  end loop;
end
$$;

notify pgrst, 'reload schema';
