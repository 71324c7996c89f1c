"""hprofiler: where does a distributed JVM job spend its time and memory?

`hprofiler.record` profiles the Spark application of a notebook, and `hprofiler.Run` opens what was recorded.
`hprofiler.Profile` reads, merges, filters, compares and writes profiles of every format. Each is loaded when
it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # as type checkers know it: `typing` itself takes time, in which Ctrl-C would be a traceback
)
if TYPE_CHECKING:
    from hprofiler._flamegraph import Profile
    from hprofiler.base.version import __version__
    from hprofiler.notebook import Run, record

__all__ = ["Profile", "Run", "__version__", "record"]

_LOADED_FROM = {
    "Profile": "hprofiler._flamegraph",
    "Run": "hprofiler.notebook",
    "__version__": "hprofiler.base.version",
    "record": "hprofiler.notebook",
}


def __getattr__(name: str) -> object:
    if name in _LOADED_FROM:
        from importlib import import_module

        found: object = getattr(import_module(_LOADED_FROM[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'hprofiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
