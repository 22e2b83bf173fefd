#!/usr/bin/env python3
"""Runs overdue timers through a trivial handler: handler workers, and a plain PL/pgSQL loop that commits as often.

The loop writes an attempt down and commits, then calls the function, writes the timer off and commits. It takes no claim,
changes no role, sets no time limit, catches no error, and nobody may run beside it.
"""

import time

import arguments as command_line
import report
import server

LANE = "bench-handlers"

SETUP = server.PLAIN_TIMER + f"""
create table handled (timer_id uuid not null, at timestamptz not null default pg_catalog.clock_timestamp());
create function handle(t timers.timer) returns uuid language plpgsql as $$ begin
    insert into public.handled (timer_id) values (t.timer_id);
    return t.timer_id;
end $$;

create procedure plain.handle_all() language plpgsql as $$
declare
    due timers.timer;
    event uuid;
begin
    for due in select * from plain.timer where status = 'scheduled' order by wake_at loop
        update plain.timer set status = 'firing', attempts = attempts + 1, updated_at = clock_timestamp()
        where timer_id = due.timer_id;
        commit;
        event := public.handle(due);
        update plain.timer set status = 'fired', fired_event_id = event, updated_at = clock_timestamp()
        where timer_id = due.timer_id;
        commit;
    end loop;
end $$;

select timers.configure('{LANE}', delivery => 'handler', handler => 'public.handle', run_as => current_user::regrole)
"""


def load(connection, timers):
    server.run(connection, "truncate timers.timer, plain.timer, handled")
    server.run(connection, "select timers.pause(%s)", (LANE,))
    server.run(connection, """
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select gen_random_uuid(), %s, 'order-' || n, clock_timestamp() - interval '1 minute'
        from generate_series(1, %s) n""", (LANE, timers))
    server.run(connection, "insert into plain.timer select * from timers.timer")
    for name in ("timers.timer", "plain.timer"):
        server.run(connection, f"vacuum (analyze) {name}")


def seconds_of(connection, timers, handle):
    server.run(connection, "truncate handled")
    server.run(connection, "checkpoint")
    begin = time.perf_counter()
    handle()
    seconds = time.perf_counter() - begin
    found = server.row(connection, "select count(*), count(distinct timer_id) from handled")
    if found != (timers, timers):
        raise AssertionError(f"{found} of {timers} handled, distinct")
    return seconds


def by_workers(connection, timers):
    def handle():
        server.run(connection, "select timers.unpause(%s)", (LANE,))
        server.await_true("all timers are handled", lambda: server.value(
            connection, "select count(*) from handled") >= timers, 0.02, 3600)

    return seconds_of(connection, timers, handle)


def by_loop(connection, timers):
    return seconds_of(connection, timers, lambda: server.run(connection, "call plain.handle_all()"))


def set_workers(connection, count):
    server.run(connection, f"alter system set durable_timers.handler_workers = {count}")
    server.run(connection, "select pg_reload_conf()")
    server.await_true("the setting is read", lambda: server.value(
        connection, "select current_setting('durable_timers.handler_workers')") == str(count))
    server.await_true("idle workers leave", lambda: server.value(connection, """
        select count(*) from pg_stat_activity where backend_type = 'durable_timers handler'""") <= count)


def main():
    parser = command_line.parser("handlers", __doc__.splitlines()[0])
    parser.add_argument("--timers", type=command_line.positive, default=10_000, help="default: 10000")
    wanted = command_line.parse(parser)

    sides = {"loop": (None, by_loop), "1 worker": (1, by_workers), "4 workers": (4, by_workers)}
    rounds = []
    with server.fresh_database("handlers") as connection:
        server.run(connection, SETUP)
        for number in range(wanted.rounds):
            print(f"handling {wanted.timers} timers, round {number + 1}", flush=True)
            load(connection, wanted.timers)
            took = {}
            for name in sorted(sides, reverse=number % 2 == 1):
                workers, handle = sides[name]
                if workers is not None:
                    set_workers(connection, workers)
                    load(connection, wanted.timers)
                took[name] = handle(connection, wanted.timers)
            rounds.append(took)
        server.run(connection, "alter system reset durable_timers.handler_workers")
        lines = [[f"round {i}: {name}", f"{seconds:.2f}", f"{wanted.timers / seconds:,.0f}"]
                 for i, took in enumerate(rounds, 1) for name, seconds in took.items()]
        report.table("trivial handlers", ["", "seconds", "timers/s"], lines)
        ratios = {name: report.figure(f"speed of {name} / speed of the loop, median over the rounds",
                                      report.median_ratio([(took["loop"], took[name]) for took in rounds]))
                  for name in sides if name != "loop"}
        report.keep("handlers", wanted, connection, {"rounds": rounds, "ratios": ratios})


if __name__ == "__main__":
    main()
