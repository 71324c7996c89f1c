"""Metrics of hosts as files: columns as CSV or Parquet, readings as OpenMetrics text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hprofiler.analysis.metrics import HostMetrics
from hprofiler.base.row_files import Row
from hprofiler.model.metrics import Series
from hprofiler.runfolder.metrics_file import read_metrics

# Units of OpenMetrics are seconds and bytes; a name ends with its unit.
_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LABELS = {"process": "pid", "jvm": "pid"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def host_of(path: Path) -> str:
    """The host whose folder the file is in."""
    return path.absolute().parent.name


def rows_of(paths: Iterable[Path]) -> Iterator[Row]:
    """A row for each value of each column; `time` in seconds since 1970. One host is in memory at a time."""
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
    """Lines of OpenMetrics text: the readings of all hosts, family by family."""
    hosts = [(host_of(path), HostMetrics(read_metrics(path))) for path in paths]
    families: dict[tuple[str, str], list[tuple[str, HostMetrics, str, Series]]] = {}
    for host, metrics in hosts:
        for (_, id), series in metrics.things.items():
            for one in series.values():
                families.setdefault((_family(one), one.kind), []).append((host, metrics, id, one))
    for (family, kind), members in families.items():
        yield f"# TYPE {family} {kind}\n"
        for host, metrics, id, one in members:
            yield from _samples(family, host, metrics, id, one)
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
