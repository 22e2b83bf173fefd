"""Reads metrics in Prometheus' text format with its own parser, and prints them as JSON: a list of families."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

print(json.dumps([
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [{"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in family.samples],
    }
    for family in text_string_to_metric_families(sys.stdin.buffer.read().decode())
]))
