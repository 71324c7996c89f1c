"""hprofiler: where does a distributed JVM job spend its time and memory?

`hprofiler.Profile` reads, merges, filters, compares and writes profiles of every format; it is loaded when it
is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # as type checkers know it: `typing` itself takes time, in which Ctrl-C would be a traceback
)
if TYPE_CHECKING:
    from hprofiler._flamegraph import Profile

__version__ = "0.1.0"
__all__ = ["Profile", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Profile":
        from hprofiler._flamegraph import Profile

        globals()[name] = Profile
        return Profile
    raise AttributeError(f"module 'hprofiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
