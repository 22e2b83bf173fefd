#!/usr/bin/env python3
"""Measures re-arming, beside the upsert of a table with the usual index on status and time, both called alike.

Each side re-arms every timer so many times, a transaction for all timers at a time, before the other begins: what
vacuuming takes is its own. Speed, growth of the indexes and WAL are compared.
"""

import time

import arguments as command_line
import report
import server

SPEED, GROWTH, WAL = 2, 0.1, 0.5

PREPARE = """
create schema plain;
create table plain.timer (
    timer_id uuid primary key, process_manager text not null, correlation_id text not null,
    fire_at timestamptz not null, payload jsonb not null, status text not null default 'scheduled',
    attempts bigint not null default 0, fired_event_id uuid, last_error text,
    created_at timestamptz not null default now(), updated_at timestamptz not null default now());
create index on plain.timer (status, fire_at, process_manager) where status in ('scheduled', 'firing');
create table public.request as
select md5(n::text)::uuid as id, 'bench-debounce'::text as lane, 'session-' || n as session,
       '{"kind": "idle", "turn": 7}'::jsonb as payload
from generate_series(1, %(timers)s) n;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload)
select id, lane, session, now() + interval '1 day', payload from public.request;
insert into plain.timer (timer_id, process_manager, correlation_id, fire_at, payload)
select id, lane, session, now() + interval '1 day', payload from public.request"""

ON_CONFLICT = """on conflict (timer_id) do update
set process_manager = excluded.process_manager, correlation_id = excluded.correlation_id, fire_at = excluded.fire_at,
    payload = excluded.payload, status = excluded.status, updated_at = now()
where t.status = 'scheduled'"""
INSERT = "insert into plain.timer as t (timer_id, process_manager, correlation_id, fire_at, payload, status)"
LOOP = """do $$ declare r record; begin
    for r in select * from public.request loop {}; end loop;
end $$"""

# All timers once.
WAYS = {
    "bulk": {
        "timers": """select count(*) from timers.schedule_many(array(
            select (id, lane, session, clock_timestamp() + interval '1 day', payload)::timers.timer_request
            from public.request))""",
        "plain": f"""{INSERT} select id, lane, session, clock_timestamp() + interval '1 day', payload, 'scheduled'
            from public.request {ON_CONFLICT}"""},
    "single": {
        "timers": LOOP.format("perform timers.debounce(r.id, r.lane, r.session, '1 day', r.payload)"),
        "plain": LOOP.format(f"""{INSERT} values (r.id, r.lane, r.session, clock_timestamp() + interval '1 day',
            r.payload, 'scheduled') {ON_CONFLICT}""")},
}


def index_bytes(connection, schema):
    return int(server.value(connection, f"select pg_indexes_size('{schema}.timer')"))


def measure(connection, schema, statement, rearms):
    """Seconds, WAL and growth of the indexes of all re-arms."""
    server.run(connection, "vacuum (analyze) timers.timer, plain.timer")
    server.run(connection, "checkpoint")
    wal, size, begin = server.wal_position(connection), index_bytes(connection, schema), time.perf_counter()
    for _ in range(rearms):
        server.run(connection, statement)
    return {"seconds": time.perf_counter() - begin, "wal_bytes": server.wal_position(connection) - wal,
            "index_growth": index_bytes(connection, schema) - size}


def run_round(number, way, wanted):
    with server.fresh_database(f"debounce_{way}_{number}") as connection:
        server.run(connection, PREPARE, {"timers": wanted.timers})
        result = {schema: measure(connection, schema, WAYS[way][schema], wanted.rearms)
                  for schema in sorted(WAYS[way], reverse=number % 2 == 1)}
        if server.value(connection, "select count(*) from timers.timer where updated_at > created_at") != wanted.timers:
            raise AssertionError("not every timer was re-armed")
        return result


def show(way, rounds, wanted):
    all_of_them = wanted.timers * wanted.rearms

    def line(name, side, result):
        return [name, side, f"{result['seconds'] / all_of_them * 1e6:.2f}", f"{result['wal_bytes'] / all_of_them:.0f}",
                f"{result['index_growth'] / 2**20:.1f}"]

    report.table(f"{way}: {all_of_them} re-arms",
                 ["", "side", "us/re-arm", "WAL bytes/re-arm", "growth of the indexes, MiB"],
                 [line(f"round {i}", side, one[side]) for i, one in enumerate(rounds, 1) for side in one])

    def ratio(key):
        return report.median_ratio([(one["timers"][key], one["plain"][key]) for one in rounds])

    return {
        "speed": report.verdict(f"{way}: speed beside the plain upsert", 1 / ratio("seconds"), SPEED, at_most=False),
        "wal": report.verdict(f"{way}: WAL", ratio("wal_bytes"), WAL, at_most=True),
        "growth": report.verdict(f"{way}: growth of the indexes", ratio("index_growth"), GROWTH, at_most=True)}


def main():
    parser = command_line.parser("debounce", __doc__.splitlines()[0])
    parser.add_argument("--timers", type=command_line.positive, default=20_000, help="default: 20000; in full 100000")
    parser.add_argument("--rearms", type=command_line.positive, default=100, help="of each timer (default: 100)")
    parser.add_argument("--way", choices=[*WAYS, "both"], default="both", help="how they are called (default: both)")
    wanted = command_line.parse(parser)

    results = {}
    for way in WAYS if wanted.way == "both" else [wanted.way]:
        rounds = []
        for number in range(wanted.rounds):
            print(f"{way}, round {number + 1}", flush=True)
            rounds.append(run_round(number, way, wanted))
        results[way] = {"rounds": rounds, "verdicts": show(way, rounds, wanted)}
    report.keep("debounce", wanted, server.connect("postgres"), {"ways": results})


if __name__ == "__main__":
    main()
