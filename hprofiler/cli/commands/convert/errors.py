"""Errors of `hprofiler convert` that come from the core."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from hprofiler._flamegraph import OptionError
from hprofiler.base.errors import ProfileError, UsageError

# Code of the core's error (flamegraph/src/profile/error.rs) -> remedy.
REMEDIES = {
    "unlike-values": "convert files of one kind at a time, or choose a --value",
    "unknown-format": "if it is one of these, name it with --from",
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
