#!/usr/bin/env python3
"""Measures what the views and counts read, and how long they take, with ten thousand timers and with many more.

What is due, claimed and dead is the same in both tables; what waits and what has fired is as large as the table. Each
is measured from its second call in a session on: the first reads the catalog.
"""

import contextlib
import statistics
import time

import arguments as command_line
import report
import server

SMALL = 10_000
TARGET = 2.0
CHUNK = 500_000

QUERIES = {
    "overview": "select * from timers.overview",
    "workers": "select * from timers.workers",
    "metrics": "select * from timers.metrics",
    "prometheus()": "select timers.prometheus()",
    "count_due()": "select timers.count_due()",
    "count_stuck()": "select timers.count_stuck('0', 1)",
    "find_stuck()": "select * from timers.find_stuck('0', 1)",
}

# The same in every table: 1000 due, 1000 claimed, 1000 dead.
CONSTANT = """
select timers.pause('held'), timers.configure('work', delivery => 'external');
select count(timers.schedule_in(gen_random_uuid(), lane, n::text, '-1 hour'))
from generate_series(1, 1000) n, unnest(array['held', 'work']) lane;
select count(*) from timers.claim_due('work', 1000, '1 day');
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at, last_error)
select gen_random_uuid(), 'held', n::text, '2001-01-01', 'dead', now(), 'given up on' from generate_series(1, 1000) n"""

# One in ten has fired already; ten process managers.
GROWING = """
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, payload)
select gen_random_uuid(), 'orders ' || n %% 10, 'order-' || n,
       case when n %% 100 < 10 then '2001-01-01' else now() + interval '1 day' + n * interval '1 ms' end,
       case when n %% 100 < 10 then 'fired' else 'scheduled' end::timers.timer_status,
       jsonb_build_object('kind', 'reminder', 'order', n)
from generate_series(%(first)s, %(last)s) n"""

# The dispatcher has been in each lane: its mark is past what has fired.
PASSED = """
select count(timers.schedule_in(gen_random_uuid(), 'orders ' || n, 'passed', '0')) from generate_series(0, 9) n"""


def load(connection, timers):
    server.run(connection, CONSTANT)
    for first in range(1, timers + 1, CHUNK):
        server.run(connection, GROWING, {"first": first, "last": min(timers, first + CHUNK - 1)})
    server.run(connection, PASSED)
    server.await_true("the dispatcher has been everywhere", lambda: server.fired(connection) >= 10)
    # Left to itself vacuum spares the indexes of a large table that has few dead rows.
    server.run(connection, "vacuum (analyze, index_cleanup on) timers.timer, timers.claim")
    server.run(connection, "checkpoint")


def measure(connection, query, rounds):
    """Pages touched, and the median of the milliseconds that the server took."""
    server.run(connection, query)
    explain = "explain (analyze, buffers, timing off, summary off, format json) "
    plan = server.value(connection, explain + query)[0]["Plan"]
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        server.run(connection, query)
        times.append((time.perf_counter() - begin) * 1000)
    return {"pages": plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], "ms": statistics.median(times)}


def check(connection, timers):
    """The views tell what is there, and what they call exact is."""
    wrong = server.value(connection, """
        select count(*) from timers.overview o
        join (select process_manager, count(*) as there from timers.timer where status = 'scheduled' group by 1) t
        using (process_manager)
        where 'scheduled' <> all (o.inexact) and o.scheduled <> t.there
           or abs(o.scheduled - t.there) > 0.02 * %s""", (timers,))
    if wrong:
        raise AssertionError(f"{wrong} lines of timers.overview are wrong")


def main():
    parser = command_line.parser("glance", __doc__.splitlines()[0], rounds=15)
    parser.add_argument("--timers", type=command_line.positive, default=1_000_000,
                        help="in the large table (default: 1000000)")
    wanted = command_line.parse(parser)

    sizes = {"small": SMALL, "large": wanted.timers}
    results = {name: {} for name in QUERIES}
    with contextlib.ExitStack() as stack:
        connections = {}
        for size, timers in sizes.items():
            print(f"loading {timers} timers", flush=True)
            connections[size] = stack.enter_context(server.fresh_database(f"glance_{size}"))
            load(connections[size], timers)
            check(connections[size], timers)
        for name, query in QUERIES.items():
            for size in sizes:
                results[name][size] = measure(connections[size], query, wanted.rounds)
        by_hand = measure(connections["large"], """
            select process_manager, count(*) filter (where status = 'scheduled'),
                   count(*) filter (where status = 'scheduled' and fire_at <= now()) from timers.timer group by 1""", 1)
        report.table(f"{SMALL:,} and {wanted.timers:,} timers", ["", "pages", "pages", "ms", "ms"],
                     [[name, f"{one['small']['pages']:,}", f"{one['large']['pages']:,}", f"{one['small']['ms']:.2f}",
                       f"{one['large']['ms']:.2f}"] for name, one in results.items()]
                     + [["by hand", "", f"{by_hand['pages']:,}", "", f"{by_hand['ms']:.2f}"]])
        worst = max(one["large"]["pages"] / max(1, one["small"]["pages"]) for one in results.values())
        verdict = report.verdict("pages in the large table / pages in the small one, the worst of all", worst, TARGET,
                                 at_most=True)
        report.keep("glance", wanted, connections["large"], {"queries": results, "by_hand": by_hand, "pages": verdict})


if __name__ == "__main__":
    main()
