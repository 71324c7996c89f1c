"""The report's page in Chromium: its size, its first picture, zoom, search, change of scope, memory.

Beside it what async-profiler's converter and flamegraph.pl make of the same cluster's folded text. Times are
medians over HPROFILER_BENCH_ROUNDS (3) rounds, each in a new browser; other work shows in them.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hprofiler.report import make_report
from tests.bench import core_cluster, viewer_cluster
from tests.bench.commands import BenchError
from tests.bench.core import FLAMEGRAPH_PL, ROUNDS
from tests.bench.table import Row
from tests.bench.viewer_cluster import LARGE, SMALL, Size
from tests.bench.viewer_times import Times, time_page, use_ours, use_peer, use_scopes, use_views
from tests.exact import jfr_recordings
from tests.viewer import made_profile, made_run

ANSWERS_WITHIN = 100
MOST_MEMORY = 500
MADE_BY = (viewer_cluster, core_cluster, made_run, made_profile)


@dataclass(frozen=True)
class Promise:
    """Of a page of this size: megabytes of the file, milliseconds to the first picture."""

    size: Size
    megabytes: float
    opens_within: int


def rows() -> list[Row]:
    return [
        *_ours(Promise(LARGE, 12, 1500)),
        *_views(LARGE),
        *_scopes(LARGE),
        *_ours(Promise(SMALL, 1, 300)),
        *_peers(LARGE),
        *_peers(SMALL),
    ]


def _ours(promise: Promise) -> list[Row]:
    page = make_report(_run(promise.size)).page
    times = time_page(page, ROUNDS, use_ours)
    what = f"page of {promise.size.name}, {promise.size.hosts} hosts"
    megabytes, opened = page.stat().st_size / 1e6, times.median("open")
    rows = [
        Row(
            f"{what}: file",
            f"{megabytes:.2f} MB",
            f"{promise.megabytes:.0f} MB",
            megabytes < promise.megabytes,
        ),
        Row(
            "first picture", _told(times, "open"), f"{promise.opens_within} ms", opened < promise.opens_within
        ),
    ]
    for name in times.taken:
        if name != "open":
            holds = times.median(name) < ANSWERS_WITHIN
            rows.append(Row(name, _told(times, name), f"{ANSWERS_WITHIN} ms", holds))
    promised = f"{MOST_MEMORY} MB"
    return [*rows, Row("memory", _memory(times), promised, times.bytes < MOST_MEMORY * 10**6)]


def _views(size: Size) -> list[Row]:
    times = time_page(_run(size) / "report.html", 1, use_views)
    opened = ", ".join(f"{name} {times.median(name):.0f} ms" for name in times.taken if name != "open")
    return [Row("every view opened once, of the sum", f"{opened}; {_memory(times)}", "", None)]


def _scopes(size: Size) -> list[Row]:
    """Changes of scope and threads, and searches, in each view, all in one browser; the memory that takes."""
    times = time_page(_run(size) / "report.html", 1, use_scopes)
    rows = [
        Row(what, _told(times, what), f"{ANSWERS_WITHIN} ms", times.median(what) < ANSWERS_WITHIN)
        for what in times.taken
        if what != "open"
    ]
    holds = times.bytes < MOST_MEMORY * 10**6
    return [*rows, Row("memory after that, at most", _memory(times), f"{MOST_MEMORY} MB", holds)]


def _memory(times: Times) -> str:
    return (
        f"{times.bytes / 1e6:.0f} MB resident in the page's process, {times.blank / 1e6:.0f} MB of it before"
    )


def _peers(size: Size) -> list[Row]:
    folded = _run(size) / "cluster/cpu.folded"
    makers: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
        "async-profiler's HTML": ("html", _converter),
        "flamegraph.pl's SVG": ("svg", _flamegraph_pl),
    }
    rows = []
    for name, (suffix, make) in makers.items():
        page = folded.with_name(f"peer.{suffix}")
        make(folded, page)
        what = f"{name} of {size.name}"
        rows.append(Row(what, _peer(page), "", None))
    return rows


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
    path = core_cluster.cache() / f"pages-{hashlib.sha256(sources).hexdigest()[:12]}" / f"{size.hosts}-hosts"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        viewer_cluster.cluster_run(unfinished, size)
        unfinished.replace(path)
    return path


def _converter(folded: Path, page: Path) -> None:
    jar = jfr_recordings.artifact(jfr_recordings.CONVERTER)
    subprocess.run(["java", "-jar", str(jar), "-o", "html", str(folded), str(page)], check=True)


def _flamegraph_pl(folded: Path, page: Path) -> None:
    with page.open("wb") as out:
        subprocess.run(["perl", str(FLAMEGRAPH_PL), str(folded)], check=True, stdout=out)
