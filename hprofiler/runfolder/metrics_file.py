"""The metrics of a host in its run folder: hosts/HOST/metrics.json.gz.

While a recording goes on, the file has a line for each message that came. It stays so if the run is cut off.
"""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path

from hprofiler.base.errors import RunFolderError
from hprofiler.model.metrics import Metrics, decode, encode, joined
from hprofiler.runfolder import METRICS_FILE, replacing

# More than the largest message of an agent, and more than those of a day.
_MOST_BYTES = 64 << 20
_MOST_OF_ALL = 1 << 30


def write_metrics(path: Path, metrics: Metrics) -> None:
    """Raises OSError."""
    with replacing(path) as file:
        # Without a time, so that equal metrics are equal files.
        file.write(gzip.compress(encode(metrics), mtime=0))


def add_metrics(path: Path, part: Metrics) -> None:
    """Add what was read since the last call, as the recording goes on. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(gzip.compress(encode(part) + b"\n", mtime=0))


def read_metrics(path: Path) -> Metrics:
    """Raises RunFolderError if the file is damaged or cannot be read."""
    try:
        with gzip.open(path) as file:
            messages = _messages(file)
            first, more = next(messages), next(messages, None)
            return joined(itertools.chain((first, more), messages)) if more else first
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        raise RunFolderError(reason, f"name a {METRICS_FILE} of a run folder") from error


def _messages(file: gzip.GzipFile) -> Iterator[Metrics]:
    """At least one. If the last of several was not written to its end, it is left out."""
    left = _MOST_OF_ALL
    for number in itertools.count():
        try:
            line = file.readline(_MOST_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            if number == 0:
                raise
            return
        if number > 0 and not line:
            return
        left -= len(line)
        if len(line) > _MOST_BYTES or left < 0:
            raise ValueError("it is too large")
        yield decode(line)
