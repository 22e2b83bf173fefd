#!/usr/bin/env python3
"""Measures firing lag under a trickle of timers, and the cost of a bare durable commit at the same time.

Three processes, each with a session of its own: one schedules timers a second ahead, one consumes the outbox (woken by
the doorbell in half of the phases, polling in the others), one commits single-row transactions at random instants.
"""

import time

import arguments as command_line
import report
import server
import trickle

LANE = "bench-lag"
CHANNEL = "bench_lag"

P50_TARGET = 3
P99_TARGET = 10


def phase(database, waiting, count, rate):
    """One phase: the trickle, its consumer, and the commits beside them."""
    begin = time.time() + 1.0
    deadline = begin + trickle.LEAD + count / rate + trickle.PATIENCE
    results = trickle.run_all({
        "schedule": (trickle.schedule, (database, begin, count, rate, LANE)),
        "commit": (trickle.commit, (database, begin, count, rate)),
        "consume": (trickle.consume, (database, deadline, count, waiting, LANE, CHANNEL)),
    }, deadline - begin + trickle.PATIENCE)
    seen, told = results["consume"]
    if len(seen) != count:
        raise AssertionError(f"{count} timers were scheduled, {len(seen)} events seen")
    return {"seen": [lag for _, lag in seen], "told": told, "commits": results["commit"]}


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
