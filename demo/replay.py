#!/usr/bin/env python3
"""Replays part of activity.csv against the server that PGHOST and PGDATABASE name, in accelerated time.

One connection plays the application: every turn of a session pushes the session's one idle timer later. Another is a
consumer: it sleeps until the doorbell rings, takes what the outbox holds, and prints each firing with its lag. The exit
code is 0 only if every session's timer fired exactly once, with the payload of the last turn that was accepted.
"""

import argparse
import collections
import csv
import datetime
import json
import math
import select
import sys
import threading
import time

import psycopg2

PROCESS_MANAGER = "idle-flush"
CHANNEL = "idle_flush"
NAMESPACE = "0b5c1c5e-5a0c-4d53-9a5c-6f1a6d1f2a10"  # of this demo's timer ids
GRACE = 10.0  # seconds that the last firings may take beyond the quiet period

Turn = collections.namedtuple("Turn", "session at number")
Firing = collections.namedtuple("Firing", "session turn fire_at fired_at arrived event_id")


def read_turns(path, start, days):
    """The turns of whole sessions that began within `days` from `start`, each with its number in its session."""
    end = start + datetime.timedelta(days=days)
    numbers = collections.Counter()
    turns = []
    with open(path, newline="", encoding="ascii") as file:
        for row in csv.DictReader(file):
            at = datetime.datetime.strptime(row["at"], "%Y-%m-%dT%H:%M:%SZ")
            if start <= at < end:
                numbers[row["session"]] += 1
                turns.append(Turn(row["session"], at, numbers[row["session"]]))
    return turns


class Consumer(threading.Thread):
    """Takes events when the doorbell rings, as a service would; there is no other look at the outbox."""

    def __init__(self):
        super().__init__(daemon=True)
        self.firings = []
        self.error = None
        self.stopping = threading.Event()
        self.connection = psycopg2.connect("application_name=consumer")
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.cursor.execute(f"listen {CHANNEL}")

    def run(self):
        try:
            while not self.stopping.is_set():
                # The time-out is for `stopping` alone.
                if select.select([self.connection], [], [], 0.2)[0]:
                    self.connection.poll()
                # A ring that came in while events were being taken asks for another look.
                while self.connection.notifies:
                    self.connection.notifies.clear()
                    self.take()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def take(self):
        self.cursor.execute(
            """select correlation_id, payload, extract(epoch from fire_at)::float8,
                      extract(epoch from fired_at)::float8, event_id
               from timers.take_events(1000, %s)""",
            (PROCESS_MANAGER,),
        )
        arrived = time.time()
        for session, payload, fire_at, fired_at, event_id in self.cursor.fetchall():
            firing = Firing(session, payload["turn"], fire_at, fired_at, arrived, event_id)
            self.firings.append(firing)
            lag = (arrived - fire_at) * 1000
            print(f"{payload['at']}   {session}   {payload['turn']:5d}   {clock(fire_at)}   {lag:8.2f}", flush=True)


def clock(epoch):
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%H:%M:%S.%f")[:-3]


def replay(turns, log_per_second, quiet, consumer):
    """Plays the turns at their scaled moments. Returns how often each outcome came, and each session's last turn."""
    connection = psycopg2.connect("application_name=application")
    connection.autocommit = True
    cursor = connection.cursor()
    outcomes = collections.Counter()
    accepted = {}
    begin = time.monotonic()
    for turn in turns:
        moment = begin + (turn.at - turns[0].at).total_seconds() / log_per_second
        if consumer.stopping.wait(max(0.0, moment - time.monotonic())) or consumer.error:
            break
        payload = {"kind": "idle", "turn": turn.number, "at": turn.at.strftime("%Y-%m-%d %H:%M")}
        cursor.execute(
            "select timers.schedule_in(timers.timer_id(%s, %s), %s, %s, %s, %s)",
            (NAMESPACE, f"{PROCESS_MANAGER}:{turn.session}", PROCESS_MANAGER, turn.session, quiet, json.dumps(payload)),
        )
        outcome = cursor.fetchone()[0]
        outcomes[outcome] += 1
        if outcome in ("inserted", "rearmed"):
            accepted[turn.session] = turn.number
    return outcomes, accepted, connection


def await_firings(consumer, expected, seconds):
    deadline = time.monotonic() + seconds
    while len(consumer.firings) < expected and not consumer.error and time.monotonic() < deadline:
        consumer.join(0.01)


def problems(turns, outcomes, accepted, firings, connection):
    """What went otherwise than it must, as sentences."""
    found = []
    sessions = {turn.session for turn in turns}
    if sum(outcomes.values()) != len(turns):
        found.append(f"{sum(outcomes.values())} of {len(turns)} turns were replayed.")
    if set(outcomes) - {"inserted", "rearmed", "too_late"}:
        found.append(f"Unexpected outcomes: {dict(outcomes)}.")
    if outcomes["inserted"] != len(sessions):
        found.append(f"{outcomes['inserted']} timers were inserted for {len(sessions)} sessions.")
    fired = collections.Counter(firing.session for firing in firings)
    missing = [session for session in accepted if session not in fired]
    if missing:
        found.append(f"{len(missing)} timers did not fire: {', '.join(missing[:5])} ...")
    if max(fired.values(), default=0) > 1 or len({firing.event_id for firing in firings}) != len(firings):
        found.append("A timer fired more than once.")
    if any(firing.turn != accepted.get(firing.session) for firing in firings):
        found.append("A timer fired with the payload of another turn than the last one accepted.")
    if any(firing.fired_at < firing.fire_at for firing in firings):
        found.append("A timer fired early.")
    cursor = connection.cursor()
    cursor.execute("select status::text, count(*) from timers.timer group by status")
    states = dict(cursor.fetchall())
    if states != {"fired": len(sessions)}:
        found.append(f"The timers' states are {states}.")
    return found


def quantile(values, q):
    """The smallest value that at least the share `q` of the values does not exceed."""
    return sorted(values)[math.ceil(q * len(values)) - 1]


def lag_line(label, values):
    return (
        f"{label}   p50 {quantile(values, 0.5) * 1000:7.2f} ms   p99 {quantile(values, 0.99) * 1000:7.2f} ms"
        f"   max {max(values) * 1000:7.2f} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="activity.csv")
    parser.add_argument("--from", dest="start", type=datetime.datetime.fromisoformat, default="2021-08-01")
    parser.add_argument("--days", type=float, default=60, help="of log to replay")
    parser.add_argument("--seconds", type=float, default=25, help="that the replay takes")
    parser.add_argument("--quiet-hours", type=float, default=6, help="of log without a turn until a timer fires")
    options = parser.parse_args()

    turns = read_turns(options.log, options.start, options.days)
    if not turns:
        sys.exit("replay.py: the log has no turns there")
    sessions = len({turn.session for turn in turns})
    log_per_second = options.days * 86400 / options.seconds
    quiet = options.quiet_hours * 3600 / log_per_second
    print(
        f"{len(turns)} turns of {sessions} sessions, {options.days:g} days of log in {options.seconds:g} s: "
        f"{options.quiet_hours:g} quiet hours are {quiet * 1000:.0f} ms"
    )
    print("last turn (log)    session        turns   fire_at        lag (ms)")

    consumer = Consumer()
    consumer.start()
    outcomes, accepted, connection = replay(turns, log_per_second, datetime.timedelta(seconds=quiet), consumer)
    await_firings(consumer, len(accepted), quiet + GRACE)
    consumer.stopping.set()
    consumer.join()

    firings = consumer.firings
    print(f"\nturns replayed  {sum(outcomes.values()):5d}")
    print(f"  scheduled     {outcomes['inserted']:5d}   one timer a session")
    print(f"  re-armed      {outcomes['rearmed']:5d}   the timer was pushed later")
    print(f"  too late      {outcomes['too_late']:5d}   the timer had fired already")
    print(f"fired           {len(firings):5d}")
    if firings:
        print(lag_line("lag until the consumer had it", [firing.arrived - firing.fire_at for firing in firings]))
        print(lag_line("lag until the server fired it", [firing.fired_at - firing.fire_at for firing in firings]))

    found = problems(turns, outcomes, accepted, firings, connection)
    if consumer.error:
        found.append(f"The consumer failed: {consumer.error}")
    for problem in found:
        print(f"FAILED: {problem}", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
