"""Exit codes; README's section EXIT STATUS says the same."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    OK = 0  # everything that matched was recorded, for all of the time or until it ended by itself
    WORSE = 1  # `diff --fail-over`: a method grew by more than that
    USAGE = 2  # the command line, or a file it names, makes no sense
    PARTIAL = 3  # something was recorded, and something was not
    NOTHING = 4  # nothing was recorded
    DEFECT = 70  # an error of hprofiler's own, with a traceback
    HUNG_UP = 129  # SIGHUP: the terminal is gone
    INTERRUPTED = 130  # Ctrl-C; what had been recorded by then is in the run folder
    TERMINATED = 143  # SIGTERM: the same

    @classmethod
    def after(cls, number: int) -> Exit:
        """Ended early by this signal."""
        return {1: cls.HUNG_UP, 15: cls.TERMINATED}.get(number, cls.INTERRUPTED)
