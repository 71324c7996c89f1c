"""A machine on which no more threads can be started: what ends a run is there before it begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from hprofiler.collect import HostProgress
from hprofiler.collect.beside import Beside
from hprofiler.collect.watchdog import Watchdog
from hprofiler.model import HostResult, Outcome, Status
from tests.unit.limits import Limits
from tests.unit.stand_in import Fleet, Named, StandIns
from tests.unit.test_comeback import body

BEGIN = "hello(); found(7); prepared(7)\n"
END = "profile(7, b'half'); outcome(7); say('done', left=[]); read()\n"
GOOD = f"{BEGIN}recording(7); {END}"
STOPS = f"{BEGIN}recording(7); assert read()['type'] == 'stop'; {END}"
DEAF = f"{BEGIN}recording(7); time.sleep(600)"

Refuse = Callable[..., None]
MakeFleet = Callable[..., Fleet]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """From then on no thread is started whose name begins so.

    A mock: the kernel's limits do not hold for root, and for anybody else they count all that he runs.
    """
    start, refused = threading.Thread.start, []

    def start_some(thread: threading.Thread) -> None:
        if thread.name.startswith(tuple(refused)):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    return lambda *names: refused.extend(names or ("hprofiler",))


@pytest.fixture
def fleet(tmp_path) -> Iterator[MakeFleet]:
    stand_ins = StandIns(tmp_path)
    yield lambda **bodies: Fleet(stand_ins, 60.0, bodies)
    stand_ins.clean()


def told(result: HostResult) -> tuple[Outcome, ...]:
    return tuple(line for line in result.outcomes if line.pid is None)


def when_all_record(hosts: Fleet, does: Callable[[], None]) -> None:
    recording = set()

    def listen(step: HostProgress) -> None:
        if step.stage == "record" and step.host not in recording:
            recording.add(step.host)
            if len(recording) == len(hosts.hosts):
                does()

    hosts.listener = listen


def test_time_limits_go_on_and_one_that_blocks_or_fails_costs_no_other(refuse: Refuse) -> None:
    done, release = threading.Event(), threading.Event()

    def fail() -> None:
        raise OSError("it cannot be closed")

    with Beside() as beside, Watchdog(beside) as dog:
        refuse()
        for action in (release.wait, fail, done.set):
            dog.after(0.0, action)
        assert done.wait(60)
        release.set()


@pytest.mark.parametrize("which", ["hprofiler-two", "hprofiler-lease"])
def test_a_host_without_a_thread_has_failed_and_nobody_waits_for_it(
    fleet: MakeFleet, refuse: Refuse, which: str
) -> None:
    hosts = fleet(one=GOOD, two=GOOD)
    refuse(which)
    results = hosts.collect()
    (line,) = told(results["two"])
    assert line.status is Status.FAILED
    assert line.reason == "no more threads can be started on this machine" and "ulimit -u" in line.remedy
    assert (told(results["one"]) == ()) == (which == "hprofiler-two")


def test_a_host_that_is_lost_is_tried_again(fleet: MakeFleet, tmp_path) -> None:
    hosts, connects = fleet(one=body(tmp_path, 100_000)), []

    class Starved(Named):
        """As where the second connection cannot start its own thread."""

        def connect(self) -> None:
            connects.append(self)
            if len(connects) == 2:
                raise RuntimeError("can't start new thread")
            super().connect()

    hosts.reach = replace(hosts.reach, transport_for=Starved)
    result = hosts.collect()["one"]
    assert [line.status for line in result.outcomes if line.pid] == [Status.OK] and len(connects) == 3


def test_the_first_stop_reaches_all_hosts(fleet: MakeFleet, refuse: Refuse) -> None:
    hosts = fleet(**dict.fromkeys("abcdefgh", STOPS))

    def stop() -> None:
        refuse()
        hosts.stop.request()

    when_all_record(hosts, stop)
    for result in hosts.collect().values():
        assert [(line.pid, line.status) for line in result.outcomes] == [(7, Status.OK)]


def test_the_second_stop_ends_the_run(fleet: MakeFleet, refuse: Refuse) -> None:
    hosts = fleet(**dict.fromkeys("abcdefgh", DEAF))

    def stop() -> None:
        refuse()
        hosts.stop.request()
        hosts.stop.request()

    when_all_record(hosts, stop)
    for result in hosts.collect().values():
        assert [line.reason for line in told(result)] == ["interrupted"]


def test_a_host_is_given_up_in_time(fleet: MakeFleet, refuse: Refuse, limits: Limits) -> None:
    hosts = fleet(one=DEAF)

    def time_passes() -> None:
        refuse()
        limits.pass_time(10_000)

    when_all_record(hosts, time_passes)
    (line,) = told(hosts.collect()["one"])
    assert line.status is Status.FAILED and line.reason.startswith("timed out after ")
    assert "whether it left anything is not known: no more threads" in line.reason
