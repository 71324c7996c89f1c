"""The record of what was done: its lines, its file, and what agents tell for it. The agents are stand-ins."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hprofiler.agent.checks import Audited, AuditEntry, parse_audited
from hprofiler.agent.wire import BadEvent
from hprofiler.base.errors import HostError, UsageError
from hprofiler.base.passwords import hide_values
from hprofiler.collect import Audit
from hprofiler.collect.audit import VisitAudit, in_words
from hprofiler.model import Host, Sampling, Status
from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.options import SshOptions
from tests.unit.stand_in import Fleet, Named, StandIns

PATIENCE = 60
RECORDS = "prepared(7); recording(7); profile(7, b'x'); outcome(7); say('done', left=[])"
ENTRY = {"time": 1e9, "what": "attach", "pid": 7, "detail": "load /tmp/x.so"}


def hprofiler(*words: object, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hprofiler", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=before)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def audited(stand_ins: StandIns, body: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    fleet = Fleet(stand_ins, 60.0, {"a": body})
    fleet.reach = replace(fleet.reach, audit=Audit(out, run="r"))
    fleet.collect()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def told(last: bool = False, dropped: int = 0, entries: int = 1) -> str:
    return f"say('audited', entries=[{ENTRY!r}] * {entries}, dropped={dropped}, last={last})"


def test_what_was_done_is_recorded_in_its_order(stand_ins):
    """What an agent tells comes between anything else, and at last after `bye`."""
    body = f"hello(); {told()}; found(7); {RECORDS}; {told(dropped=3)}; read(); {told(last=True)}"
    found = audited(stand_ins, body)
    assert {line["host"] for line in found} == {"a"} and {line["run"] for line in found} == {"r"}
    whats = [(line["by"], line["what"]) for line in found]
    assert whats[:2] == [("coordinator", "connect"), ("coordinator", "command")]
    assert found[0]["detail"].endswith(" on this machine"), "as whom and where to"
    requests = [line["detail"].split()[0] for line in found if line["what"] == "request"]
    assert requests[0] == "hello" and requests[-1] == "bye"
    assert {"find", "put", "prepare", "start"} <= set(requests)
    attaches = [line for line in found if line["by"] == "agent"]
    assert [(one["pid"], one["detail"]) for one in attaches] == [(7, "load /tmp/x.so")] * 3
    assert {one["host_time"][:4] for one in attaches} == {"2001"}
    assert whats.index(("agent", "attach")) < len(whats) - 5 and whats[-1] == ("agent", "attach")
    times = [line["time"] for line in found]
    assert times == sorted(times) and times[0][:4] != "2001"
    assert any(line["what"] == "dropped" and "3 more" in line["detail"] for line in found)


@pytest.mark.parametrize("end", ["sys.exit(9)", "os.kill(os.getpid(), 9)"])
def test_what_an_agent_told_before_it_was_killed_is_there_and_that_the_rest_is_missing(stand_ins, end):
    found = audited(stand_ins, f"hello(); {told()}; found(7); read(); {end}")
    assert [line["what"] for line in found if line["by"] == "agent"] == ["attach"]
    assert found[-1]["what"] == "dropped" and "without telling the rest" in found[-1]["detail"]


def test_the_record_of_a_busy_host_is_whole(stand_ins):
    found = audited(stand_ins, f"HOST['load'] = 1e6; hello(); found(7); read(); {told(last=True)}")
    assert (found[-1]["by"], found[-1]["what"]) == ("agent", "attach"), found


def test_the_record_of_a_visit_that_fails_here_is_whole(stand_ins):
    """Whoever sends nonsense is let go, and still heard."""
    found = audited(stand_ins, f"hello(); read(); say('ready'); {told(last=True)}; read()")
    assert (found[-1]["by"], found[-1]["what"]) == ("agent", "attach"), found


@pytest.mark.parametrize(
    "lie",
    [
        {"entries": [{"time": 1, "what": "x", "detail": ""}] * 10_001},
        {"entries": [{"time": "now", "what": "x", "detail": ""}]},
        {"entries": [{"time": 1, "what": 7, "detail": ""}]},
        {"dropped": -1},
        {"dropped": 0},
    ],
)
def test_an_agents_record_is_checked(lie):
    good = {"entries": [], "dropped": 1, "last": False}
    assert parse_audited(good).dropped == 1
    with pytest.raises(BadEvent):
        parse_audited({**good, **lie})


def test_a_host_cannot_take_the_room_of_the_others():
    out = io.StringIO()
    audit = Audit(out)
    many = Audited((AuditEntry(1e9, "file", None, "x"),) * 10_000, 0, False)
    for _ in range(11):
        audit.agent_did("flood", many)
    audit.agent_did("other", Audited(many.entries[:1], 0, True))
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["what"] for line in found[100_000:]] == ["file", "dropped", "file"][1:]
    assert found[-1]["host"] == "other"


def test_requests_are_told_without_their_bulk():
    sampling = asdict(Sampling(("cpu", "alloc"), 99, 7.5, wall_interval=10))
    how = 'frequency=99 duration=7.5 engine="auto" wall_interval=10 keep_raw=false'
    asked = in_words({"type": "prepare", "sampling": sampling, "processes": [{"pid": 7}], "blobs": {}})
    assert asked == f"prepare events=cpu,alloc {how} pids=7"
    assert in_words({"type": "clean", "kept": True, "dry": True}) == "clean kept=true dry=true"
    assert in_words({"type": "clean", "only": ["file:1:2"]}) == 'clean only=["file:1:2"]'
    assert (
        in_words({"type": "put", "name": "x", "sha256": "ab", "size": 3}) == 'put name="x" sha256="ab" size=3'
    )


def test_what_is_cut_says_so(tmp_path):
    audit = Audit.append_to(tmp_path / "audit")
    for length in (4096, 5000):
        audit.note("h", "command", "x" * length)
    _, whole, cut = (line["detail"] for line in lines(tmp_path / "audit"))
    assert whole == "x" * 4096 and cut == f"{whole}… (5000 characters)"


def test_the_record_is_its_owners_alone(tmp_path):
    Audit.append_to(tmp_path / "audit").note("h", "connect", "h")
    (tmp_path / "audit").chmod(0o644)
    Audit.append_to(tmp_path / "audit").note("h", "connect", "h")
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600
    found = lines(tmp_path / "audit")
    assert [line["what"] for line in found] == ["begin", "connect"] * 2
    first, _, second, _ = (line["run"] for line in found)
    assert first != second


def test_a_record_that_is_not_the_users_own_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("no/folder", "link", "pipe"):
        with pytest.raises(UsageError, match="--audit"):
            Audit.append_to(tmp_path / name)
    if os.geteuid() == 0:  # others have no files to try
        (tmp_path / "file").touch()
        os.chown(tmp_path / "file", 12345, 12345)
        with pytest.raises(UsageError, match="another user's"):
            Audit.append_to(tmp_path / "file")
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_ends_the_record_and_nothing_else():
    lost: list[str] = []
    with open("/dev/full", "w") as full:
        audit = Audit(full, lost.append)
        for _ in range(3):
            audit.note("h", "connect", "h")
        audit.end(0, "ok")
    assert lost == ["No space left on device"]


class Hanging(io.StringIO):
    """A file on a file system that hangs from its third line on."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def flush(self) -> None:
        if self.getvalue().count("\n") > 2:
            self.goes_on.wait(PATIENCE)


def test_a_file_system_that_hangs_ends_the_record_and_nothing_else(stand_ins):
    out, lost = Hanging(), []
    fleet = Fleet(stand_ins, 600.0, {"a": f"hello(); found(7); {RECORDS}"})
    audit = Audit(out, lost.append, patience=3.0)
    fleet.reach = replace(fleet.reach, audit=audit)
    result = fleet.collect()["a"]
    audit.end(0, "ok")
    assert not out.goes_on.is_set() and [line.status for line in result.outcomes] == [Status.OK]
    assert len(lost) == 1 and lost[0].startswith("a line was not written within")
    out.goes_on.set()
    assert [json.loads(line)["what"] for line in out.getvalue().splitlines()][:2] == ["connect", "command"]


def test_a_connection_is_closed_also_while_the_record_takes_nothing(stand_ins, monkeypatch):
    closed, goes_on, asks = threading.Event(), threading.Event(), VisitAudit._asks

    class Spied(Named):
        def open(self, command):
            channel = super().open(command)
            close = channel.close
            channel.close = lambda: (close(), closed.set())
            return channel

    def hang(told, request):
        if request["type"] == "bye":
            goes_on.wait(PATIENCE)
        asks(told, request)

    def stop(step):
        if step.stage == "record":
            closed.clear()  # those by which the agent was brought there
            fleet.stop.request()
            fleet.stop.request()

    monkeypatch.setattr(VisitAudit, "_asks", hang)
    fleet = Fleet(stand_ins, 600.0, {"a": "hello(); found(7); prepared(7); recording(7); time.sleep(600)"})
    fleet.reach = replace(fleet.reach, audit=Audit(io.StringIO()), transport_for=Spied)
    fleet.listener = stop
    fleet.collect()
    was_closed = closed.wait(PATIENCE / 2)
    goes_on.set()
    assert was_closed


def test_without_room_for_a_record_no_host_is_touched(tmp_path):
    done = hprofiler(
        "doctor",
        *("-j", "java", "-h", "localhost", "--audit", tmp_path / "audit"),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.returncode == 2 and f"--audit {tmp_path}" in done.stderr, done


def test_it_begins_with_who_and_ends_with_how(tmp_path):
    audit = tmp_path / "audit"
    words = ["doctor", "-j", "re:--password=hunter2", "-h", "127.0.0.1", "--port", "1", "--audit", audit]
    done = hprofiler(*words)
    begin, *between, end = lines(audit)
    assert (begin["what"], begin["uid"], begin["machine"]) == ("begin", os.geteuid(), os.uname().nodename)
    assert begin["detail"].startswith("hprofiler doctor ") and begin["target"] == "hosts 127.0.0.1"
    assert begin["version"] and begin["hosts"] == 1 and begin["pid"] == end["pid"]
    assert "hunter2" not in audit.read_text()
    assert [line["what"] for line in between] == ["connect"]
    assert (end["what"], end["exit_code"], end["detail"]) == ("end", done.returncode, "nothing"), done
    assert len({line["run"] for line in (begin, *between, end)}) == 1


def test_what_was_written_outlives_who_wrote_it(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from hprofiler.collect import Audit\n"
        "audit = Audit.append_to(Path(sys.argv[1])); audit.note('h', 'command', 'x')\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "audit")], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert [line["what"] for line in lines(tmp_path / "audit")] == ["begin", "command"]


def test_what_a_request_or_a_command_has_that_looks_secret_is_not_in_it():
    out = io.StringIO()
    audit = Audit(out)
    selector = {"kind": "regex", "regex": "--password=hunter2"}
    audit.note("h", "request", in_words({"type": "find", "selector": selector}))
    audit.note("h", "command", "ps | grep api-token=hunter2")
    assert "hunter2" not in out.getvalue() and out.getvalue().count("***") == 2
    for line in out.getvalue().splitlines():
        assert json.loads(line)["by"] == "coordinator"


def test_a_record_that_ends_where_nobody_can_be_told_disturbs_no_visit():
    def gone(why: str) -> None:
        raise OSError("the terminal is gone")

    with open("/dev/full", "w") as full:
        Audit(full, gone).note("h", "connect")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--password=hunter2", "--password=***"),
        ("re:api-token: abc", "re:api-token: ***"),
        ("secretKey=x&y", "secretKey=***&y"),
        ("monkey business", "monkey business"),
        ("-j", "-j"),
    ],
)
def test_values_that_look_secret(word, told):
    assert hide_values(word) == told


def test_a_host_whose_way_makes_no_sense_is_recorded_as_tried(tmp_path):
    config = tmp_path / "ssh_config"
    config.write_text("Host spoilt\n  Port abc\n")
    out = io.StringIO()
    told = VisitAudit(Audit(out, run="r"), "spoilt")
    with SshConnector(SshOptions(config_path=config)) as connector:
        transport = told.transport(connector.transport(Host("spoilt", "spoilt")))
        with pytest.raises(HostError):
            transport.connect()
    (line,) = [json.loads(line) for line in out.getvalue().splitlines()]
    assert (line["what"], line["detail"]) == ("connect", "spoilt")


def test_the_way_that_is_recorded_is_the_one_that_is_gone(tmp_path, monkeypatch):
    """ssh_config is asked once: it may run commands, and answer otherwise the next time."""
    config, asked, out = tmp_path / "ssh_config", tmp_path / "asked", io.StringIO()
    config.write_text(f'Match exec "echo >> {asked}"\n  Port 1\n')
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # which paramiko lets such a command read

    def times(transport):
        with pytest.raises(HostError, match="refused"):
            transport.connect()
        times = asked.read_text().count("\n")
        asked.unlink()
        return times

    with SshConnector(SshOptions(config_path=config)) as connector:
        bare, told = (connector.transport(Host("h", "127.0.0.1")) for _ in range(2))
        assert times(bare) == times(VisitAudit(Audit(out, run="r"), "h").transport(told)) > 0
    assert json.loads(out.getvalue())["detail"].endswith("@127.0.0.1:1")
