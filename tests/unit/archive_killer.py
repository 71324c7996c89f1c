"""Does a verb of the archive on copies of one, each time killed (SIGKILL) before another change of a file.

    python -m tests.unit.archive_killer ARCHIVE COPIES add|compact|prune [RUN…]

Makes COPIES/0, COPIES/1 …, in which that many changes were made; the last is of a verb that ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

from hprofiler.archive.add import add
from hprofiler.archive.compact import compact
from hprofiler.archive.prune import prune

CHANGES = ("os.rename", "os.remove")


def do(place: Path, verb: str, runs: list[Path], most: int) -> None:
    left = most

    def die_before_a_change(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in CHANGES and str(arguments[0]).startswith(str(place)):
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(die_before_a_change)
    if verb == "prune":
        prune(str(place), timedelta(days=int(os.environ["DAYS"])))
    else:
        list(add(runs, str(place)) if verb == "add" else compact(str(place)))


def main() -> None:
    archive, copies, verb, *runs = sys.argv[1:]
    for changes in count():
        place = Path(copies, str(changes))
        shutil.copytree(archive, place)
        child = os.fork()  # no thread was started yet
        if not child:
            do(place, verb, list(map(Path, runs)), changes)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
