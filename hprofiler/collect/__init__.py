"""Visits to all hosts at once: record, look, check, watch, clean up. One bad host never loses the others."""

from hprofiler.collect.audit import Audit
from hprofiler.collect.checking import HostChecked, HostFound, check_only, find_only, kinds
from hprofiler.collect.cleaning import HostLeft, sweep
from hprofiler.collect.fetching import ProfileSink
from hprofiler.collect.ledger import with_causes
from hprofiler.collect.limits import AGENT_CPU, USUAL, Care
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop, on_interrupt
from hprofiler.collect.visit_group import HostProgress, Listener, Reach
from hprofiler.collect.watching import HostReading, watch

__all__ = [
    "AGENT_CPU",
    "USUAL",
    "Audit",
    "Care",
    "HostChecked",
    "HostFound",
    "HostLeft",
    "HostProgress",
    "HostReading",
    "Listener",
    "ProfileSink",
    "Reach",
    "Stop",
    "check_only",
    "collect",
    "find_only",
    "kinds",
    "on_interrupt",
    "sweep",
    "watch",
    "with_causes",
]
