"""What threads do that wait: codes, kinds and words, from `doing` of `flamegraph/rules/frames.yaml`."""

from __future__ import annotations

import re
from typing import NamedTuple

from hprofiler._flamegraph import DOING, DOING_KINDS
from hprofiler.analysis.words import short_name, shown_name

LOCKS = ("lock", "delay", "contentions")
"""Events, and values of files, that count waits for locks. Their stacks end in the lock's class."""
KINDS = dict(DOING_KINDS)
"""What kinds of waiting are called, by code. The first is that of threads that run."""
SLEEP = "sleep"
"""The code of a wait."""
IDLE = "idle"
"""The code of threads that wait for work."""
RUNNING, OTHER_WAITS = "running", "other"
"""Threads without a wait that is known run, but for those that are recorded only while they wait."""


class Doing(NamedTuple):
    """The kind of a wait, and two ways to say it: "sleeps in", "sleeping in"."""

    kind: str
    says: str
    spent: str


_DOING = {code: Doing(*words) for code, *words in DOING}

WAITING = [rf"^{re.escape(one.says)} " for one in _DOING.values()]
"""Patterns of the names of waits in stacks."""
_WAIT = re.compile("|".join(f"(?:{one})" for one in WAITING))


def shown_row(name: str, short: bool = False) -> str:
    """What tables call a method, or a wait in it, as people write it; `short` without the package."""
    wait = _WAIT.match(name)
    says = wait[0] if wait else ""
    return says + (short_name if short else shown_name)(name[len(says) :])


class Wait(NamedTuple):
    """A wait: the code of what the thread does, and the whole name of the method that does it."""

    code: str
    method: str

    @property
    def doing(self) -> Doing:
        return _DOING[self.code]

    @property
    def shown(self) -> str:
        """ "sleeps in com.acme.Job.run"."""
        return f"{self.doing.says} {shown_name(self.method)}"

    @property
    def short(self) -> str:
        """ "sleeps in Job.run"."""
        return f"{self.doing.says} {short_name(self.method)}"
