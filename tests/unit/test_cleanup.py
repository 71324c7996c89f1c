"""`hprofiler cleanup`: what is listed, who is asked, what is removed, and what its exit code says."""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import tty

import pytest

from hprofiler.agent.messages import BadEvent, decode
from hprofiler.cli.commands.cleanup import clean_up
from hprofiler.cli.terminal.exit_codes import Exit
from tests.unit.stand_in import Fleet, StandIns

PRIVATE = {
    **{"kind": "folder", "path": "/tmp/.hprofiler-0", "pid": None, "user": "root", "seconds": 7200},
    **{"bytes": 4 << 20, "state": "left", "reason": "kept for the next run", "result": None},
}
PROFILER = {
    **{"kind": "profiler", "path": "/tmp/x.so", "pid": 7, "user": "yarn", "seconds": None, "bytes": None},
    **{"state": "left", "reason": "it records for no session", "result": None},
}
AGENT = {**PROFILER, "kind": "agent", "pid": 8, "state": "used", "reason": "its lease ends in 9 s"}
RESULTS = {"profiler": "stopped", "folder": "removed", "agent": "ended"}
OTHERS = [{"user": "yarn", "jvms": 3}, {"user": "alice", "jvms": 1}]
# It plays the first visit and the second, of which each begins a stand-in of its own.
HOST = """
hello(); request = read()
entries = {entries!r} if request["dry"] else {cleaned!r}
say("leftovers", entries=entries, failed={failed!r}, out_of_reach={others!r})
read()
"""


def host(*entries, cleaned=None, failed=(), others=()):
    if cleaned is None:
        cleaned = [
            {**one, "result": RESULTS[one["kind"]] if one["state"] == "left" else None} for one in entries
        ]
    return HOST.format(entries=list(entries), cleaned=cleaned, failed=list(failed), others=list(others))


@pytest.fixture
def run(tmp_path, capsys):
    stand_ins = StandIns(tmp_path)

    def run(yes=False, as_json=False, **bodies):
        fleet = Fleet(stand_ins, 60.0, bodies)
        code = clean_up(argparse.Namespace(yes=yes, json=as_json), fleet.hosts, fleet.reach)
        return (code, *capsys.readouterr())

    yield run
    stand_ins.clean()


def test_nothing_to_do(run):
    code, out, err = run(a=host(), b=host())
    assert (code, out, err) == (Exit.OK, "nothing is left on 2 hosts\n", "")


def test_it_is_listed_and_stays_where_nobody_can_be_asked(run):
    code, out, err = run(a=host(AGENT, PROFILER, PRIVATE))
    assert code is Exit.PARTIAL and "--yes" in err
    assert out.splitlines() == [
        "a: remove profiler in pid 7 (yarn): it records for no session",
        "a: remove /tmp/.hprofiler-0 (root, 4 MiB, 2 h old): kept for the next run",
        "a: leave agent 8 (yarn): its lease ends in 9 s",
    ]


def test_with_yes_it_is_removed_without_a_question(run):
    code, out, err = run(yes=True, a=host(AGENT, PROFILER, PRIVATE), b=host())
    assert (code, err) == (Exit.OK, "")
    assert out.splitlines()[-3:] == [
        "a: stopped the profiler in pid 7",
        "a: removed /tmp/.hprofiler-0",
        "removed 2 things on 1 host (4 MiB); 1 thing is in use: clean up again when no run uses the host",
    ]


def test_what_only_others_may_look_into(run):
    code, out, _ = run(a=host(others=OTHERS), b=host(others=OTHERS[:1]))
    assert code is Exit.OK and out == (
        "nothing is left on 2 hosts (not checked: JVMs of yarn 6, alice 1; --become sudo checks all)\n"
    )


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
        last, shown = "[y/N] " if code is Exit.OK else "nothing was removed", ""
        while last not in shown and select.select([keyboard], [], [], 30)[0]:
            shown += os.read(keyboard.fileno(), 4096).decode()
    assert got is code and "Remove 2 things on 1 host? [y/N]" in shown
    assert ("removed" in out) is (code is Exit.OK)
    assert ("nothing was removed" in shown) is (code is not Exit.OK)


def test_each_result_has_a_line(run):
    """Something may be in use, or gone, by the time of the second visit."""
    other, third, busy = ({**PRIVATE, "path": f"/tmp/{name}"} for name in "bcd")
    cleaned = [
        {**AGENT, "result": "ended"},
        {**PRIVATE, "state": "used", "reason": "an agent runs from it"},
        {**other, "result": "emptied"},
        {**third, "result": "removed"},
        {**busy, "result": "failed", "reason": "it is busy"},
    ]
    first = [{**AGENT, "state": "left"}, PRIVATE, other, third, busy]
    code, out, err = run(yes=True, a=host(*first, cleaned=cleaned))
    assert (code, err) == (Exit.PARTIAL, "a: cannot clean up /tmp/d: it is busy\n")
    assert out.splitlines()[len(first) :] == [
        "a: ended agent 8",
        "a: removed our files in /tmp/b",
        "a: removed /tmp/c",
        "removed 3 of 4 things on 1 host (4 MiB); "
        "2 things are in use: clean up again when no run uses the host; "
        "1 host could not be checked completely",
    ]


def test_hosts_that_fail_are_reported_and_the_others_cleaned(run):
    bad = [{**PROFILER, "result": "stopped"}, {**PRIVATE, "result": "failed", "reason": "busy"}]
    code, out, err = run(
        yes=True, a="sys.exit(3)", b=host(PROFILER, PRIVATE), c=host(PROFILER, PRIVATE, cleaned=bad)
    )
    assert code is Exit.PARTIAL
    assert "a: the agent ended with status 3" in err and "c: cannot clean up /tmp/.hprofiler-0: busy" in err
    assert "b: removed /tmp/.hprofiler-0" in out and "c: removed" not in out
    assert "removed 3 of 4 things on 2 hosts (4 MiB)" in out.splitlines()[-1]
    assert run(yes=True, a="sys.exit(3)")[0] is Exit.NOTHING


def test_an_unknown_state_is_no_success(run):
    code, out, _ = run(yes=True, a=host({**PROFILER, "state": "unknown", "reason": "process 7 is stopped"}))
    assert code is Exit.PARTIAL and "leave profiler in pid 7 (yarn): process 7 is stopped" in out


def test_as_json(run):
    code, out, err = run(as_json=True, a=host(AGENT, PRIVATE, others=OTHERS[:1]), b="sys.exit(3)")
    first, second = json.loads(out)
    assert code is Exit.PARTIAL and list(first) == ["host", "leftovers", "out_of_reach", "failed"]
    assert [(one["kind"], one["state"], one["left_over_in_seconds"]) for one in first["leftovers"]] == [
        ("agent", "used", None),
        ("folder", "left", None),
    ]
    assert first["out_of_reach"] == OTHERS[:1] and second["failed"][0]["reason"] in err
    code, out, err = run(as_json=True, yes=True, a=host(PROFILER, PRIVATE, AGENT))
    (record,) = json.loads(out)
    assert (code, err) == (Exit.OK, "")
    assert {one["kind"]: one["result"] for one in record["leftovers"]} == {
        "profiler": "stopped",
        "folder": "removed",
        "agent": None,
    }
    assert json.loads(run(as_json=True, a=host())[1])[0]["leftovers"] == []


def test_names_that_a_terminal_would_obey(run):
    trap = {**PRIVATE, "path": "/tmp/a\x1b[2J\nb: removed /", "state": "foreign"}
    _, out, _ = run(a=host(trap))
    assert "\x1b" not in out and len(out.splitlines()) == 2, "it and the summary"


@pytest.mark.parametrize(
    "lie",
    [
        *({"kind": "dog"}, {"state": "maybe"}, {"pid": -1}, {"seconds": 1e99}, {"bytes": "many"}),
        {"result": "gone"},
    ],
)
def test_what_an_agent_tells_is_checked(lie):
    with pytest.raises(BadEvent):
        decode(json.dumps({"type": "leftovers", "entries": [{**PRIVATE, **lie}]}).encode())
