"""Types of the Rust binding (`flamegraph/binding`). Errors of every reader are ValueError; the GIL is released in every long call."""

from typing import Dict, List, Optional, Tuple

class Method:
    name: str
    kind: str
    self_value: int
    total_value: int

class Profile:
    values: List[Tuple[str, str]]
    """(type, unit) of each value, e.g. [("samples", "count"), ("cpu", "nanoseconds")]."""
    labels: Dict[str, str]
    malformed_lines: int
    """Lines of folded text that were counted and left out."""

    @staticmethod
    def read(path: str, format: Optional[str] = None) -> "Profile":
        """Open a folded (plain, gz) or pprof (plain, gz) file; detected by content unless `format` ("folded", "pprof") says."""
    @staticmethod
    def from_bytes(data: bytes, format: Optional[str] = None) -> "Profile": ...
    def total(self, value: int = 0) -> int: ...
    def node_count(self) -> int: ...
    def with_labels(self, labels: Dict[str, str]) -> "Profile": ...
    def merge(self, other: "Profile") -> None:
        """Add another profile by sum; ValueError when the value types differ. Labels that disagree are dropped."""
    def top(self, limit: int, value: int = 0) -> List[Method]:
        """Hottest methods by self value; a recursive method's total counts once a stack; tiers of one name are one method."""
    def to_folded(self, value: int = 0, annotate: bool = True) -> bytes: ...
    def to_pprof(self) -> bytes:
        """Gzipped pprof; labels are written on every sample."""
    def to_svg(self, title: str = ..., subtitle: str = ..., value: int = 0, colors: str = "java", width: int = 1200, inverted: bool = False, min_width: float = 0.1) -> bytes: ...
    def to_viewer(self) -> bytes:
        """The viewer's compact data: `flamegraph/viewer/FORMAT.md`."""

class MeanMerger:
    """Host-fair mean: every profile added weighs the same; totals are the mean of the totals, exact after rounding."""

    def __init__(self) -> None: ...
    def add(self, profile: Profile) -> None:
        """One host's profile; a profile without samples is left out."""
    def finish(self) -> Profile: ...
