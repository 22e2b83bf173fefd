#!/usr/bin/env python3
"""Plays part of a log live through Kioku, on the server that PGHOST and PGDATABASE name, in accelerated time.

One connection is the application: it records the turns of sessions and completes the sessions. Another is the consumer:
it sleeps until the doorbell rings, flushes what has fired, and prints each flush of a quiet session with its lag. The
exit code is 0 only if every timer fired exactly once, at its time.
"""

import argparse
import collections
import csv
import datetime
import math
import select
import sys
import threading
import time

import psycopg2

CHANNEL = "kioku_l1_extract"
GRACE = 10.0  # seconds that the last flushes may take beyond the idle time

Event = collections.namedtuple("Event", "at session turn")  # turn: its number, or None for the session's completion
Flush = collections.namedtuple("Flush", "session kind turn due_at fired_at arrived")


def read_events(path, start, days):
    """The turns of whole sessions that began within `days` from `start`, each numbered, and the sessions' midnights."""
    end = start + datetime.timedelta(days=days)
    numbers = collections.Counter()
    events = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            at = datetime.datetime.strptime(row["at"], "%Y-%m-%dT%H:%M:%SZ")
            if start <= at < end:
                if row["session"] not in numbers:
                    midnight = datetime.datetime.combine(at.date(), datetime.time()) + datetime.timedelta(days=1)
                    events.append(Event(midnight, row["session"], None))
                numbers[row["session"]] += 1
                events.append(Event(at, row["session"], numbers[row["session"]]))
    return sorted(events, key=lambda event: event.at)


class Consumer(threading.Thread):
    """Flushes when the doorbell rings, as a service would; there is no other look at the outbox."""

    def __init__(self, moments):
        super().__init__(daemon=True)
        self.moments = moments
        self.flushes = []
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
                # A ring that came in while flushes were being done asks for another look.
                while self.connection.notifies:
                    self.connection.notifies.clear()
                    self.flush()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def flush(self):
        self.cursor.execute(
            """select session_id, kind, turn_count, extract(epoch from due_at)::float8,
                      extract(epoch from fired_at)::float8
               from kioku.flush_due(1000)"""
        )
        arrived = time.time()
        for row in self.cursor.fetchall():
            flush = Flush(*row, arrived)
            self.flushes.append(flush)
            if flush.kind == "idle":
                at = self.moments[flush.session, flush.turn]
                lag = (arrived - flush.due_at) * 1000
                line = f"{at:%Y-%m-%d %H:%M}   {flush.session}   {flush.turn:5d}   {clock(flush.due_at)}   {lag:8.2f}"
                print(line, flush=True)


def clock(epoch):
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%H:%M:%S.%f")[:-3]


def play(events, log_per_second, idle_time, consumer):
    """Plays the events at their scaled moments. Returns how often each outcome came, and the connection."""
    connection = psycopg2.connect("application_name=application")
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("select set_config('kioku.idle_time', %s, false)", (f"{idle_time} s",))
    outcomes = collections.Counter()
    begin = time.monotonic()
    for event in events:
        moment = begin + (event.at - events[0].at).total_seconds() / log_per_second
        if consumer.stopping.wait(max(0.0, moment - time.monotonic())) or consumer.error:
            break
        if event.turn is None:
            cursor.execute("select kioku.complete_session(%s, clock_timestamp())", (event.session,))
        else:
            cursor.execute("select kioku.record_turn(%s, %s, clock_timestamp())", (event.session, event.turn))
            outcomes[cursor.fetchone()[0]] += 1
    return outcomes, connection


def await_flushes(consumer, connection, seconds):
    cursor = connection.cursor()
    cursor.execute("select count(*) from timers.timer")
    expected = cursor.fetchone()[0]
    deadline = time.monotonic() + seconds
    while len(consumer.flushes) < expected and not consumer.error and time.monotonic() < deadline:
        consumer.join(0.01)


# Whatever these find went otherwise than it must.
CHECKS = {
    "a session is without its flush": """
        select session_id from kioku.session
        except select session_id from kioku.flush where kind = 'idle'""",
    "a ramp turn is without its flush": """
        select session_id, turn_index from kioku.turn where kioku.is_ramp_turn(turn_index)
        except select session_id, turn_count from kioku.flush where kind = 'ramp'""",
    "a completed session is without its last flush": """
        select session_id from kioku.session where completed_at is not null
        except select session_id from kioku.flush where kind = 'final'""",
    "a timer has fired twice": "select timer_id from kioku.flush group by timer_id having count(*) > 1",
    "a timer has fired early": "select timer_id from kioku.flush where fired_at < due_at",
    "a timer was due at another time than its event says": """
        select f.timer_id
        from kioku.flush f join kioku.session s using (session_id)
        left join kioku.turn t on t.session_id = f.session_id and t.turn_index = f.turn_count
        where f.due_at is distinct from case f.kind when 'idle' then t.recorded_at + %(idle_time)s * interval '1 s'
                                                    when 'ramp' then t.recorded_at else s.completed_at end""",
    "a timer has not fired": "select timer_id from timers.timer where status <> 'fired'",
}


def problems(events, outcomes, idle_time, connection):
    """What went otherwise than it must, as sentences."""
    found = []
    turns = [event for event in events if event.turn is not None]
    if sum(outcomes.values()) != len(turns):
        found.append(f"{sum(outcomes.values())} of {len(turns)} turns were played")
    if outcomes["inserted"] != len({turn.session for turn in turns}):
        found.append(f"{outcomes['inserted']} idle timers were inserted")
    cursor = connection.cursor()
    for problem, query in CHECKS.items():
        cursor.execute(query, {"idle_time": idle_time})
        if cursor.rowcount > 0:
            found.append(f"{problem}: {cursor.fetchone()} and {cursor.rowcount - 1} more")
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
    parser.add_argument("--days", type=float, default=60, help="of log to play")
    parser.add_argument("--seconds", type=float, default=25, help="that this takes")
    parser.add_argument("--idle-hours", type=float, default=6, help="of log without a turn until a session is flushed")
    options = parser.parse_args()

    events = read_events(options.log, options.start, options.days)
    if not events:
        sys.exit("live.py: the log has no turns there")
    moments = {(event.session, event.turn): event.at for event in events}
    sessions = len({event.session for event in events})
    log_per_second = options.days * 86400 / options.seconds
    idle_time = round(options.idle_hours * 3600 / log_per_second, 3)
    print(
        f"{len(events) - sessions} turns of {sessions} sessions, {options.days:g} days of log in {options.seconds:g} s:"
        f" {options.idle_hours:g} idle hours are {idle_time * 1000:.0f} ms"
    )
    print("last turn (log)    session        turns   due_at         lag (ms)")

    consumer = Consumer(moments)
    consumer.start()
    outcomes, connection = play(events, log_per_second, idle_time, consumer)
    await_flushes(consumer, connection, idle_time + GRACE)
    consumer.stopping.set()
    consumer.join()

    kinds = collections.Counter(flush.kind for flush in consumer.flushes)
    print(f"\nturns played    {sum(outcomes.values()):5d}")
    print(f"  scheduled     {outcomes['inserted']:5d}   one idle timer a session")
    print(f"  re-armed      {outcomes['rearmed']:5d}   the idle timer was pushed later")
    print(f"  too late      {outcomes['too_late'] + outcomes['kept']:5d}   the session had been idle already")
    print(f"flushed         {len(consumer.flushes):5d}")
    for kind in sorted(kinds):
        print(f"  {kind:13} {kinds[kind]:5d}")
    for kind in sorted(kinds):
        lags = [flush.arrived - flush.due_at for flush in consumer.flushes if flush.kind == kind]
        print(lag_line(f"lag until the consumer had it, {kind:5}", lags))
    lags = [flush.fired_at - flush.due_at for flush in consumer.flushes if flush.kind == "idle"]
    if lags:
        print(lag_line("lag until the server fired it, idle ", lags))

    found = problems(events, outcomes, idle_time, connection)
    if consumer.error:
        found.append(f"the consumer failed: {consumer.error}")
    for problem in found:
        print(f"FAILED: {problem}.", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
