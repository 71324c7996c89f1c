"""Exit codes, as in docs/reference/exit-status.md."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    OK = 0  # every match was recorded, for the whole time or until it ended
    WORSE = 1  # `diff --fail-over`, `grew --fail-over`: a method grew by more
    USAGE = 2  # the command line, or a file it names, is wrong
    PARTIAL = 3  # something was not recorded
    NOTHING = 4  # nothing was recorded
    DEFECT = 70  # an error in hprofiler, with a traceback
    HUNG_UP = 129  # SIGHUP
    INTERRUPTED = 130  # Ctrl-C; what was recorded is in the run folder
    TERMINATED = 143  # SIGTERM

    @classmethod
    def after(cls, number: int) -> Exit:
        """The exit code after this signal."""
        return {1: cls.HUNG_UP, 15: cls.TERMINATED}.get(number, cls.INTERRUPTED)
