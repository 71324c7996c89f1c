"""The client of agents/PROTOCOL.md: starts an agent and talks to it."""

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.agent.messages import (
    MAX_RECORDED,
    Action,
    Checked,
    CheckedProcess,
    Done,
    Ended,
    Finding,
    Ignored,
    Interrupted,
    Leftover,
    Leftovers,
    Listed,
    MetricsMessage,
    PausesMessage,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    Recording,
    Started,
)
from hprofiler.agent.requests import Plan
from hprofiler.agent.session import CANARY_SECONDS, AgentSession, Found, Witness

__all__ = [
    "CANARY_SECONDS",
    "MAX_RECORDED",
    "Action",
    "AgentBinaries",
    "AgentSession",
    "Checked",
    "CheckedProcess",
    "Done",
    "Ended",
    "Finding",
    "Found",
    "Ignored",
    "Interrupted",
    "Leftover",
    "Leftovers",
    "Listed",
    "MetricsMessage",
    "PausesMessage",
    "Plan",
    "ProcessOutcome",
    "ProfileHeader",
    "RawHeader",
    "Recording",
    "Started",
    "Witness",
]
