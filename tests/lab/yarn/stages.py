"""How well samples of the lab's job SparkStages, whose stages have a method each, were divided by stage."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.lab.coordinator import Result
from tests.viewer.block import carried, described

HOW = {"turns": 1, "together": 2}
"""Stages one after the other, or two at the same time; and the cores of an executor."""
TASK_MILLISECONDS = 200
LEAST = 500
"""Samples from which shares are judged."""
_LABEL = re.compile(r"(collect|count) at SparkStages\.java:\d+")


@dataclass(frozen=True)
class Divided:
    """Samples of tasks by how well their stage is known, and certain ones by whether it is right.

    `sampled` are seconds of CPU time of the stages whose CPU time Spark knows, `counted` are those by Spark.
    """

    stages: int
    certain: int
    likely: int
    several: int
    sampled: float
    counted: float
    right: int
    wrong: int

    @property
    def certain_share(self) -> float:
        return self.certain / max(1, self.certain + self.likely + self.several)

    @property
    def wrong_share(self) -> float:
        return self.wrong / max(1, self.right + self.wrong)

    @property
    def cpu_ratio(self) -> float:
        """The samples' CPU time beside Spark's own count."""
        return self.sampled / self.counted if self.counted else 0.0


def divided(result: Result) -> Divided:
    """Of a run with `--json`. An assertion fails if the run did, or a slice is not a stage of the job."""
    assert result.code == 0 and result.folder is not None, str(result)
    found = json.loads(result.out)["events"][0]["slices"]
    assert found, str(result)
    certain, likely = (sum(one[kind] for one in found["stages"]) for kind in ("certain", "likely"))
    whole = [one for one in found["stages"] if one["spark_cpu_seconds"]]
    sampled, counted = (sum(one[kind] for one in whole) for kind in ("cpu_seconds", "spark_cpu_seconds"))
    right, wrong = _judged(result)
    return Divided(len(found["stages"]), certain, likely, found["several"], sampled, counted, right, wrong)


def _judged(result: Result) -> tuple[int, int]:
    """Certain samples with the method of their stage, and with that of the other."""
    assert result.folder is not None
    record, block = (read(result.folder / "report.html") for read in (described, carried))
    right = wrong = 0
    for column, stacks in zip(record["columns"], block.columns, strict=True):
        slice_ = None if column["slice"] is None else record["slices"][column["slice"]]
        if slice_ is None or not slice_["certain"]:
            continue
        assert _LABEL.fullmatch(slice_["label"]), slice_
        own, other = ("first", "second") if slice_["label"].startswith("collect") else ("second", "first")
        right += _samples(stacks, own)
        wrong += _samples(stacks, other)
    return right, wrong


def _samples(stacks: dict[tuple[str, ...], int], method: str) -> int:
    return sum(count for stack, count in stacks.items() if f"SparkStages.{method}" in stack)
