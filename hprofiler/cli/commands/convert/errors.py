"""Errors and warnings of `hprofiler convert` that come from the core."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence

from hprofiler._flamegraph import OptionError
from hprofiler.base.errors import ProfileError, UsageError

# Code of the core's error (flamegraph/src/profile/error.rs) -> remedy.
REMEDIES = {
    "unlike-values": "convert files of one kind at a time, or choose a --value",
    "unknown-format": "name it with --from",
    "negative": "give both profiles: `hprofiler convert AFTER --diff BEFORE`",
    "merge-overflow": "use --mean",
}

_OF_MERGING = ("unlike-values", "merge-overflow")


@contextlib.contextmanager
def about(what: str | Callable[[], str], merging: str | None = None) -> Iterator[None]:
    """Adds to the core's errors what was being done; an OptionError is a UsageError.

    `merging`: what was being done if inputs that were read do not fit each other.
    """
    try:
        yield
    except ValueError as error:
        code = getattr(error, "code", "")
        if merging is not None and code in _OF_MERGING:
            what = merging
        reason = f"{what if isinstance(what, str) else what()}: {error}"
        if isinstance(error, OptionError):
            raise UsageError(reason) from error
        raise ProfileError(reason, REMEDIES.get(code, "")) from error


def warn(text: str) -> None:
    print(f"hprofiler: {text}", file=sys.stderr)


def warn_of(malformed_lines: int, warnings: Sequence[str] = ()) -> None:
    """Warns about parts of the input that were left out."""
    if malformed_lines:
        one = malformed_lines == 1
        records = "malformed line or record was" if one else "malformed lines or records were"
        warn(f"{malformed_lines} {records} left out")
    for warning in warnings:
        warn(warning)
