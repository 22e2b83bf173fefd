-- What psql users look at.

create function timers._workers(
    out worker text, out state text, out pid integer, out started_at timestamptz, out sleeps_until timestamptz,
    out passes bigint, out wakeups bigint, out fired bigint, out explanation text)
returns setof record
language c volatile parallel restricted rows 1 as 'MODULE_PATHNAME', 'timers_workers';
comment on function timers._workers() is 'The rows of timers.workers.';

create view timers.workers as
select worker, state, pid, started_at, sleeps_until, passes, wakeups, fired, explanation from timers._workers();
comment on view timers.workers is 'The workers of this database: the dispatcher, and the handler workers at work; what each does, or why it does not run.';
comment on column timers.workers.state is 'running; idle; not armed; starting; standby; not preloaded; no place; no worker slot; left for a command; absent.';
comment on column timers.workers.sleeps_until is 'When the worker looks again unless it is woken; null while it works, or with nothing to wait for.';
comment on column timers.workers.passes is 'Transactions it has run since it got its place.';
comment on column timers.workers.wakeups is 'How often it woke, to work or to find that it need not.';
comment on column timers.workers.fired is 'Timers it has fired.';
comment on column timers.workers.explanation is 'Why it does not run, and what to do about it.';
