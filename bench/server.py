"""The server under measurement, which PGHOST and PGPORT name: sessions, databases, and what a process has used."""

import contextlib
import os
import time

import psycopg2

DEADLINE = 60.0  # seconds that anything the server does by itself may take

# A table of the timers' columns, indexes and fillfactor that the extension knows nothing of.
PLAIN_TIMER = """
create schema plain;
create table plain.timer (like timers.timer including all);
do $$ begin
    execute format('alter table plain.timer set (%s)', (
        select array_to_string(reloptions, ', ') from pg_class where oid = 'timers.timer'::regclass));
end $$;
"""


def connect(database, name="bench"):
    """A session in autocommit mode."""
    connection = psycopg2.connect(dbname=database, application_name=name)
    connection.autocommit = True
    return connection


def value(connection, query, arguments=None):
    """The one value that a query returns."""
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        return cursor.fetchone()[0]


def row(connection, query, arguments=None):
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        return cursor.fetchone()


def run(connection, query, arguments=None):
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)


def await_true(what, condition, interval=0.02, seconds=DEADLINE):
    """Polls until `condition()` is true, and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(interval)


@contextlib.contextmanager
def fresh_database(name):
    """A database with the extension, whose dispatcher has started; dropped afterwards."""
    admin = connect("postgres", "bench admin")
    try:
        run(admin, f"create database {name}")
        connection = connect(name)
        try:
            run(connection, "create extension durable_timers")
            await_true("the dispatcher starts", lambda: dispatcher(connection))
            yield connection
        finally:
            connection.close()
            run(admin, f"drop database {name} with (force)")
    finally:
        admin.close()


def dispatcher(connection):
    """The dispatcher's process id, once it serves this database."""
    found = row(connection, "select pid from timers.workers where state = 'running' and worker = 'dispatcher'")
    return found and found[0]


def fired(connection):
    """How many timers the dispatcher has fired: read from shared memory, so that asking costs it next to nothing."""
    return value(connection, "select sum(fired)::bigint from timers.workers")


def cpu_seconds(pid):
    """Processor time that a server process has used, user and system."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wal_position(connection):
    """Bytes of WAL ever written."""
    return int(value(connection, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))
