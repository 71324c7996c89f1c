"""A short recording of one process, of which nothing is kept: for the methods that `top` shows."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.trust import untrusted
from hprofiler.base.errors import HprofilerError
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, Sampling, Selector
from hprofiler.runfolder import RunFolder

SECONDS = 3.0
_FREQUENCY = 99


@dataclass(frozen=True)
class Glance:
    """A process's CPU time. There are no totals if its stacks are `broken`; if `callers_unsure`, stubs and
    intrinsics may be below wrong callers."""

    profile: Profile
    broken: bool
    callers_unsure: bool


def glance(host: Host, pid: int, reach: Reach, stop: Stop) -> Glance:
    """Record a process for a moment.

    Raises HprofilerError if it could not be recorded; OSError, ValueError or RuntimeError if its profile
    cannot be used.
    """
    from hprofiler.runfolder.sink import FolderSink

    selector = Selector(f"pid:{pid}", "pids", {"kind": "pids", "pids": [pid]}, native=True)
    sampling = Sampling(("cpu",), _FREQUENCY, SECONDS)
    with tempfile.TemporaryDirectory(prefix="hprofiler-") as place:
        folder = RunFolder.create(Path(place) / "run")
        try:
            (result,) = collect([host], selector, sampling, reach, FolderSink(folder), stop=stop)
            if not result.recordings:
                why = next((one for one in result.outcomes if one.reason), None)
                raise HprofilerError(why.reason if why else "not recorded", why.remedy if why else "")
            profile = Profile.open(folder.profile_path(host.name, pid, "cpu"), "pprof").canonical()
            return Glance(profile, bool(untrusted([result], "cpu")), result.recordings[0].callers_unsure)
        finally:
            folder.release()
