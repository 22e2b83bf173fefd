-- Intent: inside a process manager timers fire, and are claimed, in the order of the later of fire_at and the moment
-- they were given it, after any mixture of postponing, advancing, cancelling, giving back and rolling back, as of any
-- moment and however few at a time. Thousands of random steps against a model in plain SQL. The seed is printed; run
-- with --set seed=N to see a failure again, with --set steps=N to look longer.
\if :{?seed}
\else
select (extract(epoch from clock_timestamp()) * 1000)::bigint % 1000000 as seed \gset
\endif
\if :{?steps}
\else
\set steps 3000
\endif
begin;
select plan(7);
select diag('seed ' || :seed);
select setseed(:seed / 1000000.0) \g /dev/null

-- Where timers fire by themselves, and where they are claimed.
create temporary table lane (name text primary key, claimed boolean not null);
insert into lane values
    ('tap order a', false), ('tap order b', false), ('tap order c', false),
    ('tap order d', true), ('tap order e', true);
select timers.configure(name, 'external') from lane where claimed \g /dev/null

-- The model. moment: when the timer was given its fire_at, by the clock after the call. An id whose timer has ended is
-- not in it.
create temporary table model (
    id uuid primary key, lane text not null, saga text not null, fire_at timestamptz not null, payload jsonb not null,
    moment timestamptz not null, claim_token uuid);
create temporary view waiting as
select m.id, m.lane, m.fire_at, m.payload, greatest(m.fire_at, m.moment) as place, l.claimed
from model m join lane l on l.name = m.lane where m.claim_token is null;
-- What one pass or one claim took, in its order.
create temporary table taken (place bigint generated always as identity, id uuid, lane text, fire_at timestamptz,
                              payload jsonb, claim_token uuid);
create temporary table step (kind text, timers bigint);

create function pg_temp.some_id() returns uuid
language sql volatile as $$ select ('00000000-0000-4000-a002-' || lpad(floor(random() * 80)::text, 12, '0'))::uuid $$;
create function pg_temp.some_lane() returns text
language sql volatile as $$ select 'tap order ' || (array['a', 'b', 'c', 'd', 'e'])[1 + floor(random() * 5)] $$;
create function pg_temp.some_saga() returns text
language sql volatile as $$ select 'saga ' || floor(random() * 12) $$;
-- Long ago, of late, soon or far ahead; nothing comes due by itself while the test runs.
create function pg_temp.some_time() returns timestamptz
language sql volatile as $$
    select case floor(random() * 6)
        when 0 then timestamptz '2010-01-01 00:00+00' + random() * interval '100 days'
        when 1 then clock_timestamp() - random() * interval '10 minutes'
        when 2 then clock_timestamp() + interval '1 hour' + random() * interval '1 hour'
        else timestamptz '2090-01-01 00:00+00' + random() * interval '100 days' end
$$;
create function pg_temp.found(wrong text) returns void
language plpgsql as $$
begin
    if wrong is not null then
        raise exception using errcode = 'TMSTP', message = wrong;
    end if;
end
$$;

-- A timer whose time has been used up leaves its id to the next, mostly.
create function pg_temp.forget_ended(which uuid) returns void
language sql volatile as $$
    delete from timers.timer t
    where t.timer_id = which and random() < 0.8 and not exists (select from model m where m.id = which)
$$;

-- The model of one request that was answered so.
create function pg_temp.request(r timers.timer_request, mode timers.rearm_mode, answer text, moment timestamptz)
returns void
language plpgsql as $$
declare
    m model;
    known boolean;
    wanted text;
begin
    select * into m from model where id = r.timer_id;
    known := found;
    wanted := case
        when not known and exists (select from timers.timer t where t.timer_id = r.timer_id and t.status <> 'scheduled')
            then 'too_late'
        when not known then 'inserted'
        when m.claim_token is not null then 'too_late'
        when mode = 'replace' or mode = 'later' and r.fire_at > m.fire_at or mode = 'earlier' and r.fire_at < m.fire_at
            then 'rearmed'
        else 'kept' end;
    perform pg_temp.found(format('%s %s was %s instead of %s', mode, r, answer, wanted))
    where answer is distinct from wanted;
    if wanted in ('inserted', 'rearmed') then
        insert into model as o (id, lane, saga, fire_at, payload, moment)
        values (r.timer_id, r.process_manager, r.correlation_id, r.fire_at, r.payload, request.moment)
        on conflict on constraint model_pkey do update
        set lane = excluded.lane, saga = excluded.saga, fire_at = excluded.fire_at, payload = excluded.payload,
            -- The same time in the same lane is not given anew.
            moment = case when o.fire_at = excluded.fire_at and o.lane = excluded.lane then o.moment
                          else excluded.moment end;
    end if;
end
$$;

create function pg_temp.schedule_one() returns void
language plpgsql as $$
declare
    r timers.timer_request :=
        (pg_temp.some_id(), pg_temp.some_lane(), pg_temp.some_saga(), pg_temp.some_time(), to_jsonb(random()));
    mode timers.rearm_mode := (enum_range(null::timers.rearm_mode))[1 + floor(random() * 4)];
    m model;
    ahead interval := r.fire_at - clock_timestamp();
    answer text;
begin
    perform pg_temp.forget_ended(r.timer_id);
    select * into m from model where id = r.timer_id;
    if found and random() < 0.7 then
        r.process_manager := m.lane;
    end if;
    if m.fire_at is not null and random() < 0.1 then
        r.fire_at := m.fire_at;
    end if;
    case floor(random() * 5)
        when 0 then
            mode := 'keep';
            answer := case
                when timers.schedule_once(r.timer_id, r.process_manager, r.correlation_id, r.fire_at, r.payload)
                    then 'inserted'
                when m.id is not null and m.claim_token is null then 'kept' else 'too_late' end;
        when 1 then
            answer := timers.schedule_in(r.timer_id, r.process_manager, r.correlation_id, ahead, r.payload, 'replace');
            mode := 'replace';
            select t.fire_at into r.fire_at from timers.lookup(r.timer_id) t;
        when 2 then
            ahead := greatest(ahead, interval '1 hour');
            answer := timers.debounce(r.timer_id, r.process_manager, r.correlation_id, ahead, r.payload,
                                      case when random() < 0.3 then interval '2 hours' end);
            mode := 'replace';
            select t.fire_at into r.fire_at from timers.lookup(r.timer_id) t;
        else
            answer := timers.schedule(r.timer_id, r.process_manager, r.correlation_id, r.fire_at, r.payload, mode);
    end case;
    perform pg_temp.request(r, mode, answer, clock_timestamp());
    insert into step values ('schedule ' || answer, 1);
end
$$;

create function pg_temp.schedule_several() returns void
language plpgsql as $$
declare
    requests timers.timer_request[] := array(
        select (pg_temp.some_id(), pg_temp.some_lane(), pg_temp.some_saga(), pg_temp.some_time(),
                to_jsonb(random()))::timers.timer_request
        from generate_series(1, 1 + floor(random() * 6)::integer));
    mode timers.rearm_mode := (enum_range(null::timers.rearm_mode))[1 + floor(random() * 4)];
    answers text[];
begin
    perform pg_temp.forget_ended(r.timer_id) from unnest(requests) r;
    -- Each id once: what becomes of several is tested in schedule_many.sql.
    requests := array(select distinct on (r.timer_id) r from unnest(requests) r order by r.timer_id);
    select array_agg(s.outcome::text order by s.place) into answers
    from timers.schedule_many(requests, mode) with ordinality s (timer_id, outcome, place);
    perform pg_temp.request(r, mode, answers[place], clock_timestamp())
    from unnest(requests) with ordinality u (timer_id, process_manager, correlation_id, fire_at, payload, place),
        lateral (select u.timer_id, u.process_manager, u.correlation_id, u.fire_at, u.payload) r;
    insert into step values ('schedule_many', cardinality(requests));
end
$$;

create function pg_temp.cancel_some() returns void
language plpgsql as $$
declare
    which uuid;
    in_lane text := pg_temp.some_lane();
    of_saga text := pg_temp.some_saga();
    wanted bigint;
begin
    if random() < 0.8 then
        select m.id into which from model m order by random() limit 1;
        if found then
            perform pg_temp.found('could not cancel ' || which) where not timers.cancel(which);
            delete from model where id = which;
        end if;
    else
        with gone as (delete from model where lane = in_lane and saga = of_saga returning id)
        select count(*) into wanted from gone;
        perform pg_temp.found('cancelled another number')
        where timers.cancel_correlation(in_lane, of_saga) <> wanted;
    end if;
    insert into step values ('cancel', 1);
end
$$;

-- Of what was due, those that stand first were taken, in their order; `lanes` apart, if they are apart.
create function pg_temp.check_taken(what text, due uuid[], most bigint, apart boolean) returns void
language plpgsql as $$
declare
    wrong text;
begin
    select format('%s: took %s, not %s', what, (select count(*) from taken), least(most, cardinality(due)))
    into wrong where (select count(*) from taken) <> least(most, cardinality(due));
    perform pg_temp.found(wrong);
    select format('%s: took %s, which was not due or not so', what, to_jsonb(t)) into wrong
    from taken t left join waiting w using (id)
    where t.id <> all (due) or (t.lane, t.fire_at, t.payload) is distinct from (w.lane, w.fire_at, w.payload);
    perform pg_temp.found(wrong);
    -- Later in the answer, or not taken at all, but to stand before.
    select format('%s: took %s before %s', what, to_jsonb(a), to_jsonb(b)) into wrong
    from (select w.*, t.place as at from waiting w join taken t using (id)) a
    join (select w.*, t.place as at from waiting w left join taken t using (id) where w.id = any (due)) b
        on (b.at > a.at or b.at is null) and b.place < a.place and (a.lane = b.lane or not apart);
    perform pg_temp.found(wrong);
    insert into step values (what, (select count(*) from taken));
end
$$;

create function pg_temp.run_pass() returns void
language plpgsql as $$
declare
    till timestamptz := case when random() < 0.3 then clock_timestamp() else pg_temp.some_time() end;
    most integer := case when random() < 0.5 then 1 + floor(random() * 5) else 1000 end;
    due uuid[] := array(select w.id from waiting w where w.fire_at <= till and not w.claimed);
    before bigint;
    answered integer;
begin
    select coalesce(max(o.position), 0) into before from timers.outbox o;
    answered := timers.fire_due(till, most);
    truncate taken;
    insert into taken (id, lane, fire_at, payload)
    select o.timer_id, o.process_manager, o.fire_at, o.payload from timers.outbox o
    where o.position > before order by o.position;
    perform pg_temp.found('answered another number') where answered <> (select count(*) from taken);
    perform pg_temp.check_taken('pass', due, most, true);
    delete from model m using taken t where m.id = t.id;
end
$$;

create function pg_temp.claim() returns void
language plpgsql as $$
declare
    -- Null: of all lanes.
    which text := case when random() < 0.7 then (select l.name from lane l where l.claimed order by random() limit 1) end;
    till timestamptz := case when random() < 0.3 then clock_timestamp() else pg_temp.some_time() end;
    most integer := 1 + floor(random() * 4);
    due uuid[] := array(select w.id from waiting w where w.fire_at <= till and (which is null or w.lane = which));
begin
    truncate taken;
    insert into taken (id, lane, fire_at, payload, claim_token)
    select c.timer_id, c.process_manager, c.fire_at, c.payload, c.claim_token
    from timers.claim_due(which, most, '200 years', till) c;
    perform pg_temp.check_taken(case when which is null then 'claim of any lane' else 'claim' end, due, most, false);
    update model m set claim_token = t.claim_token from taken t where m.id = t.id;
end
$$;

-- Ends a claim: by completion, or so that the timer waits again, from this moment on.
create function pg_temp.end_claim() returns void
language plpgsql as $$
declare
    m model;
    again timestamptz := pg_temp.some_time();
    how text := (array['mark_fired', 'release', 'requeue', 'dead_letter', 'retry_dead'])[1 + floor(random() * 5)];
begin
    select * into m from model where claim_token is not null order by random() limit 1;
    if not found then
        return;
    end if;
    case how
        when 'mark_fired' then perform timers.mark_fired(m.id, m.id, m.claim_token);
        when 'release' then perform timers.release(m.id, m.claim_token, again);
        when 'requeue' then perform timers.requeue(m.id);
        when 'dead_letter' then perform timers.dead_letter(m.id, 'given up');
        when 'retry_dead' then perform timers.dead_letter(m.id, 'given up'), timers.retry_dead(m.id, again);
    end case;
    if how in ('mark_fired', 'dead_letter') then
        delete from model where id = m.id;
    else
        update model
        set claim_token = null, moment = clock_timestamp(),
            fire_at = case how when 'requeue' then fire_at else again end
        where id = m.id;
    end if;
    insert into step values (how, 1);
end
$$;

create function pg_temp.act() returns void
language plpgsql as $$
declare
    dice float8 := random();
begin
    if dice < 0.55 then perform pg_temp.schedule_one();
    elsif dice < 0.65 then perform pg_temp.schedule_several();
    elsif dice < 0.72 then perform pg_temp.cancel_some();
    elsif dice < 0.84 then perform pg_temp.run_pass();
    elsif dice < 0.92 then perform pg_temp.claim();
    else perform pg_temp.end_claim();
    end if;
end
$$;

create function pg_temp.history(steps integer) returns void
language plpgsql as $$
begin
    for n in 1 .. steps loop
        if random() < 0.03 then
            -- A savepoint that comes to nothing, whatever fired and was claimed in it.
            begin
                perform pg_temp.act() from generate_series(1, 5);
                raise exception using errcode = 'TMUND';
            exception when sqlstate 'TMUND' then
                insert into step values ('undone', 5);
            end;
        else
            perform pg_temp.act();
        end if;
    end loop;
end
$$;
select lives_ok(format('select pg_temp.history(%s)', :steps), 'every step goes as the model says');

-- In the end all that is left.
select lives_ok($$ do $do$ begin
    update timers.process_manager set delivery = 'outbox' where process_manager like 'tap order %';
    update lane set claimed = false;
    perform pg_temp.end_claim() from generate_series(1, 200);
    insert into step values ('rest', timers.fire_due('2091-01-01 00:00+00', 100000));
end $do$ $$, 'what is left is fired');
select is((select count(*) from model), (select timers from step where kind = 'rest'), 'and nothing else was left');
select is_empty($$ select t.timer_id, t.status from timers.timer t
    where t.process_manager like 'tap order %' and t.status not in ('fired', 'cancelled', 'dead') $$,
    'nothing is left behind');
select is_empty($$ select o.event_id from timers.outbox o group by o.event_id having count(*) > 1 $$,
    'no event came twice');

-- The history was worth something.
select is_empty($$ select k.kind from unnest(array['schedule inserted', 'schedule rearmed', 'schedule kept',
    'schedule too_late', 'schedule_many', 'cancel', 'pass', 'claim', 'mark_fired', 'release', 'requeue', 'dead_letter',
    'retry_dead', 'undone']) k (kind) where not exists (select from step s where s.kind = k.kind) $$,
    'every kind of step was taken');
select cmp_ok((select count(*) from step where kind in ('pass', 'claim') and timers > 1), '>', 100::bigint,
    'many passes and claims took several');

select * from finish();
rollback;
