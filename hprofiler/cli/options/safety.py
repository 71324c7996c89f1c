"""Options of the safety limits. Imports only argparse."""

from __future__ import annotations

import argparse
from functools import partial

from hprofiler.cli.options import numbers

MOST_HOSTS = 1000
_ALLOWED_HOSTS = 5000  # no resolver names more


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("safety limits")
    group.add_argument(
        "--canary",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="first record one process of each kind of JVM (version, processor, engine) for 2 s, and skip "
        "the kinds that fail (default: no)",
    )
    _add_limits_to(group, "record on")


def add_asking_to(parser: argparse.ArgumentParser) -> None:
    """Options of `dump`, which asks processes and records nothing."""
    _add_limits_to(parser.add_argument_group("safety limits"), "visit")


def _add_limits_to(group: argparse._ActionsContainer, visits: str) -> None:
    group.add_argument(
        "--agent-cpu",
        type=numbers.cores,
        default=1.0,
        metavar="CORES",
        help="CPU cores that the agent may use on each host, on average (default 1)",
    )
    _add_max_hosts_to(group)
    group.add_argument(
        "--force-busy",
        action="store_true",
        help=f"also {visits} hosts with almost no free memory, or a load above 200 per processor (default: "
        "skip them)",
    )
    add_audit_to(group)


def add_looking_to(parser: argparse.ArgumentParser) -> None:
    """Options of commands that visit hosts and touch no process."""
    group = parser.add_argument_group("safety limits")
    _add_max_hosts_to(group)
    add_audit_to(group)


def _add_max_hosts_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--max-hosts",
        type=partial(
            numbers.whole_number, least=1, most=_ALLOWED_HOSTS, meaning=f"a number from 1 to {_ALLOWED_HOSTS}"
        ),
        default=MOST_HOSTS,
        metavar="N",
        help=f"refuse to connect to more than N hosts (default {MOST_HOSTS}, at most {_ALLOWED_HOSTS})",
    )


def add_audit_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--audit",
        type=numbers.named,
        metavar="FILE",
        help="append a JSON line for each command, file and attach on each host (docs/audit.md)",
    )
