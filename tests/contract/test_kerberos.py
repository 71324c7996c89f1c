"""A ResourceManager that wants Kerberos (SPNEGO), with a real KDC: tickets, what is missing, who answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path

import pytest

from hprofiler.resolve import TargetOptions, YarnOptions, resolve
from hprofiler.resolve.yarn.rest import YarnError
from tests.contract.sshd import free_port
from tests.lab import procs
from tests.unit.yarn_server import APP, CLUSTER, Answer, Server, app, small_cluster

pytestmark = pytest.mark.nightly

REALM = "HPROFILER.TEST"
USER, PASSWORD = "etl", "as secret as a test's"
SERVICE = "HTTP/localhost"
PROGRAMS = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
}
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Kdc:
    """`environment` makes programs and libraries part of this realm, and of none of the machine's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.environment = {
            "KRB5_CONFIG": f"{folder}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{folder}/kdc.conf",
            "KRB5_KTNAME": f"FILE:{folder}/keytab",
            "KRB5CCNAME": f"FILE:{folder}/tickets",
            "KRB5RCACHENAME": f"file2:{folder}/replays",
        }
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principals\n"
            f"  key_stash_file = {folder}/stash\n  acl_file = {folder}/acl\n }}\n"
        )
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.run("kadmin.local", "addprinc", "-pw", PASSWORD, USER)
        self.run("kadmin.local", "addprinc", "-randkey", SERVICE)
        self.new_keys()
        self.process = subprocess.Popen(
            [shutil.which("krb5kdc", path=PATH), "-n", "-P", str(folder / "pid")],
            env={**self.environment, "PATH": PATH},
            start_new_session=True,
        )
        procs.wait_for("the KDC listening", self._listens)

    def new_keys(self) -> None:
        """Give the service keys that no earlier ticket was made for."""
        (self.folder / "keytab").unlink(missing_ok=True)
        self.run("kadmin.local", "ktadd", "-k", str(self.folder / "keytab"), SERVICE)

    def log_in(self) -> None:
        self.run("kinit", USER, words=PASSWORD)

    def run(self, program: str, *arguments: str, words: str = "") -> None:
        done = subprocess.run(
            [shutil.which(program, path=PATH), *arguments],
            env={**self.environment, "PATH": PATH},
            input=f"{words}\n",
            capture_output=True,
            text=True,
            timeout=procs.PATIENCE,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def _listens(self) -> bool:
        assert self.process.poll() is None
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    if missing := {package for name, package in PROGRAMS.items() if not shutil.which(name, path=PATH)}:
        pytest.skip(f"no Kerberos here: install {' '.join(sorted(missing))}")
    pytest.importorskip(
        "requests_gssapi", reason="no requests-gssapi here: pip install 'hprofiler[kerberos]'"
    )
    kdc = Kdc(tmp_path_factory.mktemp("kdc"))
    yield kdc
    kdc.process.terminate()
    kdc.process.wait(procs.PATIENCE)


@pytest.fixture
def kdc(started, monkeypatch):
    """The realm, as this process and its children see it; nobody is logged in."""
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    (started.folder / "tickets").unlink(missing_ok=True)
    return started


class Gate:
    """Lets in who has a ticket, as Hadoop does; `token` is sent instead of the right one."""

    def __init__(self, token=None):
        self.token = token
        self.users = []

    def __call__(self, headers):
        import gssapi

        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme != "Negotiate":
            return Answer(b"<html>", 401, {"WWW-Authenticate": 'Basic realm="x", Negotiate'}), {}
        context = gssapi.SecurityContext(usage="accept")
        try:
            proof = context.step(b64decode(token))
            assert context.complete
        except gssapi.exceptions.GSSError:
            return Answer(b"GSSException", 403), {}
        self.users.append(str(context.initiator_name))
        back = b64encode(self.token or proof or b"").decode()
        return None, {"WWW-Authenticate": f"Negotiate {back}"}


@pytest.fixture
def serve():
    """Starts a small cluster's server behind a gate; all are ended."""
    servers = []

    def start(gate, answers=None):
        cluster = {**small_cluster(), f"{CLUSTER}/apps": {"apps": {"app": [app()]}}}
        servers.append(Server(answers or cluster, gate=gate))
        servers[-1].__enter__()
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def by_name(server):
    return server.url.replace("127.0.0.1", "localhost")


def locate(url):
    return resolve(TargetOptions(application=APP, yarn=YarnOptions(url)))


def refusal(url):
    with pytest.raises(YarnError) as caught:
        locate(url)
    return caught.value


def apps(url):
    command = [sys.executable, "-m", "hprofiler", "apps", "-c", url]
    return subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=120)


def test_with_a_ticket_each_request_has_its_own_token(kdc, serve):
    kdc.log_in()
    gate = Gate()
    server = serve(gate)
    assert len(locate(by_name(server)).hosts) == 2
    assert gate.users == [f"{USER}@{REALM}"] * 5 and len(server.asked) == 10
    done = apps(by_name(server))
    assert (done.returncode, done.stderr) == (0, "") and APP in done.stdout


def test_without_a_ticket(kdc, serve):
    done = apps(by_name(serve(Gate())))
    assert done.returncode == 4 and done.stdout == ""
    assert "requires Kerberos: there is no ticket" in done.stderr and "run kinit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_kerberos_does_not_know_by_this_name(kdc, serve):
    kdc.log_in()
    error = refusal(serve(Gate()).url)
    assert "not found in Kerberos database" in error.reason
    assert "that Kerberos knows the host by this name" in error.remedy


def test_a_ticket_that_is_not_taken(kdc, serve):
    """The service has other keys than when the ticket was made."""
    kdc.log_in()
    server = serve(Gate())
    assert locate(by_name(server)).hosts
    kdc.new_keys()
    del server.asked[:]
    error = refusal(by_name(server))
    assert len(server.asked) == 2, "it asks again and again"
    assert "refuses the Kerberos ticket: " in error.reason and "klist" in error.remedy


@pytest.mark.parametrize("token", [b"not a token", b"`\x00"])
def test_a_server_that_cannot_prove_its_identity(kdc, serve, token):
    kdc.log_in()
    error = refusal(by_name(serve(Gate(token))))
    assert "did not prove its identity" in error.reason


@pytest.mark.parametrize("words", ["Negotiate", "Negotiate YAAA", "Negotiate \xff"])
def test_a_server_that_asks_in_strange_ways(kdc, serve, words):
    kdc.log_in()
    odd = {"WWW-Authenticate": words}
    assert "Kerberos" in refusal(by_name(serve(None, {"*": Answer(b"", 401, odd)}))).reason
    server = serve(lambda _: (None, odd))
    assert len(locate(by_name(server)).hosts) == 2, "nobody asked for its token"
