"""The errors of the house. Each message says what failed, where and why; `remedy` says what to do next.

Foreign exceptions (paramiko, YAML, the operating system) are translated into these once, where the
library is called. Only `hprofiler.cli` prints them.
"""

from __future__ import annotations

from hprofiler.base.text import printable

_LONGEST = 4096
"""Of a host's words, which go to the terminal, to run.json and into the report."""


class HprofilerError(Exception):
    """Anything that ends a command with a message instead of a traceback.

    `code` is one of docs/reference/outcomes.md.
    """

    code = "failed"

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class UsageError(HprofilerError):
    """The command line or a file it names makes no sense (exit code 2)."""


class SelectorError(UsageError):
    """An unknown selector, or a selector file that breaks the rules."""


class HostError(HprofilerError):
    """One host could not do its part; becomes a ledger line, never the end of a run.

    `stage` is one of the stages of `model.Outcome`. Reasons often have words of the host's, or of whoever
    answers in its place: for all of them what a terminal would obey is taken out here, and what is long cut.
    """

    usual_code = ""

    def __init__(self, stage: str, reason: str, remedy: str = "", code: str = "") -> None:
        super().__init__(printable(reason[:_LONGEST]), printable(remedy[:_LONGEST]))
        self.stage = stage
        self.code = code or self.usual_code or f"{stage}-failed"

    def at(self, stage: str) -> HostError:
        """The same, at another stage."""
        return type(self)(stage, self.reason, self.remedy, self.code)


class ConnectionLost(HostError):
    """A connection that had been made is there no more."""

    usual_code = "connection-lost"


class TimedOut(HostError):
    """A step took too long: nobody waits any longer, and what was asked for may go on, or stand still."""

    usual_code = "timeout"


class AgentEnded(HostError):
    """The agent is gone, and not by our word: it was killed, or something it could not help befell it."""

    usual_code = "agent-ended"


class RunFolderError(UsageError):
    """A run folder cannot be written, or is not one."""


class ProfileError(HprofilerError):
    """A profile cannot be read: not the format it claims, truncated, or over a limit."""


class PicturesError(HprofilerError):
    """What was recorded is kept, but its report could not be made (exit code 3)."""
