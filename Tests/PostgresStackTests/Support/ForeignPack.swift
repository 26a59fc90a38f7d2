/// A sync server in a few lines of SQL, unlike any other: what `kizuna-localstack --postgres` serves must not depend on
/// how the two functions work inside. It knows one table, `public.todos`, and one bucket column, `owner_id`.
enum ForeignPack {
  static let sql = """
    create table public.todos (
      id uuid primary key default gen_random_uuid(), owner_id uuid not null default auth.uid(), title text, n bigint,
      doc jsonb, tags text[], "updatedAt" timestamptz not null default now(), "deletedAt" timestamptz,
      unique (owner_id, n)
    );
    alter table public.todos enable row level security;
    create policy own on public.todos to authenticated using (owner_id = auth.uid()) with check (owner_id = auth.uid());
    revoke all on public.todos from anon;

    create schema kizunasync;
    grant usage on schema kizunasync to authenticated;
    create table kizunasync.changes (
      seq bigint not null, pk uuid not null, owner uuid not null, gone boolean not null, primary key (pk, owner)
    );
    create table kizunasync.decided (id uuid primary key);
    grant select on kizunasync.changes to authenticated;
    grant select, insert on kizunasync.decided to authenticated;

    create function kizunasync.note() returns trigger language plpgsql security definer set search_path = '' as $$
    declare
      r record := coalesce(new, old);
    begin
      perform pg_catalog.pg_advisory_xact_lock(7);
      insert into kizunasync.changes
      select coalesce(max(seq), 0) + 1, r.id, r.owner_id, tg_op = 'DELETE' from kizunasync.changes
      on conflict (pk, owner) do update set seq = excluded.seq, gone = excluded.gone;
      perform realtime.send(
        pg_catalog.jsonb_build_object('t', 'todos'), 'changed'::text, 'kizunasync:todos'::text, true);
      return null;
    end $$;
    create trigger note after insert or update or delete on public.todos
    for each row execute function kizunasync.note();

    create function kizunasync.pull(
      buckets jsonb, cursor text, schema_version integer, "limit" integer default 500, client_id uuid default null
    ) returns jsonb language sql stable as $$
      with page as (
        select c.*, to_jsonb(t) as row from kizunasync.changes c left join public.todos t on t.id = c.pk
        where c.seq > cursor::bigint and c.owner::text = buckets -> 0 -> 'params' ->> 'owner_id'
      )
      select jsonb_build_object(
        'rows', coalesce((select jsonb_agg(jsonb_build_object(
          'table', 'todos', 'pk', pk::text, 'row', row, 'seq', seq::text) order by seq) from page where row is not null), '[]'),
        'tombstones', coalesce((select jsonb_agg(jsonb_build_object(
          'table', 'todos', 'pk', pk::text, 'seq', seq::text, 'deleted_at', now()) order by seq) from page where gone), '[]'),
        'cursor', greatest(cursor::bigint, (select coalesce(max(seq), 0) from kizunasync.changes))::text,
        'has_more', false, 'signal', null)
    $$;

    create function kizunasync.push(
      batch jsonb, last_mutation_id uuid, schema_version integer, client_id uuid default null
    ) returns jsonb language plpgsql as $$
    declare
      m jsonb;
      verdicts jsonb := '[]';
      names text;
      cells text;
    begin
      for m in select * from jsonb_array_elements(batch -> 'mutations') loop
        if not exists (select from kizunasync.decided where id = (m ->> 'mutation_id')::uuid) then
          insert into kizunasync.decided values ((m ->> 'mutation_id')::uuid);
          select string_agg(format('%I', k), ', '), string_agg(format('r.%I', k), ', ') into names, cells
          from jsonb_object_keys(m -> 'columns') k where k <> 'id';
          if m ->> 'op' = 'delete' then
            delete from public.todos where id = (m ->> 'pk')::uuid;
          elsif m ->> 'op' = 'update' then
            execute format(
              'update public.todos t set (%s) = row(%s) from jsonb_populate_record(null::public.todos, $1) r where t.id = $2',
              names, cells) using m -> 'columns', (m ->> 'pk')::uuid;
          else
            execute format(
              'insert into public.todos (id, %s) select $2, %s from jsonb_populate_record(null::public.todos, $1) r',
              names, cells) using m -> 'columns', (m ->> 'pk')::uuid;
          end if;
        end if;
        verdicts := verdicts || jsonb_build_object('mutation_id', m ->> 'mutation_id', 'verdict', 'applied');
      end loop;
      return jsonb_build_object('verdicts', verdicts);
    end $$;

    create policy ears on realtime.messages for select to authenticated
    using (extension = 'broadcast' and realtime.topic() like 'kizunasync:%');
    """
}
