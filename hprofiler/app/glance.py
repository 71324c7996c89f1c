"""A short recording of one process, of which nothing is kept: what `top` shows of its methods."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Method
from hprofiler.base.errors import HprofilerError
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, Sampling, Selector
from hprofiler.runfolder import RunFolder

SECONDS = 3.0
_FREQUENCY = 99


def hottest_methods(
    host: Host, pid: int, reach: Reach, stop: Stop, most: int
) -> tuple[int, Sequence[Method]]:
    """How many samples of CPU time were taken, and the methods with most of them.

    Raises HprofilerError if the process could not be recorded.
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
        finally:
            folder.release()
    top = profile.top(most)
    return profile.total(), [Method(one.name, one.self_value, one.total_value) for one in top]
