"""Files that users mistake for profiles (pages, run.json, run folders), and what to name instead."""

from __future__ import annotations

import re
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_file
from hprofiler.runfolder import RUN_FILE

# run.json starts with its format; no profile in JSON does.
_RUN = re.compile(rb'\s*\{\s*"format"\s*:\s*\d+\s*[,}]')
# How our pages begin. Those of async-profiler, whose flame graphs can be read, have other quotes.
_PAGE = re.compile(rb'\s*<!DOCTYPE html>\s*<html lang="en">')
_BEGINNING = 1024
_BOM = b"\xef\xbb\xbf"


def refuse_no_profile(path: Path) -> None:
    """Raises UsageError for a page of ours or a run.json, recognised by its beginning. Raises OSError."""
    if not is_file(path):
        return
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING).removeprefix(_BOM)
    for looks, what in ((_PAGE, "a page"), (_RUN, f"the {RUN_FILE} of a run")):
        if looks.match(beginning):
            raise UsageError(
                f"cannot read {path}: it is {what}, not a profile", where_profiles_are(path.parent)
            )


def only_profile_of(name: str) -> str:
    """The profile of all processes of a run folder with one event; any other name as it is."""
    kept = _profiles_of(Path(name)) if is_file(Path(name) / RUN_FILE) else []
    return str(kept[0]) if len(kept) == 1 else name


def _profiles_of(folder: Path) -> list[Path]:
    kept = [one for one in (folder / "cluster").glob("*.pb.gz") if not one.name.endswith("-mean.pb.gz")]
    return sorted(kept, key=lambda one: (one.name != "cpu.pb.gz", one.name))


def where_profiles_are(folder: Path) -> str:
    """Files of a run folder that can be read as a profile."""
    if not is_file(folder / RUN_FILE):
        return "name the profile it was made from"
    kept = _profiles_of(folder)
    return (
        f"the profile of all its processes is {kept[0]}"
        if kept
        else f"its profiles are in {folder / 'hosts'}"
    )
