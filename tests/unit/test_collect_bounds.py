"""Of all that a host sends after its recording there is an end: of its time, its bytes, its processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice

import pytest

from hprofiler.agent import MAX_RECORDED
from hprofiler.base.errors import HostError
from hprofiler.collect import fetching
from hprofiler.collect.care import USUAL
from hprofiler.collect.last_limit import LastLimit
from hprofiler.collect.our_time import OurTime
from hprofiler.collect.visit import Visit
from hprofiler.model import HostResult, Outcome, Status
from tests.unit.limits import Limits
from tests.unit.stand_in import SAMPLING, Fleet, Named, Sink, StandIns

BEGIN = "hello(); found(7); prepared(7); recording(7)\n"
END = "outcome(7); say('done', left=[]); read()\n"
DRIPS = f"{BEGIN}profile(7, b'', size=512 << 20)\nwhile True: out(b'x' * 1000); time.sleep(0.01)"
OF_A_PART = 30.0
"""Seconds that each part of what drips takes: far less than it may."""
MakeFleet = Callable[[str], Fleet]


@pytest.fixture
def fleet(tmp_path) -> Iterator[MakeFleet]:
    stand_ins = StandIns(tmp_path)
    yield lambda body: Fleet(stand_ins, 60.0, {"one": body})
    stand_ins.clean()


def host_line(result: HostResult) -> Outcome:
    (line,) = [line for line in result.outcomes if line.pid is None]
    return line


@pytest.fixture
def dripped(fleet: MakeFleet, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A host whose every part comes in time, and whose parts never end."""
    monkeypatch.setattr(fetching, "PART", 1000)
    hosts, dripping, keep = fleet(DRIPS), threading.Event(), Sink.profile

    class Slow(Named):
        def open(self, command):
            channel = super().open(command)
            read = channel.read

            def slowly(size):
                if dripping.is_set():
                    limits.pass_time(OF_A_PART)
                return read(size)

            channel.read = slowly
            return channel

    def begin(sink, *profile):
        dripping.set()
        return keep(sink, *profile)

    monkeypatch.setattr(Sink, "profile", begin)
    hosts.reach = replace(hosts.reach, transport_for=Slow)
    return hosts


def test_parts_that_come_in_time_give_the_whole_no_more_of_it(dripped: Fleet) -> None:
    line = host_line(dripped.collect()["one"])
    seconds = USUAL.fetching(60.0, 1)
    assert (line.status, line.stage) == (Status.FAILED, "fetch")
    assert line.reason == f"it did not send all that it had recorded within {seconds:.0f} s"
    assert "--timeout" in line.remedy and seconds == 1200.5


def test_the_first_stop_bounds_what_is_fetched_after_it(
    dripped: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, bounded, within = threading.Event(), threading.Event(), LastLimit.within

    def bound(limit, seconds, why):
        within(limit, seconds, why)
        if dripped.stop.level:
            bounded.set()

    def listen(step):
        if step.stage == "fetch" and not stopped.is_set():
            stopped.set()
            dripped.stop.request()
            assert bounded.wait(30)

    monkeypatch.setattr(LastLimit, "within", bound)
    dripped.listener = listen
    line = host_line(dripped.collect()["one"])
    assert line.reason == "interrupted; it did not send all that it had recorded within 240 s"


SHORT_AND_LAST = 2


@pytest.mark.parametrize("taken", [0, 1, None], ids=["nothing", "a piece", "all"])
def test_a_machine_that_is_slow_to_keep_what_came_gives_no_host_up(
    fleet: MakeFleet, limits: Limits, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    """Nor does one that waits long for a turn to convert: all limits are over, and were not the host's."""
    sends = "profile(7, b'a' * 600_000); profile(7, b'b', event='alloc', source='alloc'); "
    hosts = fleet(BEGIN + sends + END)
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"))
    keep, over = hosts.sink.profile, heard_of(monkeypatch)

    def slow(host, recording, pieces, queue):
        some = list(islice(pieces, taken))
        if recording.event == "cpu":
            limits.pass_time(10_000)
            for _ in range(SHORT_AND_LAST):
                assert over.acquire(timeout=30)
        return keep(host, recording, chain(some, pieces), queue)

    hosts.sink.profile = slow  # type: ignore[method-assign]
    result = hosts.collect()["one"]
    assert [(line.pid, line.status) for line in result.outcomes] == [(7, Status.OK)]
    assert hosts.sink.sizes == {("one", 7, "cpu"): 600_000, ("one", 7, "alloc"): 1}


def test_a_sink_s_queue_is_that_of_the_host(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, queue, queued = fleet(f"{BEGIN}profile(7, b'a'); {END}"), OurTime.queue, []
    keep = hosts.sink.profile

    def counted(ours):
        queued.append(ours)
        return queue(ours)

    def waits(host, recording, pieces, queue):
        with queue():
            return keep(host, recording, pieces, queue)

    monkeypatch.setattr(OurTime, "queue", counted)
    hosts.sink.profile = waits  # type: ignore[method-assign]
    assert [line.status for line in hosts.collect()["one"].outcomes] == [Status.OK]
    assert len(queued) == 1 and hosts.sink.sizes == {("one", 7, "cpu"): 1}


def test_a_host_that_falls_silent_while_its_first_piece_is_kept_is_given_up(
    fleet: MakeFleet, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = fleet(f"{BEGIN}profile(7, b'a', size=2)\nwhile True: read()")
    end, over = OurTime._end, heard_of(monkeypatch)

    def keep(host, recording, pieces, queue):
        next(pieces)
        limits.pass_time(10_000)
        for _ in range(SHORT_AND_LAST):
            assert over.acquire(timeout=30)
        monkeypatch.setattr(OurTime, "_end", given_back)
        return {"bytes": len(next(pieces))}

    def given_back(ours):
        end(ours)
        limits.pass_time(61)

    hosts.sink.profile = keep  # type: ignore[method-assign]
    line = host_line(hosts.collect()["one"])
    assert (line.status, line.stage) == (Status.FAILED, "fetch")
    assert line.reason.startswith("timed out after 70.5 s")


def heard_of(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released whenever a limit was over and whatever comes of it has been done."""
    over = threading.Semaphore(0)
    for kind in (Visit, LastLimit):
        expire = kind._expire  # type: ignore[attr-defined]

        def expired(limit, *told, expire=expire):
            expire(limit, *told)
            over.release()

        monkeypatch.setattr(kind, "_expire", expired)
    return over


def test_what_was_sent_before_the_end_is_not_kept_after_it(
    fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = "def out(data): stdout.write(data)\n"
    both = "profile(7, b'a'); profile(7, b'b', event='alloc', source='alloc'); stdout.flush(); read()"
    hosts = fleet(BEGIN + together + both)
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"))
    keep, abort, aborted = hosts.sink.profile, Visit.abort, threading.Event()

    def abort_and_say(visit, why):
        abort(visit, why)
        aborted.set()

    def slow(host, recording, pieces, queue):
        totals = keep(host, recording, pieces, queue)
        if recording.event == "cpu":
            hosts.stop.request()
            hosts.stop.request()
            assert aborted.wait(30)
        return totals

    monkeypatch.setattr(Visit, "abort", abort_and_say)
    hosts.sink.profile = slow  # type: ignore[method-assign]
    result = hosts.collect()["one"]
    assert hosts.sink.sizes == {("one", 7, "cpu"): 1}
    assert [recording.event for recording in result.recordings] == ["cpu"]


@pytest.mark.parametrize("what", ["profiles", "raw recordings"])
def test_a_host_fills_no_disk(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    most, bytes_ = ("MOST_PROFILES", 5 + fetching.SECOND) if what == "profiles" else ("MOST_RAW", 5)
    monkeypatch.setattr(fetching, most, bytes_)
    sends = "profile(7, b'four'); profile(7, b'aa', event='alloc', source='alloc'); raw(7, b'FLR...'); "
    hosts = fleet(BEGIN + sends + END)
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"), keep_raw=True)
    (line,) = hosts.collect()["one"].outcomes
    assert (line.status, line.stage) == (Status.DEGRADED, "fetch")
    assert line.reason == f"not kept: its host has more than 0 MiB of {what}"
    assert "record fewer processes" in line.remedy
    assert ("--keep-raw" in line.remedy) == (what == "raw recordings")
    left_out = "alloc" if what == "profiles" else "recording.jfr"
    assert {name for _, _, name in hosts.sink.sizes} == {"cpu", "alloc", "recording.jfr"} - {left_out}


def test_a_host_fills_no_memory_with_timelines(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_PROFILES", 2 + 40 * fetching.SECOND)
    timeline = "b'x', timeline=[1] * 20"
    hosts = fleet(f"{BEGIN}profile(7, {timeline}); profile(7, {timeline}, event='alloc'); {END}")
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"))
    result = hosts.collect()["one"]
    assert [len(recording.timeline) for recording in result.recordings] == [20, 20]
    monkeypatch.setattr(fetching, "MOST_PROFILES", 1 + 40 * fetching.SECOND)
    (line,) = hosts.collect()["one"].outcomes
    assert line.reason == "not kept: its host has more than 0 MiB of profiles"


def test_more_processes_than_an_agent_records(fleet: MakeFleet) -> None:
    pids = f"*range(1, {MAX_RECORDED + 2})"
    hosts = fleet(f"hello(); found({pids}); prepared({pids}); read()")
    assert f"more than {MAX_RECORDED} processes" in host_line(hosts.collect()["one"]).reason


def test_what_a_host_says_that_it_found_gives_it_no_more_time_than_it_can_use() -> None:
    for seconds in (USUAL.attaching, USUAL.folding, USUAL.fetching, USUAL.fetching_after_stop):
        assert seconds(30.0, 10_000) == seconds(30.0, MAX_RECORDED) > seconds(30.0, MAX_RECORDED - 1)


class Waiting:
    """Limits that are over when the test says so."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []

    def after(self, seconds: float, action: Callable[[], None]) -> int:
        self.set.append((seconds, action))
        return len(self.set)

    def cancel(self, number: int | None) -> None:
        pass


def test_what_is_our_own_doing_gives_a_host_as_much_again_at_most():
    """It chooses how dear it is to keep what it sends."""
    dog, given_up, our_time = Waiting(), [], OurTime(lambda seconds, queued: None)
    last = LastLimit(dog, given_up.append, our_time)
    last.within(30.0, HostError("fetch", "too slow"))
    with our_time.ours():
        dog.set[-1][1]()
        last.put_off(25.0, 0.0)
        dog.set[-1][1]()
        assert not given_up, "it was our doing"
        last.put_off(25.0, 0.0)
        seconds, action = dog.set[-1]
        assert 59 < seconds <= 60
        action()
    assert [why.reason for why in given_up] == ["too slow"]


def test_what_other_hosts_have_their_turns_for_is_given_back_without_end():
    """Of a thousand hosts the last one waits longest, and would lose what it recorded."""
    dog, given_up = Waiting(), []
    our_time = OurTime(lambda seconds, queued: last.put_off(seconds, queued))
    last = LastLimit(dog, given_up.append, our_time)
    last.within(30.0, HostError("fetch", "too slow"))
    last.put_off(100.0, 0.0)
    assert 59 < dog.set[-1][0] <= 60, "that was all"
    with our_time.ours():
        for _ in range(10):
            with our_time.queue():
                dog.set[-1][1]()
                assert not given_up
        seconds, action = dog.set[-1]
        assert 59 < seconds <= 60.1, "all that was ours was the queue's"
        last.put_off(60.0, 50.0)
        seconds, action = dog.set[-1]
        assert 109 < seconds <= 110.1
        action()
    assert [why.reason for why in given_up] == ["too slow"]
