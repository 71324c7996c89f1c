"""The limit of open files: raised for visits to very many hosts, and never lowered."""

from __future__ import annotations

import resource

import pytest

from hprofiler.agent import AgentBinaries
from hprofiler.collect import Reach, find_only, open_files
from hprofiler.model import Selector

UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch):
    """Given (soft, hard): what they are after a command has visited its hosts."""

    def after(soft: int, hard: int):
        now = [(soft, hard)]
        monkeypatch.setattr(resource, "getrlimit", lambda which: now[-1])
        monkeypatch.setattr(resource, "setrlimit", lambda which, limits: now.append(limits))
        find_only([], Selector("all", "jvm", {}), Reach(None, AgentBinaries({}, {})))
        return now[-1]

    return after


@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [
        (256, UNLIMITED, open_files._ENOUGH),
        (1024, 1 << 20, open_files._ENOUGH),
        (1024, 4096, 4096),
        (4096, 4096, 4096),
        (1 << 20, 1 << 20, 1 << 20),
        (UNLIMITED, UNLIMITED, UNLIMITED),
    ],
)
def test_the_soft_limit_goes_up_to_the_hard_one_and_no_higher_than_it_helps(limits, soft, hard, then):
    assert limits(soft, hard) == (then, hard)


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_limit_that_cannot_be_raised_stays(monkeypatch, error):
    def refuse(*_: object) -> None:
        raise error("not here")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 1024))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    open_files.allow_many()


def test_the_system_takes_what_it_is_given():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower = 200 if hard == UNLIMITED else min(200, hard - 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lower, hard))
    try:
        open_files.allow_many()
        raised, same = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised > lower and same == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
