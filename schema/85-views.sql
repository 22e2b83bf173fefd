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
comment on column timers.workers.worker is 'dispatcher or handler.';
comment on column timers.workers.pid is 'Its process, while it runs.';
comment on column timers.workers.started_at is 'Since when it runs.';
comment on column timers.workers.state is 'running; idle; not armed; starting; standby; not preloaded; no place; no worker slot; left for a command; absent.';
comment on column timers.workers.sleeps_until is 'When the worker looks again unless it is woken; null while it works, or with nothing to wait for.';
comment on column timers.workers.passes is 'Transactions it has run since it got its place.';
comment on column timers.workers.wakeups is 'How often it woke, to work or to find that it need not.';
comment on column timers.workers.fired is 'Timers it has fired.';
comment on column timers.workers.explanation is 'Why it does not run, and what to do about it.';

create function timers._overview(
    out process_manager text, out delivery timers.delivery, out paused boolean, out scheduled bigint, out due bigint,
    out oldest_overdue interval, out firing bigint, out stuck bigint, out resuming bigint, out dead bigint,
    out next_due timestamptz, out inexact text[], out explanation text)
returns setof record
language c volatile parallel restricted rows 20 as 'MODULE_PATHNAME', 'timers_overview';
comment on function timers._overview() is 'The rows of timers.overview.';

create view timers.overview as
select process_manager, delivery, paused, scheduled, due, oldest_overdue, firing, stuck, resuming, dead, next_due,
       inexact, explanation
from timers._overview();
comment on view timers.overview is 'How each process manager is doing. Reads little, however many timers there are: what would take long to count is estimated or bounded, and then named in the column inexact.';
comment on column timers.overview.process_manager is 'Its name; those with timers or settings.';
comment on column timers.overview.delivery is 'How its timers leave the database.';
comment on column timers.overview.paused is 'Whether timers.pause() stopped it.';
comment on column timers.overview.scheduled is 'Timers that wait, due ones included. Inexact: an estimate, at least what was counted.';
comment on column timers.overview.due is 'Those of them whose time has come. Inexact: at least.';
comment on column timers.overview.oldest_overdue is 'How long ago the earliest of these should have fired; null: none is due. Inexact: at least.';
comment on column timers.overview.firing is 'Timers that a worker has claimed. Inexact: at least.';
comment on column timers.overview.stuck is 'Those of them whose lease is over, and that nobody has requeued. Inexact: at least.';
comment on column timers.overview.resuming is 'Dead timers under a guarded claim. Inexact: at least.';
comment on column timers.overview.dead is 'Timers that were given up on. Inexact: an estimate, at least what was counted.';
comment on column timers.overview.next_due is 'When the next timer that is not due yet will be; null: there is none. Inexact: at the latest.';
comment on column timers.overview.inexact is 'The columns whose value is no exact one; {}: all are.';
comment on column timers.overview.explanation is 'Why its timers do not fire by themselves, and what to do about it; null: they do.';

create function timers._metrics(
    out name text, out type text, out process_manager text, out labels jsonb, out value double precision)
returns setof record
language c volatile parallel restricted rows 1000 as 'MODULE_PATHNAME', 'timers_metrics';
comment on function timers._metrics() is 'The rows of timers.metrics.';

create view timers.metrics as
select name, type, process_manager, labels, value from timers._metrics();
comment on view timers.metrics is 'What is there, as in timers.overview, and what was counted since the server started. Spans of time are in milliseconds.';
comment on column timers.metrics.name is 'The metric; of a histogram its buckets, and .sum and .count.';
comment on column timers.metrics.type is 'gauge, counter or histogram.';
comment on column timers.metrics.process_manager is 'Whose it is; null: the database''s.';
comment on column timers.metrics.labels is 'What tells its values apart: delivery, outcome, or the highest value of a bucket as le.';
comment on column timers.metrics.value is 'Null: not known, since the library is not preloaded or the process manager found no place in shared memory.';

create function timers.prometheus() returns text
language c volatile parallel restricted as 'MODULE_PATHNAME', 'timers_prometheus';
comment on function timers.prometheus() is
'The metrics in the text format of Prometheus, with names that begin with durable_timers_, and spans of time in seconds.';
