"""What `check` reports of a process is what a run of the same moment comes to, and it touches nothing.

Its decisions are those of `prepare`: what the agent refuses is tested in test_agent_refuses.py.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent, Event, good
from tests.contract.asking import chosen, sampling
from tests.contract.conftest import OTHER_USER
from tests.contract.perf_engine import FRAME_POINTERS, perfmap, processes
from tests.contract.test_agent_perf_refuses import WRAPPER, program, with_another
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

NO_ATTACH = "-XX:+DisableAttachMechanism"
WITHOUT_PERF_EVENTS = [sys.executable, str(Path(__file__).with_name("without_perf_events.py"))]


class Both:
    """Asks an agent what would come of a process, and then lets it come."""

    def __init__(self, agent: Agent, library: bytes) -> None:
        self._agent = agent
        self._library = library

    def check(
        self, found: Sequence[Event], wanted: dict[str, Any], version: str | None = None, **more: Any
    ) -> Event:
        """All that `check` tells: what is wrong has a remedy. The library is only named."""
        blobs = {"async-profiler": hashlib.sha256(self._library).hexdigest()}
        request = {"sampling": wanted, "blobs": blobs, "processes": chosen(found)}
        self._agent.send("check", **request, **more, versions={"async-profiler": version} if version else {})
        told = self._agent.expect("checked")
        of_processes = [finding for one in told["processes"] for finding in one["findings"]]
        for finding in [*told["findings"], *of_processes]:
            assert finding["remedy"] or finding["severity"] in ("ok", "info"), finding
        return told

    def run(self, found: Sequence[Event], wanted: dict[str, Any], version: str | None) -> tuple[Event, Event]:
        """The outcome of the only process, and its `started` event or {}."""
        blobs = {"async-profiler": self._agent.put(self._library), "perfmap": self._agent.put(perfmap())}
        request = {"sampling": wanted, "blobs": blobs, "processes": chosen(found)}
        self._agent.send("prepare", **request, versions={"async-profiler": version} if version else {})
        told: list[Event] = []
        while (event := self._agent.next()[0])["type"] != "ready":
            told.append(event)
        self._agent.send("start")
        result = self._agent.collect()
        (outcome,) = [*told, *result.outcomes.values()]
        return outcome, result.started.get(found[0]["pid"], {})

    def agree(self, target: Any, version: str | None = None, **wanted: Any) -> Event:
        """What `check` says of a process, which is what a run comes to."""
        (found,) = processes(self._agent, target)
        before = traces(found, self._agent.process.pid)
        (checked,) = self.check([found], sampling(**wanted), version)["processes"]
        assert traces(found, self._agent.process.pid) == before
        outcome, started = self.run([found], sampling(**wanted), version)
        same(checked, outcome, started)
        return checked


def traces(process: Event, session: int) -> tuple[Any, ...]:
    """What an attach, a signal or a file of this session (its agent's pid) would change beside a process."""
    pid, number = process["pid"], process["namespace_pid"]
    own = (f".hprofiler-run-{session}-", f".attach_pid{number}", f".java_pid{number}")
    tmp = Path(f"/proc/{pid}/root/tmp")
    beside = sorted(path.name for path in tmp.iterdir() if path.name.startswith(own))
    return attach.profiler_libraries(pid), beside, procs.Identity.of(pid)


def same(checked: Event, outcome: Event, started: Event) -> None:
    """That what was foreseen is what came."""
    if outcome["status"] == "failed":
        keys = ("status", "stage", "reason", "remedy")
        assert {key: checked[key] for key in keys} == {key: outcome[key] for key in keys}
        return
    assert (checked["engine"], checked["sources"]) == (started["engine"], started["sources"]), outcome
    if checked["status"] == "ok":
        assert good(outcome)
        return
    assert (checked["status"], outcome["status"]) == ("degraded", "degraded"), outcome
    for remedy in filter(None, checked["remedy"].split("; ")):
        assert remedy in outcome["remedy"], (checked, outcome)


@pytest.fixture
def both(agent, library_file):
    return Both(agent, library_file.read_bytes())


@pytest.fixture(scope="module")
def plain():
    """A JVM that nothing speaks against."""
    made = Burner(load=0.2)
    yield made
    made.kill()


@pytest.mark.parametrize(
    ("events", "engine", "status"),
    [
        (["cpu"], "auto", "ok"),
        (["cpu", "alloc", "lock", "wall"], "async-profiler", "ok"),
        (["page-faults", "cpu"], "auto", "degraded"),
        (["cpu", "minor-faults"], "async-profiler", "degraded"),
        (["no:such"], "perf", "failed"),
        (["alloc"], "perf", "failed"),
        (["cpu"], "perf", "degraded"),
        (["cpu", "alloc"], "perf", "degraded"),
        (["sched:*"], "auto", "failed"),
    ],
)
def test_of_a_plain_jvm(both, plain, events, engine, status):
    checked = both.agree(plain, events=events, engine=engine)
    assert checked["status"] == status, checked


@pytest.mark.parametrize(("engine", "used"), [("auto", "perf"), ("async-profiler", "")])
def test_where_attach_is_disabled(both, burn, engine, used):
    checked = both.agree(burn(options=[NO_ATTACH, FRAME_POINTERS], load=0.2), engine=engine)
    assert checked["engine"] == used, checked
    assert any(NO_ATTACH in finding["text"] for finding in checked["findings"])


def test_of_a_jvm_whose_perf_events_are_filtered(both, burn):
    checked = both.agree(burn(user=OTHER_USER, prefix=WITHOUT_PERF_EVENTS, load=0.2))
    assert (checked["status"], checked["sources"]) == ("degraded", {"cpu": "ctimer"})
    assert any(finding["about"] == "seccomp" for finding in checked["findings"])


def test_into_a_jvm_that_somebody_else_profiles_nothing_is_loaded(both, burn, library_file, tmp_path):
    """perf looks at it from outside, and its own command names what it compiled."""
    theirs = tmp_path / "libquiet.so"
    shutil.copy(library_file, theirs)
    burner = burn(options=[FRAME_POINTERS])
    attach.execute(burner.outer.pid, "load", str(theirs), "true", f"start,event=ctimer,file={tmp_path}/out")
    checked = both.agree(burner)
    assert checked["engine"] == "perf", checked
    assert (
        "is active in process" in checked["reason"] and "so hprofiler loads no library" in checked["reason"]
    ), checked
    assert "stop it first (asprof stop)" in checked["remedy"], checked
    maps = Path(f"/proc/{burner.outer.pid}/maps").read_text()
    assert str(theirs) in maps and "/.hprofiler-" not in maps
    assert "is running" in attach.profiling_status(burner.outer.pid, str(theirs))


def test_of_a_profiler_that_is_known_to_crash_it(both, burn):
    checked = both.agree(burn(jdk=25), version="3.0", engine="async-profiler")
    assert "known to crash JDK 25" in checked["reason"] and checked["remedy"]


def test_where_perf_is_no_use(private, library_file, plain, tmp_path):
    words = (*with_another(program(tmp_path / "perf", WRAPPER)), private, "--any-library")
    agent = Agent([str(word) for word in words])
    try:
        agent.hello()
        two = Both(agent, library_file.read_bytes())
        assert "perf not found for kernel" in two.agree(plain, engine="perf")["reason"]
        told = two.check([], sampling(engine="perf"))["findings"]
        (of_perf,) = [finding for finding in told if finding["about"] == "perf"]
        assert of_perf["severity"] == "error" and of_perf["remedy"]
    finally:
        agent.end()


def test_of_the_host_and_the_jvm(both, agent, plain):
    told = both.check(processes(agent, plain), sampling())
    about = {finding["about"] for finding in told["findings"]}
    assert {"user", "kernel", "perf", "load", "memory", "folder"} <= about
    (jvm,) = [one for one in told["processes"][0]["findings"] if one["about"] == "jvm"]
    assert "JDK" in jvm["text"] and "threads" in jvm["text"]


def texts(checked: Event, about: str) -> str:
    """What is told of a process, or of the host, under one word."""
    return "\n".join(one["text"] for one in checked["findings"] if one["about"] == about)


def test_of_a_jvm_that_publishes_nothing_of_itself(both, agent, burn):
    (checked,) = both.check(processes(agent, burn(options=["-XX:-UsePerfData"])), sampling())["processes"]
    assert "vendor unknown" in texts(checked, "jvm"), checked


@pytest.mark.parametrize(
    ("disk", "words"), [("true", "records in this JVM (/"), ("false", "may record in it")]
)
def test_of_a_jvm_that_records_itself(both, agent, burn, tmp_path, disk, words):
    options = [f"-XX:StartFlightRecording=disk={disk}", f"-XX:FlightRecorderOptions=repository={tmp_path}"]
    (checked,) = both.check(processes(agent, burn(jdk=17, options=options)), sampling())["processes"]
    told = texts(checked, "profiler")
    assert "Flight Recorder (JFR)" in told and words in told, checked


@pytest.mark.parametrize(("options", "warns"), [([], True), ([NO_ATTACH], False)])
def test_that_a_jvm_warns_only_of_what_is_loaded(both, agent, burn, options, warns):
    found = processes(agent, burn(jdk=21, options=options))
    (checked,) = both.check(found, sampling(engine="perf"))["processes"]
    assert ("will warn on its standard error" in texts(checked, "flags")) == warns, checked


def test_async_profiler_is_not_advised_where_it_is_kept_out(both, burn):
    checked = both.agree(burn(options=[NO_ATTACH], load=0.2))
    assert checked["engine"] == "perf" and "stacks may be broken" in checked["reason"], checked
    assert "PreserveFramePointer" in checked["remedy"] and "or use async-profiler" not in checked["remedy"]


def test_by_capabilities_alone_nothing_has_a_name(both, start_agent, library_file, plain):
    """The kernel would have it sampled: that it would not is no reason."""
    held = ["--inh-caps=+perfmon", "--ambient-caps=+perfmon"]
    agent = start_agent(user=OTHER_USER, rights=held)
    agent.hello()
    told = Both(agent, library_file.read_bytes()).check(processes(agent, plain), sampling(engine="perf"))
    assert "the agent has the capabilities CAP_PERFMON" in texts(told, "user"), told
    (checked,) = told["processes"]
    assert checked["status"] == "failed" and "nothing of it would have a name" in checked["reason"], checked
    assert agent.bye() == 0


@pytest.mark.parametrize(
    ("version", "words"), [("4.4", "async-profiler 4.4 is not known"), (None, "which release")]
)
def test_of_the_release_that_would_be_loaded(both, agent, plain, version, words):
    (checked,) = both.check(processes(agent, plain), sampling(), version)["processes"]
    assert any(words in one["text"] for one in checked["findings"] if one["about"] == "profiler"), checked


@pytest.mark.parametrize(("cores", "severity"), [(0.5, "ok"), (999, "warning")])
def test_more_processors_than_there_are_are_no_limit(both, cores, severity):
    told = both.check([], sampling(), agent_cpu=cores)["findings"]
    (limits,) = [finding for finding in told if finding["about"] == "agent"]
    assert limits["severity"] == severity and f"takes {cores} processors" in limits["text"], limits


def test_of_a_root_that_has_not_all_rights(private, library_file):
    agent = Agent(["setpriv", "--bounding-set", "-sys_ptrace,-kill", str(private), "--any-library"])
    try:
        agent.hello()
        told = Both(agent, library_file.read_bytes()).check([], sampling())["findings"]
        texts = [finding["text"] for finding in told if finding["about"] == "user"]
        assert any("without CAP_KILL, CAP_SYS_PTRACE" in text for text in texts), texts
    finally:
        agent.end()
