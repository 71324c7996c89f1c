"""Shares, dates and names of methods as people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

from hprofiler.model.measures import counted

SEE_WHAT_IS_THERE = "list the processes there: hprofiler ps -j java, with the same host options"
"""The next step where no process matches."""

_PACKAGE = re.compile(r"(?:[a-z_][\w$]*[./])+(?=[A-Za-z_$][^./]*[./][A-Za-z_$<][^./]*$|[A-Z])")
_SPACE = "\u202f"


def percent(part: float, whole: float) -> str:
    """A share with as many digits as it deserves: "52.3 %", "0.04 %"."""
    share = 100 * part / whole if whole > 0 else 0.0
    if 0 < share < 0.01:
        return f"<0.01{_SPACE}%"
    digits = 0 if share == 0 or share >= 99.95 else 2 if share < 1 else 1
    return f"{share:.{digits}f}{_SPACE}%"


def moment(iso: str, seconds: bool = False) -> str:
    """ "20 Nov 2026, 06:12 UTC", or with seconds; text that is no ISO time stays as it is."""
    form = f"%-d %b %Y, %H:%M{':%S' if seconds else ''}"
    try:
        time = datetime.fromisoformat(iso.replace("Z", "+00:00"))
        if time.tzinfo is not None:
            return f"{time.astimezone(timezone.utc):{form}} UTC"
    except (ValueError, OverflowError):  # there is no year 0 for UTC to be in
        return iso
    return f"{time:{form}}"


def package_length(name: str) -> int:
    """Where the package of a Java name ends: 11 in "org.apache.Foo.bar"; 0 without one."""
    found = _PACKAGE.match(re.split(r"[(<\s]", name, maxsplit=1)[0])
    return found.end() if found else 0


def shown_name(name: str) -> str:
    """The name as people of Java write it, with dots in its package; engines write slashes."""
    cut = package_length(name)
    return name[:cut].replace("/", ".") + name[cut:]


def short_name(name: str) -> str:
    """The name without its package."""
    return name[package_length(name) :]


def and_list(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def plain(share: str) -> str:
    """A share without its narrow space."""
    return share.replace("\u202f", "")


def and_more(left_out: int, what: str = "") -> list[str]:
    """The line below a table that was cut, such as "  … and 3 more stages"; none if nothing was left out."""
    more = counted(left_out, f"more {what}") if what else f"{left_out:,} more"
    return [f"  … and {more}"] if left_out > 0 else []
