"""Errors of a ResourceManager: reason, place and remedy."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.resolve import Located, TargetOptions, YarnOptions, resolve
from hprofiler.resolve.yarn import rest
from hprofiler.resolve.yarn.rest import YarnError
from tests.unit.http_server import make_certificate
from tests.unit.yarn_server import (
    APP,
    CLUSTER,
    Answer,
    Server,
    app,
    application_paths,
    container,
    remote_exception,
    small_cluster,
)

STANDBY = b"This is standby RM. The redirect url is: /ws/v1/cluster/apps\n"
NO_ACTIVE = b"Can not find any active RM. Will retry in next 3 seconds."


def locate(urls: str, **options: Any) -> Located:
    return resolve(TargetOptions(application=APP, yarn=YarnOptions(urls, **options)))


def refusal(urls: str, **options: Any) -> YarnError:
    with pytest.raises(YarnError) as caught:
        locate(urls, **options)
    assert caught.value.remedy, "no remedy"
    return caught.value


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        error = refusal(f"http://127.0.0.1:{mute.getsockname()[1]}")
    assert error.reason.endswith("did not answer within 0.2 s")


REFUSALS = {
    "not known": (
        remote_exception(404, f"{CLUSTER}/apps/{APP} was not found"),
        f"does not know {APP}",
        "hprofiler apps",
    ),
    "has ended": (
        Answer({"app": app(state="FINISHED", finalStatus="SUCCEEDED")}),
        "is FINISHED (SUCCEEDED)",
        "it may have another id now",
    ),
    "not permitted": (
        remote_exception(403, "User dr.who cannot\nview it"),
        "refuses: User dr.who cannot view it",
        "",
    ),
    "a web server": (Answer(b"<html>Not found", 404), ": no ResourceManager answers there", "-c"),
    "a page": (Answer(b"<html>Hue</html>"), "something that is not JSON", ""),
    "another shape": (Answer({"app": [1, 2]}), f"something that is not {APP}", ""),
    "another application": (Answer({"app": app("application_1_1")}), f"something that is not {APP}", ""),
    "an error": (Answer({}, 500), "answered 500", ""),
    "control characters": (remote_exception(400, "x\x1b[31m"), "answered 400: x\ufffd[31m", ""),
}


@pytest.mark.parametrize(("answer", "reason", "remedy"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(answer: Answer, reason: str, remedy: str) -> None:
    with Server({"*": answer}) as server:
        error = refusal(server.url)
    assert reason in error.reason and error.reason.isprintable()
    assert remedy in error.remedy


# High availability

LATER = {"Refresh": "3; url={active}/ws/v1/cluster/apps/" + APP}
STANDBYS = {
    "redirects": Answer(STANDBY, 307, {"Location": "{active}/ws/v1/cluster/apps/" + APP}),
    "names the active one": Answer(STANDBY, 200, LATER),
    "knows no active one": Answer(NO_ACTIVE),
    "is no ResourceManager": Answer(b"<html>Not found", 404),
}


@pytest.mark.parametrize("answer", STANDBYS.values(), ids=STANDBYS)
def test_the_active_resource_manager_is_found(answer: Answer) -> None:
    with Server(small_cluster()) as active:
        headers = {name: value.format(active=active.url) for name, value in answer.headers.items()}
        first = Answer(answer.body, answer.status, headers)
        with Server({f"{CLUSTER}/apps/{APP}": first, "*": Answer(NO_ACTIVE)}) as standby:
            assert len(locate(f"{standby.url},{active.url}").hosts) == 2


def test_only_standby_resource_managers() -> None:
    header = {"Refresh": "3; url=/again"}
    with Server({"*": Answer(NO_ACTIVE, 200, header)}) as one, Server({"*": Answer(STANDBY)}) as two:
        error = refusal(one.url)
        assert "is a standby ResourceManager, and no active one is known" in error.reason
        assert "--yarn http://rm1:8088,http://rm2:8088" in error.remedy
        assert refusal(f"{one.url},{two.url}").reason.startswith("no ResourceManager answers: http")


# Rights


def test_a_gateway_with_a_login() -> None:
    wants = Answer(b"", 401, {"WWW-Authenticate": 'Basic realm="KNOX"'})
    with Server({"*": wants}) as server:
        assert "requires a login (401)" in refusal(server.url).reason
        with_password = server.url.replace("//", "//kim:s3cr%40t@")
        error = refusal(f"{with_password}/gateway/default/yarn")
        assert "s3cr" not in error.reason + error.remedy
        assert server.headers[-1]["Authorization"] == "Basic a2ltOnMzY3JAdA=="  # kim:s3cr@t
        assert server.asked[-1][0] == f"/gateway/default/yarn{CLUSTER}/apps/{APP}"


@pytest.mark.parametrize(
    "wrong",
    [
        "kim:secret@rm:99999",
        "http://kim:se@cret@rm:x",
        "http://kim:se/cret@rm:x",
        "kim:secret,ret@rm:8088",
        "a:1,kim:secret@rm:x",
    ],
)
def test_passwords_in_bad_addresses_are_not_shown(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(wrong)
    assert "kim" not in caught.value.reason and "ret" not in caught.value.reason
    assert "rm:" in caught.value.reason


def test_an_untrusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with Server(small_cluster(), tls) as server:
        error = refusal(server.url)
        assert "TLS: " in error.reason and "certificate" in error.reason
        assert error.remedy == "name the CA with --yarn-ca FILE"
        assert len(locate(server.url, ca_file=str(certificate)).hosts) == 2
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other"))
        assert len(locate(server.url, ca_file=str(certificate)).hosts) == 2
        (tmp_path / "empty.pem").write_text("nothing")
        assert refusal(server.url, ca_file=str(tmp_path / "empty.pem")).reason


# Bad answers


@pytest.mark.parametrize("beginning", [b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_an_answer_without_end(beginning: bytes) -> None:
    """A byte now and then keeps a connection alive, in the headers or in the body."""
    ended = threading.Event()

    def trickle() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.sendall(beginning)
            while not ended.wait(0.05):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=trickle)
        server.start()
        try:
            with pytest.raises(YarnError, match=r"took over 0\.5 s to answer"):
                address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
                rest.Rest().get(address, None, rest.Bounds(1 << 20, 0.5))
        finally:
            ended.set()
            server.join()


@pytest.mark.parametrize(
    "node", ["-oProxyCommand=touch /tmp/x", "a b", "..", "n1;reboot", "x" * 300, "$(reboot)", "\u00e9"]
)
def test_nodes_that_are_not_hosts(node: str) -> None:
    """They would become arguments of ssh and names of folders."""
    hostile = {**container(1, "n1"), "nodeHttpAddress": f"http://{node}:8042", "nodeId": f"{node}:8041"}
    with Server(application_paths([container(2, "n2"), hostile], applicationType="X")) as server:
        assert "which is not a host" in refusal(server.url).reason


# The command line's part


def test_a_password_is_not_sent_to_other_hosts() -> None:
    with Server(small_cluster()) as other, Server() as gateway:
        for path in other.paths:
            gateway.set({path: Answer(b"", 302, {"Location": f"{other.url}{path}"})})
        locate(gateway.url.replace("//", "//kim:secret@"))
        assert all("Authorization" in headers for headers in gateway.headers)
        assert other.headers and not any("Authorization" in headers for headers in other.headers)


@pytest.mark.parametrize("status", [200, 302])
def test_a_packed_answer_is_refused(status: int) -> None:
    """64 KiB may unpack to 64 MiB; the library reads redirects as well."""
    packed = gzip.compress(json.dumps({"app": app()}).encode())
    headers = {"Content-Encoding": "GZIP", **({"Location": "/there"} if status == 302 else {})}
    with Server({"*": Answer(packed, 200, {"Content-Encoding": "gzip"})}) as server:
        server.set({f"{CLUSTER}/apps/{APP}": Answer(packed, status, headers)})
        assert refusal(server.url).reason.endswith("answered with compressed data")


def test_an_answer_that_is_too_long() -> None:
    bounds = rest.Bounds(1 << 20, 30.0)
    too_long = pytest.raises(YarnError, match="answered with more than 1 MiB")
    with Server({"*": Answer(b"x" * (2 << 20))}) as server, too_long:
        rest.Rest().get(server.url, None, bounds)


@pytest.mark.parametrize(
    ("status", "body", "name", "value"),
    [(302, b"", "Location", "{}/private"), (200, STANDBY, "Refresh", "3; url={}/private")],
)
def test_redirects_of_a_driver_are_not_followed(status: int, body: bytes, name: str, value: str) -> None:
    """A driver runs its user's code: it must not redirect requests into the coordinator's network."""
    with Server(small_cluster()) as manager, Server({"*": Answer([])}) as private:
        headers = {name: value.format(private.url)}
        manager.set({path: Answer(body, status, headers) for path in manager.paths if "/proxy/" in path})
        (note,) = locate(manager.url).notes
        assert private.asked == []
    assert note.startswith("the Spark driver did not list its executors: http")
    assert note.endswith(f"redirects to {private.url}/private, which is not a known ResourceManager")
