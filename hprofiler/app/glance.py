"""A short recording of one process, of which nothing is kept: for the methods that `top` shows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hprofiler.base.errors import HprofilerError
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, Sampling, Selector
from hprofiler.runfolder import RunFolder

SECONDS = 3.0
_FREQUENCY = 99


@contextmanager
def glance(host: Host, pid: int, reach: Reach, stop: Stop) -> Iterator[Path]:
    """The profile of the process's CPU time in pprof, which is there during the block.

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
            yield folder.profile_path(host.name, pid, "cpu")
        finally:
            folder.release()
