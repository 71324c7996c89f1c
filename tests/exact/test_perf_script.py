"""`perf script` text folds as stackcollapse-perf.pl documents it, and as inferno-collapse-perf does it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import OptionError, Profile
from tests.exact import perf_recordings as recordings
from tests.exact.peers import inferno, lines, needs
from tests.exact.perf_recordings import CLOCK, GCC

pytestmark = pytest.mark.nightly

OPTIONS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--pid"], {"pid": True}),
    (["--tid"], {"tid": True}),
    (["--kernel"], {"kernel": True}),
    (["--jit"], {"jit": True}),
    (["--all"], {"kernel": True, "jit": True}),
    (["--addrs"], {"addrs": True}),
    (["--all", "--tid", "--addrs"], {"kernel": True, "jit": True, "tid": True, "addrs": True}),
    (["--event-filter", "cpu-clock"], {"event_filter": "cpu-clock"}),
    (["--event-filter", "page-faults"], {"event_filter": "page-faults"}),
]
IDS = [" ".join(options) or "default" for options, _ in OPTIONS]


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What `perf script` prints of programs in C and Java, and of several events."""
    folder = tmp_path_factory.mktemp("perf-script")
    program = str(recordings.compiled(folder, GCC, "burn.c"))
    c = recordings.record(folder / "c.data", CLOCK, [program])
    many = ["-F", "997", "-e", "cpu-clock,page-faults,context-switches"]
    mixed = recordings.record(
        folder / "mixed.data", many, ["sh", "-c", f"{program}; ls -R /usr/lib >/dev/null"]
    )
    java, _ = recordings.record_java(folder)
    fields = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"
    made = {
        "c": script(c),
        "c with ids and comments": script(c, "-F", fields, "--header"),
        "mixed": script(mixed, "-F", fields),
        "java": script(java, "-F", fields),
    }
    paths = {}
    for name, text in made.items():
        assert text.count(b"\n\n") > 20, f"{name}: there are next to no samples"
        paths[name] = folder / f"{name}.txt"
        paths[name].write_bytes(text)
    return paths


def script(recording: Path, *options: str) -> bytes:
    command = [needs("perf"), "script", "--force", "-i", str(recording), *options]
    return subprocess.run(command, check=True, capture_output=True).stdout


def with_frames(folded: list[str]) -> list[str]:
    """Without samples that have no stack: the scripts count them to their command, inferno drops them."""
    return [line for line in folded if ";" in line]


def without_padding(text: bytes) -> bytes:
    """inferno misses a period when perf pads the events' names, as it does when there are several."""
    return re.sub(rb"^(\S.*:) +(\d+) +(\S+: )$", rb"\1 \2 \3", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["c", "c with ids and comments", "mixed", "java"])
@pytest.mark.parametrize(("options", "ours"), OPTIONS, ids=IDS)
def test_equal_to_inferno(
    texts: dict[str, Path], name: str, options: list[str], ours: dict[str, Any]
) -> None:
    text = texts[name].read_bytes()
    command = [str(inferno("inferno-collapse-perf")), *options]
    theirs = subprocess.run(command, input=without_padding(text), check=True, capture_output=True).stdout
    if ours.get("event_filter") == "page-faults" and name != "mixed":
        assert theirs == b"", "what inferno says nothing of is an error here"
        with pytest.raises(OptionError, match=r"no event .* in this recording; there are: cpu-clock"):
            Profile.from_bytes(text, **ours)
        return
    profile = Profile.from_bytes(text, **ours)
    assert profile.malformed_lines == 0
    assert with_frames(lines(profile.to_folded())) == lines(theirs)


def test_every_event_is_a_value(texts: dict[str, Path]) -> None:
    text = texts["mixed"].read_bytes()
    profile = Profile.from_bytes(text)
    names = [name for name, _ in profile.values]
    assert sorted(names) == ["context-switches", "cpu-clock", "page-faults"]
    for value, name in enumerate(names):
        alone = Profile.from_bytes(text, event_filter=name)
        assert alone.values == [("samples", "count")]
        assert alone.to_folded() == profile.to_folded(value=value)
