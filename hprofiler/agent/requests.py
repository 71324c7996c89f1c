"""What requests to an agent hold, and what it says when it gives up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hprofiler.base.text import printable
from hprofiler.model import Process, Sampling

NO_ENGINES: Mapping[int, str] = {}


def refusal(event: Mapping[str, Any]) -> tuple[str, str]:
    """(reason, remedy) of an `error` event."""
    reason = event.get("reason"), event.get("remedy")
    texts = [printable(text[:4096]) if isinstance(text, str) else "" for text in reason]
    return texts[0] or "the agent gave up", texts[1]


def to_record(
    sampling: Sampling,
    blobs: Mapping[str, str],
    versions: Mapping[str, str],
    processes: Sequence[Process],
    cores: float,
    engines: Mapping[int, str] = NO_ENGINES,
) -> dict[str, Any]:
    """The members of a request that says what to record, and of whom; `engines`: the only one for a pid."""
    return {
        "agent_cpu": cores,
        "sampling": asdict(sampling),
        "blobs": dict(blobs),
        "versions": dict(versions),
        "processes": [_process(process, engines.get(process.pid)) for process in processes],
    }


def _process(process: Process, engine: str | None) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "start_time": process.start_time,
        "label": process.label,
        "labels": dict(process.labels),
        **({"engine": engine} if engine else {}),
    }
