"""Types of the Rust binding (`flamegraph/binding`).

Errors of every reader and writer are ValueError; the GIL is released in every long call.
"""

from typing import Dict, List, Optional, Tuple, final

__all__ = ["MeanMerger", "Method", "Profile"]

@final
class Method:
    @property
    def name(self) -> str:
        """Without annotation."""
    @property
    def kind(self) -> str:
        """The tier with the most self value: plain, interpreted, c1, jit, inlined, kernel or waker."""
    @property
    def self_value(self) -> int: ...
    @property
    def total_value(self) -> int: ...

@final
class Profile:
    @property
    def values(self) -> List[Tuple[str, str]]:
        """(type, unit) of each value, e.g. [("samples", "count"), ("cpu", "nanoseconds")]."""
    @property
    def labels(self) -> Dict[str, str]: ...
    @property
    def malformed_lines(self) -> int:
        """Lines of folded text that were counted and left out."""
    @staticmethod
    def read(path: str, format: Optional[str] = None) -> Profile:
        """Open a folded or pprof file, plain or gz; detected by content unless `format` says.

        `format` is "folded" or "pprof". Folded text with two counts on every line
        has the values "before" and "after".
        """
    @staticmethod
    def from_bytes(data: bytes, format: Optional[str] = None) -> Profile: ...
    def total(self, value: int = 0) -> int: ...
    def node_count(self) -> int: ...
    def with_labels(self, labels: Dict[str, str]) -> Profile:
        """A copy with these labels added or replaced."""
    def merge(self, other: Profile) -> None:
        """Add another profile by sum; ValueError when the value types differ.

        Labels that are not the same in both are dropped.
        """
    def top(self, limit: int, value: int = 0) -> List[Method]:
        """Hottest methods by self value; tiers of one name are one method.

        A recursive method's total counts once a stack.
        """
    def to_folded(self, value: int = 0, annotate: bool = True) -> bytes: ...
    def to_pprof(self) -> bytes:
        """Gzipped pprof; labels are written on every sample."""
    def to_svg(
        self,
        title: str = "Flame Graph",
        subtitle: str = "",
        value: int = 0,
        colors: str = "java",
        width: int = 1200,
        inverted: bool = False,
        min_width: float = 0.1,
    ) -> bytes:
        """Tiers of one method are one frame; palettes are "java" and "hot".

        A value without samples is a ValueError.
        """
    def to_viewer(self) -> bytes:
        """The viewer's compact data: `flamegraph/viewer/FORMAT.md`."""

@final
class MeanMerger:
    """Host-fair mean: every profile added weighs the same.

    Totals are the mean of the totals, exact after rounding.
    """

    def __new__(cls) -> MeanMerger: ...
    def add(self, profile: Profile) -> None:
        """One host's profile; a profile without samples is left out."""
    def finish(self) -> Profile:
        """The mean of what was added so far; ValueError when nothing was."""
