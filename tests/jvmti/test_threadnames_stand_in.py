"""The library of threads' names under a stand-in JVM: on glibc, musl and arm64, and if JVMTI fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jvmti import library, names_file

FOLLOWED = 6144


@pytest.fixture(scope="module", params=library.ANYWHERE)
def build(request, tmp_path_factory) -> library.StandIn:
    return library.StandIn(request.param, library.THREADNAMES, tmp_path_factory.mktemp(request.param))


def run(jvm: library.StandIn, path: Path, scenario: str = "", seconds: int = 1) -> list[int]:
    """What Agent_OnAttach returned, and how many things were not given back."""
    if jvm.is_emulated:  # a slow processor: the longer a poll takes, the fewer there are
        seconds = max(seconds, 5)
    path.touch()
    return jvm.run(f"5,{seconds},task,{path}", scenario)


def test_names_are_written_when_they_change(build, tmp_path):
    path = tmp_path / "names"
    assert run(build, path) == [0, 0]
    found = names_file.read(path)
    assert found.ended and found.milliseconds == 5
    for thread in (1, 2, 3):
        own = [(poll, name) for poll, of, name in found.names if of == thread]
        assert own == [(poll, f"task {thread}" + " again" * (poll % 2)) for poll in range(len(found.polls))]
    assert len(found.polls) > 2
    for (wall, begin, end), (later, after, _) in zip(found.polls, found.polls[1:], strict=False):
        assert begin <= end <= after and after - begin >= 4_000_000
        assert abs((later - wall) - (after - begin)) < 50_000_000


def test_polls_without_new_names_take_no_room(build, tmp_path):
    path = tmp_path / "names"
    assert run(build, path, "still") == [0, 0]
    found = names_file.read(path)
    assert [thread for _, thread, _ in found.names] == [1, 2, 3]
    (_, first, _), (_, last, _) = found.polls
    assert last - first > 50_000_000


def test_threads_that_came_and_went_are_forgotten(build, tmp_path):
    """Before a poll that then has the names of all threads."""
    path = tmp_path / "names"
    assert run(build, path, "churn", 60) == [0, 0]
    found = names_file.read(path)
    assert len({thread for _, thread, _ in found.names}) == 9000 > FOLLOWED
    assert len({thread for poll, thread, _ in found.names if poll == found.forgotten[0]}) == 3000
    assert not found.crowded


def test_so_many_threads_are_followed_and_no_more(build, tmp_path):
    path = tmp_path / "names"
    assert run(build, path, "crowd", 60) == [0, 0]
    found = names_file.read(path)
    for poll in range(2):
        assert len({thread for at, thread, _ in found.names if at == poll}) == FOLLOWED
    assert found.crowded and not found.forgotten


@pytest.mark.parametrize(("scenario", "returned"), [("no thread", 106), ("dying", 0), ("no frame", 0)])
def test_nothing_is_kept_if_the_jvm_refuses(build, tmp_path, scenario, returned):
    assert run(build, tmp_path / "names", scenario) == [returned, 0]


@pytest.mark.nightly
def test_names_and_the_log_have_a_largest_size(tmp_path_factory, tmp_path):
    build = library.StandIn("glibc", library.THREADNAMES, tmp_path_factory.mktemp("glibc"))
    path = tmp_path / "names"
    assert run(build, path, "long", 600) == [0, 0]
    assert {len(name) for _, _, name in names_file.read(path).names} == {246}
    assert 64 << 20 <= path.stat().st_size < 65 << 20
