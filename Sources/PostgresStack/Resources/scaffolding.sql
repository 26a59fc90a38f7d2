-- What a Supabase project has and a plain PostgreSQL (15 or later) lacks: roles, claims, users, broadcasts from the
-- database. For development and tests. Applied by a superuser, in one transaction; applying it again changes nothing.
-- No psql commands, so that any client can send it as one string.

set local client_min_messages = error;

-- ── Roles ──────────────────────────────────────────────────────────────────────────────────────────────────────────
-- They belong to the whole cluster: another database may have made them, even at this moment.
do $$
declare
  wanted record;
begin
  for wanted in
    select * from (values
      ('anon', 'nologin noinherit'),
      ('authenticated', 'nologin noinherit'),
      ('service_role', 'nologin noinherit bypassrls'),
      ('authenticator', 'login noinherit')
    ) as roles (name, attributes)
  loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = wanted.name) then
        execute pg_catalog.format('create role %I %s', wanted.name, wanted.attributes);
      end if;
    exception
      when duplicate_object or unique_violation then null;
    end;
  end loop;
end
$$;

do $$
declare
  member text;
begin
  foreach member in array array['anon', 'authenticated', 'service_role'] loop
    if not pg_catalog.pg_has_role('authenticator', member, 'member') then
      begin
        execute pg_catalog.format('grant %I to authenticator', member);
      exception
        when unique_violation then null;
      end;
    end if;
  end loop;
end
$$;

-- ── Schemas ────────────────────────────────────────────────────────────────────────────────────────────────────────
create schema if not exists extensions;
create schema if not exists storage;
create schema if not exists auth;
create schema if not exists realtime;

grant usage on schema public, extensions, storage, auth, realtime to anon, authenticated, service_role;

-- A new table of `public` is open to the three roles; its row policies say who sees what.
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;

do $$
declare
  wanted text;
begin
  foreach wanted in array array['pgcrypto', 'uuid-ossp'] loop
    if exists (select from pg_catalog.pg_available_extensions where name = wanted)
      and not exists (select from pg_catalog.pg_extension where extname = wanted)
    then
      execute pg_catalog.format('create extension if not exists %I with schema extensions', wanted);
    end if;
  end loop;
end
$$;

-- ── Claims of the request ──────────────────────────────────────────────────────────────────────────────────────────
-- The HTTP layer sets `request.jwt.claims` and `request.headers` (JSON text) for the transaction of a request.
create or replace function auth.jwt() returns jsonb
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb
$$;

create or replace function auth.uid() returns uuid
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid
$$;

create or replace function auth.role() returns text
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  )
$$;

create or replace function auth.email() returns text
language sql stable
as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.email', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
  )
$$;

grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email() to anon, authenticated, service_role;

-- ── Users and sessions ─────────────────────────────────────────────────────────────────────────────────────────────
-- Passwords: extensions.crypt(password, extensions.gen_salt('bf')). None of the three roles may read these tables.
create table if not exists auth.users (
  id uuid primary key default gen_random_uuid(),
  instance_id uuid default '00000000-0000-0000-0000-000000000000',
  aud text not null default 'authenticated',
  role text not null default 'authenticated',
  email text,
  encrypted_password text,
  email_confirmed_at timestamptz,
  last_sign_in_at timestamptz,
  raw_app_meta_data jsonb not null default '{"provider": "email", "providers": ["email"]}',
  raw_user_meta_data jsonb not null default '{}',
  banned_until timestamptz,
  deleted_at timestamptz,
  is_anonymous boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create unique index if not exists users_email on auth.users (lower(email));

create table if not exists auth.sessions (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references auth.users (id) on delete cascade,
  aal text not null default 'aal1',
  not_after timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create index if not exists sessions_user on auth.sessions (user_id);

-- A token is used up by a refresh (`revoked`) and names the one it replaced (`parent`).
create table if not exists auth.refresh_tokens (
  id bigint generated always as identity primary key,
  token text not null unique,
  session_id uuid not null references auth.sessions (id) on delete cascade,
  user_id uuid not null references auth.users (id) on delete cascade,
  parent text,
  revoked boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create index if not exists refresh_tokens_session on auth.refresh_tokens (session_id);

-- ── Broadcasts from the database ───────────────────────────────────────────────────────────────────────────────────
create table if not exists realtime.messages (
  id uuid not null default gen_random_uuid(),
  topic text not null,
  extension text not null,
  payload jsonb,
  event text,
  private boolean default false,
  inserted_at timestamp not null default now(),
  updated_at timestamp not null default now(),
  primary key (id, inserted_at)
);

create index if not exists messages_inserted_at_topic
on realtime.messages (inserted_at desc, topic)
where extension = 'broadcast' and private is true;

alter table realtime.messages enable row level security;
grant select, insert, update on realtime.messages to anon, authenticated, service_role;

create or replace function realtime.topic() returns text
language sql stable
as $$
  select nullif(current_setting('realtime.topic', true), '')
$$;

-- Runs with the caller's rights, as the hosted one does: a role without an INSERT policy on the table sends nothing.
-- Whatever goes wrong is a warning; the caller's transaction goes on without the message.
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
returns void
language plpgsql
as $$
declare
  message uuid := gen_random_uuid();
begin
  if not payload ? 'id' then
    payload := jsonb_set(payload, '{id}', to_jsonb(message));
  end if;
  perform set_config('realtime.topic', topic, true);
  insert into realtime.messages (id, payload, event, topic, private, extension)
  values (message, payload, event, topic, private, 'broadcast');
exception
  when others then
    raise warning 'ErrorSendingBroadcastMessage: %', sqlerrm;
end
$$;

create or replace function realtime.broadcast_changes(
  topic_name text, event_name text, operation text, table_name text, table_schema text,
  new record, old record, level text default 'ROW'
) returns void
language plpgsql
as $$
begin
  if level = 'STATEMENT' then
    raise exception 'function can only be triggered for each row, not for each statement';
  end if;
  if operation not in ('INSERT', 'UPDATE', 'DELETE') then
    raise exception 'Unexpected operation value: %', operation;
  end if;
  perform realtime.send(
    jsonb_build_object(
      'old_record', to_jsonb(old), 'record', to_jsonb(new),
      'operation', operation, 'table', table_name, 'schema', table_schema),
    event_name, topic_name);
exception
  when others then
    raise exception 'Failed to process the row: %', sqlerrm;
end
$$;

grant execute on function realtime.topic(), realtime.send(jsonb, text, text, boolean) to anon, authenticated, service_role;

-- Tells whoever listens on `kizuna_realtime`, after the commit and in commit order, which row to read:
-- `<id> <inserted_at>`. The row itself may be longer than a notification can be.
create or replace function realtime.announce_message() returns trigger
language plpgsql
set search_path = ''
as $$
begin
  perform pg_catalog.pg_notify('kizuna_realtime', pg_catalog.concat_ws(' ', new.id, new.inserted_at));
  return null;
end
$$;

create or replace trigger announce_message
after insert on realtime.messages
for each row execute function realtime.announce_message();

-- Migrations written for Supabase add tables to this publication.
do $$
begin
  if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
end
$$;
