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

# What the core says, and what can be done.
REMEDIES = {
    "unlike values do not add up": "convert files of one kind at a time, or choose a --value",
    "the formats that can be read": "say which it is with --from",
    "does not fit in 64 bits": "the mean may: --mean",
}
REGEX = (
    "the syntax is that of Rust's regex: no look-around, no back-references; \\ takes a sign's meaning away"
)


def command(options: argparse.Namespace) -> int:
    _check(options)
    picture = convert_svg.keywords(options)
    if options.flamechart:
        return _flame_chart(options, picture)
    merged = _merged(options)
    if merged.malformed_lines:
        _warn(f"{merged.malformed_lines} malformed lines were left out")
    for warning in merged.warnings:
        _warn(warning)
    if not _first_with_samples(merged)[1]:
        raise ProfileError(f"no samples in {', '.join(options.inputs)}: there is nothing to draw")
    if options.diff:
        _write(partial(_difference(options, merged).write, **picture), options)
    else:
        shaped = _shaped(merged, options)
        value, total = _first_with_samples(shaped)
        if (options.total or total) < total:
            _warn(f"--total {options.total} is less than there is ({total}): ignored")
        both = [name for name, _ in shaped.values] == ["before", "after"]
        _write(partial(shaped.write, value=None if both else value, **picture), options)
    return Exit.OK


def _warn(text: str) -> None:
    # Where stderr is closed, print would take stdout, which may be the profile's.
    if sys.stderr:
        print(f"hprofiler: {text}", file=sys.stderr)


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
        raise UsageError(f"no format is known for {options.output}", remedy)
    if options.diff and options.prune:
        raise UsageError("--prune does not go with --diff: what vanished would be hidden")
    if options.absolute and not options.diff:
        raise UsageError("--absolute needs --diff BEFORE")
    names = [*options.inputs, *([options.diff] if options.diff else [])]
    if names.count("-") > 1:
        raise UsageError("- is named twice, and stdin can be read once", "give one of the profiles as a file")
    if options.output == "-" and not sys.stdout:
        raise UsageError("cannot write to stdout: it is closed", "name a file with -o")
    _check_patterns(options)
    convert_svg.check(convert_svg.keywords(options))
    for name in names:
        if name == "-":
            _check_stdin()
        else:
            _check_readable(Path(name))


def _check_patterns(options: argparse.Namespace) -> None:
    from hprofiler._flamegraph import OptionError, Profile

    nothing = Profile.from_bytes(b"", "folded")
    given = {name: getattr(options, name) or [] for name in ("include", "exclude", "focus")}
    given["trim"] = [options.trim] if options.trim else []
    for option, patterns in given.items():
        for pattern in patterns:
            try:
                nothing.trim(pattern)
            except OptionError as error:
                raise UsageError(f"--{option} {pattern}: {error}", REGEX) from error


def _check_stdin() -> None:
    try:
        os.fstat(0)
    except OSError as error:
        raise UsageError("cannot read stdin: it is closed", "name a file") from error


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
            _warn(f"{malformed} malformed lines were left out")

    _write(write, options)
    return Exit.OK


def _merged(options: argparse.Namespace) -> Profile:
    """All inputs as one profile.

    Each is read, reduced to what is asked for, and added before the next. Where there is nothing to reduce,
    the core does it alone, with all processors.
    """
    from hprofiler._flamegraph import MeanMerger, Profile

    if "-" not in options.inputs and not _reduces(options):
        with _about("cannot read"):
            return Profile.open(options.inputs, mean=options.mean, **_asked(options))
    if options.mean:
        merger = MeanMerger()
        for name in options.inputs:
            with _about(f"cannot merge {name}"):
                merger.add(_read(name, options))
        return merger.finish()
    merged = _read(options.inputs[0], options)
    for name in options.inputs[1:]:
        with _about(f"cannot merge {name}"):
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
        "time": options.time,
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
    name = "to stdout" if options.output == "-" else options.output
    try:
        with _about(f"cannot write {name}"):
            if options.output != "-":
                write(Path(options.output), options.to, title=title)
            elif options.to == "html":
                _page_to_stdout(write, title)
            else:
                write(sys.stdout.buffer, options.to, title=title)
            if options.output == "-":
                sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if options.output == "-":
            # What is still in the buffer would fail once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = f"cannot write {name}: {error.strerror or error}"
        raise UsageError(reason, "choose another file with -o") from error


def _page_to_stdout(write: Callable[..., None], title: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        write(page, title=title)
        with page.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


@contextlib.contextmanager
def _about(what: str) -> Iterator[None]:
    """Says of the core's errors what was being done; those of what was asked for are the user's."""
    from hprofiler._flamegraph import OptionError

    try:
        yield
    except OptionError as error:
        raise UsageError(f"{what}: {error}") from error
    except ValueError as error:
        remedies = (remedy for words, remedy in REMEDIES.items() if words in str(error))
        raise ProfileError(f"{what}: {error}", next(remedies, "")) from error
