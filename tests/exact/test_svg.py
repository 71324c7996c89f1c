"""Pictures equal those of flamegraph.pl (Debian's libdevel-nytprof-perl) and of inferno-flamegraph.

flamegraph.pl rounds positions to a tenth of a pixel, and writes `()` for `<>` in names. inferno splits a
frame if a longer name sorts in between, which ours never does, so counts are compared by path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from hprofiler._flamegraph import FlameChart
from tests.exact.pictures import Picture, by_flamegraph_pl, by_inferno, made_up, parse

pytestmark = pytest.mark.nightly

PIXEL = 1 / 1180
GREY_IN_LATER_EDITIONS = {"-", "--"}


def ours(folded: bytes, **options: Any) -> Picture:
    options.setdefault("min_width", 0)
    return parse(Profile.from_bytes(folded, "folded").to_svg(**options))


OPTIONS: list[tuple[list[str], dict[str, Any], str]] = [
    ([], {}, ""),
    (["--inverted"], {"inverted": True}, ""),
    (["--inverted"], {"inverted": True}, "kji"),
    (["--reverse"], {"reverse": True}, ""),
    (["--reverse"], {"reverse": True}, "kji"),
    (["--factor=2", "--countname=ms"], {"factor": 2, "count_name": "ms"}, ""),
    (["--minwidth=3"], {"min_width": 3}, ""),
    (
        ["--height=20", "--fontsize=10", "--fontwidth=0.5"],
        {"height": 20, "font_size": 10, "font_width": 0.5},
        "",
    ),
]


@pytest.mark.parametrize(
    ("flags", "options", "tiers"), OPTIONS, ids=[" ".join((*flags, tiers)) for flags, _, tiers in OPTIONS]
)
def test_frames_counts_and_widths_equal_flamegraph_pl(
    flags: list[str], options: dict[str, Any], tiers: str
) -> None:
    folded = made_up(11, tiers=tiers)
    mine, theirs = ours(folded, **options), by_flamegraph_pl(folded, *flags)
    assert mine.counts() == theirs.counts()
    widths: dict[tuple[int, str], list[float]] = {}
    for sign, picture in ((1, mine), (-1, theirs)):
        for bar in picture.bars:
            widths.setdefault((bar.level, bar.name), []).append(sign * bar.drawn[1])
    for key, parts in widths.items():
        assert abs(sum(parts)) <= 0.11 * PIXEL * len(parts), key


@pytest.mark.parametrize(
    "palette", ["hot", "mem", "io", "red", "green", "blue", "aqua", "yellow", "purple", "orange"]
)
def test_hashed_colours_equal_flamegraph_pl(palette: str) -> None:
    folded = made_up(12)
    mine = ours(folded, colors=palette, hash=True).fills()
    theirs = by_flamegraph_pl(folded, f"--colors={palette}", "--hash").fills()
    assert {name for name in mine if mine[name] != theirs[name]} <= GREY_IN_LATER_EDITIONS


@pytest.mark.parametrize("reverse", [False, True])
def test_a_flame_chart_equals_inferno(tmp_path: Path, reverse: bool) -> None:
    folded = made_up(5, stacks=200)
    (tmp_path / "in.folded").write_bytes(folded)
    out = tmp_path / "out.svg"
    FlameChart.open(tmp_path / "in.folded", reverse=reverse).write(out, min_width=0)
    if reverse:
        stacks = [line.rsplit(b" ", 1) for line in folded.splitlines()]
        folded = b"".join(
            b";".join(stack.split(b";")[::-1]) + b" " + count + b"\n" for stack, count in stacks
        )
    theirs = by_inferno(folded, "--flamechart")
    assert [bar[:4] for bar in parse(out.read_bytes()).bars] == [bar[:4] for bar in theirs.bars]


@pytest.mark.parametrize("negate", [False, True])
def test_changes_equal_inferno(negate: bool) -> None:
    before = Profile.from_bytes(made_up(9), "folded")
    after = Profile.from_bytes(made_up(9, stacks=250) + made_up(10, stacks=60), "folded")
    folded = before.diff(after, normalize=False).to_folded()
    mine, theirs = ours(folded, negate=negate), by_inferno(folded, *(["--negate"] if negate else []))
    theirs = Picture([bar for bar in theirs.bars if bar.amount], theirs.text)
    assert mine.paths() == theirs.paths()
    # inferno shows the change of a stack's last frame only, which equals ours if it has no callees.
    callers = {path[:-1] for path in theirs.paths()}
    changes = {path: bar.delta for path, bar in theirs.placed() if path not in callers}
    assert len(changes) > 50
    for path, bar in mine.placed():
        if path in changes:
            assert bar.delta == pytest.approx(changes[path], abs=0.011), path
