"""The profiles of a run folder that is given instead of a profile."""

from __future__ import annotations

from pathlib import Path

from hprofiler.base.paths import is_file
from hprofiler.runfolder import RUN_FILE


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
