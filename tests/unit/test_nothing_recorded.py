"""A run that recorded nothing: it says what was searched, what was not, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hprofiler.app.run import RunRequest, run
from hprofiler.cli.commands.run import print_json, print_summary
from hprofiler.model import Selector, Target
from hprofiler.report import make_report
from hprofiler.resolve import Located
from tests.unit.limits import Limits
from tests.unit.stand_in import ANY, Fleet, StandIns
from tests.viewer.block import described, facts, summaries, words
from tests.viewer.made_run import MadeHost, make_run

IDLE = "hello(); found(); read()"
MUTE = "hello(); read(); read()"
FAILED = "sys.exit(9)"
SEE_ALL = "  list the processes there: hprofiler ps -j java … (same host options)"
ONLY_JVMS = "  only JVMs were searched; --engine perf also records other programs"
DOCTOR = "  check what prevents the recording: hprofiler doctor … (same -j and host options)"


@pytest.fixture
def closing_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., list[str]]]:
    """What the terminal says of a run over such hosts, from the verdict on and without the ledger's place."""
    stand_ins = StandIns(tmp_path)

    def said(
        bodies: dict[str, str],
        selector: Selector = ANY,
        before: Callable[[Fleet], None] = lambda fleet: None,
    ) -> list[str]:
        fleet = Fleet(stand_ins, 60.0, bodies)
        before(fleet)
        located = Located(Target("hosts", "x"), fleet.hosts)
        request = RunRequest(located, selector, fleet.sampling, tmp_path / "run", False, ("hprofiler",))
        result = run(request, fleet.reach, lambda step: fleet.listener(step))
        print_summary(result, selector, outliers=False)
        lines = capsys.readouterr().err.splitlines()
        (verdict,) = (n for n, line in enumerate(lines) if line.startswith("hprofiler: nothing recorded: "))
        return [lines[verdict].partition("recorded: ")[2], *lines[verdict + 1 : -1]]

    yield said
    stand_ins.clean()


@pytest.mark.parametrize(
    ("selector", "hints"),
    [
        (ANY, [SEE_ALL, ONLY_JVMS]),
        (replace(ANY, native=True), [SEE_ALL]),
        (replace(ANY, kind="rule"), [SEE_ALL]),
    ],
)
def test_where_no_process_matches_it_says_where_was_searched(
    closing_words: Any, selector: Selector, hints: list[str]
) -> None:
    assert closing_words({"a": IDLE, "b": IDLE}, selector) == [
        "no process matches 'any'; searched a, b",
        *hints,
    ]


@pytest.mark.parametrize(
    ("body", "keep_empty", "kept"), [(IDLE, False, False), (IDLE, True, True), (FAILED, False, True)]
)
def test_a_run_that_matches_no_process_leaves_no_folder(
    tmp_path: Path, stand_ins: StandIns, capsys: Any, body: str, keep_empty: bool, kept: bool
) -> None:
    fleet = Fleet(stand_ins, 60.0, {"a": body})
    located = Located(Target("hosts", "x"), fleet.hosts)
    folder = tmp_path / "run"
    request = RunRequest(located, ANY, fleet.sampling, folder, False, (), keep_empty=keep_empty)
    result = run(request, fleet.reach, fleet.listener)
    print_summary(result, ANY, outliers=False)
    assert (result.kept, folder.exists(), str(folder) in capsys.readouterr().err) == (kept, kept, kept)
    print_json(result, ANY)
    assert (json.loads(capsys.readouterr().out)["folder"] is not None) == kept


def test_a_host_that_could_not_be_searched_is_not_among_those_that_were(closing_words: Any) -> None:
    told = closing_words({"a": IDLE, "b": FAILED})
    assert told == ["no process matches 'any'; searched a; not searched: b", SEE_ALL, ONLY_JVMS]


def test_a_search_that_timed_out_found_out_nothing(closing_words: Any, limits: Limits) -> None:
    told = closing_words({"a": MUTE}, before=lambda fleet: limits.pass_when(fleet, 61, a=["find"]))
    assert told == ["no host could be searched", DOCTOR]


def page(folder: Path, *hosts: MadeHost) -> Path:
    return make_report(make_run(folder, list(hosts)).path).page


def test_the_page_of_a_run_that_matched_nothing_does_not_say_that_all_went_well(tmp_path: Path) -> None:
    hosts = [MadeHost(name).fails("idle", "no process matches (9 processes searched)") for name in "ab"]
    made = page(tmp_path / "run", *hosts)
    told = words(described(made))
    assert words(summaries(made)["cpu"]["chips"]).endswith("no process matches on 2 hosts")
    assert facts(made)["Recorded"] == "no process matches on 2 hosts"
    assert SEE_ALL.strip() in told
    ledger = described(made)["run"]["ledger"]
    assert ledger["all_well"] == "No process matches, and nothing was recorded"
    assert (ledger["fine"], len(ledger["lines"])) == ("what was searched", 2)
    assert "Everything that was found" not in told and "went well" not in told and "0 of 0" not in told
