-- Replays an activity log through Kioku in accelerated time, and compares every flush with what a query over the log
-- alone predicts: fails unless they agree. Reads the log, CSV as README.md describes it, from standard input:
--
--     psql -X -f examples/kioku/replay.sql < examples/kioku/activity.csv
--
-- Variables, with -v: deliveries, how often each event is delivered (1); lateness, by how much each delivery may be
-- late ('0': they come in the order of time); seed, an integer from which the lateness of each is drawn (1); retention,
-- how long timers that have fired are kept ('400 years').
--
-- How ten years pass in seconds: the log is moved 400 years ahead, a whole number of weeks, so that the calendar stays
-- as it is. There the server's own workers find nothing due, and the clock is an argument: timers.fire_due(as_of).

\set ON_ERROR_STOP on
\set QUIET on
\if :{?deliveries} \else \set deliveries 1 \endif
\if :{?lateness} \else \set lateness 0 \endif
\if :{?seed} \else \set seed 1 \endif
\if :{?retention} \else \set retention '400 years' \endif
\pset footer off
set timezone = 'UTC';
set intervalstyle = 'postgres';
set client_min_messages = warning;
set synchronous_commit = off;

-- The log, and whether it is one. Line 1 is the header.

create temporary table line (
    number  integer generated always as identity (start with 2),
    session text,
    at      text
);
\copy line (session, at) from pstdin with (format csv, header match, encoding 'UTF8')

create function pg_temp.instant(text) returns timestamptz language plpgsql as $$
begin
    if $1 ~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:?\d\d)?)$' then
        return $1::timestamptz;
    end if;
    return null;
exception when datetime_field_overflow then
    return null;
end
$$;

create temporary table log as
select l.number, l.session, pg_temp.instant(l.at) as at from line l;

do $$
declare
    problem text;
begin
    select format('line %s: %s', l.number, p.problem) into problem
    from (select number, session, at, min(at) over (partition by session) as starts from log) l
    join line using (number)
    cross join lateral (values
        (1, coalesce(l.session, '') = '', 'the session is empty'),
        (2, octet_length(l.session) > 1024, 'the session is longer than 1024 bytes'),
        (3, l.at is null, format('"%s" is not an instant such as 2016-02-05T20:18:54Z', line.at)),
        (4, l.at < clock_timestamp() - interval '399 years', format('"%s" is too long ago', line.at)),
        (5, l.at::date > l.starts::date, format('session "%s" began on %s, UTC', l.session, l.starts::date))
    ) p (rank, holds, problem)
    where p.holds
    order by l.number, p.rank limit 1;
    if found then
        raise exception 'the log cannot be replayed: %', problem;
    end if;
    if not exists (select from log) then
        raise exception 'the log cannot be replayed: it has no turns';
    end if;
    -- Passes with the clock ahead would fire the timers of everybody else, too.
    if exists (select from timers.timer where process_manager <> 'kioku-l1-extract' and status = 'scheduled') then
        raise exception 'this database has timers of other process managers'
            using hint = 'Replay in a database of its own.';
    end if;
end
$$;

-- What is to be flushed when, from the log alone: a query that knows nothing of timers.

create temporary table predicted as
with turn as (
    select l.session, l.at, row_number() over turns as turn_index,
           lead(l.at) over turns - l.at <= interval '30 minutes' as followed
    from log l
    window turns as (partition by l.session order by l.at, l.number)
)
select t.session, 'idle' as kind, min(t.turn_index) as turn_count, min(t.at) + interval '30 minutes' as due_at
from turn t where t.followed is not true group by t.session
union all
select t.session, 'ramp', t.turn_index, t.at
from turn t where t.turn_index in (1, 2, 4, 8) or t.turn_index % 16 = 0
union all
select t.session, 'final', null, date_trunc('day', min(t.at)) + interval '1 day'
from turn t group by t.session;

-- The events in their order: the turns of each session, and its completion at the midnight that ends it. Each is
-- delivered so often and so late. First deliveries keep the order of their session, others come any time after.

create temporary table delivery as
with event as (
    select l.session, row_number() over turns as number, row_number() over turns as turn_index, l.at
    from log l window turns as (partition by l.session order by l.at, l.number)
    union all
    select l.session, count(*) + 1, null, date_trunc('day', min(l.at)) + interval '1 day'
    from log l group by l.session
), late as (
    select e.session, e.number, e.turn_index, e.at + interval '400 years' as at, copy,
           (hashtextextended(format('%s %s %s', e.session, e.number, copy), :seed) / 2 ^ 64 + 0.5)
               * interval :'lateness' as lateness
    from event e cross join generate_series(1, :deliveries) copy
), placed as (
    select l.*, max(l.at + l.lateness) filter (where l.copy = 1) over (partition by l.session order by l.number)
                    + case when l.copy > 1 then l.lateness else '0' end as place
    from late l
), ordered as (
    select p.*, row_number() over (order by p.place, p.session, p.number, p.copy) as position from placed p
)
select o.position, o.session, o.number, o.turn_index, o.at, o.copy,
       -- The earliest event that has not been delivered at all yet: the clock must not pass it.
       min(o.at) filter (where o.copy = 1) over (order by o.position desc) as undelivered
from ordered o;

create temporary table outcome (outcome timers.schedule_outcome);

-- Moves the clock: fires what is due by then, and flushes it. Timers that have fired are deleted by the server's clock;
-- by this one it is done here.
create procedure pg_temp.advance(inout clock timestamptz, target timestamptz, retention interval) language plpgsql as $$
declare
    fired    integer;
    earliest timestamptz;
    latest   timestamptz;
begin
    loop
        fired := timers.fire_due(as_of => target, max_timers => 1000);
        commit;
        select min(f.due_at), max(f.due_at) into earliest, latest from kioku.flush_due(1000) f;
        commit;
        if earliest <= clock or latest > target then
            raise exception 'fired between % and %: timers due from % to %', clock, target, earliest, latest;
        end if;
        exit when fired < 1000;
    end loop;
    if clock < date_trunc('day', target) then
        delete from timers.timer
        where process_manager = 'kioku-l1-extract' and wake_at < target - retention
          and fire_at < target - retention and status = 'fired';
        commit;
    end if;
    clock := target;
end
$$;

-- Each delivery is a transaction. Before it, the clock moves on to the microsecond before the event, if that makes a
-- difference: it does to a new turn of a session that may have been idle already.
create procedure pg_temp.replay(retention interval) language plpgsql as $$
declare
    clock timestamptz := '-infinity';
    ends  constant timestamptz := (select max(at) from delivery);
    d     record;
begin
    for d in select * from delivery order by position loop
        if d.turn_index > 1 and d.copy = 1 and d.undelivered - interval '1 microsecond' > clock then
            call pg_temp.advance(clock, d.undelivered - interval '1 microsecond', retention);
        end if;
        if d.turn_index is null then
            perform kioku.complete_session(d.session, d.at);
        else
            insert into outcome (outcome) values (kioku.record_turn(d.session, d.turn_index::integer, d.at));
        end if;
        commit;
    end loop;
    call pg_temp.advance(clock, ends + interval '1 day', retention);
end
$$;
call pg_temp.replay(:'retention');

-- What came of it.

create temporary table difference as
with flushed as (
    select f.session_id, f.kind, f.turn_count, f.due_at - interval '400 years' as due_at
    from kioku.flush f where f.session_id in (select session from log)
)
(select 'missing' as what, p.* from (select * from predicted except all select * from flushed) p)
union all
(select 'unexpected', f.* from (select * from flushed except all select * from predicted) f);

select count(*) as turns, count(distinct session) as sessions, min(at)::date as from, max(at)::date as to,
       :'deliveries' as deliveries, :'lateness' as lateness, :'seed' as seed
from log;
select outcome as idle_timer, count(*) as turns from outcome group by outcome order by outcome;
select kind as flush, count(*) as predicted,
       (select count(*) from kioku.flush f where f.kind = p.kind and f.session_id in (select session from log))
           as flushed,
       (select count(*) from difference d where d.kind = p.kind and d.what = 'missing') as missing,
       (select count(*) from difference d where d.kind = p.kind and d.what = 'unexpected') as unexpected
from predicted p group by kind order by kind;

select exists (select from difference) as differs \gset
\if :differs
    select * from difference order by due_at, session limit 20;
\endif
do $$
begin
    if exists (select from difference) then
        raise exception 'the flushes are not those that the log predicts';
    end if;
    if exists (select from timers.timer where process_manager = 'kioku-l1-extract' and status <> 'fired') then
        raise exception 'there are timers that have not fired';
    end if;
end
$$;
