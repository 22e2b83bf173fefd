-- Intent: inside a process manager timers fire in the order of the later of fire_at and the moment of scheduling,
-- whatever mixture of postponing, advancing and cancelling went before, pass by pass and however few a pass takes. The
-- seed is printed; run with --set seed=N to see a failure again.
\if :{?seed}
\else
select (extract(epoch from clock_timestamp()) * 1000)::bigint % 1000000 as seed \gset
\endif
begin;
select plan(6);
select diag('seed ' || :seed);
select setseed(:seed / 1000000.0) \g /dev/null

-- The model: what is scheduled, and where it stands in its lane. Moments are counted; what is due later than any moment
-- of this test stands behind all that was overdue when it was scheduled.
create temporary table model (
    id uuid primary key, lane text not null, fire_at timestamptz not null, payload jsonb not null,
    ahead boolean not null, moment integer not null, was_overdue boolean not null);
create temporary table fired (pass integer, place bigint, id uuid, lane text, fire_at timestamptz, payload jsonb);
create temporary table pass (pass integer, wanted bigint, answered bigint);
create temporary sequence moment;

create function pg_temp.schedule_something() returns void
language plpgsql as $$
declare
    which uuid := ('00000000-0000-4000-a002-' || lpad(floor(random() * 60)::text, 12, '0'))::uuid;
    m model;
    known boolean;
    lies_ahead boolean;
    offered timestamptz;
    content jsonb := to_jsonb(random());
    how timers.rearm_mode := (enum_range(null::timers.rearm_mode))[1 + floor(random() * 4)];
    answer timers.schedule_outcome;
begin
    select * into m from model where model.id = which;
    known := found;
    -- Overdue, or due at some instant of the next months; no two alike. What was overdue once only moves ahead: where a
    -- timer stands that is pulled back into the past a second time is left open.
    lies_ahead := coalesce(m.was_overdue, false) or random() < 0.7;
    offered := case when lies_ahead then timestamptz '2090-01-01 00:00+00' + random() * interval '100 days'
                    else timestamptz '2010-01-01 00:00+00' + random() * interval '100 days' end;
    if exists (select from timers.timer t where t.timer_id = which and t.status <> 'scheduled') then
        -- Its id is used up.
        delete from timers.timer where timer_id = which;
        known := false;
    end if;
    answer := timers.schedule(which, coalesce(m.lane, 'tap order ' || floor(random() * 3)), 'saga', offered, content,
        how);
    if (answer = 'inserted') = known then
        raise exception '% answered % although known is %', which, answer, known;
    end if;
    if answer in ('inserted', 'rearmed') then
        insert into model as o (id, lane, fire_at, payload, ahead, moment, was_overdue)
        select t.timer_id, t.process_manager, offered, content, lies_ahead, nextval('moment'), not lies_ahead
        from (select which as timer_id,
                     coalesce(m.lane, (select l.process_manager from timers.lookup(which) l)) as process_manager) t
        on conflict on constraint model_pkey do update
        set fire_at = excluded.fire_at, payload = excluded.payload, ahead = excluded.ahead, moment = excluded.moment,
            was_overdue = o.was_overdue or excluded.was_overdue;
    end if;
end
$$;

create function pg_temp.cancel_something() returns void
language plpgsql as $$
declare
    which uuid;
begin
    select o.id into which from model o order by random() limit 1;
    if timers.cancel(which) is distinct from (which is not null) and which is not null then
        raise exception 'could not cancel %', which;
    end if;
    delete from model where id = which;
end
$$;

-- A pass as of some time, taking all or a few; what it fired leaves the model.
create function pg_temp.run_pass(number integer) returns void
language plpgsql as $$
declare
    till timestamptz := case floor(random() * 4)
        when 0 then clock_timestamp()
        when 1 then timestamptz '2010-01-01 00:00+00' + random() * interval '100 days'
        else timestamptz '2090-01-01 00:00+00' + random() * interval '100 days' end;
    most integer := case when random() < 0.5 then 1 + floor(random() * 5) else 1000 end;
    due bigint;
    before bigint;
    answered integer;
begin
    select count(*) into due from model where fire_at <= till;
    select coalesce(max(o.position), 0) into before from timers.outbox o;
    answered := timers.fire_due(till, most);
    insert into pass (pass, wanted, answered) values (number, least(due, most), answered);
    insert into fired (pass, place, id, lane, fire_at, payload)
    select number, o.position, o.timer_id, o.process_manager, o.fire_at, o.payload from timers.outbox o
    where o.position > before;
    -- In each lane it fired the first of those that were due, in their order.
    if exists (
        select from (
            select o.id, o.lane,
                   row_number() over (partition by o.lane order by o.ahead, case when o.ahead then o.fire_at end,
                                      case when not o.ahead then o.moment end) as place
            from model o where o.fire_at <= till) w
        full join (
            select f.id, f.lane, row_number() over (partition by f.lane order by f.place) as place
            from fired f where f.pass = number) g on g.id = w.id and g.lane = w.lane and g.place = w.place
        where g.id is null and w.place <= (select count(*) from fired f where f.pass = number and f.lane = w.lane)
           or w.id is null) then
        raise exception 'pass % as of % of at most % out of order: wanted %, found %', number, till, most,
            (select jsonb_agg(to_jsonb(o) order by o.lane, o.ahead, case when o.ahead then o.fire_at end, o.moment)
                from model o where o.fire_at <= till),
            (select jsonb_agg(to_jsonb(f) order by f.place) from fired f where f.pass = number);
    end if;
    if exists (select from fired f left join model o using (id)
               where f.pass = number
                 and (f.fire_at, f.payload, f.lane) is distinct from (o.fire_at, o.payload, o.lane)) then
        raise exception 'pass % fired something that was not so scheduled', number;
    end if;
    delete from model o using fired f where f.pass = number and o.id = f.id;
end
$$;

create function pg_temp.history() returns void
language plpgsql as $$
begin
    for n in 1 .. 150 loop
        perform pg_temp.schedule_something() from generate_series(1, 1 + floor(random() * 8)::integer);
        if random() < 0.3 then
            perform pg_temp.cancel_something();
        end if;
        if random() < 0.4 then
            perform pg_temp.run_pass(n);
        end if;
    end loop;
    -- In the end all that is left.
    perform pg_temp.run_pass(1000 + n) from generate_series(1, 10) n;
    insert into pass (pass, wanted, answered)
    select 2000, count(*), timers.fire_due('2091-01-01 00:00+00', 100000) from model;
end
$$;
select lives_ok('select pg_temp.history()', 'every pass fires the first of what is due, in order');

select is_empty('select * from pass where wanted <> answered', 'every pass fires as many as are due and it may take');
select is_empty($$ select t.timer_id, t.fire_at from timers.timer t where t.status not in ('fired', 'cancelled') $$,
    'nothing is left behind');
select is_empty($$ select o.event_id from timers.outbox o group by o.event_id having count(*) > 1 $$,
    'no event came twice');
select cmp_ok((select count(*) from fired), '>', 100::bigint, 'many were fired');
select cmp_ok((select count(distinct pass) from fired), '>', 15::bigint, 'in many passes');

select * from finish();
rollback;
