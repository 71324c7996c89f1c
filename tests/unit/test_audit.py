"""The audit file: its lines, who may read it, and what agents send for it. The agents are stand-ins."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from typing import Any

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.collect.audit import Audit, VisitAudit

RECORDS = "prepared(7); recording(7); profile(7, b'x'); outcome(7); say('done', left=[])"
ACTS = "say('audit', time=1e9, what='attach', pid=7, detail='load /tmp/x.so')"


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_actions_are_written_in_order(fleet):
    """Actions of the agent may come at any time, even after `bye`."""
    out = io.StringIO()
    hosts = fleet(a=f"hello(); {ACTS}; found(7); {RECORDS}; {ACTS}; read(); {ACTS}")
    hosts.reach = replace(hosts.reach, audit=Audit(out, run="r"))
    hosts.collect()
    found = parsed(out.getvalue())
    assert {line["host"] for line in found} == {"a"} and {line["run"] for line in found} == {"r"}
    whats = [(line["by"], line["what"]) for line in found]
    assert whats[:2] == [("coordinator", "connect"), ("coordinator", "command")]
    assert found[0]["detail"].endswith(" on this machine")
    requests = [line["detail"].split()[0] for line in found if line["what"] == "request"]
    assert requests[0] == "hello" and requests[-1] == "bye"
    assert {"find", "put", "prepare", "start"} <= set(requests)
    attaches = [line for line in found if line["by"] == "agent"]
    assert [(one["pid"], one["detail"]) for one in attaches] == [(7, "load /tmp/x.so")] * 3
    assert {one["host_time"][:4] for one in attaches} == {"2001"}
    assert whats.index(("agent", "attach")) < len(whats) - 5 and whats[-1] == ("agent", "attach")
    times = [line["time"] for line in found]
    assert times == sorted(times) and times[0][:4] != "2001"


def test_only_the_owner_may_read_the_file(tmp_path):
    path = tmp_path / "audit"
    Audit.append_to(path).note("h", "connect", "h")
    path.chmod(0o644)
    Audit.append_to(path).note("h", "command", "x" * 5000)
    assert path.stat().st_mode & 0o777 == 0o600
    found = parsed(path.read_text())
    assert [line["what"] for line in found] == ["begin", "connect", "begin", "command"]
    assert found[0]["run"] == found[1]["run"] != found[2]["run"]
    assert found[3]["detail"] == "x" * 4096 + "… (5000 characters)"


def test_a_file_that_is_not_the_users_own_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("no/folder", "link", "pipe"):
        with pytest.raises(UsageError, match="--audit"):
            Audit.append_to(tmp_path / name)
    if os.geteuid() == 0:  # others have no files to try
        (tmp_path / "file").touch()
        os.chown(tmp_path / "file", 12345, 12345)
        with pytest.raises(UsageError, match="another user's"):
            Audit.append_to(tmp_path / "file")
    assert not (tmp_path / "elsewhere").exists()


def test_secrets_in_requests_and_commands_are_not_written():
    out = io.StringIO()
    visit = VisitAudit(Audit(out), "h")
    visit.asks({"type": "find", "selector": {"kind": "regex", "regex": "--password=hunter2"}})
    visit.note("command", "ps | grep api-token=hunter2")
    assert "hunter2" not in out.getvalue() and out.getvalue().count("***") == 2
