-- Intent: cancelling ends what is scheduled or firing and nothing else, by id or by correlation, and says how much.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8005-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.number(id uuid) returns integer
language sql immutable as $$ select right(id::text, 12)::integer $$;

select timers.configure('regress cancel', 'external'), timers.configure('regress other', 'external');

select timers.schedule(pg_temp.id(1), 'regress cancel', 'saga', '2090-01-01 00:00+00', '{"kept": true}');
select timers.cancel(pg_temp.id(1)), timers.cancel(pg_temp.id(1)), timers.cancel(pg_temp.id(999));
select status, fire_at, payload, attempts, updated_at > created_at as stamped from timers.lookup(pg_temp.id(1));

-- Every state.
select timers.schedule(pg_temp.id(10 + n), 'regress cancel', 'states', '2090-01-01 00:00+00')
from generate_series(1, 6) n;
update timers.timer t set status = s.status
from unnest(enum_range(null::timers.timer_status)) with ordinality as s (status, n)
where t.timer_id = pg_temp.id(10 + s.n::integer);
create function pg_temp.cancelled(id uuid) returns text
language plpgsql as $$
begin
    return timers.cancel(id);
exception when others then
    return sqlstate;
end
$$;
select t.status, pg_temp.cancelled(t.timer_id) from timers.timer t where t.correlation_id = 'states' order by t.status;
select status, count(*) from timers.timer where correlation_id = 'states' group by status order by status;
-- By correlation a guarded claim is left alone, too.
select timers.cancel_correlation('regress cancel', 'states');
select status, count(*) from timers.timer where correlation_id = 'states' group by status order by status;

-- By correlation: all of it, of that process manager, and nothing else.
delete from timers.timer;
select timers.schedule(pg_temp.id(20 + n), 'regress cancel', 'saga 1', '2010-01-01 00:00+00')
from generate_series(1, 3) n;
select timers.schedule(pg_temp.id(24), 'regress cancel', 'saga 2', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(25), 'regress other', 'saga 1', '2090-01-01 00:00+00');
select count(*) from timers.claim_due('regress cancel', 2);
select timers.cancel_correlation('regress cancel', 'saga 1');
select timers.cancel_correlation('regress cancel', 'saga 1');
select timers.cancel_correlation('regress cancel', 'saga 3'), timers.cancel_correlation('regress none', 'saga 1');
select pg_temp.number(timer_id), status from timers.timer order by 1;
select count(*) from timers.claim;

-- What is cancelled does not fire.
begin;
select timers.schedule(pg_temp.id(30), 'regress firing', 'saga', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(31), 'regress firing', 'saga', '2090-01-01 00:00+00');
select timers.cancel(pg_temp.id(30));
select timers.fire_due('2090-01-01 00:00+00');
select pg_temp.number(timer_id) from timers.outbox;
rollback;

delete from timers.timer;
delete from timers.process_manager;
