"""Our exceptions. A message says what failed, where and why; `remedy` says what to do next.

Foreign exceptions (paramiko, YAML, the operating system) are translated where the library is called. Only
`hprofiler.cli` prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hprofiler.base.text import printable

_LONGEST = 4096
"""Longest text from a host; it goes to the terminal, run.json and the report."""


class HprofilerError(Exception):
    """Anything that ends a command with a message instead of a traceback.

    `code` is one of docs/reference/outcomes.md, `parameters` are its figures.
    """

    code = "failed"
    parameters: Mapping[str, str | int | float] = {}

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class NotYet(HprofilerError):
    """What is asked for is not there now. It may come."""


class NotFired(HprofilerError):
    """The condition that a recording waited for was not true in time; nothing is kept.

    `signal` is what ended the wait, 0 if it was not the user.
    """

    def __init__(self, reason: str, remedy: str = "", signal: int = 0) -> None:
        super().__init__(reason, remedy)
        self.signal = signal


class UsageError(HprofilerError):
    """The command line, or a file it names, is wrong (exit code 2)."""


class SelectorError(UsageError):
    """An unknown selector or an invalid selector file."""


class HostError(HprofilerError):
    """One host failed. It becomes an outcome and never ends a run.

    `stage` is a stage of `model.Outcome`. Reasons may contain text from the host, so control characters are
    replaced and long text is cut here.
    """

    usual_code = ""

    def __init__(
        self,
        stage: str,
        reason: str,
        remedy: str = "",
        code: str = "",
        parameters: Mapping[str, str | int | float] | None = None,
    ) -> None:
        super().__init__(printable(reason[:_LONGEST]), printable(remedy[:_LONGEST]))
        self.stage = stage
        self.code = code or self.usual_code or f"{stage}-failed"
        self.parameters = parameters or {}

    def at(self, stage: str) -> HostError:
        """The same, at another stage."""
        code = "" if self.code == f"{self.stage}-failed" else self.code
        return type(self)(stage, self.reason, self.remedy, code, self.parameters)

    def reworded(self, reason: str, *remedies: str) -> HostError:
        """The same with another reason, and with what to do besides."""
        remedy = "; ".join(filter(None, (self.remedy, *remedies)))
        return type(self)(self.stage, reason, remedy, self.code, self.parameters)


class ConnectionLost(HostError):
    """An established connection was lost."""

    usual_code = "connection-lost"


class TimedOut(HostError):
    """A step took too long. It may still be running on the host."""

    usual_code = "timeout"


class AgentEnded(HostError):
    """The agent ended unexpectedly, for example because it was killed."""

    usual_code = "agent-ended"


class ContainerEnded(HostError):
    """A container that is reached by exec has ended, and the agent with it."""

    usual_code = "container-ended"


class RunFolderError(UsageError):
    """A run folder cannot be written, or is not a run folder."""


class ProfileError(HprofilerError):
    """A profile cannot be read: wrong format, truncated, or beyond a limit."""


class PicturesError(HprofilerError):
    """The recordings are kept, but the report could not be made (exit code 3)."""


class Defect(HprofilerError):
    """A bug in hprofiler, its cause, where something is kept nevertheless (exit code 70)."""


@contextmanager
def writing(path: object, remedy: str = "choose another file with -o") -> Iterator[None]:
    """Makes an error of the operating system a UsageError: it is about a path that the user chose."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}", remedy) from error
