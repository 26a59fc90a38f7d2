-- Removes the server for Kizuna row sync from a database: schema kizunasync, its triggers on the app's tables, its
-- policy, its jobs, its role. The app's tables and rows stay. Applied in one transaction by the role that installed it;
-- does nothing where it is not installed.

set local client_min_messages = warning;

do $$
declare
  made record;
begin
  for made in
    select t.tgname, t.tgrelid::pg_catalog.regclass as relation
    from pg_catalog.pg_trigger as t
    where t.tgfoid = pg_catalog.to_regprocedure('kizunasync.capture()')
  loop
    execute pg_catalog.format('drop trigger %I on %s', made.tgname, made.relation);
  end loop;
  if pg_catalog.to_regclass('realtime.messages') is not null then
    drop policy if exists "kizunasync wakeup receive" on realtime.messages;
  end if;
  if pg_catalog.to_regclass('cron.job') is not null then
    execute 'select pg_catalog.count(cron.unschedule(j.jobname)) from cron.job as j where j.jobname = any ($1)'
    using array['kizunasync reap', 'kizunasync compact', 'kizunasync prune'];
  end if;
end
$$;

drop schema if exists kizunasync cascade;

do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'kizunasync_rows') then
    drop role kizunasync_rows;
  end if;
exception
  -- The role belongs to the whole cluster: another database still needs it, or has just removed it, or is itself being
  -- dropped (an internal error then says that its name is gone), or another role has made it and may drop it.
  when dependent_objects_still_exist or undefined_object or insufficient_privilege or internal_error then null;
end
$$;

notify pgrst, 'reload schema';
