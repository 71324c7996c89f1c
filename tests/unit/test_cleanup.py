"""`hprofiler cleanup`: what is listed, who is asked, what is removed, and what its exit code says."""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import tty

import pytest

from hprofiler.cli.commands.cleanup import clean_up
from hprofiler.cli.terminal.exit_codes import Exit

PRIVATE = {
    **{"kind": "folder", "path": "/tmp/.hprofiler-0", "pid": None, "user": "root", "seconds": 7200},
    **{"bytes": 4 << 20, "state": "left", "reason": "kept for the next run", "result": None},
}
PROFILER = {
    **{"kind": "profiler", "path": "/tmp/x.so", "pid": 7, "user": "yarn", "seconds": None, "bytes": None},
    **{"state": "left", "reason": "no hprofiler session uses it", "result": None},
}
AGENT = {**PROFILER, "kind": "agent", "pid": 8, "state": "used", "reason": "its lease ends in 9 s"}
RESULTS = {"profiler": "stopped", "folder": "removed", "agent": "ended"}
OTHERS = [{"user": "yarn", "jvms": 3}, {"user": "alice", "jvms": 1}]
# The script of both visits: each starts an agent of its own.
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
def run(fleet, capsys):
    def run(yes=False, as_json=False, **bodies):
        hosts = fleet(**bodies)
        code = clean_up(argparse.Namespace(yes=yes, json=as_json), hosts.hosts, hosts.reach)
        return (code, *capsys.readouterr())

    return run


def test_without_a_terminal_leftovers_are_only_listed(run):
    code, out, err = run(a=host(AGENT, PROFILER, PRIVATE))
    assert code is Exit.PARTIAL and "--yes" in err
    assert out.splitlines() == [
        "a: remove profiler in pid 7 (yarn): no hprofiler session uses it",
        "a: remove /tmp/.hprofiler-0 (root, 4 MiB, 2 h old): kept for the next run",
        "a: leave agent 8 (yarn): its lease ends in 9 s",
    ]


def test_a_line_that_is_of_several_containers_is_printed_once(run):
    _, out, _ = run(yes=True, a=host(PRIVATE, PRIVATE))
    listed, removed, _ = out.splitlines()
    assert listed.startswith("a: remove /tmp/.hprofiler-0 (root") and "(2 of them: containers" in listed
    assert removed == "a: removed /tmp/.hprofiler-0 (2 of them: containers have their own)"


def test_yes_removes_without_a_question(run):
    code, out, err = run(yes=True, a=host(AGENT, PROFILER, PRIVATE), b=host())
    assert (code, err) == (Exit.OK, "")
    assert out.splitlines()[-3:] == [
        "a: stopped the profiler in pid 7",
        "a: removed /tmp/.hprofiler-0",
        "removed 2 things on 1 host (4 MiB); 1 thing is in use: clean up again when no run uses the host",
    ]


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


def test_an_unknown_state_is_not_a_success(run):
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
    assert second["failed"][0]["code"] == "agent-ended"
    code, out, err = run(as_json=True, yes=True, a=host(PROFILER, PRIVATE, AGENT))
    (record,) = json.loads(out)
    assert (code, err) == (Exit.OK, "")
    assert {one["kind"]: one["result"] for one in record["leftovers"]} == {
        "profiler": "stopped",
        "folder": "removed",
        "agent": None,
    }
    assert json.loads(run(as_json=True, a=host())[1])[0]["leftovers"] == []
