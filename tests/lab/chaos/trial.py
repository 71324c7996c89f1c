"""One trial: a real run with faults, and everything that must hold despite them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from tests.lab import procs
from tests.lab.chaos import judge
from tests.lab.chaos.fault import LEASE, Circumstances, Excuse, Fault
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import ALL, Result, Running

A_LITTLE = 15.0
"""Seconds that a busy machine gets for cleanup after a lease."""


@dataclass
class Verdict:
    """The result of a trial. `complaints` is empty if all guarantees held."""

    faults: list[str] = field(default_factory=list)
    excused: str = ""
    code: int = 0
    seconds: float = 0.0
    quiet_after: float = 0.0
    """Seconds from the end of the run until nothing was left on the hosts."""
    complaints: list[str] = field(default_factory=list)
    happened: bool = False
    """Whether every fault struck."""
    spoilt: bool = False
    """Whether the ground is not fit for another trial."""
    said: str = ""
    """The run's output, if there are complaints."""

    @property
    def passed(self) -> bool:
        return not self.complaints

    def __str__(self) -> str:
        """A line; of a failed trial also all complaints and the run's output."""
        word = "ok" if self.passed else "FAILED"
        seconds = f"{self.seconds:5.1f} s, quiet after {self.quiet_after:4.1f} s"
        line = f"{word} {seconds}, exit code {self.code}  {' + '.join(self.faults)}"
        if self.passed:
            return line
        return "\n     ".join([line, f"excused: {self.excused}", *self.complaints, self.said])


def take(ground: Ground, faults: Sequence[Fault]) -> Verdict:
    """Run once with these faults, and judge. The ground is mended afterwards."""
    began = time.monotonic()
    verdict = Verdict()
    try:
        for fault in faults:
            if fault.kind.settle:
                fault.kind.settle(fault)
        pids = {name: burner.pid for name, burner in ground.burners.items()}
        before = ground.counters()
        result = _run(ground, faults, verdict)
        over = time.monotonic()
        excuse = reduce(Excuse.__or__, (fault.excuse() for fault in faults if fault.struck), Excuse())
        verdict.code, verdict.excused = result.code, str(excuse)
        verdict.complaints += judge.of_result(result, ground, excuse, pids)
        if judge.names_cleanup(result):
            ground.coordinator.run("cleanup", "--yes", "-h", ALL, "--user", "root")
        verdict.complaints += [f"left: {left}" for left in ground.wait_until_clean(LEASE + A_LITTLE)]
        verdict.quiet_after = time.monotonic() - over
        for fault in faults:
            verdict.complaints += fault.kind.complaints(fault) if fault.kind.complaints else []
        verdict.complaints += judge.of_burners(ground, excuse, before)
        verdict.said = "" if verdict.passed else f"{result}\n{result.run['hosts'] if result.folder else ''}"
    except Exception as error:  # one failed trial must not end all others
        verdict.complaints.append(f"the trial broke: {type(error).__name__}: {error}")
    try:
        ground.mend()
    except Exception as error:
        verdict.complaints.append(f"the ground cannot be mended: {type(error).__name__}: {error}")
        verdict.spoilt = True
    verdict.happened = all(fault.struck for fault in faults)
    verdict.faults = list(map(str, faults))
    verdict.seconds = time.monotonic() - began
    return verdict


def _run(ground: Ground, faults: Sequence[Fault], verdict: Verdict) -> Result:
    """The whole run with its faults; everything is mended afterwards."""
    given = Circumstances()
    with contextlib.ExitStack() as mending:  # if one step fails, the others still run
        for fault in faults:
            mending.callback(fault.mend)
            if fault.kind.arrange:
                fault.kind.arrange(fault, given)
        for fault in faults:
            if fault.moment is None:
                fault.strike(None)
        words = [*given.target, *given.options]
        running = ground.start(given.duration, given.timeout, *words, environment=given.environment)
        with _striking([fault for fault in faults if fault.moment], running, verdict):
            try:
                result = running.result(timeout=2 * procs.PATIENCE)
                verdict.complaints += _left_here(running)
            finally:
                running.process.kill()  # it is still running only if the trials are being ended
    return result


def _left_here(running: Running) -> list[str]:
    """Processes that the coordinator left on its own machine: those of its process group."""

    def is_empty() -> bool:
        try:
            os.killpg(running.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    try:
        procs.wait_for("the coordinator's last process", is_empty, A_LITTLE)
    except TimeoutError as error:
        return [str(error)]
    return []


@contextlib.contextmanager
def _striking(faults: Sequence[Fault], running: Running, verdict: Verdict) -> Iterator[None]:
    """During the block each fault strikes at its moment, and is mended after its duration."""

    def strike(fault: Fault) -> None:
        assert fault.moment
        try:
            if fault.moment.wait(running):
                fault.strike(running)
                if fault.lasts is not None:
                    over.wait(fault.lasts)
                    fault.mend()
        except Exception as error:  # the trial's thread reports it
            verdict.complaints.append(f"{fault.name} could not strike: {type(error).__name__}: {error}")

    over = threading.Event()
    threads = [threading.Thread(target=strike, args=(fault,)) for fault in faults]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
