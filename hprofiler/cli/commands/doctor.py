"""`hprofiler doctor`: checks whether a run with the same options would succeed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hprofiler.agent.messages import CheckedProcess, Finding
from hprofiler.base.bounded_json import members
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.findings_table import print_canaries, print_findings
from hprofiler.cli.terminal.ledger import outcome_record
from hprofiler.cli.terminal.lines import print_json
from hprofiler.collect.checking import HostChecked, check_only, kinds
from hprofiler.collect.stop import Stop
from hprofiler.model import Host, HostFacts, Process, Status


def command(options: argparse.Namespace) -> int:
    selector, sampling = chosen.selector(options), chosen.sampling(options)
    located = chosen.target(options)
    reach, care = chosen.reach(options, located), chosen.care(options)
    stop = Stop()
    checked = check_only(located.hosts, selector, sampling, reach, stop=stop, care=care)
    checked = [*checked, *(HostChecked(Host(line.host, ""), outcomes=(line,)) for line in located.absent)]
    if options.json:
        print_json(_record(checked, care.canary))
    else:
        print_findings(checked, sys.stdout)
        print_canaries(checked, care.canary, sys.stdout)
    return Exit.after(stop.signal) if stop.level else verdict(checked)


def verdict(checked: Sequence[HostChecked]) -> Exit:
    """OK if everything would be recorded, PARTIAL if not everything, NOTHING if nothing."""
    verdicts = [one.status for host in checked for one in host.verdicts]
    if all(status is Status.FAILED for status in verdicts):
        return Exit.NOTHING
    of_hosts = [line.status for host in checked if not host.needless for line in host.outcomes]
    good = all(status is Status.OK for status in verdicts) and not {Status.FAILED, Status.DEGRADED} & {
        *of_hosts
    }
    return Exit.OK if good else Exit.PARTIAL


def _record(checked: Sequence[HostChecked], canary: bool) -> object:
    """As described in docs/doctor.md."""
    statuses = [one.status for host in checked for one in host.verdicts]
    return {
        "processes": {
            "found": len(statuses),
            **{one.value: statuses.count(one) for one in (Status.OK, Status.DEGRADED, Status.FAILED)},
        },
        "canary": {
            "asked": canary,
            "kinds": [
                {"arch": arch, "jvm_version": version, "engine": engine, "processes": processes}
                for (arch, version, engine), processes in kinds(checked).items()
            ],
        },
        "hosts": [_host(host) for host in checked],
    }


def _host(host: HostChecked) -> object:
    facts = host.facts or HostFacts("", "", "", 0, 0, "")
    return {
        "host": host.host.name,
        "address": host.host.address,
        **members(facts, "kernel", "arch", "cpus", "memory_bytes", "user"),
        "clock_ahead": round(host.clock, 3),
        "findings": _findings(host.findings),
        "processes": [_process(*pair) for pair in zip(host.processes, host.verdicts, strict=False)],
        "ignored": [members(one, "pid", "reason") for one in host.ignored],
        "outcomes": [outcome_record(line) for line in host.outcomes],
    }


def _process(process: Process, verdict: CheckedProcess) -> object:
    return {
        **members(process, "pid", "user", "label", "labels", "jvm_version"),
        "verdict": verdict.status.value,
        **members(verdict, "engine", "sources", "stage", "code", "parameters", "reason", "remedy"),
        "findings": _findings(verdict.findings),
    }


def _findings(findings: Sequence[Finding]) -> list[object]:
    return [members(one, "severity", "about", "text", "remedy") for one in findings]
