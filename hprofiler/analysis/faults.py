"""Bugs met while a report is made: each costs the part in which it is, not the report."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from hprofiler.base.errors import HprofilerError
from hprofiler.model import HERE, Outcome, Status

_log = logging.getLogger(__name__)


class Faults:
    """Outcomes of the parts that failed. Their traces are logged, which prints them on stderr."""

    code = "report-fault"

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """What fails in the block is noted; errors with a message of their own are raised."""
        try:
            yield
        except HprofilerError:
            raise
        except Exception as error:
            _log.exception("%s", part)
            reason = f"{part} is missing: a bug in hprofiler ({type(error).__name__}: {error})"
            remedy = "report it with its trace, which `hprofiler report DIR` prints"
            self.outcomes.append(Outcome(HERE, Status.DEGRADED, "report", reason, remedy, code=self.code))
