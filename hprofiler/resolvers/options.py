"""What the command line says of the target, and what a resolver is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

from hprofiler.model import Host, Target


@dataclass(frozen=True)
class TargetOptions:
    """`hosts` is the text of -H; `hosts_file` the path of --hosts-file (`-` is standard input)."""

    hosts: Optional[str] = None
    hosts_file: Optional[str] = None


@dataclass(frozen=True)
class Resolver:
    """`option` is the command line's word for it; `is_asked` says whether the options name its target."""

    option: str
    is_asked: Callable[[TargetOptions], bool]
    resolve: Callable[[TargetOptions], Tuple[Target, List[Host]]]
