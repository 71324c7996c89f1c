"""`hprofiler cleanup`: whatever hprofiler left on hosts, and nothing of anybody else's."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, List

from hprofiler.cli import options as chosen
from hprofiler.cli.exits import Exit
from hprofiler.model import Outcome, Status

if TYPE_CHECKING:
    from hprofiler.collect import HostCleaned


def command(options: argparse.Namespace) -> int:
    from hprofiler.collect import clean

    located = chosen.hosts(options)
    cleaned = clean(located.hosts, chosen.reach(options, located))
    failed = [outcome for host in cleaned for outcome in _failed(host)]
    if options.json:
        record = [
            {
                "host": host.host.name,
                "removed": list(host.removed),
                "stopped": list(host.stopped),
                "failed": [{"reason": outcome.reason, "remedy": outcome.remedy} for outcome in _failed(host)],
            }
            for host in cleaned
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
    return Exit.PARTIAL if any(not _failed(host) or host.removed for host in cleaned) else Exit.NOTHING


def _failed(host: HostCleaned) -> List[Outcome]:
    return [outcome for outcome in host.outcomes if outcome.status is Status.FAILED]
