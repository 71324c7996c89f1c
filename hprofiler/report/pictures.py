"""A profile as files: the flame graph, folded text and pprof, side by side under one name."""

from __future__ import annotations

from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.store import replacing


def write_pictures(profile: Profile, folder: Path, name: str, title: str, subtitle: str) -> None:
    """Write `folder/name.svg`, `.folded` and `.pb.gz`; each appears whole or not at all."""
    with replacing(folder / f"{name}.svg") as file:
        file.write(profile.to_svg(title=title, subtitle=subtitle))
    with replacing(folder / f"{name}.folded") as file:
        file.write(profile.to_folded())
    with replacing(folder / f"{name}.pb.gz") as file:
        file.write(profile.to_pprof())
