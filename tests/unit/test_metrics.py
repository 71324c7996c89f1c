"""Metrics of hosts: their file, rates and derived columns by hand-computed truth, findings, exports."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from hprofiler.base.errors import RunFolderError
from hprofiler.model.metrics import Metrics, Series, decode, encode
from hprofiler.runfolder.metrics_file import read_metrics, write_metrics

START = 1_800_000_000_000_000
SECOND = 1_000_000
FACTS = {"ticks_per_second": 100, "cpus": 2, "memory_total": 8 << 30}


def metrics(*series: Series, time: tuple[int, ...] = (START, SECOND, SECOND, SECOND)) -> Metrics:
    return Metrics(1.0, time, FACTS, series)


def counter(of: str, id: str, name: str, unit: str, *values: int | None) -> Series:
    return Series(of, id, name, "counter", unit, values)  # type: ignore[arg-type]


def gauge(of: str, id: str, name: str, unit: str, *values: int | None) -> Series:
    return Series(of, id, name, "gauge", unit, values)  # type: ignore[arg-type]


def test_a_file_of_metrics_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = metrics(
        counter("disk", "sda", "reads", "count", 10, 5, None), gauge("host", "", "runnable", "count", 2)
    )
    write_metrics(tmp_path / "metrics.json.gz", written)
    again = read_metrics(tmp_path / "metrics.json.gz")
    assert encode(again) == encode(written)
    assert list(again.series[0].values) == [10, 5, None]


@pytest.mark.parametrize("content", [b"", b"{}", gzip.compress(b"{"), gzip.compress(b"{}")[:-6]])
def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "metrics.json.gz"
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match="cannot read") as caught:
        read_metrics(path)
    assert "metrics.json.gz" in caught.value.remedy


@pytest.mark.parametrize(
    "change",
    [
        {"time": [START, 0]},
        {"every": 0},
        {"facts": {"Cpus!": 1}},
        {"series": [{"values": [1 << 54]}]},
        {"series": [{"values": [1, 2, 3]}]},
        {"series": [{"id": "a\nb"}]},
        {"series": [{"name": "../x"}]},
        {"series": [{}, {}]},
    ],
    ids=str,
)
def test_what_a_host_sends_is_bounded(change: dict[str, object]) -> None:
    one = msgspec.to_builtins(gauge("host", "", "runnable", "count", 1))
    good = {"every": 1.0, "time": [START, SECOND], "facts": FACTS, "series": [one]}
    decode(msgspec.json.encode(good))
    if isinstance(many := change.get("series"), list):
        change = {"series": [{**one, **other} for other in many]}
    with pytest.raises(ValueError):
        decode(msgspec.json.encode({**good, **change}))
