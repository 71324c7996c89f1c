"""`hprofiler cleanup`: whatever hprofiler left on hosts, and nothing of anybody else's."""

from __future__ import annotations

import argparse
import json
import sys

from hprofiler.cli import options as chosen
from hprofiler.cli.exits import Exit
from hprofiler.model import Status


def command(options: argparse.Namespace) -> int:
    from hprofiler.collect import clean

    target, hosts = chosen.target(options)
    cleaned = clean(hosts, chosen.reach(options, target))
    failed = [outcome for host in cleaned for outcome in host.outcomes if outcome.status is Status.FAILED]
    if options.json:
        record = [
            {"host": h.host.name, "removed": list(h.removed), "stopped": list(h.stopped)} for h in cleaned
        ]
        print(json.dumps(record, indent=2))
    else:
        for host in cleaned:
            for path in host.removed:
                print(f"{host.host.name}: removed {path}")
            for pid in host.stopped:
                print(f"{host.host.name}: stopped the profiler in pid {pid}")
    for outcome in failed:
        print(f"{outcome.host}: {outcome.reason}", file=sys.stderr)
        if outcome.remedy:
            print(f"  {outcome.remedy}", file=sys.stderr)
    if not failed:
        return Exit.OK
    return Exit.NOTHING if len(failed) >= len(cleaned) else Exit.PARTIAL
