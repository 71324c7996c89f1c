"""The hosts for trials: three with a burner each, which stay up between trials."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.burners.burner import Burner, Counters
from tests.lab import cache, hosts, procs
from tests.lab.chaos.manager import Manager
from tests.lab.coordinator import ALL, Coordinator, Result, Running
from tests.lab.hosts import Host, Lab
from tests.lab.witness import Witness, active_profilers

JOB = "application_1700000000000_0008"
LOAD = 0.3
ROLES = {"host1": "alpha", "host2": "beta", "host3": "gamma"}
FREQUENCY = 500
CONTROL = "coord"
"""The host of a burner that is never profiled: the others could get as much CPU time."""
CONTROL_LOAD = 0.1
_QUIET = 3e8
TIED = ["setpriv", "--pdeathsig", "KILL"]
"""Ends processes that enter a host when this program ends. A stopped nsenter would not end with the host."""


class Ground:
    """The lab, the coordinator and the burners; made by `made`."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.manager = Manager(lab, folder, JOB)
        self.coordinator = Coordinator(lab, folder)
        self.names = list(ROLES)
        self.burners: dict[str, Burner] = {}
        self.usual_pace: dict[str, float] = {}
        """Rounds of each burner's hot method per second of its CPU time, when idle otherwise."""
        self._special: set[str] = set()
        self.control = Burner(wrap=lambda argv: [*TIED, *lab.coord.command(argv, "yarn")], load=CONTROL_LOAD)
        self.mend()
        first = self.run()  # this installs the agent
        if first.code:
            raise RuntimeError(f"a run with nothing in its way: {first}")

    def host(self, name: str) -> Host:
        return self.lab.hosts[name]

    def mend(self) -> None:
        """Restore everything: a burner runs on each host, and no earlier session is left."""
        for name in self.names:
            # may hold the agent's private folder, and the lab shows its classes below it
            self.host(name).path(str(cache.folder("burners").parent.parent)).chmod(0o755)
            burner = self.burners.get(name)
            if burner is None or not burner.outer.alive() or name in self._special:
                self._special.discard(name)
                self._start(name, "Burner")
        self.witness = Witness(self.lab.hosts.values())

    def replace(self, name: str, main: str, *options: str) -> None:
        """Run the host's JVM with this main class and these options until the ground is mended."""
        self._special.add(name)
        self._start(name, main, *options)
        self.witness = Witness(self.lab.hosts.values())

    def new_attempt(self, name: str) -> None:
        """Run the host's JVM as one of the job's second attempt, until the ground is mended."""
        self._special.add(name)
        self._start(name, "Burner", attempt=2)
        self.witness.expect(name, self.burners[name].outer.pid)

    def _start(self, name: str, main: str, *options: str, attempt: int = 1) -> None:
        if name in self.burners:
            self.burners[name].kill()
        host, container = self.host(name), f"CONTAINER_ID={self.manager.container(name, attempt)}"
        self.burners[name] = Burner(
            wrap=lambda argv: [*TIED, *host.command(["env", container, *argv], "yarn")],
            role=ROLES[name],
            load=LOAD,
            extra=[JOB],
            options=options,
            main=main,
        )
        self.usual_pace[name] = self.pace_now(name, _QUIET)

    def start(self, duration: float, timeout: float, *more: str, **options: dict[str, str]) -> Running:
        """Record the main job on the hosts that `more` names."""
        sampling = ["-f", str(FREQUENCY), "-t", f"{duration:g}", "--timeout", f"{timeout:g}"]
        words = [*sampling, "-j", JOB, "--user", "root", *more]
        return self.coordinator.start(*words, **options)  # type: ignore[arg-type]

    def run(self) -> Result:
        """Run the main job on all hosts to its end, without faults."""
        return self.start(1.0, 20.0, "-h", ALL).result()

    def pace_now(self, name: str, nanos: float = 1e8) -> float:
        """The current rounds of the hot method per second of CPU time. TimeoutError: it has ended."""
        return pace(self.burners[name].burn(nanos))

    def counters(self) -> dict[str, Counters]:
        """Of the burners that live, and of the control."""
        living = {name: burner for name, burner in self.burners.items() if burner.outer.alive()}
        return {name: burner.counters() for name, burner in {**living, CONTROL: self.control}.items()}

    def left(self) -> list[str]:
        """Leftovers on the hosts: processes, files, sockets, running profilers."""
        living = [burner for burner in self.burners.values() if burner.outer.alive()]
        return self.witness.leftovers() or active_profilers(living)

    def wait_until_clean(self, seconds: float) -> list[str]:
        """Wait for up to `seconds` until nothing is left; returns the leftovers."""
        try:
            procs.wait_for("clean hosts", lambda: not self.left(), seconds)
        except TimeoutError:
            return self.left()
        return []

    def end(self) -> None:
        for burner in (self.control, *self.burners.values()):
            burner.kill()
        self.manager.end()


def pace(burnt: Counters) -> float:
    """Rounds of the hot method per second of its CPU time."""
    return burnt.rounds / max(1, burnt.hot) * 1e9


@contextlib.contextmanager
def made() -> Iterator[Ground]:
    """A ground during the block."""
    workshop = Path(tempfile.mkdtemp(prefix="hprofiler-chaos-"))
    workshop.chmod(0o755)
    folder = workshop / "runs"
    folder.mkdir()
    lab = Lab(workshop / "lab", hosts.default_plans(), tied=True)
    lab.folder.mkdir()
    try:
        lab.up()
        ground = Ground(lab, folder)
        try:
            yield ground
        finally:
            ground.end()
    finally:
        lab.down()
        shutil.rmtree(workshop)
