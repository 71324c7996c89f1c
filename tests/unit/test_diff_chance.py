"""Comparisons of runs of unequal length, and of what grew while all else shrank."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.report.diff import lines
from hprofiler.report.diff.spread import Noise, Spread
from tests.unit.test_diff import compare, run_of


@pytest.mark.parametrize(("few", "many"), [(300, 300), (400, 1300), (300, 3000), (300, 18_000)])
@pytest.mark.parametrize("shares", [[1.0] * 100, [1 / (n + 1) for n in range(200)]], ids=["even", "steep"])
def test_runs_of_unequal_length_have_no_change_beyond_noise(shares, few, many):
    """A method that the shorter run has not one sample of is no new one."""
    dice = random.Random(few + many)
    for _ in range(20):
        sides = []
        for samples in (few, many):
            drawn = Counter(dice.choices(range(len(shares)), shares, k=samples))
            side = Spread()
            side.add(folded("".join(f"main;m{n} {count}\n" for n, count in drawn.items())), samples)
            sides.append(side)
        for before, after in (sides, sides[::-1]):
            noise = Noise(before, after, False)
            for name in before.names() | after.names():
                shares_of = [side.cost("own", name) / side.total for side in (before, after)]
                assert abs(shares_of[1] - shares_of[0]) <= noise.of("own", name), name
                least = noise.least(after, before)
                assert shares_of[0] or after.cost("own", name) <= least, f"{name} has not appeared"


def folded(text):
    return Profile.from_bytes(text.encode(), "folded")


@pytest.mark.parametrize(("others", "samples"), [(400, 40), (400, 4), (3, 5000)])
def test_what_grew_is_not_what_all_others_are_told_by(tmp_path, others, samples):
    """One method takes three times what it took: that all others have half of their shares hides nothing."""
    tail = "".join(f"main;m{n} {samples}\n" for n in range(others))
    hot = others * samples // 4
    before = run_of(tmp_path / "a", f"main;hot {hot}\n{tail}")
    after = run_of(tmp_path / "b", f"main;hot {6 * hot}\n{tail}")
    changes = compare(before, after)
    assert [one.name for one in changes.grew_over(0.05)] == ["hot"]
    told = samples >= 20
    assert changes.room.usual == pytest.approx(0.5 if told else 1.0)
    assert ("others cost more: most methods have 0.50" in "\n".join(lines(changes, 5))) == told


def test_two_that_grew_do_not_excuse_each_other(tmp_path):
    tail = "".join(f"main;m{n} 4\n" for n in range(400))
    before = run_of(tmp_path / "a", f"main;one 200\nmain;two 200\n{tail}")
    after = run_of(tmp_path / "b", f"main;one 1200\nmain;two 1200\n{tail}")
    assert {one.name for one in compare(before, after).grew_over(0.05)} == {"one", "two"}
