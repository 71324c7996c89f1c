"""`hprofiler convert IN… -o OUT`: read, merge, reshape and write profiles, one input in memory at a time."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import stat
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Tuple

from hprofiler.cli import convert_svg
from hprofiler.cli.exits import Exit
from hprofiler.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from hprofiler._flamegraph import Diff, Profile


def command(options: argparse.Namespace) -> int:
    _check(options)
    picture = convert_svg.keywords(options)
    if options.flamechart:
        return _flame_chart(options, picture)
    merged = _merged(options)
    if merged.malformed_lines:
        print(f"hprofiler: {merged.malformed_lines} malformed lines were left out", file=sys.stderr)
    for warning in merged.warnings:
        print(f"hprofiler: {warning}", file=sys.stderr)
    if not _first_with_samples(merged)[1]:
        raise ProfileError(f"no samples in {', '.join(options.inputs)}: there is nothing to draw")
    if options.diff:
        _write(partial(_difference(options, merged).write, **picture), options)
    else:
        shaped = _shaped(merged, options)
        value, total = _first_with_samples(shaped)
        if (options.total or total) < total:
            print(
                f"hprofiler: --total {options.total} is less than there is ({total}): ignored",
                file=sys.stderr,
            )
        _write(partial(shaped.write, value=value, **picture), options)
    return Exit.OK


def _check(options: argparse.Namespace) -> None:
    """What cannot work is said before anything is read."""
    from hprofiler._flamegraph import READ_FORMATS, WRITE_FORMATS

    if options.from_format not in (None, *READ_FORMATS):
        known = f"known are {' '.join(READ_FORMATS)}"
        raise UsageError(f"unknown format {options.from_format!r} to read", known)
    if options.to not in (None, *WRITE_FORMATS):
        raise UsageError(f"unknown format {options.to!r} to write", f"known are {' '.join(WRITE_FORMATS)}")
    endings = tuple(WRITE_FORMATS.values())
    if options.output == "-" and not options.to:
        raise UsageError("-o - needs a format", "say which with --to, e.g. --to folded")
    if not options.to and not options.output.endswith(endings):
        remedy = f"end the name with one of {' '.join(endings)}, or say which with --to"
        raise UsageError(f"no format is known for {Path(options.output).name}", remedy)
    if options.diff and options.prune:
        raise UsageError("--prune does not go with --diff: what vanished would be hidden")
    if options.absolute and not options.diff:
        raise UsageError("--absolute needs --diff BEFORE")
    for name in [*options.inputs, *([options.diff] if options.diff else [])]:
        if name != "-":
            _check_readable(Path(name))


def _check_readable(path: Path) -> None:
    try:
        path.open("rb").close() if path.is_file() else path.stat()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _flame_chart(options: argparse.Namespace, picture: Dict[str, Any]) -> int:
    """Draws the lines of one folded file in their order."""
    from hprofiler._flamegraph import flame_chart

    convert_svg.check_chart(options)
    name = options.inputs[0]

    def write(target: Any, format: object, title: str) -> None:
        malformed = flame_chart("/dev/stdin" if name == "-" else name, target, title=title, **picture)
        if malformed:
            print(f"hprofiler: {malformed} malformed lines were left out", file=sys.stderr)

    _write(write, options)
    return Exit.OK


def _merged(options: argparse.Namespace) -> Profile:
    """All inputs as one profile.

    Each is read, reduced to what is asked for, and added before the next. Where there is nothing to reduce,
    the core does it alone, with all processors.
    """
    from hprofiler._flamegraph import MeanMerger, Profile

    if "-" not in options.inputs and not _reduces(options):
        remedy = "convert files of one kind at a time, or choose a --value" if options.inputs[1:] else ""
        with _about("cannot read", remedy):
            return Profile.open(options.inputs, mean=options.mean, **_asked(options))
    if options.mean:
        merger = MeanMerger()
        for name in options.inputs:
            with _about(f"cannot merge {name}", "convert files of one kind at a time, or choose a --value"):
                merger.add(_read(name, options))
        return merger.finish()
    merged = _read(options.inputs[0], options)
    for name in options.inputs[1:]:
        with _about(f"cannot merge {name}", "convert files of one kind at a time, or choose a --value"):
            merged.merge(_read(name, options))
    return merged


def _read(name: str, options: argparse.Namespace) -> Profile:
    with _about("cannot read"):
        profile = _open(name, options)
    with _about(f"cannot convert {name}"):
        return _reduced(profile, options)


def _open(name: str, options: argparse.Namespace) -> Profile:
    from hprofiler._flamegraph import Profile

    asked = _asked(options)
    if name != "-":
        return Profile.open(name, **asked)
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        return Profile.from_bytes(sys.stdin.buffer.read(), **asked)
    return Profile.open("/dev/stdin", **asked)


def _asked(options: argparse.Namespace) -> Dict[str, Any]:
    """What the readers are asked for, as their keywords."""
    return {
        "format": options.from_format,
        "threads": options.threads,
        "pid": options.pid,
        "tid": options.tid,
        "kernel": options.kernel or options.all,
        "jit": options.jit or options.all,
        "addrs": options.addrs,
        "event_filter": options.event_filter,
    }


def _reduces(options: argparse.Namespace) -> bool:
    """Whether `_reduced` would change anything."""
    asked = (options.value, options.threads, options.canonical, options.include, options.exclude)
    return any((*asked, options.focus, options.trim))


def _reduced(profile: Profile, options: argparse.Namespace) -> Profile:
    """What is done to every input before it is merged: the less of it is kept, the less memory it takes."""
    if options.value:
        profile = profile.select(options.value)
    if options.threads:
        profile = profile.threads()
    if options.canonical:
        profile = profile.canonical()
    if options.include or options.exclude:
        profile = profile.filter(options.include, options.exclude)
    for pattern in options.focus or ():
        profile = profile.focus(pattern)
    return profile.trim(options.trim) if options.trim else profile


def _shaped(profile: Profile, options: argparse.Namespace) -> Profile:
    with _about("cannot convert"):
        if options.merge_tiers:
            profile = profile.merged_tiers(_first_with_samples(profile)[0])
        if options.invert:
            profile = profile.invert()
        return profile.pruned(**options.prune) if options.prune else profile


def _difference(options: argparse.Namespace, after: Profile) -> Diff:
    before = _read(options.diff, options)
    with _about(f"cannot compare with {options.diff}"):
        if options.invert:
            before, after = before.invert(), after.invert()
        return before.diff(after, _first_with_samples(after)[0], normalize=not options.absolute)


def _first_with_samples(profile: Profile) -> Tuple[int, int]:
    """Index and total of the value to draw where there is room for one."""
    totals = [profile.total(index) for index in range(len(profile.values))]
    return next(((index, total) for index, total in enumerate(totals) if total), (0, 0))


def _write(write: Callable[..., None], options: argparse.Namespace) -> None:
    title = options.title or Path(options.inputs[0]).name
    if options.output == "-" and options.to == "html":
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            write(page, title=title)
            with page.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        return
    try:
        with _about(f"cannot write {options.output}"):
            target = sys.stdout.buffer if options.output == "-" else Path(options.output)
            write(target, options.to, title=title)
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"cannot write {options.output}: {error.strerror or error}", "choose another file with -o"
        ) from error


@contextlib.contextmanager
def _about(what: str, remedy: str = "") -> Iterator[None]:
    """Says of the core's errors what was being done."""
    try:
        yield
    except ValueError as error:
        raise ProfileError(f"{what}: {error}", remedy) from error
