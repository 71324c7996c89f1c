"""Hosts that lie, flood and explode beside a good one: it loses nothing; we stay small and in our folder.

Each is behind a real sshd of its own, which an ssh_config's ProxyCommand starts on its own stdin and stdout.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract import hostile, real
from tests.contract.agent_driver import as_burnt, good
from tests.contract.sshd import SSHD
from tests.lab import cache, procs
from tests.lab.chaos import bombs
from tests.lab.keys import make_key
from tests.unit.stand_in import PRELUDE

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
WORD = f"goodamongbad{os.getpid()}"
DRIPS = f"""{hostile.TO_RECORD} profile(7, b'', size=512 << 20)
while True: out(b'x' * (1 << 18)); time.sleep(0.5)"""
"""A host that keeps to its limit for each mebibyte, and takes a quarter of an hour for all."""
TIMEOUT = "15"
"""Seconds of a step."""
MOST_MEMORY = 1 << 30
MOST_SECONDS = 240.0
"""Of a run whose steps may take 15 s each, on a machine that has other things to do."""
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
PROFILES = {
    "zeros": bombs.zeros(300 << 20),
    "claims_names": bombs.claims(names=1 << 62),
    "huge": bombs.flat(["a"], (1 << 63) - 1),
    "small": bombs.flat([f"a.B.m{number}" for number in range(50)]),
    "nasty": bombs.flat([eval(f"'{hostile.NASTY}'"), "a.B.c"]),
}
SESSION = """#!/bin/sh
script={folder}/scripts/${{1%%-*}}
[ -f "$script" ] || exec sh -c "$SSH_ORIGINAL_COMMAND"
echo HPROFILER exec $(uname -m) /nowhere
STAND_IN=$1 exec "$script"
"""
CONFIG = """Host *
  ProxyCommand {sshd} -i -f {folder}/sshd_config -o "ForceCommand={folder}/session %n"
  IdentityFile {folder}/id
  IdentitiesOnly yes
  HostKeyAlias crowd
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  User {user}
"""


@pytest.fixture
def burner(keep_program):
    return keep_program(Burner(load=0.3, extra=[WORD]))


def start(folder, stand_ins, names, run, *words):
    """A run over hosts by name: those of the stand-ins are played by them, any other is this machine.

    The part of a name before a dash stands for all alike.
    """
    (folder / "scripts").mkdir()
    for name, data in PROFILES.items():
        (folder / name).write_bytes(data)
    files = {f"scripts/{name}": f"FOLDER = {str(folder)!r}\n{body}\n" for name, body in stand_ins.items()}
    for name, body in files.items():
        files[name] = f"#!{sys.executable} -IS\n{PRELUDE}\n{body}"
    files["session"] = SESSION.format(folder=folder)
    for name, body in files.items():
        (folder / name).write_text(body)
        (folder / name).chmod(0o755)
    key, host_key = make_key(folder / "id"), make_key(folder / "host_key")
    (folder / "authorized").write_text(key.with_suffix(".pub").read_text())
    (folder / "known_hosts").write_text(f"crowd {host_key.with_suffix('.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"HostKey {host_key}\nPidFile none\nUsePAM no\nAuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nLogLevel ERROR\n"
    )
    (folder / "ssh_config").write_text(CONFIG.format(sshd=SSHD, folder=folder, user=getpass.getuser()))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    reach = ["-h", ",".join(names), "--ssh-config", str(folder / "ssh_config"), "--engine", "async-profiler"]
    environment = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), "HOME": str(folder)}
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "hprofiler", "run", *reach, "-j", WORD, *words, "-o", str(run)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,
            env=environment,
        )


def most_memory(process, timeout):
    """The most that it ever had, in bytes, once it has ended; it is killed after `timeout` seconds."""
    memory, end = 0, time.monotonic() + timeout
    while process.poll() is None:
        status = procs.status(process.pid) if procs.Identity.of(process.pid) else {}
        memory = max(memory, int(status.get("VmHWM", ["0"])[0]) << 10)
        if time.monotonic() > end:
            process.kill()
            raise TimeoutError(f"it still runs after {timeout:g} s")
        time.sleep(0.02)
    return memory


def lines_of(host) -> str:
    return " ".join(f"{line['reason']} {line['remedy']}" for line in host["outcomes"])


def test_one_good_host_among_bad_ones(tmp_path, burner):
    folder, run = tmp_path / "crowd", tmp_path / "run"
    folder.mkdir()
    bodies = {name: one.body for name, one in hostile.ALL.items()}
    words = ["-t", "2", "-f", "499", "--timeout", TIMEOUT]
    process = start(folder, bodies, ["good", *hostile.ALL], run, *words)
    memory, said = most_memory(process, MOST_SECONDS), (folder / "said").read_text(errors="replace")
    assert process.returncode == 3, said
    hosts = {host["name"]: host for host in json.loads((run / "run.json").read_text())["hosts"]}
    (recording,) = hosts["good"]["recordings"]
    assert recording["process"]["pid"] == burner.pid
    (line,) = hosts["good"]["outcomes"]
    assert good(line)
    for name, one in hostile.ALL.items():
        assert re.search(one.says, lines_of(hosts[name])), (name, lines_of(hosts[name]))
    assert memory < MOST_MEMORY, memory
    assert set(tmp_path.iterdir()) == {folder, run}
    assert not [path for path in tmp_path.rglob("*") if "owned" in path.name]
    for text in (said, (run / "run.json").read_text(), (run / "hosts/good/cpu.folded").read_text()):
        assert not UNSAFE.search(text), UNSAFE.search(text)
    assert "<script>alert" not in (run / "report.html").read_text()
    assert as_burnt((run / "hosts/good" / str(burner.pid) / "cpu.pb.gz").read_bytes())


def test_an_interrupt_is_not_kept_waiting_by_a_host_that_drips(tmp_path):
    run = tmp_path / "run"
    arrived = lambda: sum(path.stat().st_size for path in run.rglob("*.arrived*"))  # noqa: E731
    process = start(tmp_path, {"drips": DRIPS}, ["drips"], run, "-t", "1", "--timeout", "10")
    procs.wait_for("the first mebibyte", lambda: arrived() > 1 << 20)
    process.send_signal(signal.SIGINT)
    assert process.wait(2 * procs.PATIENCE) == 130, (tmp_path / "said").read_text(errors="replace")
    (host,) = json.loads((run / "run.json").read_text())["hosts"]
    assert "interrupted; it did not send all its recordings within 40 s" in lines_of(host)
    assert not arrived()


HOSTS, PAUSE = 200, 1.0
SLOW = f"""
def pause(): time.sleep({PAUSE})
pause(); hello(host={{**HOST, "boot_id": os.environ["STAND_IN"]}})
pause(); found(7)
pause(); prepared(7)
pause(); recording(7)
pause(); profile(7, open(FOLDER + '/small', 'rb').read()); outcome(7); say('done', left=[]); read()"""
"""A host that takes its time for each answer. Each is a machine of its own."""


def test_many_slow_hosts_take_as_long_as_the_slowest(tmp_path):
    run, names = tmp_path / "run", [f"slow-{number:03}" for number in range(HOSTS)]
    began = time.monotonic()
    process = start(tmp_path, {"slow": SLOW}, names, run, "-t", "1", "--timeout", "120")
    memory, said = most_memory(process, 400), (tmp_path / "said").read_text(errors="replace")
    assert process.returncode == 0, said
    hosts = json.loads((run / "run.json").read_text())["hosts"]
    assert [len(host["recordings"]) for host in hosts] == [1] * HOSTS
    assert memory < (150 + 2 * HOSTS) << 20, memory
    assert time.monotonic() - began < 5 * PAUSE * HOSTS / 4, "the hosts took turns"
