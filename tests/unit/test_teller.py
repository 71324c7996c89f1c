"""A reader who takes nothing of what is told costs what is told, and no host anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from hprofiler.cli.terminal.progress import PlainLines
from hprofiler.collect import HostProgress, teller
from hprofiler.collect.teller import Teller
from hprofiler.model import Status
from tests.unit.stand_in import Fleet, Sink, StandIns

PATIENCE = 60
BEGINS = "hello(); found(7); prepared(7); recording(7); "
GOOD = f"{BEGINS}profile(7, b'p'); outcome(7); say('done', left=[]); read()"
DEAF = f"{BEGINS}time.sleep(600)"


def test_hosts_are_recorded_while_nobody_reads_what_is_told(stand_ins: StandIns) -> None:
    class Counting(Sink):
        def profile(self, host, *rest):
            kept = super().profile(host, *rest)
            names.add(host.name)
            if len(names) == 3:
                all_kept.set()
            return kept

    names: set[str] = set()
    all_kept = threading.Event()
    fleet = Fleet(stand_ins, 600.0, dict.fromkeys("abc", GOOD))
    fleet.sink = Counting()
    waited: list[bool] = []

    def listen(step: HostProgress) -> None:
        fleet.progress.append(step)
        if not waited:
            waited.append(all_kept.wait(PATIENCE))

    fleet.listener = listen
    results = fleet.collect()
    assert waited == [True]
    for name in "abc":
        assert [line.status for line in results[name].outcomes] == [Status.OK]
        told = [step.stage for step in fleet.progress if step.host == name]
        assert (told[0], told[-1]) == ("connect", "done") and told.index("record") < told.index("fetch")


def test_the_second_stop_ends_it_while_nobody_reads_what_is_told(stand_ins: StandIns) -> None:
    fleet = Fleet(stand_ins, 600.0, {"a": DEAF})
    ended, waited = threading.Event(), SimpleQueue[bool]()

    def listen(step: HostProgress) -> None:
        if step.stage == "record":
            fleet.stop.request()
            fleet.stop.request()
            waited.put(ended.wait(PATIENCE))

    fleet.listener = listen
    (line,) = [line for line in fleet.collect()["a"].outcomes if line.pid is None]
    ended.set()
    assert waited.get(timeout=PATIENCE) and line.reason == "interrupted"


def test_what_is_told_is_told_in_order_before_the_end_and_nothing_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[int] = []
    with Teller(heard.append) as patient:
        for number in range(1000):
            patient.tell(number)
    assert heard == list(range(1000))

    def stuck(number: int) -> None:
        heard.append(number)
        release.wait(PATIENCE)

    heard.clear()
    release = threading.Event()
    monkeypatch.setattr(teller, "_LAST_LINES", 0.01)
    with Teller(stuck) as impatient:
        impatient.tell(1)
        impatient.tell(2)
    release.set()
    impatient._thread.join(PATIENCE)
    assert not impatient._thread.is_alive() and heard in ([], [1])


@pytest.fixture
def full() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that takes nothing more."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while os.write(write, bytes(1)):
            pass
    os.set_blocking(write, True)
    yield read, write
    os.close(read)
    os.close(write)


def test_a_line_that_nobody_takes_holds_no_lock_of_the_stream(
    full: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = full
    free = threading.Event()
    with os.fdopen(write, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        telling = threading.Thread(target=PlainLines(), args=(HostProgress("a", "failed", "x"),), daemon=True)
        telling.start()
        telling.join(0.1)
        assert telling.is_alive()

        def use() -> None:
            stream.buffer.write(b"y")
            free.set()

        threading.Thread(target=use, daemon=True).start()
        is_free = free.wait(PATIENCE)
        told = os.read(read, 1 << 20)
        telling.join(PATIENCE)
    told += os.read(read, 1 << 20)
    assert is_free and told.lstrip(b"\0") == b"a: failed: x\ny"


def test_ctrl_c_ends_a_run_whose_lines_nobody_takes(full: tuple[int, int], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hprofiler", "-j", "text:no-such-thing-anywhere", "-o", "out"]
    run = subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=full[1], stderr=full[1])
    try:
        page = tmp_path / "out" / "report.html"
        until = time.monotonic() + PATIENCE
        while not page.exists() and time.monotonic() < until:
            threading.Event().wait(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == 130
    finally:
        run.kill()
        run.wait()
