"""Pictures equal flamegraph.pl's (the edition in Debian's libdevel-nytprof-perl) in every option both have.

It writes places to a tenth of a pixel, and `()` for `<>` in names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from tests.exact.pictures import Picture, by_flamegraph_pl, made_up, parse

pytestmark = pytest.mark.nightly

PIXEL = 1 / 1180


def ours(folded: bytes, **options: Any) -> Picture:
    options.setdefault("min_width", 0)
    return parse(Profile.from_bytes(folded, "folded").to_svg(**options))


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"inverted": True}, ["--inverted"]),
    ({"reverse": True}, ["--reverse"]),
    ({"total": 600_000}, ["--total=600000"]),
    ({"total": 5}, ["--total=5"]),
    ({"factor": 2, "count_name": "ms"}, ["--factor=2", "--countname=ms"]),
    ({"min_width": 3}, ["--minwidth=3"]),
    ({"height": 20, "font_size": 10, "font_width": 0.5}, ["--height=20", "--fontsize=10", "--fontwidth=0.5"]),
]


@pytest.mark.parametrize(("options", "flags"), CASES, ids=[" ".join(flags) or "none" for _, flags in CASES])
def test_frames_counts_and_widths(options: dict[str, Any], flags: list[str]) -> None:
    check_same(made_up(11), options, flags)


@pytest.mark.parametrize("flag", ["inverted", "reverse"])
def test_tiers_add_up_to_their_methods(flag: str) -> None:
    check_same(made_up(11, tiers="kji"), {flag: True}, [f"--{flag}"])


def check_same(folded: bytes, options: dict[str, Any], flags: list[str]) -> None:
    mine, theirs = ours(folded, **options), by_flamegraph_pl(folded, *flags)
    assert mine.counts() == theirs.counts()
    widths: dict[tuple[int, str], list[float]] = {}
    for sign, picture in ((1, mine), (-1, theirs)):
        for bar in picture.bars:
            widths.setdefault((bar.level, bar.name), []).append(sign * bar.drawn[1])
    for key, parts in widths.items():
        assert abs(sum(parts)) <= 0.11 * PIXEL * len(parts), key


def test_all_that_is_there_is_the_whole_unless_it_is_more() -> None:
    folded = b"a 40\nb 60\n"
    assert [bar.percent for bar in ours(folded, total=400).bars] == [100, 10, 15]
    assert [bar.percent for bar in ours(folded, total=50).bars] == [100, 40, 60]
    assert [bar.percent for bar in by_flamegraph_pl(folded, "--total=400").bars][1:] == [10, 15]


@pytest.mark.parametrize(
    "palette", ["hot", "mem", "io", "red", "green", "blue", "aqua", "yellow", "purple", "orange"]
)
def test_hashed_colours_are_the_same(palette: str) -> None:
    folded = made_up(12)
    mine = ours(folded, colors=palette, hash=True).fills()
    theirs = by_flamegraph_pl(folded, f"--colors={palette}", "--hash").fills()
    assert {name for name in mine if mine[name] != theirs[name]} <= {"-", "--"}, (
        "these are grey in later editions"
    )


def test_a_palette_map_is_read_and_written_alike(tmp_path: Path) -> None:
    first, second = made_up(13), made_up(14, tiers="ji")
    theirs = by_flamegraph_pl(first, "--cp", cwd=tmp_path).fills()
    kept = tmp_path / "palette.map"
    before = kept.read_bytes()
    mine = ours(first, palette_map=kept, colors="hot").fills()
    assert {name for name in mine if mine[name] != theirs[name]} <= {"-", "--"}
    assert kept.read_bytes() == before, "no new name"
    mine = ours(second, palette_map=kept, colors="java").fills()
    written = kept.read_text().splitlines()
    assert written == sorted(written, key=lambda line: line.rpartition("->")[0])
    assert set(before.decode().splitlines()) < set(written)
    # Frames of several tiers are one of ours, and flamegraph.pl has names of ours for those it asks for.
    theirs = by_flamegraph_pl(second, "--cp", cwd=tmp_path).fills()
    one_tier = {name for name in mine if sum(line.startswith(f"{name}_[") for line in written) == 0}
    assert len(one_tier) > 5
    assert {name for name in one_tier if mine[name] != theirs[name]} <= {"-", "--"}


def test_a_difference_has_the_same_frames() -> None:
    # Nothing vanishes: it mixes up frames without width.
    before = Profile.from_bytes(made_up(15), "folded")
    after = Profile.from_bytes(made_up(15) + made_up(16, stacks=60), "folded")
    folded = before.diff(after, normalize=False).to_folded()
    mine, theirs = ours(folded), by_flamegraph_pl(folded)
    assert mine.counts() == theirs.counts()
