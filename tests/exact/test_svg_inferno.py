"""Pictures equal inferno-flamegraph's, option by option: the same frames and counts at the same places.

inferno draws each tier as a frame of its own, and a frame in pieces where a longer name sorts in between.
Ours is one frame, so counts are compared by path, and places where no frame of inferno's is in pieces (and
where callers have no samples of their own, which it draws left of the callees and we right of them).
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from hprofiler._flamegraph import FlameChart
from tests.exact import recordings
from tests.exact.peers import inferno
from tests.exact.pictures import Picture, by_inferno, hue, made_up, parse

pytestmark = pytest.mark.nightly

GOLDEN = Path(__file__).parents[1] / "golden" / "flamegraph" / "java.folded"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A recording of perf, folded by inferno."""
    folder = tmp_path_factory.mktemp("recorded")
    program = recordings.c_program(folder)
    data = recordings.record(folder / "perf.data", ["-F", "997"], [str(program)])
    command = [str(inferno("inferno-collapse-perf")), "--kernel"]
    return subprocess.run(command, input=recordings.script(data), check=True, capture_output=True).stdout


@pytest.fixture(params=["golden", "made up", "tiers", "recorded"])
def folded(request: pytest.FixtureRequest) -> bytes:
    """Input of every kind."""
    if request.param == "recorded":
        text: bytes = request.getfixturevalue("recorded")
        return text
    makers: dict[str, Callable[[], bytes]] = {
        "golden": GOLDEN.read_bytes,
        "made up": lambda: made_up(1),
        "tiers": lambda: made_up(2, tiers="01ij"),
    }
    return makers[request.param]()


def ours(folded: bytes, **options: Any) -> Picture:
    options.setdefault("min_width", 0)
    return parse(Profile.from_bytes(folded, "folded").to_svg(**options))


def in_pieces(picture: Picture) -> bool:
    """Whether some frame is drawn in more than one piece."""
    return len(picture.paths()) < len(picture.bars)


def only_leaves_have_samples(picture: Picture) -> bool:
    counts = picture.paths()
    above: dict[tuple[str, ...], int] = defaultdict(int)
    for path, count in counts.items():
        above[path[:-1]] += count
    return all(above[path] in (0, count) for path, count in counts.items())


def check_same(mine: Picture, theirs: Picture) -> None:
    assert mine.paths() == theirs.paths()
    assert not in_pieces(mine)
    whole = mine.bars[0].amount
    for bar in mine.bars:
        assert bar.drawn[1] == pytest.approx(bar.amount / whole, abs=1e-5)
        assert bar.percent == pytest.approx(100 * bar.amount / whole, abs=0.0051)
    if not in_pieces(theirs) and only_leaves_have_samples(mine):
        for one, other in zip(mine.bars, theirs.bars, strict=False):
            assert (one.name, one.level, one.x, one.width) == (other.name, other.level, other.x, other.width)
            assert one.drawn == pytest.approx(other.drawn, abs=2e-5)
            assert one.percent == pytest.approx(other.percent, abs=0.0051)


@pytest.mark.parametrize(
    "options", [{}, {"inverted": True}, {"reverse": True}, {"width": 3000, "height": 24}]
)
def test_frames_counts_and_places(folded: bytes, options: dict[str, object]) -> None:
    flags = {
        "inverted": ["--inverted"],
        "reverse": ["--reverse"],
        "width": ["--width=3000"],
        "height": ["--height=24"],
    }
    check_same(
        ours(folded, **options), by_inferno(folded, *[flag for name in options for flag in flags[name]])
    )


def test_a_frame_is_in_one_piece_where_inferno_has_two() -> None:
    folded = b"r;Foo 1\nr;Foo$1;x 2\nr;Foo;y 3\n"
    theirs = by_inferno(folded)
    assert in_pieces(theirs)
    assert not in_pieces(ours(folded))
    assert ours(folded).paths() == theirs.paths()


@pytest.mark.parametrize("percent", [0.5, 2.0, 10.0])
def test_narrow_frames_are_left_out_alike(percent: float) -> None:
    folded = made_up(3)
    theirs = by_inferno(folded, "--minwidth", str(percent))
    assert len(theirs.bars) < len(by_inferno(folded).bars)
    assert ours(folded, min_width=f"{percent}%").paths() == theirs.paths()


def test_factor_count_name_and_words() -> None:
    folded = made_up(4)
    words = {"title": "T <1>", "subtitle": "S & 2"}
    flags = [f"--{name}={text}" for name, text in words.items()]
    theirs = by_inferno(folded, "--factor=2.5", "--countname=ticks", *flags)
    mine = ours(folded, factor=2.5, count_name="ticks", **words)
    assert mine.counts() == theirs.counts()
    for one, other in zip(mine.bars, theirs.bars, strict=False):
        assert one.percent == pytest.approx(other.percent, abs=0.06), "inferno rounds the count before"
    for text in words.values():
        assert text in mine.text
        assert text in theirs.text


@pytest.mark.parametrize("reverse", [False, True])
def test_a_flame_chart_has_the_same_order(tmp_path: Path, reverse: bool) -> None:
    folded = made_up(5, stacks=200)
    (tmp_path / "in.folded").write_bytes(folded)
    out = tmp_path / "out.svg"
    FlameChart.open(tmp_path / "in.folded", reverse=reverse).write(out, min_width=0)
    mine = parse(out.read_bytes())
    if reverse:
        stacks = [line.rsplit(b" ", 1) for line in folded.splitlines()]
        folded = b"".join(
            b";".join(stack.split(b";")[::-1]) + b" " + count + b"\n" for stack, count in stacks
        )
    theirs = by_inferno(folded, "--flamechart")
    assert in_pieces(theirs)
    assert [bar[:4] for bar in mine.bars] == [bar[:4] for bar in theirs.bars]


def hues(picture: Picture) -> dict[str, str]:
    return {name: hue(color) for name, color in picture.fills().items()}


def test_java_hues() -> None:
    # Each name in one tier, or a frame of several tiers would have the hue of one of them.
    folded = (
        made_up(6)
        + b"r;jit_[j] 1\nr;a::b_[j] 1\nr;in_[i] 1\nr;k/n_[k] 1\nr;C.i_[0] 1\nr;c1_[1] 1\nr;w_[w] 1\nr;- 1\n"
    )
    mine, theirs = hues(ours(folded, colors="java")), hues(by_inferno(folded, "--colors=java"))
    assert mine == theirs
    assert set(mine.values()) == {"green", "aqua", "orange", "yellow", "red", "grey"}


def test_js_and_perl_hues() -> None:
    """But for names on which inferno departs from flamegraph.pl's rule, which ours is."""
    departs = {"js": set(), "perl": {"Perl::pp_add"}, "wakeup": set()}
    folded = made_up(7)
    for palette, others in departs.items():
        mine, theirs = hues(ours(folded, colors=palette)), hues(by_inferno(folded, f"--colors={palette}"))
        different = {name for name in mine if mine[name] != theirs[name]}
        assert different == others, palette


SPECTRA = ["red", "green", "blue", "aqua", "yellow", "purple", "orange", "hot", "mem", "io"]


@pytest.mark.parametrize("palette", SPECTRA)
def test_hashed_colours(palette: str) -> None:
    """To one step: inferno counts in 32 bits."""
    folded = made_up(8)
    mine = ours(folded, colors=palette, hash=True).fills()
    theirs = by_inferno(folded, f"--colors={palette}", "--hash").fills()
    assert mine.keys() == theirs.keys()
    for name, color in mine.items():
        assert color == pytest.approx(theirs[name], abs=1), name


def differential(seed: int) -> bytes:
    """Two counts a line; some paths are gone, some are new."""
    before = Profile.from_bytes(made_up(seed), "folded")
    after = Profile.from_bytes(made_up(seed, stacks=250) + made_up(seed + 1, stacks=60), "folded")
    return before.diff(after, normalize=False).to_folded()


@pytest.mark.parametrize("negate", [False, True])
def test_a_difference_has_the_same_frames_and_the_same_signs(negate: bool) -> None:
    folded = differential(9)
    flags = ["--negate"] if negate else []
    mine, theirs = ours(folded, negate=negate), by_inferno(folded, *flags)
    theirs = Picture([bar for bar in theirs.bars if bar.amount], theirs.text)
    drawn = theirs.paths()
    assert mine.paths() == drawn
    # inferno tells the change of a stack's end alone, ours of all above: the same where nothing is above.
    callers = {path[:-1] for path in drawn}
    changes = {path: bar.delta for path, bar in theirs.placed() if path not in callers}
    assert len(changes) > 50
    for path, bar in mine.placed():
        if path in changes:
            assert bar.delta == pytest.approx(changes[path], abs=0.011), path


def test_a_difference_has_cumulative_changes() -> None:
    picture = ours(b"r;a;b 10 30\nr;a;c 30 10\nr;d 10 20\nr;gone 5 0\nr;new 0 6\n")
    changes = {bar.name: bar.delta for bar in picture.bars}
    total = 66
    assert changes["a"] == 0
    assert changes["b"] == pytest.approx(100 * 20 / total, abs=0.01)
    assert changes["c"] == pytest.approx(-100 * 20 / total, abs=0.01)
    assert changes["r"] == pytest.approx(100 * 11 / total, abs=0.01)
    assert "Vanished: 9.09% of before in 1 path (gone 9.09%)" in picture.text
