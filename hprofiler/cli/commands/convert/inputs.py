"""The inputs of `hprofiler convert`: read and reduced in parallel, merged in order.

Only a few are in memory at a time beside the sum.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hprofiler._flamegraph import Profile
from hprofiler.base.background import in_order, interruptibly
from hprofiler.base.errors import ProfileError, UsageError
from hprofiler.base.paths import is_file, is_folder
from hprofiler.cli.commands.convert.errors import REMEDIES, about
from hprofiler.cli.commands.convert.steps import Findings, Step, is_empty, reduced, steps_of
from hprofiler.cli.terminal import streams
from hprofiler.cli.terminal.lines import warn, warn_of
from hprofiler.runfolder import RUN_FILE
from hprofiler.runfolder.input_checks import where_profiles_are
from hprofiler.runfolder.time_files import open_range

# Profiles read at the same time. One thread merges them and could not keep up with more.
MOST_AT_ONCE = 8
_HEAD = 1 << 16


def check(options: argparse.Namespace) -> None:
    """Refuses unreadable inputs before anything is read."""
    names = [*options.inputs, *([options.diff] if options.diff else [])]
    if names.count("-") > 1:
        raise UsageError(
            "- (stdin) is given twice, but can be read only once", "give one of the profiles as a file"
        )
    for name in names:
        if name != "-":
            _check_readable(Path(name))
        elif 0 in streams.closed:
            raise UsageError("cannot read stdin: it is closed", "name a file")


def _check_readable(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if is_file(path / RUN_FILE):
        raise UsageError(f"cannot read {path}: it is a run folder", where_profiles_are(path))
    if is_folder(path):
        raise UsageError(f"cannot read {path}: it is a folder", "name the files in it")
    if not os.access(path, os.R_OK):
        raise UsageError(f"cannot read {path}: {os.strerror(errno.EACCES)}")


def look_at(names: Sequence[str]) -> None:
    """Raises ProfileError for a file that does not begin as a profile."""
    for path in filter(is_file, map(Path, names)):
        with contextlib.suppress(OSError), path.open("rb") as file:
            head = file.read(_HEAD)
            try:
                Profile.from_bytes(head)
            except ValueError as error:
                code = getattr(error, "code", "")
                if code == "foreign" or (code == "unknown-format" and len(head) < _HEAD):
                    raise ProfileError(f"cannot read: {path}: {error}", REMEDIES.get(code, "")) from error


def source(name: str) -> str | int:
    """The source for the core. stdin is passed as a descriptor, so that its position is kept."""
    return 0 if name == "-" else name


def merged(options: argparse.Namespace) -> Profile:
    """All inputs as one profile with samples. The core reads them alone if nothing is to be reduced."""
    steps = steps_of(options)
    found: list[Findings] = []
    if steps or options.time is not None:
        profile, found = _merged(options, steps)
    else:
        sources = [source(name) for name in options.inputs]
        with about("cannot read", merging="cannot merge"):
            profile = interruptibly(lambda: Profile.open(sources, mean=options.mean, **_asked(options)))
    if is_empty(profile):
        warn_of(profile.malformed_lines, profile.warnings)
        raise _nothing_left(options.inputs, found)
    if options.trim and all(one.untrimmed for one in found):
        warn(f"--trim {options.trim} matches no frame: nothing was trimmed")
    return profile


def before(options: argparse.Namespace) -> Profile:
    """The profile of `--diff`, reduced like the inputs."""
    profile, found = _read(options, steps_of(options), options.diff)
    # An empty profile has no shares; counts can be compared with it.
    if is_empty(profile) and not options.absolute:
        warn_of(profile.malformed_lines, profile.warnings)
        raise _nothing_left([options.diff], [found])
    return profile


def _merged(options: argparse.Namespace, steps: Sequence[Step]) -> tuple[Profile, list[Findings]]:
    found: list[Findings] = []

    def profiles() -> Iterator[Profile]:
        # One more is read ahead, so that no processor waits.
        at_once = 1 + min(os.cpu_count() or 1, MOST_AT_ONCE)
        for profile, findings in in_order(partial(_read, options, steps), options.inputs, at_once):
            found.append(findings)
            yield profile

    with about(lambda: f"cannot merge {options.inputs[len(found) - 1]}"):
        return Profile.merged(profiles(), mean=options.mean), found


def _read(options: argparse.Namespace, steps: Sequence[Step], name: str) -> tuple[Profile, Findings]:
    with about("cannot read"):
        profile = interruptibly(lambda: _opened(options, name))
    with about(f"cannot convert {name}"):
        return reduced(profile, steps, options.trim)


def _opened(options: argparse.Namespace, name: str) -> Profile:
    if name == "-" or options.time is None:
        return Profile.open(source(name), **_asked(options))

    asked = {key: value for key, value in _asked(options).items() if key not in ("time", "threads")}
    return open_range(Path(name), options.time, threads=options.threads or bool(options.by), **asked)


def _nothing_left(names: Sequence[str], found: Sequence[Findings]) -> ProfileError:
    emptied = [(name, one) for name, one in zip(names, found, strict=False) if one.emptied]
    if not emptied:
        return ProfileError(f"no samples in {', '.join(names)}: there is nothing to draw")
    name, first = emptied[0]
    others = f" and {len(emptied) - 1} more" if len(emptied) > 1 else ""
    return ProfileError(f"no samples of {name}{others} are left: {first.emptied}", first.there_was)


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Keywords of the readers."""
    return {
        "format": options.from_format,
        "threads": "groups" if options.threads or options.by else False,
        "time": options.time,
        "pid": options.pid,
        "tid": options.tid,
        "kernel": options.kernel or options.all,
        "jit": options.jit or options.all,
        "addrs": options.addrs,
        "event_filter": options.event_filter,
    }
