"""Command lines of the benchmarks."""

import argparse
import sys


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parser(name, description, rounds=3):
    made = argparse.ArgumentParser(prog=f"bench/{name}", description=description)
    made.add_argument("--rounds", type=positive, default=rounds,
                      help=f"how often each side runs, in turn (default: {rounds})")
    made.add_argument("--installed", action="store_true", help="measure the extension as installed: do not build it")
    made.add_argument("--check-arguments", action="store_true", help=argparse.SUPPRESS)
    return made


def parse(made):
    """The arguments; ends the process if that is all that was wanted."""
    arguments = made.parse_args()
    if arguments.check_arguments:
        sys.exit(0)
    del arguments.check_arguments
    del arguments.installed
    return arguments
