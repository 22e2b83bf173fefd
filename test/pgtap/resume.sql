-- Intent: a dead timer that is being resumed is moved by whoever holds the token and by nobody else; whatever ends the
-- resume leaves the timer as the contract says, and each refusal tells why.
begin;
select plan(197);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b006-' || lpad(number::text, 12, '0'))::uuid $$;
-- The row but for the moment of its last change, which may be the same in two changes.
create function pg_temp.row_of(number integer) returns jsonb
language sql stable as $$ select to_jsonb(t) - 'updated_at' from timers.timer t
    where t.timer_id = pg_temp.id(number) $$;
create function pg_temp.claims_of(number integer) returns bigint
language sql stable as $$ select count(*) from timers.claim where timer_id = pg_temp.id(number) $$;

create temporary table held (number integer, token uuid, lease_until timestamptz, place serial);
create function pg_temp.token(of integer) returns uuid
language sql stable as $$ select h.token from held h where h.number = token.of order by h.place desc limit 1 $$;
create function pg_temp.claim(of integer, lease interval default '1 hour') returns uuid
language sql volatile as $$
    insert into held (number, token, lease_until)
    select claim.of, c.claim_token, c.lease_until from timers.claim_dead(pg_temp.id(claim.of), claim.lease) c
    returning token
$$;

-- Brings a timer into a state: each with a process manager of its own, so that claims pick it.
create function pg_temp.make(number integer, state text) returns void
language plpgsql as $$
declare
    lane text := 'tap resume ' || number;
begin
    if state = 'none' then
        return;
    end if;
    perform timers.configure(lane, 'external');
    perform timers.schedule(pg_temp.id(number), lane, 'saga ' || number, '2090-01-01 00:00+00', '{"a": 1}');
    if state in ('firing', 'fired', 'dead', 'resuming') then
        insert into held (number, token)
        select make.number, c.claim_token from timers.claim_due(lane, 1, null, '2095-01-01 00:00+00') c;
    end if;
    if state = 'fired' then
        perform timers.mark_fired(pg_temp.id(number), pg_temp.id(number), pg_temp.token(number));
    elsif state = 'cancelled' then
        perform timers.cancel(pg_temp.id(number));
    elsif state in ('dead', 'resuming') then
        perform timers.dead_letter(pg_temp.id(number), 'the account is closed');
        if state = 'resuming' then
            perform pg_temp.claim(number);
        end if;
    end if;
end
$$;

-- What a call raises: SQLSTATE, message, detail, hint; or its result.
create function pg_temp.raised(call text, out state text, out message text, out detail text, out hint text)
language plpgsql as $$
begin
    execute 'select ' || call into message;
    state := 'none';
exception when others then
    get stacked diagnostics state = returned_sqlstate, message = message_text, detail = pg_exception_detail,
        hint = pg_exception_hint;
end
$$;

-- A claim.
select pg_temp.make(1, 'dead') \g /dev/null
create temporary table dead_row as select pg_temp.row_of(1) as was;
create temporary table claimed as
select * from timers.claim_dead(pg_temp.id(1), '10 minutes', 'tap resume 1', 1, 'ada');
select results_eq($$ select timer_id, process_manager collate "default", correlation_id collate "default", fire_at,
        payload, attempts, last_error from claimed $$,
    $$ values (pg_temp.id(1), 'tap resume 1', 'saga 1', timestamptz '2090-01-01 00:00+00', jsonb '{"a": 1}', 1,
               'the account is closed') $$, 'the timer comes with the claim');
select ok((select lease_until - clock_timestamp() between '9 minutes' and '10 minutes' from claimed),
    'and holds for the lease');
select results_eq(
    'select kind collate "default", token, attempt, lease_until, claimed_by collate "default" from timers.claim',
    $$ select 'resume', c.claim_token, 1, c.lease_until, 'ada' from claimed c $$, 'which is a claim like others');
select is(pg_temp.row_of(1), (select was || '{"status": "resuming"}' from dead_row),
    'only the state of the timer changes: its attempts, its reason and its death stay');
select isnt((select claim_token from claimed), pg_temp.token(1), 'with a new token');
select pg_temp.make(2, 'dead') \g /dev/null
select timers.claim_dead(pg_temp.id(2)) \g /dev/null
select results_eq($$ select claimed_by collate "default",
        lease_until - claimed_at between '299 seconds' and '301 seconds' from timers.claim
    where timer_id = pg_temp.id(2) $$,
    'select session_user::text collate "default", true',
    'by default the session''s role claims, for five minutes');

-- In every other state, and where nothing is: each with its SQLSTATE, detail and hint, and nothing has changed.
create function pg_temp.refused_in_states() returns setof text
language plpgsql as $$
declare
    c record;
    r record;
    number integer := 10;
    before jsonb;
begin
    for c in
        select * from (values
            ('none', 'TM001', 'does not exist'), ('scheduled', 'TM002', 'is scheduled, not dead'),
            ('firing', 'TM002', 'is firing, not dead'), ('fired', 'TM002', 'is fired, not dead'),
            ('cancelled', 'TM002', 'is cancelled, not dead'),
            ('resuming', 'TM004', 'is held by another resume')) v (state, code, says)
    loop
        number := number + 1;
        perform pg_temp.make(number, c.state);
        before := pg_temp.row_of(number);
        r := pg_temp.raised(format('timers.claim_dead(%L)', pg_temp.id(number)));
        return next is(r.state, c.code, c.state || ': ' || c.code);
        return next ok(r.message like '%' || pg_temp.id(number) || '%' || c.says, 'which says: ' || r.message);
        return next ok(r.detail <> '' and r.hint <> '', 'with detail and hint');
        return next is(pg_temp.row_of(number), before, 'and changes nothing');
    end loop;
end
$$;
select pg_temp.refused_in_states();

-- Held by another: until when and by whom, and no token.
select ok(r.detail like '%' || session_user || '%' || (select lease_until from timers.claim
    where timer_id = pg_temp.id(16)) || '%',
    'until when, and by whom: ' || r.detail)
from pg_temp.raised(format('timers.claim_dead(%L)', pg_temp.id(16))) r;
select ok(strpos(concat(r.message, r.detail, r.hint), pg_temp.token(16)::text) = 0, 'the token is not told')
from pg_temp.raised(format('timers.claim_dead(%L)', pg_temp.id(16))) r;

-- Expectations.
select pg_temp.make(20, 'dead') \g /dev/null
select unnest(array[is(r.state, 'TM005', c.expects), ok(r.detail like c.says, r.detail), ok(r.hint <> '', 'what to do'),
    is(pg_temp.claims_of(20), 0::bigint, 'and nobody holds it')])
from (values ('expected_process_manager => ''other''', '%expected_process_manager%"other"%"tap resume 20"%'),
             ('expected_attempts => 2', '%expected_attempts% 2,% 1.'),
             ('expected_attempts => 0', '%expected_attempts% 0,% 1.'),
             ('expected_process_manager => ''tap resume 20'', expected_attempts => 2', '%expected_attempts% 2,% 1.'))
    c (expects, says)
cross join lateral pg_temp.raised(format('timers.claim_dead(%L, %s)', pg_temp.id(20), c.expects)) r;
select lives_ok(format('select timers.claim_dead(%L, ''1 hour'', ''tap resume 20'', 1)', pg_temp.id(20)),
    'as expected');

-- Bad arguments, by name.
select unnest(array[is(r.state, c.code, c.call), ok(r.message like '%"' || c.argument || '"%', r.message)])
from (values
    ('claim_dead(null)', '22004', 'timer_id'), ('claim_dead($id, null)', '22004', 'lease'),
    ('claim_dead($id, ''0'')', '22023', 'lease'), ('claim_dead($id, ''-1 second'')', '22023', 'lease'),
    ('claim_dead($id, ''300000 years'')', '22023', 'lease'),
    ('claim_dead($id, expected_process_manager => '''')', '22023', 'expected_process_manager'),
    ('claim_dead($id, expected_attempts => -1)', '22023', 'expected_attempts'),
    ('claim_dead($id, claimed_by => null)', '22004', 'claimed_by'),
    ('claim_dead($id, claimed_by => '''')', '22023', 'claimed_by'),
    ('renew_resume(null, $id, ''1 hour'')', '22004', 'timer_id'),
    ('renew_resume($id, null, ''1 hour'')', '22004', 'claim_token'),
    ('renew_resume($id, $id, null)', '22004', 'lease'), ('renew_resume($id, $id, ''0'')', '22023', 'lease'),
    ('complete_resume(null, $id, $id)', '22004', 'timer_id'), ('complete_resume($id, null, $id)', '22004',
        'claim_token'),
    ('complete_resume($id, $id, null)', '22004', 'event_id'), ('park_resume(null, $id)', '22004', 'timer_id'),
    ('park_resume($id, null)', '22004', 'claim_token'), ('park_resume($id, $id, '''')', '22023', 'reason'),
    ('cancel_resume(null, $id)', '22004', 'timer_id'), ('cancel_resume($id, null)', '22004', 'claim_token'),
    ('recover_expired_resumes(null)', '22004', 'as_of'), ('recover_expired_resumes(''infinity'')', '22023', 'as_of'))
    c (call, code, argument)
cross join lateral pg_temp.raised('timers.' || replace(c.call, '$id', quote_literal(pg_temp.id(20)) || '::uuid')) r;

-- Renewed: from now, and no further than that; the token stays.
select pg_temp.make(30, 'resuming') \g /dev/null
select ok(timers.renew_resume(pg_temp.id(30), pg_temp.token(30), '1 day') - clock_timestamp() between '23 hours'
    and '1 day',
    'renewed for a day');
select ok((select lease_until > clock_timestamp() + interval '23 hours' from timers.claim
    where token = pg_temp.token(30)),
    'which the claim shows');
select ok(timers.renew_resume(pg_temp.id(30), pg_temp.token(30), '1 hour') < clock_timestamp() + interval '61 minutes',
    'or for less');

-- Completed: in the caller's transaction.
create temporary table completed_row as select pg_temp.row_of(30) as was;
savepoint before;
select timers.complete_resume(pg_temp.id(30), pg_temp.token(30), pg_temp.id(99)) \g /dev/null
select is(pg_temp.row_of(30), (select was || jsonb_build_object('status', 'fired', 'fired_event_id', pg_temp.id(99),
    'died_at', null)
    from completed_row), 'it has fired, with the event, and is not dead');
select is(pg_temp.claims_of(30), 0::bigint, 'nobody holds it');
rollback to before;
select is(pg_temp.row_of(30), (select was from completed_row), 'rolled back with what the caller did');
select lives_ok(format('select timers.complete_resume(%L, %L, %L)', pg_temp.id(30), pg_temp.token(30), pg_temp.id(99)),
    'and completed after all');
select is((select count(*) from timers.outbox), 0::bigint, 'a resume sends nothing by itself');

-- Parked: dead as before, with another reason if there is one.
select pg_temp.make(31, 'resuming') \g /dev/null
create temporary table parked_row as select pg_temp.row_of(31) as was;
select timers.park_resume(pg_temp.id(31), pg_temp.token(31)) \g /dev/null
select is(pg_temp.row_of(31), (select was || '{"status": "dead"}' from parked_row), 'parked, it is dead as it was');
select is(pg_temp.claims_of(31), 0::bigint, 'and nobody holds it');
select isnt(pg_temp.claim(31), null, 'it may be claimed again');
select timers.park_resume(pg_temp.id(31), pg_temp.token(31), 'the bank does not answer') \g /dev/null
select is(pg_temp.row_of(31), (select was || '{"status": "dead", "last_error": "the bank does not answer"}'
    from parked_row),
    'with a reason, that is the new one, and the death the old one');

-- Cancelled.
select pg_temp.make(32, 'resuming') \g /dev/null
create temporary table cancelled_row as select pg_temp.row_of(32) as was;
select timers.cancel_resume(pg_temp.id(32), pg_temp.token(32)) \g /dev/null
select is(pg_temp.row_of(32), (select was || '{"status": "cancelled", "died_at": null}' from cancelled_row),
    'cancelled, and dead no more');
select is(pg_temp.claims_of(32), 0::bigint, 'nobody holds it');

-- Retention walks by wake_at, and has passed by where a timer stood that died long ago.
select pg_temp.make(33, 'dead'), pg_temp.make(34, 'dead') \g /dev/null
update timers.timer set fire_at = '2010-01-01 00:00+00', wake_at = '2010-01-01 00:00+00'
where timer_id in (pg_temp.id(33), pg_temp.id(34));
select pg_temp.claim(33), pg_temp.claim(34) \g /dev/null
select timers.complete_resume(pg_temp.id(33), pg_temp.token(33), pg_temp.id(99)),
    timers.cancel_resume(pg_temp.id(34), pg_temp.token(34)) \g /dev/null
select ok(t.wake_at between now() and clock_timestamp(), 'what has ' || t.status || ' now comes by again')
from timers.timer t where t.timer_id in (pg_temp.id(33), pg_temp.id(34)) order by t.timer_id;

-- A token that does not hold: in every state, another's, of a firing, used up, of a lease that has ended.
create function pg_temp.stale() returns setof text
language plpgsql as $$
declare
    c record;
    r record;
    call text;
    number integer := 40;
    before jsonb;
begin
    for c in select * from (values ('none', 'TM001'), ('scheduled', 'TM003'), ('firing', 'TM003'), ('fired', 'TM003'),
        ('cancelled', 'TM003'), ('dead', 'TM003'), ('resuming', 'TM003'), ('expired', 'TM003')) v (state, code)
    loop
        number := number + 1;
        perform pg_temp.make(number, replace(c.state, 'expired', 'dead'));
        if c.state = 'resuming' then
            -- Somebody else's, and the one before.
            insert into held (number, token) values (number, pg_temp.token(1));
        elsif c.state = 'expired' then
            perform pg_temp.claim(number, '1 microsecond');
        end if;
        before := pg_temp.row_of(number);
        foreach call in array array['renew_resume(%L, %L, ''1 hour'')', 'complete_resume(%L, %L, gen_random_uuid())',
                                    'park_resume(%L, %L)', 'cancel_resume(%L, %L)'] loop
            r := pg_temp.raised('timers.' || format(call, pg_temp.id(number), coalesce(pg_temp.token(number),
                pg_temp.id(1))));
            return next is(r.state, c.code, format('%s: %s', c.state, split_part(call, '(', 1)));
            if r.detail = '' or r.hint = '' then
                return next fail('without detail or hint: ' || r.message);
            end if;
        end loop;
        return next is(pg_temp.row_of(number), before, 'nothing has changed');
    end loop;
end
$$;
select pg_temp.stale();
select ok(r.detail like 'Its lease ended at %', 'a lease that has ended is told')
from pg_temp.raised(format('timers.park_resume(%L, %L)', pg_temp.id(48), pg_temp.token(48))) r;

-- What takes an id alone, and what takes a token of a firing: refused, or the outcome of a timer that is not theirs.
select pg_temp.make(50, 'resuming') \g /dev/null
create temporary table guarded_row as select pg_temp.row_of(50) as was, c.* from timers.claim c
    where timer_id = pg_temp.id(50);
select is(case when r.state = 'none' then r.message else r.state end, c.answer, c.call)
from (values ('cancel($id)', 'TM002'), ('requeue($id)', 'TM002'), ('dead_letter($id, ''again'')', 'TM002'),
             ('retry_dead($id)', 'TM002'), ('mark_fired($id, $id)', 'TM002'), ('mark_fired($id, $id, $token)', 'TM003'),
             ('renew($id, $token)', 'TM003'), ('release($id, $token)', 'TM003'),
             ('schedule($id, ''tap resume 50'', ''saga 50'', now())', 'too_late'),
             ('schedule($id, ''tap resume 50'', ''saga 50'', now(), mode => ''keep'')', 'too_late'),
             ('schedule_in($id, ''tap resume 50'', ''saga 50'', ''1 hour'')', 'too_late'),
             ('schedule_once($id, ''tap resume 50'', ''saga 50'', now())', 'false'),
             ('debounce($id, ''tap resume 50'', ''saga 50'', ''1 hour'')', 'too_late'),
             ('cancel_correlation(''tap resume 50'', ''saga 50'')', '0'),
             ('requeue_stuck(as_of => ''2099-01-01'')', '2'), ('requeue_stuck(''1 microsecond'')', '0'),
             ('purge(''2099-01-01'', true) > 0', 'true'), ('fire_due()', '0'),
             ('count_stuck()', '0'), ('recover_expired_resumes()', '0')) c (call, answer)
cross join lateral pg_temp.raised('timers.' || replace(replace(c.call, '$id',
    quote_literal(pg_temp.id(50)) || '::uuid'),
    '$token', quote_literal(pg_temp.token(50)) || '::uuid')) r;
select is(pg_temp.row_of(50), (select was from guarded_row), 'all of that leaves the timer alone');
select results_eq('select c.* from timers.claim c where timer_id = pg_temp.id(50)',
    'select timer_id, token, kind, attempt, claimed_at, lease_until, claimed_by from guarded_row', 'and the claim');
select is((select outcome::text from timers.schedule_many(array[row(pg_temp.id(50), 'tap resume 50', 'saga 50', now(),
    '{}')]
    ::timers.timer_request[])), 'too_late', 'among many, too');
select ok(r.detail like '%resuming%', 'a firing''s function says whose token this is: ' || r.detail)
from pg_temp.raised(format('timers.renew(%L, %L)', pg_temp.id(50), pg_temp.token(50))) r;

-- The lease ends: dead again, as it was. Ordinary claims are not its business.
delete from timers.timer;
delete from timers.claim;
select pg_temp.make(60, 'dead'), pg_temp.make(61, 'dead'), pg_temp.make(62, 'firing'), pg_temp.make(63,
    'dead') \g /dev/null
create temporary table expired_rows as select n, pg_temp.row_of(n) as was from generate_series(60, 63) n;
select pg_temp.claim(60, '1 hour'), pg_temp.claim(61, '2 hours') \g /dev/null
select is(timers.recover_expired_resumes(), 0::bigint, 'no lease has ended');
select is(timers.recover_expired_resumes((select lease_until - interval '1 microsecond' from timers.claim
    where timer_id = pg_temp.id(60))), 0::bigint, 'nor a microsecond before one does');
select is(timers.recover_expired_resumes((select lease_until from timers.claim where timer_id = pg_temp.id(60))),
    1::bigint,
    'on the dot');
select is(pg_temp.row_of(60), (select was from expired_rows where n = 60), 'it is as dead as before');
select is(pg_temp.claims_of(60), 0::bigint, 'and nobody holds it');
select is((pg_temp.raised(format('timers.complete_resume(%L, %L, %L)', pg_temp.id(60), pg_temp.token(60),
    pg_temp.id(1)))).state,
    'TM003', 'its token is stale');
select is(timers.recover_expired_resumes(as_of => '2099-01-01 00:00+00'), 1::bigint, 'the other one');
select results_eq('select n, pg_temp.row_of(n) from generate_series(60, 63) n', 'select n, was from expired_rows',
    'and nothing else has changed');
select is(pg_temp.claims_of(62), 1::bigint, 'a firing is held as before');
select pg_temp.claim(60, '1 hour') \g /dev/null
select timers.pause('tap resume 60') \g /dev/null
select timers.fire_due(clock_timestamp() + interval '2 hours') \g /dev/null
select is(pg_temp.row_of(60), (select was from expired_rows where n = 60), 'a pass does it, too, paused or not');

-- Ended but not yet noticed: it is held by nobody, and still no timer that is moved by its id.
select pg_temp.claim(63, '1 microsecond') \g /dev/null
select is((pg_temp.raised(format('timers.retry_dead(%L)', pg_temp.id(63)))).state, 'TM002',
    'its id alone does not move it');
select lives_ok('select pg_temp.claim(63)', 'another may claim it');
select isnt(pg_temp.token(63), (select token from held where number = 63 order by place limit 1 offset 1),
    'with a token of his own');
select is(pg_temp.row_of(63), (select was || '{"status": "resuming"}' from expired_rows where n = 63),
    'attempts, reason and death stay');
select is((pg_temp.raised(format('timers.renew_resume(%L, %L, ''1 hour'')', pg_temp.id(63),
    (select token from held where number = 63 order by place limit 1 offset 1)))).state, 'TM003',
        'the first token is stale');
select lives_ok(format('select timers.cancel_resume(%L, %L)', pg_temp.id(63), pg_temp.token(63)), 'the second holds');

-- What an UPDATE by hand leaves behind stands in nobody's way.
delete from timers.claim where timer_id = pg_temp.id(60);
update timers.timer set status = 'resuming', died_at = null where timer_id = pg_temp.id(60);
select lives_ok('select pg_temp.claim(60)', 'resuming without a claim: it is claimed');
select timers.park_resume(pg_temp.id(60), pg_temp.token(60)) \g /dev/null
select ok((select status = 'dead' and died_at is not null from timers.lookup(pg_temp.id(60))),
    'and dies at the latest then');
update timers.timer set status = 'dead', died_at = now() where timer_id = pg_temp.id(62);
select lives_ok('select pg_temp.claim(62)', 'dead beside a claim of a firing: it is claimed');
update timers.timer set status = 'scheduled', died_at = null where timer_id = pg_temp.id(62);
select is(timers.recover_expired_resumes('2099-01-01 00:00+00'), 0::bigint,
    'a claim beside a timer that is not resuming');
select is(pg_temp.claims_of(62), 0::bigint, 'goes when its lease ends');

select * from finish();
rollback;
