"""`hprofiler cleanup`: what is listed, who is asked, what is removed, and what its exit code says."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tty

import pytest

from hprofiler.agent.leftovers import parse_cleaned, parse_leftovers
from hprofiler.agent.wire import BadEvent
from hprofiler.cli.cleanup import clean_up
from hprofiler.cli.exits import Exit
from tests.unit.stand_in import Fleet, StandIns

PRIVATE = {
    **{"id": "folder:1:2", "kind": "folder", "path": "/tmp/.hprofiler-0", "pid": None, "user": "root"},
    **{"seconds": 7200, "bytes": 4_000_000, "state": "left", "reason": "kept for the next run", "own": True},
}
PROFILER = {
    **{"id": "profiler:7:9", "kind": "profiler", "path": "/tmp/x.so", "pid": 7, "user": "yarn"},
    **{"seconds": None, "bytes": None, "state": "left", "reason": "nobody works on it", "own": False},
}
AGENT = {**PROFILER, "id": "agent:8:9", "kind": "agent", "pid": 8, "state": "used", "reason": "it goes on"}
DONE = {"removed": ["/tmp/.hprofiler-0"], "stopped": [7], "ended": [], "failed": []}
# It plays the first visit and the second, of which each begins a stand-in of its own.
HOST = """
hello(); request = read(); assert request["kept"] is False, request
if request.get("dry"):
    say("leftovers", entries={entries!r}, failed={failed!r})
    request = read()
if "only" in request:
    assert request["only"] == {only!r}, request
    say("cleaned", **{done!r})
    if read()["type"] == "clean":
        say("leftovers", entries=[], failed=[]); read()
"""


def host(*entries, only=("folder:1:2", "profiler:7:9"), failed=(), done=DONE):
    return HOST.format(entries=list(entries), only=list(only), failed=list(failed), done=done)


@pytest.fixture
def run(tmp_path, capsys):
    stand_ins = StandIns(tmp_path)

    def run(yes=False, as_json=False, **bodies):
        fleet = Fleet(stand_ins, 20, bodies)
        code = clean_up(argparse.Namespace(yes=yes, json=as_json), fleet.hosts, fleet.reach)
        return (code, *capsys.readouterr())

    yield run
    stand_ins.clean()


def test_nothing_to_do(run):
    code, out, err = run(a=host(), b=host())
    assert (code, out, err) == (Exit.OK, "nothing is left on 2 hosts\n", "")


def test_it_is_listed_and_stays_where_nobody_can_be_asked(run):
    code, out, err = run(a=host(AGENT, PROFILER, PRIVATE, only=()))
    assert code is Exit.PARTIAL and "--yes" in err
    assert out.splitlines() == [
        "a: remove profiler in pid 7 (yarn): nobody works on it",
        "a: remove /tmp/.hprofiler-0 (root, 4.0 MB, 2 h old): kept for the next run",
        "a: leave agent 8 (yarn): it goes on",
    ]


def test_with_yes_it_is_removed_without_a_question(run):
    code, out, err = run(yes=True, a=host(AGENT, PROFILER, PRIVATE), b=host())
    assert (code, err) == (Exit.OK, "")
    assert out.splitlines()[-2:] == ["a: stopped the profiler in pid 7", "a: removed /tmp/.hprofiler-0"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", Exit.OK), ("\n", Exit.PARTIAL), ("no\n", Exit.PARTIAL)])
def test_on_a_terminal_the_user_is_asked(run, monkeypatch, answer, code):
    theirs, ours = os.openpty()
    tty.setraw(ours)  # no echo
    with open(ours, "r+b", buffering=0) as terminal, open(theirs, "r+b", buffering=0) as keyboard:
        with open(os.dup(terminal.fileno())) as stdin, open(os.dup(terminal.fileno()), "w") as stderr:
            keyboard.write(answer.encode())
            monkeypatch.setattr(sys, "stdin", stdin)
            monkeypatch.setattr(sys, "stderr", stderr)
            got, out, _ = run(a=host(PROFILER, PRIVATE))
        shown = os.read(keyboard.fileno(), 4096).decode()
    assert got is code and "Remove 2 things on 1 host? [y/N]" in shown
    assert ("removed" in out) is (code is Exit.OK)


def test_what_the_visit_itself_brought_is_taken_away_and_not_told(run, tmp_path):
    """The agent is pushed to a host that has none: a folder with no more than that is this visit's."""
    entry, done = repr(PRIVATE), repr(DONE)
    body = f"""
hello(); read()
say("leftovers", entries=[dict({entry}, bytes=os.path.getsize(sys.argv[0]))], failed=[])
assert read() == dict(type="clean", kept=False, only=["folder:1:2"])
say("cleaned", **{done}); read()
"""
    code, out, _ = run(a=body)
    assert (code, out) == (Exit.OK, "nothing is left on 1 host\n")


def test_hosts_that_fail_are_told_and_the_others_cleaned(run):
    bad = {**DONE, "removed": [], "failed": [{"what": "/tmp/b", "reason": "busy"}]}
    code, out, err = run(
        yes=True, a="sys.exit(3)", b=host(PROFILER, PRIVATE), c=host(PROFILER, PRIVATE, done=bad)
    )
    assert code is Exit.PARTIAL
    assert "a: the agent ended with status 3" in err and "c: cannot clean up /tmp/b: busy" in err
    assert "b: removed /tmp/.hprofiler-0" in out
    assert run(yes=True, a="sys.exit(3)")[0] is Exit.NOTHING


def test_what_cannot_be_told_is_no_success(run):
    code, out, _ = run(yes=True, a=host({**PROFILER, "state": "unknown", "reason": "process 7 is stopped"}))
    assert code is Exit.PARTIAL and "leave profiler in pid 7 (yarn): process 7 is stopped" in out


def test_as_json(run):
    code, out, err = run(as_json=True, a=host(AGENT, PRIVATE))
    (record,) = json.loads(out)
    assert code is Exit.PARTIAL and not err and record["removed"] == []
    assert [(one["kind"], one["state"]) for one in record["leftovers"]] == [
        ("agent", "used"),
        ("folder", "left"),
    ]
    code, out, _ = run(as_json=True, yes=True, a=host(PROFILER, PRIVATE))
    (record,) = json.loads(out)
    assert code is Exit.OK and (record["removed"], record["stopped"]) == (["/tmp/.hprofiler-0"], [7])


def test_names_that_a_terminal_would_obey(run):
    trap = {**PRIVATE, "path": "/tmp/a\x1b[2J\nb: removed /", "own": False, "state": "foreign"}
    _, out, _ = run(a=host(trap))
    assert "\x1b" not in out and len(out.splitlines()) == 2


@pytest.mark.parametrize(
    "lie",
    [{"kind": "dog"}, {"state": "maybe"}, {"pid": -1}, {"seconds": 1e99}, {"bytes": "many"}, {"id": 7}],
)
def test_what_an_agent_tells_is_checked(lie):
    with pytest.raises(BadEvent):
        parse_leftovers({"entries": [{**PRIVATE, **lie}], "failed": []})
    with pytest.raises(BadEvent):
        parse_cleaned({**DONE, "ended": [0]})
