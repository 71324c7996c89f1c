"""Stacks with one tier for each frame, as async-profiler's converter shows them.

The converter merges a method's tiers into one frame and annotates it with one of them: inlined from a third
of the frame's total, else C1 or interpreted from half, else compiled. The profile does not merge them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

JAVA = "0i1j"


class _Node:
    def __init__(self) -> None:
        self.children: dict[tuple[str, str], _Node] = {}
        self.tiers: Counter[str] = Counter()
        self.own = 0

    def tier(self, kind: str) -> str:
        """The annotation of a frame; `kind` is `j` for any Java tier, else the annotation itself."""
        total = self.tiers.total()
        for tier, parts in (("i", 3), ("1", 2), ("0", 2)):
            if self.tiers[tier] * parts >= total:
                return tier
        return kind


def shown(stacks: Mapping[str, int]) -> dict[str, int]:
    """The same stacks with merged tiers."""
    root = _Node()
    for stack, value in stacks.items():
        node = root
        for frame in stack.split(";"):
            name, tier = _split(frame)
            kind = "j" if tier and tier in JAVA else tier
            node = node.children.setdefault((name, kind), _Node())
            node.tiers[tier] += value
        node.own += value
    merged: Counter[str] = Counter()
    for stack, value in _walk(root):
        merged[stack] += value
    return dict(merged)


def _split(frame: str) -> tuple[str, str]:
    annotated = frame.endswith("]") and frame[-4:-2] == "_[" and frame[-2] in JAVA + "k"
    return (frame[:-4], frame[-2]) if annotated else (frame, "")


def _walk(root: _Node) -> Iterator[tuple[str, int]]:
    open_nodes: list[tuple[_Node, tuple[str, ...]]] = [(root, ())]
    while open_nodes:
        node, path = open_nodes.pop()
        if node.own:
            yield ";".join(path), node.own
        for (name, kind), child in node.children.items():
            tier = child.tier(kind)
            open_nodes.append((child, (*path, f"{name}_[{tier}]" if tier else name)))
