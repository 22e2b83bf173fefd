#!/usr/bin/env python3
"""Measures the lag of a quiet process manager: alone, beside a million overdue timers of another, and beside handlers
that hang.

The quiet one has a timer now and then, delivered into the outbox to a client that sleeps until the doorbell rings, or to
a handler that writes down when it began.
"""

import time

import arguments as command_line
import report
import server
import trickle

QUIET = "bench-quiet"
CHANNEL = "bench_quiet"
FLOOD = "bench-flood"
HANGING = "bench-hanging"
TARGET = 2

SETUP = f"""
create table began (timer_id uuid primary key, fire_at timestamptz not null, at timestamptz not null);
create function handle_quietly(t timers.timer) returns uuid language plpgsql as $$ begin
    insert into public.began values (t.timer_id, t.fire_at, pg_catalog.clock_timestamp());
    return t.timer_id;
end $$;
create function hang(t timers.timer) returns uuid language plpgsql as $$ begin
    perform pg_catalog.pg_sleep(3600);
    return t.timer_id;
end $$;
"""

# The quiet one's deliveries, and how it is told to use them.
DELIVERIES = {
    "outbox": f"select timers.configure('{QUIET}', delivery => 'outbox', channel => '{CHANNEL}')",
    "handler": f"select timers.configure('{QUIET}', delivery => 'handler', handler => 'public.handle_quietly', "
               "run_as => current_user::regrole)",
}


class Alone:
    """Nothing else is due."""

    def begin(self, connection):
        pass

    def end(self, connection):
        return None


class Flood:
    """Overdue timers of another process manager, all at once; what is measured after the last of them does not count."""

    def __init__(self, timers):
        self.timers = timers

    def begin(self, connection):
        server.run(connection, "truncate timers.timer, timers.outbox")
        server.run(connection, "select timers.pause(%s)", (FLOOD,))
        server.run(connection, """
            insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
            select gen_random_uuid(), %s, 'order-' || n, clock_timestamp() - interval '1 minute'
            from generate_series(1, %s) n""", (FLOOD, self.timers))
        server.run(connection, "vacuum (analyze) timers.timer")
        server.run(connection, "checkpoint")
        server.run(connection, "select timers.unpause(%s)", (FLOOD,))

    def end(self, connection):
        server.await_true("the flood ends", lambda: server.value(connection, """
            select count(*) from timers.outbox where process_manager = %s""", (FLOOD,)) == self.timers, 0.1, 600)
        over = server.value(connection, """
            select extract(epoch from max(fired_at))::float8 from timers.outbox where process_manager = %s""", (FLOOD,))
        server.run(connection, "truncate timers.timer, timers.outbox")
        return over


class Hanging:
    """More handlers that hang than there are handler workers."""

    def begin(self, connection):
        server.run(connection, """
            select timers.configure(%s, delivery => 'handler', handler => 'public.hang',
                                    run_as => current_user::regrole, handler_timeout => '1 h', lease => '2 h')""",
                   (HANGING,))
        server.run(connection, "select timers.schedule_in(gen_random_uuid(), %s, 'order', '0') from generate_series(1, 20)",
                   (HANGING,))
        server.await_true("handlers hang", lambda: server.value(connection, """
            select count(*) > 2 from pg_stat_activity
            where backend_type = 'durable_timers handler' and wait_event = 'PgSleep'"""))

    def end(self, connection):
        server.run(connection, "select timers.pause(%s)", (HANGING,))
        server.run(connection, """
            select pg_terminate_backend(pid) from pg_stat_activity
            where backend_type = 'durable_timers handler' and wait_event = 'PgSleep'""")
        server.run(connection, "delete from timers.timer where process_manager = %s", (HANGING,))
        server.run(connection, "select timers.unpause(%s)", (HANGING,))


def phase(connection, delivery, disturbance, count, rate):
    """The lags of the quiet timers, in ms, as (fire_at, lag)."""
    server.run(connection, "truncate began")
    server.run(connection, DELIVERIES[delivery])
    disturbance.begin(connection)
    begin = time.time()
    deadline = begin + trickle.LEAD + count / rate + trickle.PATIENCE
    tasks = {"schedule": (trickle.schedule, ("fairness", begin, count, rate, QUIET))}
    if delivery == "outbox":
        tasks["consume"] = (trickle.consume, ("fairness", deadline, count, "listen", QUIET, CHANNEL))
    results = trickle.run_all(tasks, deadline - begin + trickle.PATIENCE)
    if delivery == "outbox":
        seen = results["consume"][0]
    else:
        server.await_true("all are handled", lambda: server.value(connection, "select count(*) from began") >= count)
        with connection.cursor() as cursor:
            cursor.execute("""
                select extract(epoch from fire_at)::float8, extract(epoch from at - fire_at)::float8 * 1000 from began""")
            seen = cursor.fetchall()
    if len(seen) != count:
        raise AssertionError(f"{count} timers were scheduled, {len(seen)} were delivered")
    over = disturbance.end(connection)
    return [lag for fire_at, lag in seen if over is None or fire_at < over]


def show(delivery, lags):
    alone = report.spread(sum(lags["alone"], []))
    lines, results = [], {}
    for name, rounds in lags.items():
        spread = report.spread(sum(rounds, []))
        lines.append([name, str(spread["n"])] + [f"{spread[key]:.2f}" for key in ("p50", "p99", "max")])
        results[name] = {"lag_ms": spread, "rounds": rounds}
    report.table(f"lag of the quiet one, delivery {delivery}", ["ms", "n", "p50", "p99", "max"], lines)
    for name, result in results.items():
        if name == "alone":
            continue
        for key in ("p50", "p99"):
            ratios = [(report.spread(one)[key], report.spread(base)[key]) for one, base in zip(lags[name], lags["alone"])]
            result[key] = report.verdict(f"lag {key}, {name} / alone, median over the rounds",
                                         report.median_ratio(ratios), TARGET, at_most=True)
    return results


def main():
    parser = command_line.parser("fairness", __doc__.splitlines()[0])
    parser.add_argument("--seconds", type=command_line.positive, default=10, help="of a trickle (default: 10)")
    parser.add_argument("--rate", type=command_line.positive, default=20, help="quiet timers a second (default: 20)")
    parser.add_argument("--timers", type=command_line.positive, default=1_000_000,
                        help="overdue timers of another (default: 1000000)")
    wanted = command_line.parse(parser)

    disturbances = {"alone": Alone(), "flood": Flood(wanted.timers), "hanging": Hanging()}
    lags = {delivery: {name: [] for name in disturbances} for delivery in DELIVERIES}
    with server.fresh_database("fairness") as connection:
        server.run(connection, SETUP)
        for number in range(wanted.rounds):
            for delivery in DELIVERIES:
                for name, disturbance in disturbances.items():
                    print(f"delivery {delivery}, {name}, round {number + 1}", flush=True)
                    lags[delivery][name].append(
                        phase(connection, delivery, disturbance, wanted.seconds * wanted.rate, wanted.rate))
        report.keep("fairness", wanted, connection,
                    {"deliveries": {delivery: show(delivery, found) for delivery, found in lags.items()}})


if __name__ == "__main__":
    main()
