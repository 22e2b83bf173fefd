"""A trickle of timers, due at random instants, and what a client sees of it: parts of benchmarks of the lag.

Each part is a process with a session of its own; run_all() runs several at a time.
"""

import multiprocessing
import random
import select
import time

import server

LEAD = 1.0  # seconds from scheduling to fire_at
POLL = 0.0003  # seconds between two looks of the polling consumer: its own pause is not to be what is measured
PATIENCE = 30.0  # seconds that the last event may take

# Seen is what the client has: the clock is read in the statement that returns the row, after the row was found.
LOOK = """select o.position, o.timer_id::text, extract(epoch from o.fire_at)::float8,
                 extract(epoch from clock_timestamp())::float8 from """
TAKE = LOOK + "timers.take_events(1000, %s) o"
READ = LOOK + "timers.outbox o where o.position > %s order by o.position"


def wait_until(moment):
    time.sleep(max(0.0, moment - time.time()))


def schedule(database, begin, count, rate, lane, pipe):
    """Schedules `count` timers of the lane, each due at a random instant of its own slot of 1/rate seconds."""
    connection = server.connect(database, "bench: application")
    server.run(connection, """
        prepare schedule as select timers.schedule(gen_random_uuid(), $1, $2, to_timestamp($3), '{"n": 1}')""")
    for slot in range(count):
        due = begin + LEAD + (slot + random.random()) / rate
        wait_until(due - LEAD)
        server.run(connection, "execute schedule (%s, %s, %s)", (lane, f"session-{slot}", due))
    pipe.send(count)


def commit(database, begin, count, rate, pipe):
    """Commits `count` transactions that insert one row each, and reports what each took, in ms."""
    connection = server.connect(database, "bench: commits")
    server.run(connection, "prepare put as insert into bare_commit (n) values ($1)")
    took = []
    for slot in range(count):
        wait_until(begin + LEAD + (slot + random.random()) / rate)
        start = time.perf_counter()
        server.run(connection, "execute put (%s)", (slot,))
        took.append((time.perf_counter() - start) * 1000)
    pipe.send(took)


def consume(database, deadline, count, waiting, lane, channel, pipe):
    """Sees `count` events, and reports when each was due and how long after that, in ms, it was seen and, where that is
    waited for, told of."""
    connection = server.connect(database, "bench: consumer")
    if waiting == "listen":
        seen, told = see_when_told(connection, count, deadline, lane, channel)
    else:
        seen, told = see_by_polling(connection, count, deadline)
    pipe.send((list(seen.values()), told))


def see_when_told(connection, count, deadline, lane, channel):
    server.run(connection, f"listen {channel}")
    seen, told = {}, []
    while len(seen) < count and time.time() < deadline:
        if select.select([connection], [], [], 1.0)[0]:
            connection.poll()
        # One that rings while events are taken asks for another look.
        while connection.notifies:
            rung = time.time()
            connection.notifies.clear()
            told += [(rung - fire_at) * 1000 for _, fire_at in add_events(connection, seen, TAKE, (lane,))]
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
    """Adds the events that the query returns with their lags, and returns their positions and due times."""
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        found = cursor.fetchall()
    for _, timer_id, fire_at, now in found:
        if timer_id in seen:
            raise AssertionError(f"two events of timer {timer_id}")
        seen[timer_id] = (fire_at, (now - fire_at) * 1000)
    return [(position, fire_at) for position, _, fire_at, _ in found]


def run_all(tasks, limit):
    """Runs tasks (name: (body, arguments)) side by side, and returns what each reports within `limit` seconds."""
    context = multiprocessing.get_context("spawn")
    running = {}
    for name, (body, arguments) in tasks.items():
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=body, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        running[name] = (process, ours)
    try:
        results = {}
        for name, (process, ours) in running.items():
            if not ours.poll(limit):
                raise TimeoutError(f"{name} did not end")
            results[name] = ours.recv()
            process.join()
    finally:
        for process, _ in running.values():
            process.kill()
    return results
