"""Numbers, names and output files on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from hprofiler.base.durations import SECOND, nanoseconds
from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_folder
from hprofiler.base.time_range import TimeRange

_OLDEST = 200 * 365 * 86_400 * SECOND
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def whole_number(text: str, least: int, most: int, meaning: str) -> int:
    """`text` as a number from `least` to `most`; argparse reports the error with the option's name."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
    return int(text)


def named(text: str) -> str:
    """A file or folder; an empty name (an unset variable of a script) is an error."""
    if not text:
        raise argparse.ArgumentTypeError("the value is empty")
    return text


def output_path(name: str, docs: str, endings: Sequence[str] = (".html",)) -> Path:
    """A file to write, before anything is read for it. Raises UsageError if it cannot be."""
    path = Path(name)
    if path.suffix not in endings:
        raise UsageError(f"cannot write {path}: the name must end with {' or '.join(endings)}", f"see {docs}")
    if is_folder(path) or not is_folder(path.parent):
        raise UsageError(f"cannot write {path}: no such folder", "create it, or choose another file with -o")
    return path


def cores(text: str) -> float:
    """Number of processors, at least 0.1."""
    found = float(text) if re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,3})?", text) else 0.0
    if not 0.1 <= found <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processors from 0.1 to 1024")
    return found


def size(text: str) -> int:
    """Bytes of "512k", from 4k; k, m and g are powers of 1024."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([a-z]*)", text.strip().lower())
    bytes_ = round(float(found[1]) * _SIZES[found[2]]) if found and found[2] in _SIZES else 0
    if not 4096 <= bytes_ <= 1 << 40:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size such as 4096, 512k, 4m or 1g (from 4k to 1024g)"
        )
    return bytes_


def time(text: str) -> int:
    """Nanoseconds of "10us"."""
    return _length(text, "", 1, 1000 * SECOND, "a time such as 500ns, 10us, 10ms or 1s (up to 1000s)")


def period(text: str) -> int:
    """Nanoseconds of "10ms", at least 1 ms."""
    meaning = "a time such as 1ms, 10ms or 1s (from 1ms to 1000s)"
    return _length(text, "", SECOND // 1000, 1000 * SECOND, meaning)


def seconds(text: str) -> float:
    """Seconds of "10", "10s", "1.5m" or "1h": from 0.1 s to a day."""
    meaning = "a time from 0.1 to 86400 seconds, such as 10, 10s, 1.5m or 1h"
    return _length(text, "s", SECOND // 10, 86_400 * SECOND, meaning) / SECOND


def age(text: str) -> timedelta:
    """How long "90d" is."""
    ns = _length(text, "", 0, _OLDEST, "an age such as 90d, 12w, 48h or 30m")
    return timedelta(microseconds=ns / 1000)


def age_to_remove(text: str) -> timedelta:
    """An age of what is removed, such as "90d". There are no minutes, because "12m" may mean months."""
    if text.strip().lower()[-1:] not in "hdw":
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 90d, 12w or 48h")
    return age(text)


def time_range(text: str) -> TimeRange:
    """The range of "5-12.5", "10-" or "1m-90s"."""
    try:
        return TimeRange.of(text)
    except ValueError:
        reason = f"{text!r} is not FROM-TO in seconds, such as 5-12.5, 10- or 1m-90s"
        raise argparse.ArgumentTypeError(reason) from None


def _length(text: str, usual: str, least: int, most: int, meaning: str) -> int:
    """Nanoseconds of a length of time; a number without a unit is in the `usual` one."""
    try:
        found = nanoseconds(text, usual)
    except ValueError:
        found = -1
    if not least <= found <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
    return found
