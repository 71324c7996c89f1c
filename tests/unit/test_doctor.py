"""doctor without a JVM, and what is known of events by their names."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest

from hprofiler.agent.messages import CheckedProcess
from hprofiler.cli.commands.doctor import _record, verdict
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.findings_table import print_findings
from hprofiler.collect.checking import HostChecked, check_only
from hprofiler.collect.limits import Care
from hprofiler.model import Host, HostFacts, Outcome, Process, Sampling, Status
from hprofiler.model.event_names import OWN, known_as, unknown
from tests.unit.command import hprofiler
from tests.unit.stand_in import ANY

FINDING = {"severity": "info", "about": "perf", "text": "perf 6.1", "remedy": ""}
VERDICT = {
    "pid": 7,
    "status": "ok",
    "stage": "record",
    "reason": "",
    "remedy": "",
    "engine": "async-profiler",
    "sources": {"cpu": "perf_events"},
    "findings": [FINDING],
}
CHECKED = {"time": 1e9, "findings": [FINDING], "processes": [VERDICT]}


def check_by(hosts, **more):
    checked = check_only(hosts.hosts, ANY, Sampling(("cpu",), 99, 1.0), hosts.reach, **more)
    return {host.host.name: host for host in checked}


def test_each_host_has_its_own_result(fleet):
    tells = "request = read(); assert request['type'] == 'check' and request['processes'][0]['pid'] == 7"
    say = f"say('checked', **{CHECKED!r})"
    hosts = fleet(
        good=f"hello(); found(7); {tells}; {say}; read()",
        lies=f"hello(); found(8); read(); {say}; read()",
        idle=f"hello(); found(); read(); say('checked', **{dict(CHECKED, processes=[])!r}); read()",
        dead="sys.exit(3)",
    )
    checked = check_by(hosts)
    good = checked["good"]
    assert [one.status for one in good.verdicts] == [Status.OK] and not good.outcomes
    assert good.clock < -1e7 and any(finding.about == "clock" for finding in good.findings)
    for name, words in (
        ("lies", "checked processes that were not asked for"),
        ("dead", "ended with status 3"),
    ):
        (line,) = checked[name].outcomes
        assert line.status is Status.FAILED and words in line.reason, line
    assert [line.status for line in checked["idle"].outcomes] == [Status.IDLE]
    assert checked["idle"].findings
    assert verdict(list(checked.values())) is Exit.PARTIAL


@pytest.mark.parametrize(
    ("engine", "event", "meant"),
    [
        ("async-profiler", "com.acme.Main.step", "choose another event"),
        ("perf", "nosuch", None),
    ],
)
def test_a_doubtful_event_has_a_remedy(fleet, engine, event, meant):
    told = {**CHECKED, "processes": [{**VERDICT, "engine": engine, "sources": {event: event}}]}
    body = f"hello(); found(7); read(); say('checked', **{told!r}); read()"
    (one,) = check_by(fleet(a=body))["a"].verdicts
    doubts = [finding for finding in one.findings if finding.about == "event"]
    assert [finding.severity for finding in doubts] == (["warning"] if meant else [])
    assert all(event in finding.text and meant in finding.remedy for finding in doubts)


@pytest.mark.parametrize(("forced", "code"), [(False, Exit.NOTHING), (True, Exit.OK)])
def test_on_a_busy_host_nothing_would_be_recorded(fleet, forced, code):
    body = f"HOST['load'] = 1e6; hello(); found(7); read(); say('checked', **{CHECKED!r}); read()"
    checked = check_by(fleet(a=body), care=Care(busy=forced))["a"]
    assert verdict([checked]) is code
    (one,) = checked.verdicts
    assert one.engine == ("async-profiler" if forced else "")
    words = shown(checked)
    assert ("a: 0 of 1 process would be recorded as asked, 1 not" in words) is not forced
    assert ("--force-busy" in words) is not forced


RECORDED = """HOST['load'] = 1e6; hello(); found(7)
if {forced}:
    prepared(7); recording(7); profile(7, PROFILE); outcome(7); say('done', left=[])
assert read()['type'] == 'bye'"""


@pytest.mark.parametrize(("forced", "code"), [(False, Exit.NOTHING), (True, Exit.OK)])
def test_a_busy_host_is_recorded_only_by_force(fleet, tmp_path, capsys, forced, code):
    hosts = fleet(a=RECORDED.format(forced=forced))
    assert hosts.record(tmp_path / "run", "--json", *["--force-busy"] * forced) == code
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    busy = [line["remedy"] for line in host["outcomes"] if line["code"] == "host-busy"]
    assert any("--force-busy" in remedy for remedy in busy) is not forced, host["outcomes"]
    assert len(host["recordings"]) == forced


def host(name: str, *statuses: Status, lines=(), findings=()) -> HostChecked:
    processes, verdicts = [], []
    for pid, status in enumerate(statuses, start=10):
        processes.append(Process(name, pid, 1, 0, "yarn", f"executor {pid}"))
        reason = f"process {pid} was started with -XX:+X" if status is not Status.OK else ""
        remedy = "restart it" if reason else ""
        made = {"engine": "async-profiler", "sources": {"cpu": "ctimer"}}
        made["code"] = "attach-disabled" if reason else "recorded"
        verdicts.append(CheckedProcess(pid, status, "prepare", reason, remedy, **made))
    facts = HostFacts(name, "x86_64", "6.1", 2, 1 << 30, "root")
    return HostChecked(Host(name, name), tuple(processes), (), lines, facts, tuple(verdicts), tuple(findings))


def failed_host(name: str) -> HostChecked:
    return HostChecked(Host(name, name), outcomes=(Outcome(name, Status.FAILED, "connect", "refused"),))


@pytest.mark.parametrize(
    ("hosts", "want"),
    [
        ([host("a", Status.OK), host("b")], Exit.OK),
        ([host("a", Status.OK), failed_host("b")], Exit.PARTIAL),
        ([host("a", Status.OK, Status.FAILED)], Exit.PARTIAL),
        ([host("a", Status.DEGRADED)], Exit.PARTIAL),
        ([host("a", Status.FAILED), host("b")], Exit.NOTHING),
        ([failed_host("a")], Exit.NOTHING),
    ],
)
def test_the_exit_code_says_how_much_would_be_recorded(hosts, want):
    assert verdict(hosts) is want


def shown(*hosts: HostChecked, out: Any = None) -> str:
    out = out or io.StringIO()
    print_findings(hosts, out)
    return str(out.getvalue())


def test_processes_with_the_same_codes_are_one_line():
    out = shown(host("a", Status.DEGRADED, Status.DEGRADED))
    who = "executor 10 (pid 10), executor 11 (pid 11): "
    assert f"{who}cpu (ctimer) by async-profiler; process 10 was started" in out and "process 11" not in out


def test_the_json_has_the_documented_shape():
    record = json.loads(json.dumps(_record([host("a", Status.OK, Status.DEGRADED), failed_host("b")], False)))
    assert record["canary"] == {"asked": False, "kinds": []}  # these are no JVMs
    assert record["processes"] == {"found": 2, "ok": 1, "degraded": 1, "failed": 0}
    first, second = record["hosts"]
    assert first["processes"][1]["verdict"] == "degraded" and first["processes"][1]["remedy"] == "restart it"
    assert first["processes"][1]["code"] == "attach-disabled"
    assert second["outcomes"][0]["reason"] == "refused" and second["kernel"] == ""


EVENTS = {
    **{name: name for name in (*OWN, "cycles", "page-faults", "sched:sched_switch", "mem:0x10/8:w", "r1a8")},
    **{name: name for name in ("cpu/cache-misses/u", "java.util.HashMap.get", "a.B.*", "cycles:u")},
    **{name: name for name in ("G1CollectedHeap::allocate", "mem_load_retired.l3_miss")},
    **{name: name for name in ("L1-icache-load-misses", "LLC-loads", "node-prefetches", "mem-stores")},
    **{name: name for name in ("cgroup-switches", "idle-cycles-frontend", "tx-abort", "slots", "user_time")},
    **{"CPU": "cpu", "Page-Faults": "page-faults", "l1-dcache-load-misses": "L1-dcache-load-misses"},
    **{"HEAP": "alloc", "a/b/C.m": "a.b.C.m", "native:malloc": "malloc", "native:cpu_relax": "cpu_relax"},
}


def test_events_are_known_by_name_or_by_form():
    assert dict(zip(EVENTS, map(known_as, EVENTS), strict=True)) == EVENTS
    assert not any(map(unknown, EVENTS))
    assert known_as(known_as("native:Cycles")) == known_as("native:Cycles")


@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ("aloc", "did you mean alloc?; for a function in native code, write native:aloc"),
        ("locks", "did you mean lock?"),
        ("page-fault", "did you mean page-faults?"),
        ("memory", "did you mean alloc or live?"),
        ("malloc", "write native:malloc"),
        ("JVM_*", "events are cpu, alloc, live"),
        ("native:lock", "is not a function in native code"),
        ("native:Cycles", "is not a function in native code"),
        ("cache-miss", "did you mean cache-misses?"),
    ],
)
def test_an_unknown_event_is_refused_before_anything_is_touched(event, meant, tmp_path):
    done = hprofiler("-j", f"pid:{os.getpid()}", "-e", f"cpu,{event}", "-o", tmp_path / "run")
    assert done.returncode == 2 and f"{event!r} is not a" in done.stderr and meant in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_warns_of_events_before_it_connects(tmp_path):
    words = ["-t", "0.1", "-j", "pid:1", "-e", "cpu,a.B.c", "-h", "127.0.0.1", "--port", "1", "-o"]
    said = hprofiler(*words, tmp_path / "run").stderr
    assert said.index("note: to count a.B.c, async-profiler changes its class") < said.index("127.0.0.1")
    assert said.count("note:") == 1, said
