"""Runs the real `hprofiler` command in the coordinator's network and reads its results."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab import cache, procs
from tests.lab.folded import Stacks
from tests.lab.hosts import Lab

ALL = "host1,host2,host3"
COMMAND = [sys.executable, "-m", "hprofiler"]


class Result:
    """The result of a command: exit code, output, and the run folder, if any."""

    def __init__(self, code: int, out: str, err: str, folder: Path | None) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.said = out + err
        self.folder = folder

    @property
    def run(self) -> dict[str, Any]:
        """run.json."""
        content: dict[str, Any] = json.loads((self._folder / "run.json").read_text())
        return content

    def host(self, name: str) -> dict[str, Any]:
        """The host's entry in run.json."""
        found: dict[str, Any] = next(host for host in self.run["hosts"] if host["name"] == name)
        return found

    def outcomes(self, name: str, status: str) -> list[dict[str, Any]]:
        """The host's ledger lines with this status."""
        return [outcome for outcome in self.host(name)["outcomes"] if outcome["status"] == status]

    def line(self, name: str, pid: int) -> dict[str, Any]:
        """The one ledger line of a process."""
        (outcome,) = (outcome for outcome in self.host(name)["outcomes"] if outcome["pid"] == pid)
        return dict(outcome)

    def pids(self, name: str) -> list[int]:
        """Pids of the host's recordings."""
        return sorted(recording["process"]["pid"] for recording in self.host(name)["recordings"])

    def stacks(self, where: str) -> Stacks:
        """The folded file at `where` in the run folder, such as "cluster/cpu" or "hosts/host1/cpu"."""
        return Stacks((self._folder / f"{where}.folded").read_text())

    @property
    def _folder(self) -> Path:
        assert self.folder is not None, f"no run folder:\n{self.said}"
        return self.folder

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Running:
    """A running `hprofiler`; its output is read as it is written."""

    def __init__(self, process: subprocess.Popen[str], folder: Path | None) -> None:
        self.process = process
        self.folder = folder
        self._out: list[str] = []
        self._err: list[str] = []
        self._heard = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(pipe, lines), daemon=True)
            for pipe, lines in ((process.stdout, self._out), (process.stderr, self._err))
        ]
        for reader in self._readers:
            reader.start()

    def wait_to_hear(self, pattern: str, times: int = 1, timeout: float = 60) -> None:
        """Wait until `times` lines of stderr match."""

        assert self.hears(pattern, times, timeout), (
            f"did not say {pattern!r} {times} times:\n{''.join(self._err)}"
        )

    def hears(self, pattern: str, times: int = 1, timeout: float = 60) -> bool:
        """Wait until `times` lines of stderr match; false if it ends before."""

        def heard() -> bool:
            return sum(bool(re.search(pattern, line)) for line in self._err) >= times

        with self._heard:
            self._heard.wait_for(lambda: heard() or not self._readers[1].is_alive(), timeout)
            return heard()

    def wait_until_recording(self, hosts: int = 3) -> None:
        """Wait until `hosts` hosts have begun to sample."""
        self.wait_to_hear(r"^\S+: recording", hosts)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def result(self, timeout: float = 2 * procs.PATIENCE) -> Result:
        """Wait for its end."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self._readers:
            reader.join(procs.PATIENCE)
        folder = self.folder if self.folder and self.folder.is_dir() else None
        return Result(code, "".join(self._out), "".join(self._err), folder)

    def _read(self, pipe: Any, lines: list[str]) -> None:
        for line in pipe:
            with self._heard:
                lines.append(line)
                self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()


class Coordinator:
    """The environment of a lab user: the network, a home with the lab's key, an empty working folder."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._runs = 0

    def start(
        self,
        *arguments: str,
        uid: int = 0,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Running:
        """Start `hprofiler ARGUMENTS` as `uid`; the main job gets a fresh -o unless one is given.

        `folder` is the working folder, by default a new one.
        """
        words, output = list(arguments), None
        if words[0].startswith("-") or words[0] == "run":
            output = Path(words[words.index("-o") + 1]) if "-o" in words else self.new_folder(uid) / "run"
            words += [] if "-o" in words else ["-o", str(output)]
        process = subprocess.Popen(
            self.lab.coordinator([*COMMAND, *words], uid),
            env={**self._environment(uid), **(environment or {})},
            cwd=folder or self.new_folder(uid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Running(process, output)

    def run(
        self,
        *arguments: str,
        uid: int = 0,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        timeout: float = 2 * procs.PATIENCE,
    ) -> Result:
        """Run to the end."""
        return self.start(*arguments, uid=uid, environment=environment, folder=folder).result(timeout)

    def new_folder(self, uid: int = 0) -> Path:
        """A new folder of this user."""
        self._runs += 1
        folder = self.folder / str(self._runs)
        folder.mkdir()
        os.chown(folder, uid, uid)
        return folder

    def _environment(self, uid: int) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.lab.home(uid)),
            "PYTHONPATH": str(cache.CHECKOUT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANG": "C.UTF-8",
        }
