"""The command line with the real agent and a JVM on this machine: what it keeps, says and leaves."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import termios
import threading
import time

import pytest

from hprofiler._flamegraph import Profile
from tests.burners.burner import Burner
from tests.contract import real
from tests.contract.agent_driver import running
from tests.lab import attach, procs
from tests.lab.chaos.faults import clock_library

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
HPROFILER = [sys.executable, "-m", "hprofiler"]
SECRET = "hunter2-xyz"
LONG = 600


@pytest.fixture
def burner(monkeypatch, keep_program):
    """It has secrets in its options, its arguments and its environment."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Dapi.token={SECRET}")
    return keep_program(Burner(load=0.4, options=[f"-Ddb.password={SECRET}"], extra=["--password", SECRET]))


def hprofiler(*words):
    words = [*HPROFILER, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, timeout=4 * procs.PATIENCE, umask=0o022)


def lines(audit):
    return [json.loads(line) for line in audit.read_text().splitlines()]


def test_memory_of_a_process(burner):
    done = hprofiler("memory", burner.pid, "--json", "--times", 2, "--every", "0.1", "--heap")
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    (process,) = told["processes"]
    first, last = process["looks"]
    assert process["pid"] == burner.pid and first["parts"]["heap"]["resident"] > 1 << 18
    assert last["resident"] == sum(part["resident"] for part in last["parts"].values())
    assert not first["jvm"]["histogram"] and last["jvm"]["histogram"]["classes"] and told["classes"]
    assert not told["outcomes"] and SECRET not in done.stdout
    shown = hprofiler("memory", burner.pid)
    assert shown.returncode == 0 and "HEAP" in shown.stdout and "48 MiB at most (-Xmx)" in shown.stdout, shown
    nothing = hprofiler("memory", "-j", f"nothing-{burner.pid}")
    assert nothing.returncode == 4 and "nothing was read" in nothing.stderr


def test_doctor_reports_and_does_nothing(burner, tmp_path):
    audit = tmp_path / "audit"
    done = hprofiler("doctor", "-j", f"pid:{burner.pid}", "--force-busy", "--json", "--audit", audit)
    told = json.loads(done.stdout)
    assert told["processes"]["found"] == 1 and not told["processes"]["failed"], done
    assert done.returncode == (3 if told["processes"]["degraded"] else 0)
    (process,) = told["hosts"][0]["processes"]
    assert (process["pid"], process["engine"]) == (burner.pid, "async-profiler")
    begin, *between, end = lines(audit)
    assert (begin["what"], end["what"], end["exit_code"]) == ("begin", "end", done.returncode)
    assert {"connect", "command", "request"} == {line["what"] for line in between if line["by"] != "agent"}
    assert all(line["pid"] is None for line in between), "no process was touched"
    assert not attach.profiler_libraries(burner.pid)


def test_a_run_after_a_canary(burner, tmp_path):
    audit, folder = tmp_path / "audit", tmp_path / "run"
    words = ["-j", f"pid:{burner.pid}", "-t", 1, "--canary", "--force-busy", "--audit", audit, "-o", folder]
    done = hprofiler("run", *words, "--max-hosts", 1)
    (host,) = json.loads((folder / "run.json").read_text())["hosts"]
    assert [one["process"]["pid"] for one in host["recordings"]] == [burner.pid], done
    assert not host["recordings"][0]["process"]["command"], "it may hold what nobody else is to see"
    well = f"canary: process {burner.pid}"
    assert well in done.stderr and "for 2 s by async-profiler: fine" in done.stderr
    assert [line["status"] for line in host["outcomes"] if line["reason"].startswith(well)] == ["ok"]
    requests = [line["detail"].split()[0] for line in lines(audit) if line["what"] == "request"]
    asked = [name for name in requests if name in ("check", "prepare", "start", "bye")]
    assert asked == ["check", "prepare", "start", "prepare", "start", "bye"]
    starts = [line for line in lines(audit) if line["what"] == "attach" and "start," in line["detail"]]
    assert len(starts) == 2 and {line["pid"] for line in starts} == {burner.pid}
    folders = {line["detail"] for line in lines(audit) if line["what"] == "folder" and line["pid"]}
    made = {path for path in folders if "/.hprofiler-run-" in path}  # others may use the library's
    gone = {line["detail"] for line in lines(audit) if line["what"] == "removed"}
    assert made and made <= gone and not any(os.path.exists(path) for path in made)
    assert not [line for line in lines(audit) if line["what"] == "dropped"]
    assert (lines(audit)[-1]["what"], lines(audit)[-1]["exit_code"]) == ("end", done.returncode)


def test_a_dump_of_a_jvm_at_two_looks(burner, tmp_path):
    audit, folder = tmp_path / "audit", tmp_path / "dump"
    looks = ["--times", 2, "--every", "0.2", "--force-busy"]
    done = hprofiler("dump", "-p", burner.pid, *looks, "--audit", audit, "-o", folder)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1] == str(folder / "report.html")
    assert "1 process on 1 host" in done.stdout and (folder / "report.html").is_file()
    content = (folder / "dump.json").read_text()
    record = json.loads(content)
    assert (record["looks"], record["interrupted"]) == (2, False) and SECRET not in content
    (host,) = record["hosts"]
    assert [(one["process"]["pid"], one["look"], one["kind"]) for one in host["dumps"]] == [
        (burner.pid, 1, "jvm"),
        (burner.pid, 2, "jvm"),
    ]
    for text in (folder / "hosts").rglob("*.txt"):
        assert "Full thread dump" in text.read_text() and stat.S_IMODE(text.stat().st_mode) == 0o600
    did = [(line["what"], line["detail"].split()[:2]) for line in lines(audit) if line["by"] == "agent"]
    assert [words for what, words in did if what == "attach"] == [["1", "threaddump"]] * 2
    assert {what for what, _ in did} <= {"attach", "file", "removed", "signal"}, "nothing is loaded"
    assert not attach.profiler_libraries(burner.pid)


def test_a_dump_that_is_interrupted_keeps_what_there_is(burner, tmp_path):
    folder = tmp_path / "dump"
    words = ["dump", "-p", burner.pid, "--times", 9, "--every", LONG, "--force-busy", "-o", folder]
    run = subprocess.Popen([*HPROFILER, *map(str, words)], stderr=subprocess.PIPE, text=True)
    procs.wait_for("the first look", lambda: any(folder.glob("hosts/*/*-1.txt")))
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=procs.PATIENCE)
    assert run.returncode == 130, said
    record = json.loads((folder / "dump.json").read_text())
    assert record["interrupted"] and [one["look"] for one in record["hosts"][0]["dumps"]] == [1]
    assert not record["hosts"][0]["outcomes"], record


def test_the_run_folder_has_times_unless_they_are_not_wanted(burner, tmp_path):
    begin = time.time()
    for name, words in (("with", []), ("without", ["--no-timeline"])):
        done = hprofiler("-j", f"pid:{burner.pid}", "-t", 1, "--force-busy", "-o", tmp_path / name, *words)
        assert (tmp_path / name / "run.json").is_file(), done
    (host,) = json.loads((tmp_path / "with" / "run.json").read_text())["hosts"]
    assert host["clock"]["offset"] == 0 and [one["pid"] for one in host["pauses"]] == [burner.pid]
    (stored,) = (tmp_path / "with").rglob("*.time")
    assert stored.name == "cpu.time" and (stored.parent / "cpu.pb.gz").is_file()
    times = Profile.open(stored).times
    assert times.samples == host["recordings"][0]["samples"]["taken"]
    assert begin < times.start / 1e6 < times.end / 1e6 < time.time()
    (host,) = json.loads((tmp_path / "without" / "run.json").read_text())["hosts"]
    assert not host["pauses"] and host["recordings"] and not [*(tmp_path / "without").rglob("*.time")]


@pytest.mark.parametrize("hour", [3600, -3600], ids=["ahead", "behind"])
def test_times_are_those_of_the_users_clock(tmp_path, monkeypatch, keep_program, hour):
    """Which is an hour ahead of the host's, or behind it."""
    burner, begin = keep_program(Burner(role="alloc")), time.time() + hour
    for name, value in (("LD_PRELOAD", clock_library()), ("CLOCK_OFF", hour), ("CLOCK_OFF_AFTER", 0)):
        monkeypatch.setenv(name, str(value))
    done = hprofiler("-j", f"pid:{burner.pid}", "-t", 1, "--force-busy", "-o", tmp_path / "run")
    end = time.time() + hour
    (host,) = json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
    clock = host["clock"]
    assert 0 < clock["uncertainty"] < 1, done
    assert clock["offset"] == pytest.approx(-hour, abs=clock["uncertainty"])
    (stored,) = (tmp_path / "run").rglob("*.time")
    times = Profile.open(stored).times
    assert begin < times.start / 1e6 < times.end / 1e6 < end
    (pauses,) = host["pauses"]
    assert pauses["end"] and all(begin < moment / 1e6 < end for moment in pauses["end"])


def test_no_secret_of_the_jvm_is_kept(burner, tmp_path):
    def content(file):
        """As it is, and unpacked."""
        written = file.read_bytes()
        return written + (gzip.decompress(written) if written.startswith(b"\x1f\x8b") else b"")

    folder = tmp_path / "run"
    words = ["-j", f"pid:{burner.pid}", "-t", 1, "--keep-raw", "--force-busy", "-o", folder]
    done = hprofiler(*words)
    (raw,) = folder.rglob("recording.jfr")
    assert Profile.open(raw).total(0) > 0, done
    files = [path for path in folder.rglob("*") if path.is_file()]
    secrets = (SECRET.encode(), b"db.password")
    assert not [path for path in files if any(word in content(path) for word in secrets)]
    assert SECRET not in done.stdout + done.stderr
    assert [path for path in files if not stat.S_IMODE(path.stat().st_mode) & 0o077] == [raw]


class OnTerminal:
    """A command on a terminal of its own, which hangs up when it is told to."""

    def __init__(self, *words):
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [*HPROFILER, *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(theirs)

    def wait_for(self, pattern):
        """Until it has shown that; what it shows later stays unread."""
        shown, found = bytearray(), threading.Event()

        def read():
            while not found.is_set():
                shown.extend(os.read(self._ours, 4096))
                if re.search(pattern, shown):
                    found.set()

        threading.Thread(target=read, daemon=True).start()
        assert found.wait(4 * procs.PATIENCE), bytes(shown)

    def press(self, key):
        """Its exit code, where the key ends it."""
        os.write(self._ours, key)
        threading.Thread(target=self._drain, daemon=True).start()
        return self._process.wait(4 * procs.PATIENCE)

    def _drain(self):
        with contextlib.suppress(OSError):
            while os.read(self._ours, 4096):
                pass

    def hang_up(self):
        """Its exit code."""
        try:
            os.close(self._ours)
            return self._process.wait(4 * procs.PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()


@pytest.mark.parametrize("how", ["SIGTERM", "a terminal that hangs up"])
def test_a_signal_keeps_and_reports_what_was_recorded(burner, tmp_path, how):
    """In the second case by the live display, to a terminal that takes nothing any more."""
    folder = tmp_path / "run"
    words = ["-j", f"pid:{burner.pid}", "-t", LONG, "--force-busy", "-o", folder]
    if how == "SIGTERM":
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with running(*HPROFILER, *map(str, words), **pipes) as process:
            while "recording" not in (line := process.stderr.readline()):
                assert line, "it ended before it recorded"
            burner.burn(2e8)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=4 * procs.PATIENCE)
        assert process.returncode == 143, err
        assert "Traceback" not in err and "before the interrupt" in out
    else:
        terminal = OnTerminal(*words)
        terminal.wait_for(rb"[1-9]/600")  # the bar of what is recorded moves
        burner.burn(2e8)
        assert terminal.hang_up() == 129
    run = json.loads((folder / "run.json").read_text())
    (recording,) = run["hosts"][0]["recordings"]
    assert run["interrupted"] and recording["process"]["pid"] == burner.pid
    assert recording["samples"]["taken"] > 0 and recording["seconds"] < LONG
    assert (folder / "report.html").stat().st_size > 1000


def test_top_prints_a_table_or_lines_of_json(burner):
    done = hprofiler("top", "-j", f"pid:{burner.pid}")
    heads, row, blank, heads_of_processes, process = done.stdout.splitlines()
    assert heads.split()[:2] == ["host", "CPU"] and row.endswith("  1") and not blank, done
    assert heads_of_processes.split()[:3] == ["PID", "user", "CPU"], done
    assert process.split()[0] == str(burner.pid) and process.endswith("Burner"), done
    done = hprofiler("top", "-j", f"pid:{burner.pid}", "--json", "--count", "2")
    first, second = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0 and first["time"] < second["time"]
    (host,) = second["hosts"].values()
    assert host["processes"] == 1 and 0.05 < host["job_cpu"] < 2 and host["job_memory"] > 1e7, host
    assert host["figures"]["cpu"]["unit"] == "%"
    (process,) = host["process_list"]
    assert (process["pid"], process["cpu"], process["memory"]) == (
        burner.pid,
        host["job_cpu"],
        host["job_memory"],
    )


def test_top_samples_the_busiest_process_when_a_key_asks_for_it(burner):
    terminal = OnTerminal("top", "-j", f"pid:{burner.pid}")
    terminal.wait_for(b"Burner")
    os.write(terminal._ours, b"m")
    terminal.wait_for(rb"Burner \(pid \d+\): \d+ samples of CPU time")
    assert terminal.press(b"q") == 0


def test_top_runs_on_a_terminal_until_q_and_touches_nothing(burner, tmp_path):
    audit = tmp_path / "audit"
    terminal = OnTerminal("top", "-j", f"pid:{burner.pid}", "--audit", audit)
    terminal.wait_for(rb"\d%")
    assert terminal.press(b"q") == 0
    assert not {"attach", "signal", "file"} & {one["what"] for one in lines(audit)}
