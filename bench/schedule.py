#!/usr/bin/env python3
"""Measures timers.schedule() under pgbench with prepared statements, beside the same upsert written by hand.

The hand-written one works on a table of the same columns, indexes and fillfactor, without triggers. Two cases: new ids,
and ids that are scheduled already and are pushed later. All timers are far in the future: nothing fires.
"""

import contextlib
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

import arguments as command_line
import report
import server

TARGET = 0.8
DATABASE = "schedule"
KNOWN_IDS = 100_000

# The ids come from a number, so that the same statement schedules new ones and known ones.
OURS = """select timers.schedule(md5(:id::text)::uuid, 'bench-schedule', 'session-' || :id,
    now() + interval '1 day' + :later * interval '1 millisecond', '{"kind": "idle", "turn": 7}');"""

# Replaces what is scheduled and says what it did. wake_at is what the trigger of the extension would make it.
BY_HAND = """insert into plain.timer as t (timer_id, process_manager, correlation_id, fire_at, wake_at, payload)
values (md5(:id::text)::uuid, 'bench-schedule', 'session-' || :id,
    now() + interval '1 day' + :later * interval '1 millisecond',
    now() + interval '1 day' + :later * interval '1 millisecond', '{"kind": "idle", "turn": 7}')
on conflict (timer_id) do update
set process_manager = excluded.process_manager, correlation_id = excluded.correlation_id, fire_at = excluded.fire_at,
    wake_at = least(t.wake_at, excluded.wake_at), payload = excluded.payload, updated_at = clock_timestamp()
where t.status = 'scheduled'
returning case when t.xmax = 0 then 'inserted' else 'rearmed' end;"""

SIDES = {"schedule()": OURS, "by hand": BY_HAND}

# Known ids are pushed later by up to ten minutes, as a debounce does.
CASES = {
    "new ids": "\\set id random(1000000000, 4000000000000000000)\n\\set later random(1, 600000)\n",
    "known ids": f"\\set id random(1, {KNOWN_IDS})\n\\set later random(86400000, 87000000)\n",
}

PREPARE = server.PLAIN_TIMER + f"""
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload)
select md5(n::text)::uuid, 'bench-schedule', 'session-' || n, now() + interval '1 day',
       '{{"kind": "idle", "turn": 7}}'
from generate_series(1, {KNOWN_IDS}) n;
insert into plain.timer select * from timers.timer"""


def pgbench(connection, script, clients, seconds, synchronous):
    """Transactions a second, and the processor time of the sessions per transaction, in microseconds."""
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, os.cpu_count() or 1)),
               "-T", str(seconds), "--random-seed", str(random.getrandbits(31)), "-f", script, DATABASE]
    # The sessions of the run before may not be gone yet, hence the name.
    name = f"pgbench {random.getrandbits(31)}"
    environment = {**os.environ, "PGAPPNAME": name, "PGOPTIONS": f"-c synchronous_commit={synchronous}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          env=environment) as process:
        cpu = watch_sessions(connection, process, name)
        output = process.stdout.read()
    rate = re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE)
    count = re.search(r"^number of transactions actually processed: ([0-9]+)", output, re.MULTILINE)
    if process.returncode != 0 or not (rate and count) or "number of failed transactions: 0 " not in output:
        raise RuntimeError(f"pgbench failed ({process.returncode}):\n{output}")
    return {"tps": float(rate.group(1)), "cpu_us": cpu * 1e6 / int(count.group(1))}


def watch_sessions(connection, process, name):
    """Processor time of the sessions of that name, as last seen before they ended."""
    used = {}
    while process.poll() is None:
        with connection.cursor() as cursor:
            cursor.execute("select pid from pg_stat_activity where application_name = %s", (name,))
            for pid, in cursor.fetchall():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    used[pid] = server.cpu_seconds(pid)
        time.sleep(0.05)
    return sum(used.values())


def write_scripts(folder):
    paths = {}
    for number, (case, variables) in enumerate(CASES.items()):
        for side, statement in SIDES.items():
            path = pathlib.Path(folder, f"{number}-{len(paths)}.sql")
            path.write_text(f"{variables}{statement}\n", encoding="utf-8")
            paths[case, side] = str(path)
    return paths


def measure(connection, paths, case, clients, synchronous, wanted):
    """What both sides reached, a pair per round; who begins changes from round to round."""
    rounds = []
    for number in range(wanted.rounds):
        server.run(connection, "checkpoint")
        rounds.append({side: pgbench(connection, paths[case, side], clients, wanted.seconds, synchronous)
                       for side in sorted(SIDES, reverse=number % 2 == 1)})
    ratios = {key: report.median_ratio([(one["schedule()"][key], one["by hand"][key]) for one in rounds])
              for key in ("tps", "cpu_us")}
    return {"case": case, "synchronous_commit": synchronous, "clients": clients, "rounds": rounds, "ratios": ratios}


def line(result):
    def medians(key, form):
        return [form.format(report.percentile([one[side][key] for one in result["rounds"]], 50)) for side in SIDES]

    return [result["case"], result["synchronous_commit"], str(result["clients"]),
            *medians("tps", "{:,.0f}"), f"{result['ratios']['tps']:.2f}",
            *medians("cpu_us", "{:.0f}"), f"{result['ratios']['cpu_us']:.2f}"]


def check(connection):
    """Both sides did what they were measured for."""
    for schema in ("timers", "plain"):
        pushed, added = server.row(connection, f"""
            select count(*) filter (where wake_at < fire_at), count(*) filter (where wake_at = fire_at)
            from {schema}.timer""")
        if not (0 < pushed <= KNOWN_IDS < added + pushed):
            raise AssertionError(f"{schema}.timer: {pushed} pushed later, {added} not")


def main():
    parser = command_line.parser("schedule", __doc__.splitlines()[0], rounds=5)
    parser.add_argument("--seconds", type=command_line.positive, default=3, help="of each pgbench run (default: 3)")
    parser.add_argument("--clients", default=[1, 2, 8], help="comma-separated (default: 1,2,8)",
                        type=lambda text: [command_line.positive(part) for part in text.split(",")])
    wanted = command_line.parse(parser)

    results = []
    with server.fresh_database(DATABASE) as connection, tempfile.TemporaryDirectory() as folder:
        server.run(connection, PREPARE)
        for name in ("timers.timer", "plain.timer"):
            server.run(connection, f"vacuum (analyze) {name}")
        paths = write_scripts(folder)
        for case in CASES:
            for synchronous in ("on", "off"):
                for clients in wanted.clients:
                    print(f"{case}, synchronous_commit {synchronous}, {clients} clients", flush=True)
                    results.append(measure(connection, paths, case, clients, synchronous, wanted))
        check(connection)
        report.table("left: transactions a second; right: CPU of the sessions per transaction in us; medians",
                     ["case", "synchronous_commit", "clients", *SIDES, "ratio", *SIDES, "ratio"],
                     [line(result) for result in results])
        verdicts = {}
        for case in CASES:
            ratios = [result["ratios"]["tps"] for result in results
                      if result["case"] == case and result["synchronous_commit"] == "on"]
            verdicts[case] = report.verdict(f"{case}, synchronous_commit on: tps of schedule() / by hand, median over "
                                            "the client counts", statistics.median(ratios), TARGET, at_most=False)
        report.keep("schedule", wanted, connection, {"runs": results, "verdicts": verdicts})


if __name__ == "__main__":
    main()
