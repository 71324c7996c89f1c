"""`hprofiler convert IN… -o OUT`: read, merge, reshape and write profiles."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hprofiler._flamegraph import READ_FORMATS, WRITE_FORMATS, Diff, FlameChart, Profile
from hprofiler.base.background import interruptibly
from hprofiler.base.errors import ProfileError, UsageError, writing
from hprofiler.base.paths import is_folder
from hprofiler.base.text import printable
from hprofiler.cli.commands.convert import inputs as convert_inputs
from hprofiler.cli.commands.convert import metrics as convert_metrics
from hprofiler.cli.commands.convert.errors import about
from hprofiler.cli.commands.convert.steps import check_patterns
from hprofiler.cli.options import pictures
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import warn, warn_of, warn_of_stubs, warn_of_throttled
from hprofiler.model.measures import CPU_VALUES, measure_of
from hprofiler.runfolder.input_checks import only_profile_of

# Formats that hold one value.
_OF_ONE_VALUE = ("folded", "svg")
_ENDINGS_OF_ONE = tuple(f".{name}" for name in _OF_ONE_VALUE)


def command(options: argparse.Namespace) -> int:
    if convert_metrics.is_asked(options):
        return convert_metrics.command(options)
    options.inputs = [*map(only_profile_of, options.inputs)]
    options.diff = options.diff and only_profile_of(options.diff)
    _check(options)
    picture = pictures.keywords(options)
    if options.flamechart:
        return _flame_chart(options, picture)
    merged = convert_inputs.merged(options)
    warn_of(merged.malformed_lines, merged.warnings)
    if options.diff:
        before = _before(options)
        _write(partial(_difference(options, before, merged).write, **picture), options)
        return _status(before, merged)
    shaped = _shaped(merged, options)
    value = _first_with_samples(shaped)
    both = [name for name, _ in shaped.values] == ["before", "after"]
    if not both:
        pictures.check_one_sided(options)
        _warn_of_others(options, shaped, value)
    _write(partial(shaped.write, value=None if both else value, **picture), options)
    return _status(merged)


def _status(*profiles: Profile) -> Exit:
    """Whether everything of the inputs was read, and shares can be trusted."""
    for profile in profiles:
        if profile.alloc_share_error and _written(profile) in measure_of("alloc").columns:
            warn_of_throttled(profile.alloc_share_error)
        if _skips_stubs(profile):
            warn_of_stubs()
            return Exit.PARTIAL
    partial = any(profile.malformed_lines or profile.incomplete for profile in profiles)
    return Exit.PARTIAL if partial else Exit.OK


def _warn_of_others(options: argparse.Namespace, profile: Profile, written: int) -> None:
    """Warns which event is written if the output holds only one. Each event has a count and its periods."""
    if options.to not in _OF_ONE_VALUE and (options.to or not options.output.endswith(_ENDINGS_OF_ONE)):
        return
    name = profile.values[written][0]
    others = [
        other
        for index, (other, unit) in enumerate(profile.values)
        if unit == "count" and not f"_{other}".endswith("_period") and other != name and profile.total(index)
    ]
    if others:
        warn(f"of several events {name} is written; choose another with --value: {', '.join(others)}")


def _check(options: argparse.Namespace) -> None:
    """Refuses what cannot work before anything is read. What is wrong with the inputs comes first."""
    if options.from_format not in (None, *READ_FORMATS):
        known = f"known are {' '.join(READ_FORMATS)}"
        raise UsageError(f"unknown format {options.from_format!r} to read", known)
    if options.to not in (None, *WRITE_FORMATS):
        raise UsageError(f"unknown format {options.to!r} to write", f"known are {' '.join(WRITE_FORMATS)}")
    convert_inputs.check(options)
    try:
        _check_output(options)
    except UsageError:
        if options.from_format is None:
            convert_inputs.look_at(options.inputs)
        raise
    if options.diff and options.prune:
        raise UsageError("--prune cannot be combined with --diff: it would hide what vanished")
    if options.absolute and not options.diff:
        raise UsageError("--absolute needs --diff BEFORE")
    check_patterns(options)
    pictures.check(options)


def _check_output(options: argparse.Namespace) -> None:
    endings = tuple(WRITE_FORMATS.values())
    if options.output == "-" and not options.to:
        raise UsageError("-o - needs a format", "name it with --to, such as --to folded")
    if not options.to and not options.output.endswith(endings):
        remedy = f"end the name with one of {' '.join(endings)}, or name the format with --to"
        raise UsageError(f"cannot tell the format of {options.output}", remedy)
    path = Path(options.output)
    if options.output != "-" and is_folder(path):
        raise UsageError(f"cannot write {path}: it is a folder", "name a file with -o")
    if options.output != "-" and not is_folder(path.parent):
        raise UsageError(
            f"cannot write {path}: there is no folder {path.parent}", "create it, or choose another"
        )
    if options.output == "-" and not sys.stdout:
        raise UsageError("cannot write to stdout: it is closed", "name a file with -o")


def _flame_chart(options: argparse.Namespace, picture: dict[str, Any]) -> int:
    """Draws the lines of one folded file in time order."""
    reverse = picture.pop("reverse", False)
    with about("cannot read"):
        source = convert_inputs.source(options.inputs[0])
        chart = interruptibly(lambda: FlameChart.open(source, options.from_format, reverse=reverse))
    warn_of(chart.malformed_lines)
    if not chart.total():
        raise ProfileError(f"no samples in {options.inputs[0]}: there is nothing to draw")

    def write(target: Any, format: object, title: str) -> None:
        chart.write(target, title=title, **picture)

    _write(write, options)
    return Exit.PARTIAL if chart.malformed_lines else Exit.OK


def _shaped(profile: Profile, options: argparse.Namespace) -> Profile:
    with about("cannot convert"):
        if options.merge_tiers:
            profile = profile.merged_tiers(_first_with_samples(profile))
        if options.invert:
            profile = profile.invert()
        return profile.pruned(**options.prune) if options.prune else profile


def _before(options: argparse.Namespace) -> Profile:
    before = convert_inputs.before(options)
    warn_of(before.malformed_lines, before.warnings)
    return before


def _difference(options: argparse.Namespace, before: Profile, after: Profile) -> Diff:
    with about(f"cannot compare with {options.diff}"):
        if options.invert:
            before, after = before.invert(), after.invert()
        return before.diff(after, _first_with_samples(after), normalize=not options.absolute)


def _skips_stubs(profile: Profile) -> bool:
    """Whether CPU samples are written, and a JDK left some out."""
    return profile.skips_stubs and _written(profile)[0] in CPU_VALUES


def _written(profile: Profile) -> tuple[str, str]:
    return profile.values[_first_with_samples(profile)]


def _first_with_samples(profile: Profile) -> int:
    """Index of the value to draw."""
    return next((index for index in range(len(profile.values)) if profile.total(index)), 0)


def _write(write: Callable[..., None], options: argparse.Namespace) -> None:
    title = options.title or printable(Path(options.inputs[0]).name)
    name = "to stdout" if options.output == "-" else options.output
    with writing(name), about(f"cannot write {name}"):
        if options.output != "-":
            write(Path(options.output), options.to, title=title)
        elif options.to == "html":
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder) / "page.html", title=title)
                with (Path(folder) / "page.html").open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            write(sys.stdout.buffer, options.to, title=title)
