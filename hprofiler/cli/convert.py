"""`hprofiler convert IN… -o OUT`: merge profiles and write them in the format the name asks for."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict

from hprofiler.cli.exits import Exit
from hprofiler.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from hprofiler._flamegraph import Profile


def command(options: argparse.Namespace) -> int:
    output = Path(options.output)
    write = _writer(output)
    merged = _read(options.inputs[0])
    for name in options.inputs[1:]:
        _merge(merged, name)
    if merged.malformed_lines:
        print(f"hprofiler: {merged.malformed_lines} malformed lines were left out", file=sys.stderr)
    if merged.total() == 0:
        raise ProfileError(f"no samples in {', '.join(options.inputs)}: there is nothing to draw")
    try:
        write(merged, output, options.title or Path(options.inputs[0]).name)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}", "choose another file with -o") from error
    return Exit.OK


def _writer(output: Path) -> Callable[[Profile, Path, str], None]:
    for extension, write in WRITERS.items():
        if output.name.endswith(extension):
            return write
    raise UsageError(f"no format is known for {output.name}", f"end the name with one of {' '.join(WRITERS)}")


def _read(name: str) -> Profile:
    from hprofiler._flamegraph import Profile

    try:
        return Profile.from_bytes(sys.stdin.buffer.read()) if name == "-" else Profile.read(name)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise ProfileError(f"cannot read {name}: {error}") from error


def _merge(merged: Profile, name: str) -> None:
    try:
        merged.merge(_read(name))
    except ValueError as error:
        raise ProfileError(f"cannot merge {name}: {error}", "convert files of one kind at a time") from error


def _write_folded(profile: Profile, output: Path, title: str) -> None:
    _replace(output, profile.to_folded())


def _write_svg(profile: Profile, output: Path, title: str) -> None:
    _replace(output, profile.to_svg(title=title))


def _write_pprof(profile: Profile, output: Path, title: str) -> None:
    _replace(output, profile.to_pprof())


def _write_html(profile: Profile, output: Path, title: str) -> None:
    from hprofiler.report import write_page

    write_page(profile, output, title)


def _replace(output: Path, content: bytes) -> None:
    from hprofiler.store import replacing

    with replacing(output) as file:
        file.write(content)


WRITERS: Dict[str, Callable[[Profile, Path, str], None]] = {
    ".folded": _write_folded,
    ".svg": _write_svg,
    ".html": _write_html,
    ".pb.gz": _write_pprof,
}
