"""The metrics of a host in its run folder: hosts/HOST/metrics.json.gz."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from hprofiler.base.errors import RunFolderError
from hprofiler.model.metrics import Metrics, decode, encode
from hprofiler.runfolder import METRICS_FILE, replacing

# More than the largest message of an agent.
_MOST_BYTES = 64 << 20


def write_metrics(path: Path, metrics: Metrics) -> None:
    """Raises OSError."""
    with replacing(path) as file:
        # Without a time, so that equal metrics are equal files.
        file.write(gzip.compress(encode(metrics), mtime=0))


def read_metrics(path: Path) -> Metrics:
    """Raises RunFolderError if the file is damaged or cannot be read."""
    try:
        with gzip.open(path) as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        return decode(text)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        raise RunFolderError(reason, f"name a {METRICS_FILE} of a run folder") from error
