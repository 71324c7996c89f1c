"""Metrics of hosts as files: columns as CSV or Parquet, readings as OpenMetrics text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hprofiler.analysis.metrics import HostMetrics
from hprofiler.base.errors import RunFolderError
from hprofiler.base.row_files import Row, Table
from hprofiler.model.metrics import Series
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.metrics_file import read_metrics

# Units of OpenMetrics are seconds and bytes; a name ends with its unit.
_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LABELS = {"process": "pid", "jvm": "pid"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def host_of(path: Path) -> str:
    """The host whose folder in a run the file is in; without the run's record, the name of the folder."""
    folder = path.absolute().parent
    return _names_of(folder.parent.parent).get(folder.name, folder.name)


@lru_cache(maxsize=1)
def _names_of(run: Path) -> Mapping[str, str]:
    """The hosts of a run by the names of their folders."""
    try:
        folder = RunFolder.open(run)
        return {folder.host_dir(host.name).name: host.name for host in folder.record.hosts}
    except RunFolderError:
        return {}


def table_of(paths: Sequence[Path]) -> Table:
    """A row for each value of each column; `time` in seconds since 1970. One host is in memory at a time."""
    return Table(lambda: _rows_of(paths), alike=True)


def _rows_of(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        metrics = HostMetrics(read_metrics(path))
        for column in metrics.columns():
            what = {
                "host": host_of(path),
                "of": column.of,
                "id": column.id,
                "metric": column.name,
                "unit": column.unit,
            }
            for time, value in zip(metrics.times, column.values, strict=True):
                if value is not None:
                    yield {"time": time, **what, "value": float(value)}


def open_metrics(paths: Sequence[Path]) -> Iterator[str]:
    """OpenMetrics text: the readings of all hosts, family by family. One host is in memory at a time, and the
    text in a temporary file."""
    families: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with tempfile.TemporaryFile() as text:
        for path in paths:
            host, metrics = host_of(path), HostMetrics(read_metrics(path))
            for (_, id), series in metrics.things.items():
                for one in series.values():
                    family, begin = _family(one), text.tell()
                    text.writelines(line.encode() for line in _samples(family, host, metrics, id, one))
                    families.setdefault((family, one.kind), []).append((begin, text.tell()))
        for (family, kind), places in families.items():
            yield f"# TYPE {family} {kind}\n"
            for begin, end in places:
                text.seek(begin)
                yield text.read(end - begin).decode()
    yield "# EOF\n"


def _family(series: Series) -> str:
    """hprofiler_disk_read_bytes, hprofiler_process_user_seconds."""
    name = f"hprofiler_{series.of}_{series.name}"
    if series.unit == "ticks" or series.unit in _SECONDS:
        return f"{name.removesuffix(f'_{series.unit}')}_seconds"
    return f"{name}_bytes" if series.unit == "bytes" and not name.endswith("_bytes") else name


def _samples(family: str, host: str, metrics: HostMetrics, id: str, series: Series) -> Iterator[str]:
    labels = f'host="{host.translate(_ESCAPES)}"'
    if series.of != "host":
        labels += f',{_LABELS.get(series.of, series.of)}="{id.translate(_ESCAPES)}"'
    name = f"{family}_total" if series.kind == "counter" else family
    factor = _SECONDS.get(series.unit, 1.0)
    if series.unit == "ticks":
        factor = 1 / (metrics.facts.get("ticks_per_second") or 100)
    values = metrics.read(series.of, id, series.name)
    for time, value in zip(metrics.times, values, strict=True):
        if value is not None:
            number = value if factor == 1.0 else round(value * factor, 9)
            yield f"{name}{{{labels}}} {number} {time:.3f}\n"
