"""The library under a stand-in JVM: on glibc, on musl and as arm64 code, with rare JVMTI answers."""

from __future__ import annotations

import os

import pytest

from tests.jvmti import library, map_file


@pytest.fixture(scope="module", params=library.ANYWHERE)
def anywhere(request, tmp_path_factory) -> library.StandIn:
    return library.StandIn(request.param, library.PERFMAP, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> library.StandIn:
    return library.StandIn("glibc", library.PERFMAP, tmp_path_factory.mktemp("here"))


def taken(jvm: library.StandIn, path, scenario: str = "") -> map_file.Map:
    path.touch()
    assert jvm.run(path, scenario) == [0, 0]
    return map_file.read(path, jvm.machine)


def test_a_map_has_the_code_that_the_jvm_reports(anywhere, tmp_path):
    found = taken(anywhere, tmp_path / "map")
    stub, code, gone = found.codes
    assert (stub.stub, stub.start, stub.length, stub.name) == (True, 0x1000, 4096, "Interpreter")
    one, two, three = "room/C1.m1", "room/C2.m2", "room/C3.m3"
    assert (code.start, code.length, code.name) == (0x10000, 100, one)
    assert code.ranges == (
        (21, (one, two, three)),
        (31, (one, two)),
        (41, (one, two, "[unknown_Java]")),
        (100, (one,)),
    )
    assert (gone.start, gone.length, gone.name, gone.ranges) == (0x20000, 50, "[unknown_Java]", ())
    assert (found.unloads, found.without_inlining) == ([0x10000], 0)


def test_unexpected_files_are_not_written(anywhere, tmp_path):
    (tmp_path / "full").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").touch()
    (tmp_path / "second").touch()
    os.link(tmp_path / "second", tmp_path / "second name")
    os.mkfifo(tmp_path / "pipe")
    expected = {
        "full": 103,
        "link": 102,
        "second": 103,
        "pipe": 102,
        "missing": 102,
        ".": 102,
        "a" * 4096: 101,
    }
    assert {name: anywhere.run(f"{tmp_path}/{name}")[0] for name in expected} == expected
    assert anywhere.run("relative")[0] == 101
    assert anywhere.run("")[0] == 101
    assert anywhere.run("/dev/null")[0] == 103
    assert (tmp_path / "full").read_text() == "precious"
    assert not (tmp_path / "missing").exists()
    assert (tmp_path / "target").read_bytes() == b""


@pytest.mark.parametrize(
    "scenario, code, text",
    [
        ("no JVMTI", 105, "no JVMTI 1.2"),
        ("no capability", 106, "cannot tell about compiled methods"),
        ("no events", 107, "does not let events be set up"),
        ("no memory for names", 108, "no memory"),
        ("not all events", 109, "did not tell about all of its code"),
        ("dying", 109, "did not tell about all of its code"),
        ("no monitor", 109, "did not tell about all of its code"),
        ("large map", 111, "larger than 256 MiB"),
    ],
)
def test_a_failure_has_its_code_and_its_text(here, tmp_path, scenario, code, text):
    (tmp_path / "map").touch()
    assert here.run(tmp_path / "map", scenario) == [code, 0]
    said = (tmp_path / "map").read_text()
    assert said.startswith("error: ") and said.endswith(f"{text}\n")


def test_events_of_many_threads_at_once(here, tmp_path):
    found = taken(here, tmp_path / "map", "storm")
    assert (len(found.codes), len(found.unloads)) == (1 + 4 * 20_000, 4 * 20_000)
    assert {code.start for code in found.codes if not code.stub} == {
        0x100000 * thread + 32 * i for thread in range(1, 5) for i in range(20_000)
    }


def test_an_event_that_is_on_its_way_is_waited_for(here, tmp_path):
    """It arrives before events are switched off, so it is in the map. Later ones are not."""
    found = taken(here, tmp_path / "map", "late event")
    assert [code.start for code in found.codes] == [0x1000, 0x10000]


@pytest.mark.nightly
def test_an_event_that_never_ends_takes_only_the_map_with_it(here, tmp_path):
    (tmp_path / "map").touch()
    first, second, _ = here.run(tmp_path / "map", "stuck event")
    assert (first, second) == (112, 104)


def test_an_event_within_an_event_is_passed_over(here, tmp_path):
    assert taken(here, tmp_path / "map", "nested event").codes == taken(here, tmp_path / "other", "").codes


def test_long_names_are_cut(here, tmp_path):
    names = [code.name for code in taken(here, tmp_path / "map", "long names").codes if not code.stub]
    assert [len(name) for name in names] == [4096, len("[unknown_Java]")]
    assert names[0].startswith("room/C1.nnnn")


def test_deep_inlining(here, tmp_path):
    found = taken(here, tmp_path / "map", "deep")
    assert found.codes[1].ranges == ((1, ("room/C1.m1", *["room/C10000.m10000"] * 1023)),)


@pytest.mark.parametrize("scenario", ["large record", "too deep"])
def test_inlining_that_is_too_large_is_left_out_and_counted(here, tmp_path, scenario):
    found = taken(here, tmp_path / "map", scenario)
    assert found.without_inlining == 1
    assert [code.ranges for code in found.codes] == [(), ()]
