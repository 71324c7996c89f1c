"""What a dump says, for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from hprofiler.analysis.dump import DumpAnalysis
from hprofiler.analysis.waits import Wait
from hprofiler.base.bounded_json import printable_value
from hprofiler.report.dump.words import findings

_PLAIN = ("processes", "dumped", "hosts", "threads", "idle", "tasks", "looks", "seconds")
_LISTS = ("deadlocks", "holders", "unmoved", "busy", "odd", "silent", "groups", "outcomes")


def record_of(found: DumpAnalysis) -> dict[str, object]:
    """Codes, numbers and names; `findings` has the sentences, the headline first."""
    record: dict[str, object] = {
        **{name: getattr(found, name) for name in _PLAIN},
        "headline": found.headline.code,
        "findings": [one.text for one in findings(found)],
        "most": _plain(found.most),
        **{name: [_plain(one) for one in getattr(found, name)] for name in _LISTS},
        "unreadable": [list(one) for one in found.unreadable],
    }
    shown = printable_value(record)
    assert isinstance(shown, dict)
    return shown


def _plain(value: object) -> object:
    """Dataclasses as objects; what a thread does is a code, its kind and a method."""
    if isinstance(value, Wait):
        return {"does": value.code, "kind": value.doing.kind, "method": value.method}
    if hasattr(value, "__dataclass_fields__"):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}  # type: ignore[arg-type]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value
