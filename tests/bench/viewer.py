"""The report's page in Chromium: its size, its first picture, zoom, search, change of scope, memory.

Beside it what async-profiler's converter and flamegraph.pl make of the same cluster's folded text. Times are
medians over HPROFILER_BENCH_ROUNDS (3) rounds, each in a new browser; other work shows in them.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from hprofiler.report import make_report
from tests import timed_profile
from tests.bench import core_cluster, viewer_cluster
from tests.bench.commands import BenchError
from tests.bench.core import FLAMEGRAPH_PL, ROUNDS
from tests.bench.table import Row
from tests.bench.viewer_cluster import LARGE, SMALL, TIMED, Size
from tests.bench.viewer_times import Times, time_page, use_ours, use_peer, use_ranges, use_scopes
from tests.exact import jfr_recordings
from tests.lab.cache import root
from tests.viewer import made_profile, made_run

ANSWERS_WITHIN = 100
MOST_MEMORY = 500
# With the times of samples.
MAP_WITHIN = 300
MOST_MEMORY_TIMED = 600
MADE_BY = (viewer_cluster, core_cluster, made_run, made_profile, timed_profile)


def rows() -> list[Row]:
    """Two pages with what is promised of them: megabytes of the file, milliseconds to the first picture."""
    return [
        *_page(LARGE, 12, 1500),
        *_answers(time_page(_run(LARGE) / "report.html", 1, use_scopes), "memory after that, at most"),
        *_ranges(),
        *_page(SMALL, 1, 300),
        *_peers(LARGE),
        *_peers(SMALL),
    ]


def _page(size: Size, most: float, opens_within: int) -> list[Row]:
    page = _page_of(size)
    times, megabytes = time_page(page, ROUNDS, use_ours), page.stat().st_size / 1e6
    what, opened = f"page of {size.name}, {size.hosts} hosts: file", times.median("open") < opens_within
    return [
        Row(what, f"{megabytes:.2f} MB", f"{most:.0f} MB", megabytes < most),
        Row("first picture", _told(times, "open"), f"{opens_within} ms", opened),
        *_answers(times, "memory"),
    ]


def _page_of(size: Size) -> Path:
    return make_report(_run(size)).page


def _ranges() -> list[Row]:
    """Ranges of time. The first heat map unpacks the times of all samples."""
    times = time_page(_page_of(TIMED), 1, use_ranges)
    first = "heat map, first shown"
    opened = Row(
        f"page of {TIMED.name}: {first}",
        _told(times, first),
        f"{MAP_WITHIN} ms",
        times.median(first) < MAP_WITHIN,
    )
    del times.taken[first]
    return [opened, *_answers(times, "memory after that, at most", MOST_MEMORY_TIMED)]


def _answers(times: Times, memory: str, most: int = MOST_MEMORY) -> list[Row]:
    """How long each answer took, and the memory of the page's process."""
    rows = [
        Row(what, _told(times, what), f"{ANSWERS_WITHIN} ms", times.median(what) < ANSWERS_WITHIN)
        for what in times.taken
        if what != "open"
    ]
    used = (
        f"{times.bytes / 1e6:.0f} MB resident in the page's process, {times.blank / 1e6:.0f} MB of it before"
    )
    return [*rows, Row(memory, used, f"{most} MB", times.bytes < most * 10**6)]


def _peers(size: Size) -> list[Row]:
    """async-profiler's HTML and flamegraph.pl's SVG of the sum."""
    folded = _run(size) / "cluster/cpu.folded"
    html, svg = folded.with_name("peer.html"), folded.with_name("peer.svg")
    jar = jfr_recordings.artifact(jfr_recordings.CONVERTER)
    subprocess.run(["java", "-jar", str(jar), "-o", "html", str(folded), str(html)], check=True)
    with svg.open("wb") as out:
        subprocess.run(["perl", str(FLAMEGRAPH_PL), str(folded)], check=True, stdout=out)
    return [
        Row(f"async-profiler's HTML of {size.name}", _peer(html), "", None),
        Row(f"flamegraph.pl's SVG of {size.name}", _peer(svg), "", None),
    ]


def _peer(page: Path) -> str:
    megabytes = f"{page.stat().st_size / 1e6:.2f} MB"
    try:
        times = time_page(page, 1, use_peer)
    except BenchError as failure:
        return f"{megabytes}, {failure}"
    parts = [f"{name} {_told(times, name)}" for name in times.taken]
    return f"{megabytes}, {', '.join(parts)}, {times.bytes / 1e6:.0f} MB resident"


def _told(times: Times, name: str) -> str:
    every = sorted(times.taken[name])
    return f"{times.median(name):.0f} ms ({every[0]:.0f} to {every[-1]:.0f})"


def _run(size: Size) -> Path:
    """The cluster's run folder, from the cache or made now; a changed generator makes its own."""
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in MADE_BY)
    made = root() / "bench" / f"pages-{hashlib.sha256(sources).hexdigest()[:12]}"
    path = made / f"{size.hosts}-hosts{'-timed' if size.timed else ''}"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        viewer_cluster.cluster_run(unfinished, size)
        unfinished.replace(path)
    return path
