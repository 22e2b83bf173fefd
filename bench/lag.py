#!/usr/bin/env python3
"""Measures firing lag under a trickle of timers, and the cost of a bare durable commit at the same time.

Three processes, each with a session of its own: one schedules timers a second ahead, one consumes the outbox (woken by
the doorbell in half of the phases, polling in the others), one commits single-row transactions at random instants.
"""

import multiprocessing
import random
import select
import time

import arguments as command_line
import report
import server

LANE = "bench-lag"
CHANNEL = "bench_lag"
LEAD = 1.0  # seconds from scheduling to fire_at
POLL = 0.0003  # seconds between two looks of the polling consumer: its own pause is not to be what is measured
PATIENCE = 30.0  # seconds that the last event may take

# Seen is what the client has: the clock is read in the statement that returns the row, after the row was found.
LOOK = """select o.position, o.timer_id::text, extract(epoch from o.fire_at)::float8,
                 extract(epoch from clock_timestamp())::float8 from """
TAKE = LOOK + f"timers.take_events(1000, '{LANE}') o"
READ = LOOK + "timers.outbox o where o.position > %s order by o.position"

P50_TARGET = 3
P99_TARGET = 10


def wait_until(moment):
    time.sleep(max(0.0, moment - time.time()))


def schedule(database, begin, count, rate, pipe):
    """Schedules `count` timers, each due at a random instant of its own slot of 1/rate seconds."""
    connection = server.connect(database, "bench lag: application")
    server.run(connection, f"""
        prepare schedule as select timers.schedule(gen_random_uuid(), '{LANE}', $1, to_timestamp($2), '{{"n": 1}}')""")
    for slot in range(count):
        due = begin + LEAD + (slot + random.random()) / rate
        wait_until(due - LEAD)
        server.run(connection, "execute schedule (%s, %s)", (f"session-{slot}", due))
    pipe.send(count)


def commit(database, begin, count, rate, pipe):
    """Commits `count` transactions that insert one row each, and reports what each took, in ms."""
    connection = server.connect(database, "bench lag: commits")
    server.run(connection, "prepare put as insert into bare_commit (n) values ($1)")
    took = []
    for slot in range(count):
        wait_until(begin + LEAD + (slot + random.random()) / rate)
        start = time.perf_counter()
        server.run(connection, "execute put (%s)", (slot,))
        took.append((time.perf_counter() - start) * 1000)
    pipe.send(took)


def consume(database, begin, count, waiting, pipe):
    """Sees `count` events, and reports how long after its fire_at each was seen, in ms, and was told of, if it was."""
    connection = server.connect(database, "bench lag: consumer")
    see = {"listen": see_when_told, "poll": see_by_polling}[waiting]
    seen, told = see(connection, count, begin + PATIENCE)
    pipe.send((list(seen.values()), told))


def see_when_told(connection, count, deadline):
    server.run(connection, f"listen {CHANNEL}")
    seen, told = {}, []
    while len(seen) < count and time.time() < deadline:
        if select.select([connection], [], [], 1.0)[0]:
            connection.poll()
        # One that rings while events are taken asks for another look.
        while connection.notifies:
            rung = time.time()
            connection.notifies.clear()
            told += [(rung - fire_at) * 1000 for _, fire_at in add_events(connection, seen, TAKE, None)]
    return seen, told


def see_by_polling(connection, count, deadline):
    seen = {}
    # One session writes the outbox, so positions become visible in their order.
    last = 0
    while len(seen) < count and time.time() < deadline:
        last = max([last, *(position for position, _ in add_events(connection, seen, READ, (last,)))])
        time.sleep(POLL)
    return seen, []


def add_events(connection, seen, query, arguments):
    """Adds the lags of the events that the query returns, and returns their positions and due times."""
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        found = cursor.fetchall()
    for _, timer_id, fire_at, now in found:
        if timer_id in seen:
            raise AssertionError(f"two events of timer {timer_id}")
        seen[timer_id] = (now - fire_at) * 1000
    return [(position, fire_at) for position, _, fire_at, _ in found]


def phase(database, waiting, count, rate):
    """One phase: the trickle, its consumer, and the commits beside them."""
    begin = time.time() + 1.0
    tasks = {"schedule": (schedule, rate), "commit": (commit, rate), "consume": (consume, waiting)}
    context = multiprocessing.get_context("spawn")
    running = {}
    for name, (body, argument) in tasks.items():
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=body, args=(database, begin, count, argument, theirs), daemon=True)
        process.start()
        theirs.close()
        running[name] = (process, ours)
    try:
        limit = LEAD + count / rate + 2 * PATIENCE
        results = {}
        for name, (process, ours) in running.items():
            if not ours.poll(limit):
                raise TimeoutError(f"{name} did not end")
            results[name] = ours.recv()
            process.join()
    finally:
        for process, _ in running.values():
            process.kill()
    seen, told = results["consume"]
    if len(seen) != count:
        raise AssertionError(f"{count} timers were scheduled, {len(seen)} events seen")
    return {"seen": seen, "told": told, "commits": results["commit"]}


def show(waiting, phases):
    def line(name, values):
        spread = report.spread(values)
        return [name, str(spread["n"])] + [f"{spread[key]:.2f}" for key in ("p50", "p99", "max")]

    def joined(kind):
        return [figure for one in phases for figure in one[kind]]

    names = {"told": "lag of the doorbell", "seen": "lag", "commits": "commit"}
    lines = [line(f"round {number}: {name}", one[kind])
             for number, one in enumerate(phases, 1) for kind, name in names.items() if one[kind]]
    lines += [line(f"all: {name}", joined(kind)) for kind, name in names.items() if joined(kind)]
    report.table(f"consumer: {waiting}", ["ms", "n", "p50", "p99", "max"], lines)
    lag, bare = report.spread(joined("seen")), report.spread(joined("commits"))
    return {
        "lag_ms": lag, "commit_ms": bare, "rounds": phases,
        "p50": report.verdict("lag p50 / commit p50", lag["p50"] / bare["p50"], P50_TARGET, at_most=True),
        "p99": report.verdict("lag p99 / commit p50", lag["p99"] / bare["p50"], P99_TARGET, at_most=True),
        "p99_by_p99": report.figure("lag p99 / commit p99", lag["p99"] / bare["p99"]),
    }


def main():
    parser = command_line.parser("lag", __doc__.splitlines()[0])
    parser.add_argument("--seconds", type=command_line.positive, default=30,
                        help="of the trickle for each way of consuming, over all rounds (default: 30)")
    parser.add_argument("--rate", type=command_line.positive, default=20, help="timers a second (default: 20)")
    wanted = command_line.parse(parser)
    count = max(1, wanted.seconds * wanted.rate // wanted.rounds)

    phases = {"listen": [], "poll": []}
    with server.fresh_database("lag") as connection:
        server.run(connection, "create table bare_commit (n integer)")
        server.run(connection, "select timers.configure(%s, channel => %s)", (LANE, CHANNEL))
        for number in range(wanted.rounds):
            for waiting, done in phases.items():
                print(f"{count} timers, consumer: {waiting}, round {number + 1}", flush=True)
                done.append(phase("lag", waiting, count, wanted.rate))
                # The polling consumer leaves what it read.
                server.run(connection, "truncate timers.outbox")
        results = {waiting: show(waiting, done) for waiting, done in phases.items()}
        report.keep("lag", wanted, connection, {"consumers": results})


if __name__ == "__main__":
    main()
