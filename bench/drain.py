#!/usr/bin/env python3
"""Drains overdue timers into the outbox: the dispatcher, in batches with a commit each, and one plain SQL statement.

Both work on tables of the same shape, indexes and rows, in a fresh database per round, after VACUUM and CHECKPOINT. The
statement neither locks row by row, nor skips what others hold, nor looks again at what changed meanwhile.
"""

import time

import arguments as command_line
import report
import server

LANE = "bench-drain"
TARGET = 0.5

ORDERS = {
    "arrival": "overdue when scheduled: the order of firing is that of the rows on disk",
    "shuffled": "came due at random instants while nobody fired: the order of firing jumps about on disk",
}

SCHEDULE_OVERDUE = """
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload)
select gen_random_uuid(), %(lane)s, 'order-' || n, clock_timestamp() - interval '1 minute',
       jsonb_build_object('kind', 'reminder', 'order', n)
from generate_series(1, %(timers)s) n"""

# Nobody can schedule into the past and keep the place there: these are rows as a server finds them that was down.
SCHEDULE_LONG_AGO = """
alter table timers.timer disable trigger _on_timer;
insert into timers.timer (timer_id, process_manager, correlation_id, created_at, wake_at, fire_at, payload)
select gen_random_uuid(), %(lane)s, 'order-' || n, now() - interval '2 hours', due, due,
       jsonb_build_object('kind', 'reminder', 'order', n)
from generate_series(1, %(timers)s) n cross join lateral (
    select now() - interval '1 minute' - random() * interval '1 hour' + n * interval '0' as due) d;
alter table timers.timer enable always trigger _on_timer"""

COPY_TABLES = server.PLAIN_TIMER + """
create table plain.outbox (like timers.outbox including all);
set synchronize_seqscans = off;
insert into plain.timer select * from timers.timer"""

PLAIN = """
with fired as (
    update plain.timer
    set status = 'fired', attempts = attempts + 1, updated_at = clock_timestamp(),
        fired_event_id = timers._event_id(timer_id, fire_at)
    where status = 'scheduled' and fire_at <= clock_timestamp()
    returning fired_event_id, timer_id, process_manager, correlation_id, fire_at, attempts, payload
)
insert into plain.outbox (event_id, timer_id, process_manager, correlation_id, fire_at, fired_at, attempts, payload)
select fired_event_id, timer_id, process_manager, correlation_id, fire_at, now(), attempts, payload from fired"""


def load(connection, order, timers):
    server.run(connection, "select timers.pause(%s)", (LANE,))
    server.run(connection, SCHEDULE_OVERDUE if order == "arrival" else SCHEDULE_LONG_AGO,
               {"lane": LANE, "timers": timers})
    server.run(connection, COPY_TABLES)
    for name in ("timers.timer", "plain.timer"):
        server.run(connection, f"vacuum (analyze) {name}")


def measure(connection, pid, drain):
    """Wall time, processor time of the process `pid`, and WAL, of `drain()`."""
    server.run(connection, "checkpoint")
    cpu = server.cpu_seconds(pid)
    wal = server.wal_position(connection)
    begin = time.perf_counter()
    drain()
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "cpu_seconds": server.cpu_seconds(pid) - cpu,
            "wal_bytes": server.wal_position(connection) - wal}


def drain_by_dispatcher(connection, timers):
    def drain():
        server.run(connection, "select timers.unpause(%s)", (LANE,))
        server.await_true("all timers are fired", lambda: server.fired(connection) >= timers, 0.01, 3600)

    return measure(connection, server.dispatcher(connection), drain)


def drain_by_statement(connection, _):
    return measure(connection, connection.info.backend_pid, lambda: server.run(connection, PLAIN))


SIDES = {"dispatcher": ("timers", drain_by_dispatcher), "statement": ("plain", drain_by_statement)}


def check(connection, schema, timers):
    """Every timer is fired and has one event."""
    found = server.row(connection, f"""
        select (select count(*) from {schema}.timer where status = 'fired'), count(*), count(distinct timer_id),
               count(distinct event_id) from {schema}.outbox""")
    if found != (timers,) * 4:
        raise AssertionError(f"{schema}: {found} of {timers} fired, events, timers with events, event ids")


def hot_share(connection, schema):
    """The share of heap-only updates, of those that the server has counted: the last second's may be missing."""
    server.run(connection, "select pg_stat_force_next_flush()")

    def counted():
        updates, hot = server.row(connection, """
            select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables
            where schemaname = %s and relname = 'timer'""", (schema,))
        return updates and hot / updates

    return server.await_true("updates are counted", counted)


def run_round(number, order, timers):
    results = {}
    with server.fresh_database(f"drain_{order}_{number}") as connection:
        load(connection, order, timers)
        for side in sorted(SIDES, reverse=number % 2 == 1):
            schema, drain = SIDES[side]
            result = drain(connection, timers)
            check(connection, schema, timers)
            result["hot_share"] = hot_share(connection, schema)
            results[side] = result
    return results


def show(order, rounds, timers):
    def line(name, side, result):
        return [name, side, f"{result['seconds']:.2f}", f"{timers / result['seconds']:,.0f}",
                f"{result['cpu_seconds']:.2f}", f"{result['wal_bytes'] / timers:.0f}", f"{result['hot_share']:.1%}"]

    def median(side):
        return {key: report.percentile([one[side][key] for one in rounds], 50) for key in rounds[0][side]}

    lines = [line(f"round {i}", side, one[side]) for i, one in enumerate(rounds, 1) for side in one]
    lines += [line("median", side, median(side)) for side in SIDES]
    report.table(f"order {order}: {ORDERS[order]}",
                 ["", "side", "seconds", "timers/s", "CPU s", "WAL bytes/timer", "HOT"], lines)
    ratio = report.median_ratio([(one["statement"]["seconds"], one["dispatcher"]["seconds"]) for one in rounds])
    return report.verdict("speed of the dispatcher / speed of the statement, median over the rounds", ratio, TARGET,
                          at_most=False)


def main():
    parser = command_line.parser("drain", __doc__.splitlines()[0])
    parser.add_argument("--timers", type=command_line.positive, default=1_000_000, help="default: 1000000")
    parser.add_argument("--order", choices=[*ORDERS, "both"], default="both", help="of firing (default: both)")
    wanted = command_line.parse(parser)

    results = {}
    for order in ORDERS if wanted.order == "both" else [wanted.order]:
        rounds = []
        for number in range(wanted.rounds):
            print(f"draining {wanted.timers} timers, order {order}, round {number + 1}", flush=True)
            rounds.append(run_round(number, order, wanted.timers))
        results[order] = {"rounds": rounds, "ratio": show(order, rounds, wanted.timers)}
    report.keep("drain", wanted, server.connect("postgres"), {"orders": results})


if __name__ == "__main__":
    main()
