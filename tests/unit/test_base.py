"""JSON from outside, passwords in words, and users without a name or a home."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler.base import bounded_json as foreign_json
from hprofiler.base.passwords import hide_in_word, hide_logins, hide_values
from hprofiler.cli import main
from tests.needed import lacking
from tests.unit.command import as_process
from tests.unit.yarn_server import APP, Server, application_paths, container

SECRETS = json.loads((Path(__file__).parents[1] / "secrets.json").read_text())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"[" + b"[]," * 1000 + b"[]]",
        b"[" + b'"a",' * 2000 + b"0]",
    ],
    ids=["nothing", "open", "no text", "deep", "lists", "texts"],
)
def test_json_that_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        foreign_json.read(text, 2000)


@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        ("http://rm:8088", "http://rm:8088"),
        ("kim:secret@rm:8088", "***@rm:8088"),
        ("http://kim:se@cret@rm:8088/x", "http://***@rm:8088/x"),
        ("https://kim:secret@gw/x, http://kim@rm:8088", "https://***@gw/x, http://***@rm:8088"),
        ("http://kim:se/c,ret@rm", "http://***@rm"),
    ],
)
def test_logins_of_addresses_are_hidden(addresses: str, told: str) -> None:
    assert hide_logins(addresses) == told
    assert hide_in_word(f"--yarn={addresses}", addresses) == f"--yarn={told}"


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in SECRETS for text in SECRETS[kind]])
def test_the_table_of_secrets(kind: str, text: str) -> None:
    """The same table is in the tests of the agent's mask.rs."""
    told = hide_in_word(hide_values(text), None)
    if kind == "shown":
        assert told == text
    else:
        assert "hunter2" not in told and "***" in told, told


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("password:hunter2 x", "password:*** x"),
        ('{"token":"hunter2"}', '{"token":***'),
        (r"{\"token\":\"hunter2\"}", r"{\"token\":***"),
        ("{'db.pwd': 'hunter2 x=y'} z", "{'db.pwd': *** z"),
        (r'password="hunter2\" x" y', "password=*** y"),
        ("token server: ready", "token server: ready"),
        ("password=", "password="),
        ("Authorization: Bearer hunter2 -x", "Authorization: *** *** -x"),
        ("x eyJhbGciOiJub25lIn0.e30.hunter2_- y", "x *** y"),
    ],
)
def test_values_in_quotes_and_behind_a_colon(word: str, told: str) -> None:
    """The same as in mask.rs."""
    assert hide_values(word) == told


@pytest.mark.parametrize("login", ["kim:secret@", "http://kim:secret@", "http://kim:se@cret@"])
def test_run_json_has_no_password(tmp_path: Path, login: str) -> None:
    with socket.socket() as closed, Server(application_paths([container(1, "127.0.0.1")])) as server:
        closed.bind(("127.0.0.1", 0))
        address = login + server.url.partition("://")[2]
        words = ["-j", APP, "-c", address, "-t", "1", "-o", str(tmp_path / "run")]
        (tmp_path / "ssh_config").write_text(f"Host *\n Port {closed.getsockname()[1]}\n")
        assert main([*words, "--ssh-config", str(tmp_path / "ssh_config")]) == 4  # nothing could be recorded
        assert server.headers[-1]["Authorization"].startswith("Basic ")
    record = (tmp_path / "run" / "run.json").read_text()
    told = [word for word in json.loads(record)["command"] if "@" in word]
    assert len(told) == 1 and told[0].endswith("***@" + server.url.partition("://")[2])
    for path in (tmp_path / "run").rglob("*.*"):
        content = path.read_bytes()
        assert b"secret" not in content and b"cret@" not in content and b"kim" not in content, path


NOBODY = 54321
"""No user has that number."""
OVER_SSH = ["ps", "-j", "text:x", "--hosts", "127.0.0.1"]


@pytest.mark.parametrize(
    ("words", "named", "said"),
    [
        (["ps", "-j", "text:no-such-thing-anywhere"], {}, "no process matches"),
        (["selectors"], {}, "spark-executor"),
        (OVER_SSH, {}, f"the user who runs this ({NOBODY}) has no user name on this machine"),
        ([*OVER_SSH, "--port", "1"], {"LOGNAME": "me"}, "connection refused by 127.0.0.1"),
        ([*OVER_SSH, "--identity", "~/key"], {"LOGNAME": "me"}, "~/key: there is no such home folder"),
    ],
    ids=["this machine", "selectors", "no name", "a name", "no home folder"],
)
def test_a_user_without_a_name_or_home(words: list, named: dict, said: str, tmp_path: Path) -> None:
    as_nobody = ["unshare", "--user", f"--map-user={NOBODY}"]
    if subprocess.run([*as_nobody, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        lacking("user namespaces cannot be made")
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")}
    command = [*as_nobody, sys.executable, "-m", "hprofiler", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**environment, **named}, cwd=tmp_path
    )
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr, done


def test_a_run_folder_at_home(tmp_path: Path) -> None:
    as_process("-j", "text:no-such-thing-anywhere", "--output=~/out", folder=tmp_path, HOME=str(tmp_path))
    assert (tmp_path / "out/run.json").exists() and not (tmp_path / "~").exists()
