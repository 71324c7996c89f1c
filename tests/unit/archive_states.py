"""Does a verb of the archive, and copies it before each change of a file: a kill there would leave the same.

    python -m tests.unit.archive_states ARCHIVE COPIES add|compact|prune [RUN…]

Makes COPIES/0, COPIES/1 …, in which that many changes were made; the last is of a verb that ended.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

from hprofiler.archive.add import add
from hprofiler.archive.compact import compact
from hprofiler.archive.prune import prune

CHANGES = ("os.rename", "os.remove")


def main() -> None:
    archive, copies, verb, *runs = sys.argv[1:]
    numbers = count()

    def copy() -> None:
        shutil.copytree(archive, Path(copies, str(next(numbers))))

    def copy_before_a_change(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHANGES and str(arguments[0]).startswith(archive):
            copy()

    sys.addaudithook(copy_before_a_change)
    if verb == "prune":
        prune(archive, timedelta(days=int(os.environ["DAYS"])))
    else:
        list(add(list(map(Path, runs)), archive) if verb == "add" else compact(archive))
    copy()


if __name__ == "__main__":
    main()
