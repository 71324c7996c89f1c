"""Parses flame graphs in SVG, ours and other tools', for comparison."""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.exact.peers import inferno, needs

FLAMEGRAPH_PL = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
SVG = "{http://www.w3.org/2000/svg}"
INFERNO = "{http://github.com/jonhoo/inferno}"
DETAILS = re.compile(r"(?s)(.*) \(([\d,]+) (.*?), ([\d.]+)%(?:; ([-+]?[\d.]+)%)?(, new|, gone)?\)")
Rgb = tuple[int, int, int]


class Bar(NamedTuple):
    """One frame: its position in fractions of the root's width, exactly and as drawn."""

    name: str
    level: int
    x: float
    width: float
    drawn: tuple[float, float]
    amount: int
    delta: float | None
    fill: Rgb


class Picture(NamedTuple):
    """A flame graph: its frames from the root up and from left to right, and all of its text."""

    bars: list[Bar]
    text: str

    def placed(self) -> list[tuple[tuple[str, ...], Bar]]:
        """Every frame with the names from the root, found by the frame below it."""
        placed: list[tuple[tuple[str, ...], Bar]] = []
        levels: dict[int, list[tuple[tuple[str, ...], Bar]]] = defaultdict(list)
        for bar in self.bars:
            path: tuple[str, ...] = ()
            if bar.level:
                middle = bar.x + bar.width / 2
                below = levels[bar.level - 1]
                path = next(path for path, bar in below if bar.x <= middle <= bar.x + bar.width)
            levels[bar.level].append(((*path, bar.name), bar))
        for level in sorted(levels):
            placed += levels[level]
        return placed

    def paths(self) -> dict[tuple[str, ...], int]:
        """Counts by path, adding up the pieces of a frame."""
        counts: dict[tuple[str, ...], int] = defaultdict(int)
        for path, bar in self.placed():
            counts[path] += bar.amount
        return dict(counts)

    def counts(self) -> dict[tuple[int, str], int]:
        """Counts by level and name."""
        counts: dict[tuple[int, str], int] = defaultdict(int)
        for bar in self.bars:
            counts[bar.level, bar.name] += bar.amount
        return dict(counts)

    def fills(self) -> dict[str, Rgb]:
        """The colour of each name except the root's, which differs between tools."""
        return {bar.name: bar.fill for bar in self.bars if bar.level}


def parse(svg: bytes) -> Picture:
    """Parses a picture of any tool."""
    root = ElementTree.fromstring(svg)
    frames = []
    for group in root.iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and rect is not None:
            frames.append((title.text or "", group, rect))
    whole = next(frame for frame in frames if frame[0].startswith("all ("))
    tops = sorted({float(rect.attrib["y"]) for _, _, rect in frames})
    if float(whole[2].attrib["y"]) != tops[0]:
        tops.reverse()
    bars = [_bar(*frame, tops, whole) for frame in frames]
    bars.sort(key=lambda bar: (bar.level, bar.x))
    return Picture(bars, " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text")))


Frame = tuple[str, ElementTree.Element, ElementTree.Element]


def _bar(
    title: str,
    group: ElementTree.Element,
    rect: ElementTree.Element,
    tops: Sequence[float],
    whole: Frame,
) -> Bar:
    details = DETAILS.fullmatch(title)
    assert details, title
    name, count, _, _, delta, _ = details.groups()
    start, length = _drawn(whole[2])
    drawn = ((_drawn(rect)[0] - start) / length, _drawn(rect)[1] / length)
    exact, total = _exact(group, rect), _exact(whole[1], whole[2])
    return Bar(
        name=re.sub(r"_\[[01kwij]\]$", "", name),
        level=tops.index(float(rect.attrib["y"])),
        x=exact[0] / total[1] if exact and total else drawn[0],
        width=exact[1] / total[1] if exact and total else drawn[1],
        drawn=drawn,
        amount=int(count.replace(",", "")),
        delta=None if delta is None else float(delta),
        fill=_color(rect.attrib["fill"]),
    )


def _exact(group: ElementTree.Element, rect: ElementTree.Element) -> tuple[int, int] | None:
    """Start and length in samples, if given: ours are at the group, inferno's at the rectangle."""
    for element, start, length in [(group, "data-x", "data-w"), (rect, f"{INFERNO}x", f"{INFERNO}w")]:
        if start in element.attrib:
            return int(element.attrib[start]), int(element.attrib[length])
    return None


def _drawn(rect: ElementTree.Element) -> tuple[float, float]:
    return float(rect.attrib["x"].rstrip("%")), float(rect.attrib["width"].rstrip("%"))


def _color(text: str) -> Rgb:
    if text.startswith("#"):
        return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
    red, green, blue = re.findall(r"\d+", text)
    return int(red), int(green), int(blue)


def by_inferno(folded: bytes, *options: str) -> Picture:
    """The picture from inferno-flamegraph, with every frame."""
    command = [str(inferno("inferno-flamegraph")), "--minwidth", "0", *options]
    done = subprocess.run(command, input=folded, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return parse(done.stdout)


def by_flamegraph_pl(folded: bytes, *options: str, cwd: Path | None = None) -> Picture:
    """The picture from flamegraph.pl, in Debian's version."""
    if not FLAMEGRAPH_PL.exists():
        pytest.skip("flamegraph.pl is not on this machine (package libdevel-nytprof-perl)")
    command = [needs("perl"), str(FLAMEGRAPH_PL), *options]
    if not any(option.startswith("--minwidth") for option in options):
        command.append("--minwidth=0")
    done = subprocess.run(command, input=folded, capture_output=True, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    return parse(done.stdout)


PACKAGES = ["java/util", "org/apache/spark/rdd", "com/example", "jdk/internal/misc", "L", "scala/collection"]
NATIVE = [
    "memcpy",
    "__GI___clone",
    "libc.so.6",
    "[libjvm.so]",
    "start_thread",
    "main.pl",
    "two words",
    "--",
]
CPP = [
    "JavaThread::run()",
    "G1ParScanThreadState::trim_queue()",
    "v8::Isolate::Run",
    "Perl::pp_add",
    "-[NSView draw]",
]
SCRIPT = ["/srv/app/server.js", "/srv/node_modules.js", "Perl_runops_standard"]


def made_up(seed: int, stacks: int = 300, tiers: str = "", count: int = 2000) -> bytes:
    """Random folded text like that of profilers: all forms of names, recursion, equal beginnings.

    `tiers`: the annotations that Java names may have; kernel frames have theirs always. Only leaves have self
    samples, which the tools place left of the callees and we right of them.
    """
    chance = random.Random(seed)
    java = [f"{package}/C{number}.m{number % 7}" for package in PACKAGES for number in range(12)]
    lines = []
    for _ in range(stacks):
        frames = ["Thread.run"]
        for _ in range(chance.randrange(1, 12)):
            name = chance.choice(java)
            frames.append(name + (f"_[{chance.choice(tiers)}]" if tiers else ""))
        frames += [chance.choice(CPP + NATIVE + SCRIPT) for _ in range(chance.randrange(3))]
        frames += ["vfs_read_[k]"] * chance.randrange(2) + ["end"]
        lines.append(f"{';'.join(frames)} {chance.randrange(1, count)}")
    return "\n".join(lines).encode() + b"\n"
