"""Exit codes; README's section EXIT STATUS says the same."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0  # everything that matched was recorded
    WORSE = 1  # `diff --fail-over`: a method grew by more than that
    USAGE = 2  # the command line, or a file it names, makes no sense
    PARTIAL = 3  # something was recorded, and something was not
    NOTHING = 4  # nothing was recorded
    DEFECT = 70  # an error of hprofiler's own, with a traceback
    INTERRUPTED = 130  # Ctrl-C; what had been recorded by then is in the run folder
