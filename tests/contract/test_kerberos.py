"""A ResourceManager that wants Kerberos (SPNEGO), with a real KDC: tickets, what is missing, who answers."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hprofiler.resolve import Located, TargetOptions, YarnOptions, resolve
from hprofiler.resolve.yarn.rest import YarnError
from tests.contract import kdc as realm
from tests.lab import procs
from tests.unit.http_server import make_certificate
from tests.unit.yarn_server import APP, CLUSTER, Answer, Server, app, small_cluster

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
COOKIE = "hadoop.auth=u=etl&t=kerberos"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[realm.Kdc]:
    if missing := realm.missing_packages():
        pytest.skip(f"no Kerberos here: install {missing}")
    try:
        import requests_gssapi  # noqa: F401
    except ImportError as error:
        pytest.skip(f"no requests-gssapi here ({error}): pip install 'hprofiler[kerberos]'")
    kdc = realm.Kdc(tmp_path_factory.mktemp("kdc"))
    try:
        yield kdc.start()
    finally:
        kdc.stop()


@pytest.fixture
def kdc(started: realm.Kdc, monkeypatch: pytest.MonkeyPatch) -> realm.Kdc:
    """The realm, as this process and its children see it; nobody is logged in."""
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    started.log_out()
    return started


class Gate:
    """Lets in who has a ticket, as Hadoop does; with `remembers` it gives them a cookie for the next time.

    One that `promises` says that more comes with a refusal than does: who wants all of it waits in vain.
    """

    def __init__(self, remembers: bool = False, promises: bool = False) -> None:
        self.remembers = remembers
        self.promises = promises
        self.token: bytes | None = None  # to be sent instead of the right one
        self.users: list[str] = []

    def __call__(self, headers: Mapping[str, str]) -> tuple[Answer | None, Mapping[str, str]]:
        import gssapi

        if COOKIE in headers.get("Cookie", ""):
            return None, {}
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme != "Negotiate":
            asks = {"WWW-Authenticate": 'Basic realm="x", Negotiate'}
            return Answer(b"<html>", 401, asks), {"Content-Length": "100000"} if self.promises else {}
        context = gssapi.SecurityContext(usage="accept")
        try:
            proof = context.step(b64decode(token))
            assert context.complete
        except gssapi.exceptions.GSSError:
            return Answer(b"GSSException", 403), {}
        self.users.append(str(context.initiator_name))
        back = b64encode(self.token or proof or b"").decode()
        cookie = {"Set-Cookie": f"{COOKIE}; Path=/; HttpOnly"} if self.remembers else {}
        return None, {"WWW-Authenticate": f"Negotiate {back}", **cookie}


def cluster() -> dict[str, Any]:
    return {**small_cluster(), f"{CLUSTER}/apps": {"apps": {"app": [app()]}}}


def by_name(server: Server) -> str:
    return server.url.replace("127.0.0.1", "localhost")


def locate(url: str, **options: Any) -> Located:
    return resolve(TargetOptions(application=APP, yarn=YarnOptions(url, **options)))


def refusal(url: str) -> YarnError:
    with pytest.raises(YarnError) as caught:
        locate(url)
    return caught.value


def apps(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hprofiler", "apps", "-c", url, *options],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_with_a_ticket_applications_are_listed(kdc: realm.Kdc) -> None:
    kdc.log_in()
    gate = Gate()
    with Server(cluster(), gate=gate) as server:
        done = apps(by_name(server))
    assert (done.returncode, done.stderr) == (0, "")
    assert APP in done.stdout
    assert gate.users == [f"{realm.USER}@{realm.REALM}"]


def test_each_request_has_its_own_token(kdc: realm.Kdc) -> None:
    kdc.log_in()
    gate = Gate()
    with Server(cluster(), gate=gate) as server:
        assert len(locate(by_name(server)).hosts) == 2
        assert len(gate.users) == 5 and len(server.asked) == 10


def test_a_refusal_is_not_read_to_its_end(kdc: realm.Kdc) -> None:
    kdc.log_in()
    gate = Gate(promises=True)
    with Server(cluster(), gate=gate) as server:
        assert len(locate(by_name(server)).hosts) == 2
    assert len(gate.users) == 5


def test_who_was_let_in_shows_the_cookie(kdc: realm.Kdc) -> None:
    kdc.log_in()
    gate = Gate(remembers=True)
    with Server(cluster(), gate=gate) as server:
        assert len(locate(by_name(server)).hosts) == 2
        assert server.asked[1] == server.asked[0] and len(gate.users) < 5
        assert COOKIE in server.headers[-1]["Cookie"]


def test_over_tls(kdc: realm.Kdc, tmp_path: Path) -> None:
    kdc.log_in()
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with Server(cluster(), tls, Gate()) as server:
        done = apps(by_name(server), "--yarn-ca", str(certificate))
        assert APP in done.stdout, done.stderr
        assert len(locate(by_name(server), ca_file=str(certificate)).hosts) == 2


def test_without_a_ticket(kdc: realm.Kdc) -> None:
    with Server(cluster(), gate=Gate()) as server:
        done = apps(by_name(server))
    assert done.returncode == 4 and done.stdout == ""
    assert "requires Kerberos: there is no ticket" in done.stderr and "run kinit" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_a_ticket_that_expired(kdc: realm.Kdc) -> None:
    def expired() -> YarnError | None:
        try:
            locate(by_name(server))
        except YarnError as error:
            return error if "expired" in error.reason else None
        return None

    kdc.log_in("-l", "2s")
    with Server(cluster(), gate=Gate()) as server:
        error = procs.wait_for("a ticket's end", expired)
    assert "requires Kerberos: " in error.reason
    assert error.remedy.startswith("run kinit")


def test_without_the_library(kdc: realm.Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    kdc.log_in()
    monkeypatch.setitem(sys.modules, "requests_gssapi", None)
    with Server(cluster(), gate=Gate()) as server:
        error = refusal(by_name(server))
    assert error.reason.endswith("requires Kerberos")
    assert error.remedy == "install hprofiler[kerberos] and run kinit"


def test_a_host_that_kerberos_does_not_know_by_this_name(kdc: realm.Kdc) -> None:
    kdc.log_in()
    with Server(cluster(), gate=Gate()) as server:
        error = refusal(server.url)
    assert "not found in Kerberos database" in error.reason
    assert "that Kerberos knows the host by this name" in error.remedy


def test_a_ticket_that_is_not_taken(kdc: realm.Kdc) -> None:
    """The service has other keys than when the ticket was made."""
    kdc.log_in()
    with Server(cluster(), gate=Gate()) as server:
        assert locate(by_name(server)).hosts
        kdc.new_keys()
        del server.asked[:]
        error = refusal(by_name(server))
        assert len(server.asked) == 2, "it asks again and again"
    assert "refuses the Kerberos ticket: " in error.reason and "klist" in error.remedy


@pytest.mark.parametrize("token", [b"not a token", b"`\x00"])
def test_who_cannot_prove_to_be_the_server(kdc: realm.Kdc, token: bytes) -> None:
    kdc.log_in()
    gate = Gate()
    gate.token = token
    with Server(cluster(), gate=gate) as server:
        assert "did not prove its identity" in refusal(by_name(server)).reason


@pytest.mark.parametrize("words", ["Negotiate", "Negotiate YAAA", "Negotiate A", "Negotiate \xff"])
def test_a_server_that_asks_in_strange_ways(kdc: realm.Kdc, words: str) -> None:
    kdc.log_in()
    odd = {"WWW-Authenticate": words}
    with Server({"*": Answer(b"", 401, odd)}) as server:
        assert "Kerberos" in refusal(by_name(server)).reason
    with Server(cluster(), gate=lambda _: (None, odd)) as server:
        assert len(locate(by_name(server)).hosts) == 2, "nobody asked for its token"
