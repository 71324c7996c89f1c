"""Names of threads of real JVMs, JDK 8 to 25: what is written is true, and nothing stays behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.burners import build
from tests.jvmti import library, names_file
from tests.jvmti.program import Holdings, JavaProgram
from tests.lab import procs

PREFIX = "Executor task launch worker"
TASK = re.compile(PREFIX + r" for task (\d)\.0 in stage ([12])\.0 \(TID (\d+)\)")
THREADS = 3
FOLLOWER = "hprofiler threa"
"""The thread of the library, as the kernel cuts its name."""


@pytest.fixture
def stages(java, start) -> JavaProgram:
    return start(java, "Stages", classes=build.classes(), arguments=[str(THREADS), "20", "50"])


def follow(jvm: JavaProgram, path: Path, options: str = f"20,60,none|{PREFIX}") -> int:
    return library.load(jvm.pid, f"{options},{path}", library.path(name=library.THREADNAMES))


def followers(jvm: JavaProgram) -> int:
    return procs.thread_names(jvm.pid).count(FOLLOWER)


def wait_for_end(jvm: JavaProgram) -> None:
    procs.wait_for("the library's thread to end", lambda: followers(jvm) == 0)


def test_every_name_is_one_that_a_thread_had(stages, tmp_path):
    path = tmp_path / "names"
    path.touch()
    assert follow(stages, path) == 0
    procs.wait_for("names of tasks", lambda: len(names_file.read(path).names) > 20 * THREADS)
    path.rename(tmp_path / "kept")
    found = names_file.read(tmp_path / "kept")
    assert len(found.of_threads()) == THREADS, "only those with the prefix"
    seen: set[int] = set()
    for names in found.of_threads().values():
        tasks = [TASK.fullmatch(name) for name in names if name != PREFIX]
        assert all(tasks), names
        ids = [int(task[3]) for task in tasks if task]
        assert ids == sorted(set(ids)), "a task's name came back"
        assert not seen & set(ids), "two threads had one task"
        seen |= set(ids)
    begins = [begin for _, begin, _ in found.polls]
    assert begins == sorted(begins)
    assert all(begin <= end for _, begin, end in found.polls)


def test_it_ends_when_its_file_is_deleted(stages, tmp_path):

    def follow_for_a_moment(name: str) -> Holdings:
        path = tmp_path / name
        path.touch()
        assert follow(stages, path) == 0
        procs.wait_for("a poll", lambda: names_file.read(path).polls)
        path.unlink()
        wait_for_end(stages)
        return Holdings.of(stages.pid)

    before = follow_for_a_moment("first")
    for number in range(5):
        after = follow_for_a_moment(str(number))
    assert after.threads <= before.threads and after.files <= before.files
    assert after.library_pieces == before.library_pieces > 0
    assert stages.finish() == 0


def test_it_ends_after_its_time(stages, tmp_path):
    path = tmp_path / "names"
    path.touch()
    assert follow(stages, path, f"20,1,{PREFIX}") == 0
    procs.wait_for("its end", lambda: names_file.read(path).ended)
    wait_for_end(stages)
    found = names_file.read(path)
    assert found.ended and found.milliseconds == 20
    assert found.polls[-1][1] - found.polls[0][1] < 1_000_000_000


def test_failures_leave_the_jvm_as_it_was(java17, start, tmp_path, small):
    jvm = start(java17, "Stages", classes=build.classes(), arguments=["1", "5", "50"])
    path = tmp_path / "names"
    for wrong in ("", "20", "4,60,x", "20,0,x", "20,60,", "x,60,x", "20,60,x" + "y" * 600):
        assert follow(jvm, path, wrong) == 101, wrong
    assert follow(jvm, path) == 102, "it is missing"
    path.write_text("precious")
    assert follow(jvm, path) == 103
    (small / "names").touch()
    assert follow(jvm, small / "names") == 0
    procs.wait_for("a full file system", lambda: (small / "names").stat().st_size == 4096)
    wait_for_end(jvm)
    many = [tmp_path / str(number) for number in range(5)]
    for one in many:
        one.touch()
    assert [follow(jvm, one) for one in many] == [0, 0, 0, 0, 104]
    procs.wait_for("polls", lambda: all(names_file.read(one).polls for one in many[:4]))
    for one in many:
        one.unlink()
    wait_for_end(jvm)
    assert path.read_text() == "precious"
    assert jvm.finish() == 0
