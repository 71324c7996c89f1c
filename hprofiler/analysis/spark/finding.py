"""A finding about a Spark application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SparkFinding:
    """Something that stands out. `code` is a key of `analysis.spark.words.TEXTS`; `parameters` are numbers,
    names and keys. `seconds` is what it costs of the application's time; 0 where that is not known."""

    code: str
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
