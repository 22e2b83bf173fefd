"""What the benchmarks print and keep: percentiles, tables, and a JSON file in bench/results."""

import datetime
import json
import os
import pathlib
import platform
import statistics

import server

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
SETTINGS = (
    "server_version", "shared_buffers", "max_wal_size", "checkpoint_timeout", "fsync", "synchronous_commit",
    "full_page_writes", "wal_sync_method", "wal_level", "durable_timers.batch_size",
)


def percentile(values, percent):
    """The smallest value that at least `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def spread(values):
    return {"n": len(values), "p50": percentile(values, 50), "p99": percentile(values, 99), "max": max(values)}


def median_ratio(pairs):
    """The median over rounds of ours / theirs. Only what ran side by side is compared."""
    return statistics.median(ours / theirs for ours, theirs in pairs)


def table(title, head, lines):
    """Prints a table whose first column is text."""
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    print(f"\n{title}")
    for line in [head, *lines]:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("   ".join(cells).rstrip())


def verdict(what, number, bound, at_most):
    """Prints a figure beside its target, and returns both for the result file."""
    met = number <= bound if at_most else number >= bound
    target = f"target {'at most' if at_most else 'at least'} {bound:g}"
    print(f"{what}: {number:.2f} ({target}: {'met' if met else 'MISSED'})")
    return {"figure": round(number, 3), "at_most" if at_most else "at_least": bound, "met": met}


def figure(what, number):
    """Prints a figure that has no target, and returns it for the result file."""
    print(f"{what}: {number:.2f}")
    return round(number, 3)


def machine(connection):
    """Where the figures come from; compare them with nothing measured elsewhere."""
    settings = {name: server.value(connection, "select current_setting(%s, true)", (name,)) for name in SETTINGS}
    version = server.value(
        connection, "select default_version from pg_available_extensions where name = 'durable_timers'")
    return {"extension": version, "cpus": os.cpu_count(), "kernel": platform.release(), "settings": settings}


def keep(name, arguments, connection, results):
    """Writes the result file."""
    now = datetime.datetime.now(datetime.timezone.utc)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    whole = {"benchmark": name, "at": f"{now:%Y-%m-%dT%H:%M:%SZ}", "arguments": vars(arguments),
             "machine": machine(connection), **results}
    path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    print(f"\nkept in bench/results/{path.name}")
