"""How fast an event log of Spark is read, and how much memory a log of 10 GB takes.

The log is that of a real application, many times over: ids and times of each copy follow those of the one
before.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import BinaryIO

from hprofiler.cli.commands.spark import print_answer
from hprofiler.spark.figures import figures
from hprofiler.spark.log.files import LogFile
from hprofiler.spark.log.reading import read_application
from tests.bench.commands import BenchError
from tests.bench.table import Row
from tests.lab import cache
from tests.lab.spark import logs

_WHOLE = 10e9
_PART = 0.5e9
_OF_HISTORY = 0.2e9
_MB = 1e6
_ONCE = re.compile(
    rb'\{"Event":"SparkListener(?:LogStart|Application|Environment|ResourceProfile|BlockManager|Executor)'
)
_IDS = re.compile(
    rb'"(Stage ID|Task ID|Job ID|executionId)":(\d+)|"(?:Stage IDs|Parent IDs)":\[([\d,]+)\]'
    rb'|"spark\.sql\.execution\.id":"(\d+)|(1[67]\d{11})'
)


class Repeated:
    """A stream of an event log's content, again and again, until it has so many bytes."""

    def __init__(self, log: Path, size: float) -> None:
        lines = log.read_bytes().splitlines(keepends=True)
        self._head = b"".join(line for line in lines if _ONCE.match(line) and b"ApplicationEnd" not in line)
        body = b"".join(line for line in lines if not _ONCE.match(line))
        self._texts, self._numbers = _split(body)
        self.copies = max(1, round(size / len(body)))
        self._blocks = self._content()
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def _content(self) -> Iterator[bytes]:
        yield self._head
        last = 1 + max(number for numbers, _ in self._numbers for number in numbers)
        for copy in range(self.copies):
            shifted = (
                b",".join(b"%d" % (number + step * copy) for number in numbers)
                for numbers, step in self._numbers
            )
            text = b"".join(part for pair in zip(self._texts, (*shifted, b""), strict=True) for part in pair)
            for at in range(0, len(text), 1 << 20):
                yield text[at : at + (1 << 20)]
        yield b'{"Event":"SparkListenerApplicationEnd","Timestamp":%d}\n' % (last + self.copies)


def _split(body: bytes) -> tuple[list[bytes], list[tuple[list[int], int]]]:
    """The text between ids and times; those, each with its step from copy to copy."""
    texts, found, at = [], [], 0
    for match in _IDS.finditer(body):
        group = next(number for number in (2, 3, 4, 5) if match.group(number) is not None)
        kind = {2: match.group(1), 3: b"Stage ID", 4: b"executionId", 5: b"time"}[group]
        texts.append(body[at : match.start(group)])
        found.append(([int(word) for word in match.group(group).split(b",")], kind))
        at = match.end(group)
    texts.append(body[at:])
    lowest: dict[bytes, int] = {}
    highest: dict[bytes, int] = {}
    for numbers, kind in found:
        lowest[kind] = min(lowest.get(kind, numbers[0]), *numbers)
        highest[kind] = max(highest.get(kind, 0), *numbers)
    return texts, [(numbers, highest[kind] - lowest[kind] + 1) for numbers, kind in found]


def rows() -> list[Row]:
    spark, log = _log()
    source = Repeated(log, _PART)
    part = b"".join(iter(lambda: source.read(1 << 20), b""))
    ours = len(part) / _MB / _seconds(_read, part)
    whole = len(part) / _MB / _seconds(_command, part)
    theirs = len(part) / _MB / _seconds(_load, part)
    del part
    peak = _peak_of_all(log)
    own, history = _beside_history(spark, log)
    more = f"(with the whole answer: {whole:,.0f} MB/s; json.loads: {theirs:,.0f} MB/s)"
    return [
        Row(
            "Spark event log, plain", f"{ours:,.0f} MB/s of CPU time {more}", "at least 150 MB/s", ours >= 150
        ),
        Row(f"Spark event log of {_WHOLE / 1e9:g} GB", f"{peak:,.0f} MB", "under 300 MB", peak < 300),
        Row(
            f"stages of an event log of {_OF_HISTORY / 1e6:g} MB",
            f"{own:.1f} s (history server: {history:.1f} s)",
            "less than a history server",
            own < history,
        ),
    ]


def _log() -> tuple[logs.Spark, Path]:
    try:
        found = logs.made("spark-3")
        return logs.spark_3(), next(one.log for one in found if one.name == "queries-plain")
    except cache.Unavailable as error:
        raise BenchError(str(error)) from error


def _beside_history(spark: logs.Spark, log: Path) -> tuple[float, float]:
    """Seconds to all stages of an application: by the command, start-up and all, and by a history server that
    runs and has listed the log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app-1"
        with path.open("wb") as file:
            source = Repeated(log, _OF_HISTORY)
            while piece := source.read(1 << 20):
                file.write(piece)
        begin = time.monotonic()
        command = [sys.executable, "-m", "hprofiler", "spark", str(path), "--json"]
        done = subprocess.run(command, cwd=cache.CHECKOUT, capture_output=True, check=False)
        own = time.monotonic() - begin
        if done.returncode:
            raise BenchError(done.stderr.decode(errors="replace")[-2000:])
        with logs.history_server(spark, path.parent, "4g") as api:
            (application,) = logs.get(api)
            begin = time.monotonic()
            stages = logs.get(f"{api}/{application['id']}/stages")
            history = time.monotonic() - begin
    if not stages:
        raise BenchError("the history server knows no stage")
    return own, history


def _seconds(work: Callable[[bytes], None], content: bytes) -> float:
    begin = time.process_time()
    work(content)
    return time.process_time() - begin


def _load(content: bytes) -> None:
    for line in io.BytesIO(content):
        json.loads(line)


def _read(content: bytes) -> None:
    read_application([LogFile("log", lambda: io.BytesIO(content))])


def _command(content: bytes) -> None:
    application = read_application([LogFile("log", lambda: io.BytesIO(content))])
    with redirect_stdout(io.StringIO()):
        print_answer(application, figures(application), as_json=False)


def _peak_of_all(log: Path) -> float:
    """MB of memory of a process that answers to a log of 10 GB. Another process makes the log."""
    command = [sys.executable, "-m", "tests.bench.spark_log"]
    with subprocess.Popen([*command, str(log)], cwd=cache.CHECKOUT, stdout=subprocess.PIPE) as maker:
        done = subprocess.run(command, cwd=cache.CHECKOUT, stdin=maker.stdout, capture_output=True, text=True)
    if done.returncode or maker.returncode:
        raise BenchError(done.stderr[-2000:])
    return float(done.stdout.splitlines()[-1])


def _answer() -> None:
    """The answer to the log on stdin, and the memory that it took, in MB."""

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        yield sys.stdin.buffer

    application = read_application([LogFile("log", opened)])
    print_answer(application, figures(application), as_json=False)
    # getrusage would count the memory of the process that started this one.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) * 1024 / _MB)


if __name__ == "__main__":
    if sys.argv[1:]:
        made = Repeated(Path(sys.argv[1]), _WHOLE)
        while piece := made.read(1 << 20):
            sys.stdout.buffer.write(piece)
    else:
        _answer()
