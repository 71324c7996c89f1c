"""Comparisons of runs of unequal length, and of what grew while all else shrank."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.noise import Noise, Spread
from hprofiler.report.diff_text import lines
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
                assert shares_of[0] or shares_of[1] <= noise.of_path(name, shares_of), f"{name} appeared"


def folded(text):
    return Profile.from_bytes(text.encode(), "folded")


def test_what_one_process_alone_does_is_chance_as_a_method_and_as_a_path(tmp_path):
    """A new method of one process of three varies more than most; of all three it is no chance."""
    job = "".join(f"main;m{n} 20\n" for n in range(40))
    new = f"{job}main;new 120\n"
    before = run_of(tmp_path / "a", job, job, job)
    for one, texts in enumerate(([new, new, new], [new, job, job])):
        changes = compare(before, run_of(tmp_path / f"b{one}", *texts))
        method = next(method for method in changes.methods if method.name == "new")
        assert method.total.beyond == (len(set(texts)) == 1)
        assert [path.name for path in changes.appeared(5)] == (["new"] if method.total.beyond else [])
        assert not changes.vanished(5)


@pytest.mark.parametrize(("others", "samples"), [(400, 40), (400, 4), (3, 5000)])
def test_a_method_that_grew_does_not_hide_behind_the_others(tmp_path, others, samples):
    """One method takes three times what it took: that all others have half of their shares hides nothing."""
    tail = "".join(f"main;m{n} {samples}\n" for n in range(others))
    hot = others * samples // 4
    before = run_of(tmp_path / "a", f"main;hot {hot}\n{tail}")
    after = run_of(tmp_path / "b", f"main;hot {6 * hot}\n{tail}")
    changes = compare(before, after)
    assert [one.name for one in changes.grew_over(0.05)] == ["hot"]
    told = samples >= 20
    assert changes.unchanged.usual == pytest.approx(0.5 if told else 1.0)
    assert ("that alone makes most methods' shares 0.50" in "\n".join(lines(changes, 5))) == told


def parts(run, *shares):
    """A run of one process for each list of the samples of m0, m1, ...; the role of all is the same."""
    return run_of(run, *("".join(f"main;m{n} {of}\n" for n, of in enumerate(one)) for one in shares))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        # Two methods are not most of them, however sure that is.
        ([(6000, 4000)], [(100, 4000)], False),
        ([(6000, 2000, 2000)], [(100, 2000, 2000)], True),
        # 26 % and 19 % of one hot method, which varies by as much from process to process.
        ([(900, 300, 200, 200), (150, 350, 200, 250)], [(500, 200, 300, 250), (100, 300, 400, 300)], False),
        # Most have 0.8 times their share, of 60 samples: by chance.
        ([(250, 60, 60, 60, 60)], [(310, 45, 45, 45, 45)], False),
        ([(25_000, 6000, 6000, 6000, 6000)], [(31_000, 4500, 4500, 4500, 4500)], True),
        # Many that tell little by themselves tell it together.
        ([(250, *[60] * 40)], [(3250, *[60] * 40)], True),
    ],
)
def test_others_cost_more_or_less_only_beyond_chance(tmp_path, before, after, told):
    changes = compare(parts(tmp_path / "a", *before), parts(tmp_path / "b", *after))
    assert (changes.unchanged.usual != 1) == told
    assert ("that alone makes most" in "\n".join(lines(changes, 5))) == told
