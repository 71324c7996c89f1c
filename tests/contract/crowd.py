"""Many hosts by name, each behind a real sshd of its own that runs what a test has for that name.

No port is opened: `ssh_config` names a ProxyCommand that starts sshd on its own stdin and stdout. A host
with a script is played by a stand-in (tests/unit/stand_in.py); any other is this machine.
"""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.contract.sshd import SSHD, make_key
from tests.lab import cache, procs
from tests.unit.stand_in import PRELUDE

_SESSION = """#!/bin/sh
script={scripts}/${{1%%-*}}
[ -f "$script" ] || exec sh -c "$SSH_ORIGINAL_COMMAND"
echo HPROFILER exec $(uname -m) /nowhere
STAND_IN=$1 exec "$script"
"""
_CONFIG = """Host *
  ProxyCommand {sshd} -i -f {folder}/sshd_config -o "ForceCommand={folder}/session %n"
  IdentityFile {folder}/id
  IdentitiesOnly yes
  HostKeyAlias crowd
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  User {user}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended; `memory` is the most that it had, in bytes."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int

    @property
    def said(self) -> str:
        return self.out + self.err


class Crowd:
    """`scripts` has bodies of stand-ins by host name; the part before a dash stands for all alike.

    One that begins with `#!` is a program by itself: two hundred of them are to be light.
    """

    def __init__(self, folder: Path, library: str, scripts: Mapping[str, str]) -> None:
        self.folder = folder / "crowd"
        places = self.folder / "scripts"
        places.mkdir(parents=True)
        for name, body in scripts.items():
            python = f"#!{sys.executable} -IS\nLIBRARY = {library!r}\n{PRELUDE}\n{body}\n"
            (places / name).write_text(body if body.startswith("#!") else python)
            (places / name).chmod(0o755)
        key, host_key = make_key(self.folder / "id"), make_key(self.folder / "host_key")
        (self.folder / "authorized").write_text(key.with_suffix(".pub").read_text())
        (self.folder / "known_hosts").write_text(f"crowd {host_key.with_suffix('.pub').read_text()}")
        (self.folder / "sshd_config").write_text(
            f"HostKey {host_key}\nPidFile none\nUsePAM no\nAuthorizedKeysFile {self.folder}/authorized\n"
            "StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nLogLevel ERROR\n"
        )
        self.config = self.folder / "ssh_config"
        self.config.write_text(_CONFIG.format(sshd=SSHD, folder=self.folder, user=getpass.getuser()))
        session = self.folder / "session"
        session.write_text(_SESSION.format(scripts=places))
        session.chmod(0o755)
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)

    def start(self, verb: str, hosts: Sequence[str], *words: str) -> Command:
        """Start `hprofiler VERB -h HOSTS WORDS` here."""
        reach = ["-h", ",".join(hosts), "--ssh-config", str(self.config)]
        return Command([sys.executable, "-m", "hprofiler", verb, *reach, *words], self.folder)


class Command:
    """A command under way; what it writes goes to files, so that it may write much."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        self._outputs = [folder / f"{time.monotonic_ns()}.{kind}" for kind in ("out", "err")]
        environment = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), "HOME": str(folder)}
        out, err = (path.open("wb") for path in self._outputs)
        with out, err:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment
            )
        self._began = time.monotonic()

    @property
    def err(self) -> str:
        return self._outputs[1].read_text(errors="replace")

    def wait_to_hear(self, words: str, timeout: float = procs.PATIENCE) -> None:
        """Wait until it has written the words on stderr."""
        over = lambda: words in self.err or self.process.poll() is not None  # noqa: E731
        procs.wait_for(f"{words!r} on stderr", over, timeout)
        assert words in self.err, self.err

    def threads(self) -> int:
        """How many it has now."""
        return len(procs.threads(self.process.pid))

    def result(self, timeout: float = 2 * procs.PATIENCE) -> Ended:
        """Wait for its end; it is killed after `timeout` seconds."""
        memory, end = 0, time.monotonic() + timeout
        while self.process.poll() is None:
            memory = max(memory, self._memory())
            if time.monotonic() > end:
                self.process.kill()
                raise TimeoutError(f"it still runs after {timeout:g} s:\n{self.err}")
            time.sleep(0.02)
        out, err = (path.read_text(errors="replace") for path in self._outputs)
        seconds = time.monotonic() - self._began
        return Ended(self.process.returncode, out, err, seconds, memory)

    def _memory(self) -> int:
        """The most that it ever had; what the kernel tells at its end counts what was there before it."""
        try:
            return int(procs.status(self.process.pid)["VmHWM"][0]) << 10
        except (OSError, KeyError):
            return 0  # it has just ended
