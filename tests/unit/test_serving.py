"""`hprofiler report --serve` and `--open`: one page, for this machine only, under a random path."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest

from hprofiler.cli.terminal.serve import PageServer
from tests.unit.command import ROOT
from tests.viewer.made_run import MadeHost, make_run

LONG = 60


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("<p>the page")
    (tmp_path / "run.json").write_text("{}")
    return path


@pytest.fixture
def server(page):
    server = PageServer(page, 0)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    server.shutdown()
    thread.join(LONG)


def ask(server, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=LONG)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def test_the_page_is_served_as_it_is_now(server, page):
    path = urlsplit(server.address).path
    status, headers, body = ask(server, path)
    assert (status, body) == (200, "<p>the page")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    page.write_text("made again")
    assert ask(server, path)[2] == "made again"
    assert ask(server, path, "HEAD")[::2] == (200, "")


def test_nothing_else_is_served(server, page):
    path = urlsplit(server.address).path
    token = path.split("/")[1]
    others = ["/", "/report.html", f"/{token}/", f"/{token}/run.json", f"{path}/../run.json"]
    others += [f"/{token}/../report.html", f"{path}?x", f"/{token[:-1]}/report.html", "/caf%C3%A9"]
    for other in others:
        status, _, body = ask(server, other)
        assert status == 404 and token not in body, other
    assert ask(server, path, "POST")[0] == 501
    page.unlink()
    assert ask(server, path)[0] == 404
    assert server.socket.getsockname()[0] == "127.0.0.1"
    with PageServer(page, 0) as other:
        assert other.path != server.path and len(token) >= 20


def run_report(folder, *words, **environment):
    shown = {name: value for name, value in os.environ.items() if not name.endswith("DISPLAY")}
    shown.pop("BROWSER", None)
    return subprocess.Popen(
        [sys.executable, "-m", "hprofiler", "report", str(folder), *words],
        cwd=ROOT,
        env={**shown, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.fixture
def folder(tmp_path):
    return make_run(tmp_path / "run", [MadeHost("a", {1: "main;b 3\n"})]).path


def test_the_command_serves_until_ctrl_c(folder):
    with run_report(folder, "--serve") as command:
        lines = [command.stdout.readline() for _ in range(4)]
        address = urlsplit(lines[1].strip())
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=LONG)
        connection.request("GET", address.path)
        assert connection.getresponse().read() == (folder / "report.html").read_bytes()
        connection.close()
        command.send_signal(signal.SIGINT)
        assert command.wait(LONG) == 0
    assert lines[0].strip() == str(folder / "report.html")
    assert re.match(
        rf"  from another machine: ssh -N -L {address.port}:127\.0\.0\.1:{address.port} \S+@", lines[2]
    )
