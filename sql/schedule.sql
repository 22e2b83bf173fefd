-- Intent: scheduling an id answers with the right outcome for every mode against every state, and writes exactly what
-- the outcome says.
set timezone = 'UTC';
set datestyle = 'ISO';

-- The lane is claimed by applications, so that no worker moves the timers below.
select timers.configure('regress schedule', 'external');

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8000-' || lpad(number::text, 12, '0'))::uuid $$;

-- A new timer.
select timers.schedule(pg_temp.id(1), 'regress schedule', 'saga 1', '2090-01-01 00:00+00', '{"turn": 1}');
select timer_id, process_manager, correlation_id, fire_at, wake_at, payload, status, attempts, fired_event_id, died_at,
       last_error, created_at = updated_at or created_at < updated_at as times_in_order
from timers.lookup(pg_temp.id(1));

-- The defaults: no payload, mode replace; and arguments by name.
select timers.schedule(pg_temp.id(2), 'regress schedule', 'saga 1', '2090-01-01 00:00+00');
select timers.schedule(
    mode => 'later', payload => '{"turn": 2}', fire_at => '2090-01-02 00:00+00', correlation_id => 'saga 1',
    process_manager => 'regress schedule', timer_id => pg_temp.id(2));
select fire_at, payload, status from timers.lookup(pg_temp.id(2));

-- Every mode against a scheduled timer, with an earlier, the same and a later time.
create temporary table outcome (
    mode timers.rearm_mode, offered timestamptz, outcome timers.schedule_outcome, row_after text);
do $$
declare
    m timers.rearm_mode;
    t timestamptz;
    o timers.schedule_outcome;
begin
    foreach m in array enum_range(null::timers.rearm_mode) loop
        foreach t in array '{2090-05-01 00:00+00, 2090-06-01 00:00+00, 2090-07-01 00:00+00}'::timestamptz[] loop
            delete from timers.timer where timer_id = pg_temp.id(3);
            perform timers.schedule(pg_temp.id(3), 'regress schedule', 'old', '2090-06-01 00:00+00', '"old"');
            o := timers.schedule(pg_temp.id(3), 'regress schedule', 'new', t, '"new"', m);
            insert into outcome
            select m, t, o, concat_ws(' ', l.fire_at::date, l.correlation_id, l.payload, l.status)
            from timers.lookup(pg_temp.id(3)) l;
        end loop;
    end loop;
end
$$;
select mode, offered::date, outcome, row_after from outcome order by mode, offered;

-- Every mode against every state that is not scheduled: nothing is touched, whatever is offered.
create temporary table state (status timers.timer_status);
insert into state select unnest(enum_range(null::timers.timer_status)) except select 'scheduled';
do $$
declare
    s timers.timer_status;
    m timers.rearm_mode;
    before timers.timer;
    after timers.timer;
    o timers.schedule_outcome;
begin
    truncate outcome;
    for s in select status from state order by status loop
        foreach m in array enum_range(null::timers.rearm_mode) loop
            delete from timers.timer where timer_id = pg_temp.id(4);
            perform timers.schedule(pg_temp.id(4), 'regress schedule', 'old', '2090-06-01 00:00+00', '"old"');
            update timers.timer set status = s, died_at = case when s in ('dead', 'resuming') then now() end
            where timer_id = pg_temp.id(4);
            select * into before from timers.timer where timer_id = pg_temp.id(4);
            o := timers.schedule(pg_temp.id(4), 'regress other', 'new', '2090-05-01 00:00+00', '"new"', m);
            select * into after from timers.timer where timer_id = pg_temp.id(4);
            insert into outcome (mode, outcome, row_after)
            values (m, o, format('%s: %s', s, case when before = after then 'untouched' else 'CHANGED' end));
        end loop;
    end loop;
end
$$;
select row_after as state, mode, outcome from outcome order by row_after, mode;

-- schedule_once: the first wins, in whatever state it is.
select timers.schedule_once(pg_temp.id(5), 'regress schedule', 'saga 5', '2090-01-01 00:00+00', '{"first": true}');
select timers.schedule_once(pg_temp.id(5), 'regress schedule', 'saga 5', '2090-02-01 00:00+00', '{"first": false}');
select timers.cancel(pg_temp.id(5));
select timers.schedule_once(pg_temp.id(5), 'regress schedule', 'saga 5', '2090-03-01 00:00+00');
select fire_at, payload, status from timers.lookup(pg_temp.id(5));

-- schedule_in counts from the clock of the call, not from the start of the transaction.
begin;
select pg_sleep(0.02);
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '1 hour', '{"in": 1}');
select fire_at - now() between '1 hour 20 milliseconds' and '2 hours' as from_the_call
from timers.lookup(pg_temp.id(6));
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '30 minutes', mode => 'later');
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '2 hours', mode => 'earlier');
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '-1 hour');
select fire_at < now() as overdue, wake_at >= now() as queued_behind_what_is_due, payload
from timers.lookup(pg_temp.id(6));
-- Months are those of the calendar.
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '1 month');
select fire_at between now() + '1 month' and now() + '1 month 1 hour' as a_month from timers.lookup(pg_temp.id(6));
-- As far as time goes.
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '285000 years');
select timers.schedule_in(pg_temp.id(6), 'regress schedule', 'saga 6', '-6000 years');
select fire_at < '0001-01-01 BC' as long_ago from timers.lookup(pg_temp.id(6));
rollback;

-- A timer may change its lane and its correlation.
select timers.schedule(pg_temp.id(7), 'regress schedule', 'saga 7', '2090-01-01 00:00+00');
select timers.configure('regress elsewhere', 'external');
select timers.schedule(pg_temp.id(7), 'regress elsewhere', 'saga 8', '2090-01-01 00:00+00');
select process_manager, correlation_id from timers.lookup(pg_temp.id(7));

-- The ends of time, and a name and a payload of some size.
select timers.schedule(pg_temp.id(8), 'regress schedule', 'saga', '294276-12-31 23:59:59.999999+00');
select fire_at from timers.lookup(pg_temp.id(8));
begin;
select timers.schedule(pg_temp.id(9), 'regress schedule', 'saga', '4714-11-24 00:00:00+00 BC');
select fire_at, wake_at >= now() as queued from timers.lookup(pg_temp.id(9));
rollback;
select timers.schedule(pg_temp.id(10), repeat('n', 255), repeat('c', 1000), '2090-01-01 00:00+00',
                       jsonb_build_object('blob', repeat('x', 1000000)));
select length(process_manager), length(correlation_id), length(payload->>'blob') from timers.lookup(pg_temp.id(10));

-- Looking up what is not there.
select count(*) from timers.lookup(pg_temp.id(999));
select count(*) from timers.lookup(null);

-- A process manager's row appears with its first timer, in the same transaction.
begin;
select timers.schedule(pg_temp.id(11), 'regress new', 'saga', '2090-01-01 00:00+00');
select process_manager, delivery, channel, max_attempts, lease, paused from timers.process_manager
where process_manager = 'regress new';
rollback;
select count(*) from timers.process_manager where process_manager = 'regress new';

delete from timers.timer;
delete from timers.process_manager;
