"""Says what the example application flushes for an activity log on standard input that is moved ahead by so many years,
a multiple of 400: a flush a line, with timer id, event id, session, kind, turn count and moment. Goes through the log
turn by turn and knows neither SQL nor timers."""

import collections
import csv
import datetime
import sys
import uuid

IDLE = datetime.timedelta(minutes=30)
DAY = datetime.timedelta(days=1)
AHEAD = datetime.timedelta(days=146097) * (int(sys.argv[1]) // 400)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
NAMESPACE = uuid.UUID("6b696f6b-752d-7131-8000-6c3174696d72")


def flushes(turns):
    """The name, kind, turn count and moment of each flush of a session."""
    idle = None
    for number, at in enumerate(turns, 1):
        if idle is None or at <= idle[1]:
            idle = (number, at + IDLE)
        if number in (1, 2, 4, 8, 16) or number % 16 == 0:
            yield f"ramp:{number}", "ramp", number, at
    yield "idle", "idle", *idle
    midnight = turns[0].replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    yield "final", "final", "", midnight


def main():
    sessions = collections.defaultdict(list)
    for row in csv.DictReader(open(sys.stdin.fileno(), newline="", encoding="utf-8")):
        at = datetime.datetime.fromisoformat(row["at"].replace("Z", "+00:00"))
        sessions[row["session"]].append(at.astimezone(datetime.timezone.utc) + AHEAD)
    with open(sys.stdout.fileno(), "w", encoding="utf-8") as output:
        for session, turns in sessions.items():
            for name, kind, number, at in flushes(sorted(turns)):
                timer_id = uuid.uuid5(NAMESPACE, f"kioku-l1-extract:{session}:{name}")
                microseconds = (at - EPOCH) // datetime.timedelta(microseconds=1)
                event_id = uuid.uuid5(timer_id, str(microseconds))
                moment = f"{at:%Y-%m-%d %H:%M:%S.%f}"
                print(timer_id, event_id, session, kind, number, moment, sep="|", file=output)


main()
