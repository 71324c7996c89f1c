"""A made-up cluster to measure the profile core on: the same hosts on every machine, from one seed.

Each host has 20,000 distinct stacks of mean depth 65 with Java-like names. Half of them stand on every host,
half on this one alone. A new stack leaves an earlier one some frames below its leaf and goes on through a
call graph, which gives about eight new tree nodes a stack.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path

from tests.lab.cache import root

STACKS = 20_000
METHODS = 6_000
MEAN_DEPTH = 65
DEEPEST = 160
SEED = 20_000

PACKAGES = ["org/apache/spark", "org/apache/hadoop", "java/util", "scala/collection", "io/netty"]
PARTS = ["sql", "execution", "util", "concurrent", "storage", "shuffle", "channel", "handler", "codec"]
WORDS = ["Whole", "Stage", "Codegen", "Iterator", "Buffer", "Writer", "Reader", "Task", "Block", "Row"]
VERBS = ["get", "put", "apply", "compute", "next", "run", "write", "read", "insert", "merge", "lookup"]
TIERS = ("_[j]",) * 7 + ("_[0]", "_[1]", "_[i]")

Stack = tuple[bytes, list[int], list[int]]
"""Text without count, a `;` before each frame; where each frame ends in it; the method of each frame."""


def texts(hosts: int, stacks: int = STACKS) -> list[Path]:
    """The hosts' folded text, from the cache or made now; a changed generator makes its own."""

    def make(host: int, path: Path) -> None:
        path.write_bytes(b"".join(_maker(stacks).host(host)))

    return [_cached(f"{stacks}/host-{host:03}.folded", partial(make, host)) for host in range(hosts)]


def messages(hosts: int, stacks: int = STACKS) -> list[Path]:
    """The same hosts as pprof files, written by the core; where there is no text, it is not kept."""
    from hprofiler._flamegraph import Profile

    def make(host: int, path: Path) -> None:
        path.write_bytes(Profile.from_bytes(b"".join(_maker(stacks).host(host))).to_pprof())

    return [_cached(f"{stacks}/host-{host:03}.pb.gz", partial(make, host)) for host in range(hosts)]


def _cached(name: str, make: Callable[[Path], None]) -> Path:
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    path = root() / "bench" / f"cluster-{own}" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        make(unfinished)
        unfinished.replace(path)
    return path


class Maker:
    """Makes hosts one by one; what all of them share is made once."""

    def __init__(self, stacks: int) -> None:
        self.own = stacks - stacks // 2
        dice = random.Random(SEED)
        self.names = [_name(dice) for _ in range(METHODS)]
        self.callees = [_callees(dice) for _ in range(METHODS)]
        self.frames: dict[tuple[int, int], bytes] = {}
        starts = [_grown(self, (b"", [], []), 0, 30, random.Random(seed)) for seed in range(8)]
        self.common = _branch(self, starts, stacks // 2 - len(starts), dice)

    def host(self, number: int) -> list[bytes]:
        """The host's lines, in byte order."""
        dice = random.Random(f"{SEED} {number}")
        stacks = _branch(self, self.common, self.own, dice)
        counts = [min(5000, int(dice.paretovariate(0.9))) for _ in stacks]
        return sorted(
            b"%s %d\n" % (text[1:], count) for (text, _, _), count in zip(stacks, counts, strict=False)
        )

    def frame(self, caller: int, method: int) -> bytes:
        """A method's annotated name; its tier is the call's, so that one method has several."""
        known = self.frames.get((caller, method))
        if known is None:
            native = method % 10 == 9
            tier = "" if native else TIERS[(caller * 7 + method) % len(TIERS)]
            name = f"{VERBS[method % len(VERBS)]}_{method}::call" if native else self.names[method] + tier
            known = self.frames[caller, method] = b";" + name.encode()
        return known


@lru_cache(maxsize=1)
def _maker(stacks: int) -> Maker:
    return Maker(stacks)


def _name(dice: random.Random) -> str:
    package = "/".join([dice.choice(PACKAGES), dice.choice(PARTS)])
    kind = "".join(dice.sample(WORDS, 3))
    inner = dice.choice(["", "$", "$$anon$1"])
    method = dice.choice(VERBS) + dice.choice(WORDS) + dice.choice(["", "Internal", "0"])
    return f"{package}/{kind}{inner}.{method}"


def _callees(dice: random.Random) -> list[int]:
    return [dice.randrange(METHODS) for _ in range(1 + min(7, int(dice.expovariate(0.5))))]


def _branch(maker: Maker, begin: Sequence[Stack], count: int, dice: random.Random) -> list[Stack]:
    """`begin` and `count` more, each leaving an earlier one near its leaf; all distinct."""
    stacks = list(begin)
    seen = {text for text, _, _ in stacks}
    most = len(stacks) + count
    while len(stacks) < most:
        earlier = stacks[dice.randrange(len(stacks))]
        depth = len(earlier[1])
        to = min(DEEPEST, max(8, round(depth + 0.25 * (MEAN_DEPTH + 6 - depth) + dice.gauss(0, 8))))
        leave = max(1, min(depth, to) - 1 - int(dice.expovariate(0.2)))
        stack = _grown(maker, earlier, leave, to, dice)
        if stack[0] not in seen:
            seen.add(stack[0])
            stacks.append(stack)
    return stacks


def _grown(maker: Maker, earlier: Stack, leave: int, to: int, dice: random.Random) -> Stack:
    """The first `leave` frames of a stack and a walk through the call graph to depth `to`."""
    text, ends, methods = earlier
    methods, ends = methods[:leave], ends[:leave]
    text = text[: ends[-1]] if ends else b""
    method = methods[-1] if methods else dice.randrange(METHODS)
    frames = []
    for _ in range(to - leave):
        callees = maker.callees[method]
        caller, method = method, callees[int(len(callees) * dice.random() ** 2)]
        frames.append(maker.frame(caller, method))
        methods.append(method)
    ends += accumulate(map(len, frames[1:]), initial=len(text) + len(frames[0]))
    return text + b"".join(frames), ends, methods
