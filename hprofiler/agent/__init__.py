"""The coordinator's side of agents/PROTOCOL.md: start an agent, talk to it, believe nothing unchecked."""

from hprofiler.agent.bootstrap import AgentBinaries, Blob
from hprofiler.agent.checks import Action, Checked, CheckedProcess, Finding
from hprofiler.agent.events import (
    MAX_RECORDED,
    Done,
    Ended,
    Found,
    Ignored,
    Interrupted,
    Listed,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    Recording,
    Started,
)
from hprofiler.agent.leftovers import Leftover, Leftovers
from hprofiler.agent.session import CANARY_SECONDS, AgentSession
from hprofiler.agent.talk import Witness

__all__ = [
    "CANARY_SECONDS",
    "MAX_RECORDED",
    "Action",
    "AgentBinaries",
    "AgentSession",
    "Blob",
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
    "ProcessOutcome",
    "ProfileHeader",
    "RawHeader",
    "Recording",
    "Started",
    "Witness",
]
