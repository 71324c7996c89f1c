"""What may go wrong with a ResourceManager, and what the user is told: why, where, and what to do next."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.resolve import Located, TargetOptions, YarnOptions, resolve
from hprofiler.resolve.host_names import MAX_HOSTS
from hprofiler.resolve.yarn import rest
from hprofiler.resolve.yarn.locating import running_applications
from hprofiler.resolve.yarn.rest import YarnError
from tests.unit.yarn_server import (
    APP,
    CLUSTER,
    Answer,
    Server,
    app,
    application_paths,
    attempt,
    container,
    make_certificate,
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


@pytest.fixture
def closed() -> Iterator[str]:
    """An address at which nobody listens, nor can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_nobody_listens(closed: str) -> None:
    error = refusal(closed)
    assert error.reason == f"{closed}/ws/v1/cluster/apps/{APP} cannot be reached: Connection refused"


def test_a_name_that_is_not_known() -> None:
    error = refusal("http://no-such-host.invalid:8088")
    assert error.reason.startswith("http://no-such-host.invalid:8088/ws/v1/")
    assert "cannot be reached: " in error.reason and "object at" not in error.reason


def test_one_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        error = refusal(f"http://127.0.0.1:{mute.getsockname()[1]}")
    assert error.reason.endswith("did not answer within 0.2 s")


def test_an_application_that_is_not_known() -> None:
    with Server() as server:
        error = refusal(server.url)
    assert error.reason == f"the ResourceManager {server.url} does not know {APP}"
    assert "hprofiler apps" in error.remedy


@pytest.mark.parametrize(
    ("state", "final", "words", "remedy"),
    [
        ("FINISHED", "SUCCEEDED", "is FINISHED (SUCCEEDED)", "it may have another id now"),
        ("KILLED", "KILLED", "is KILLED:", "it may have another id now"),
        ("ACCEPTED", "UNDEFINED", "is ACCEPTED:", "wait until it runs"),
        ("", "", "is in no known state", "it may have another id now"),
    ],
)
def test_an_application_that_does_not_run(state: str, final: str, words: str, remedy: str) -> None:
    with Server({f"{CLUSTER}/apps/{APP}": {"app": app(state=state, finalStatus=final)}}) as server:
        error = refusal(server.url)
    assert words in error.reason and error.remedy.startswith(remedy)


def test_no_container_runs_yet() -> None:
    with Server(application_paths([container(1, "n1", "ACQUIRED")], applicationType="X")) as server:
        assert refusal(server.url).reason == f"{APP}: no running container"


# High availability


def test_a_standby_that_redirects() -> None:
    with Server(small_cluster()) as active, Server() as standby:
        location = {"Location": f"{active.url}{CLUSTER}/apps/{APP}"}
        standby.set({f"{CLUSTER}/apps/{APP}": Answer(STANDBY, 307, location)})
        standby.set({"*": Answer(NO_ACTIVE)})
        assert len(locate(f"{standby.url},{active.url}").hosts) == 2
        assert len(active.asked) == 5


def test_a_standby_that_says_when_to_look_where() -> None:
    with Server(small_cluster()) as active, Server() as standby:
        header = {"Refresh": f"3; url={active.url}{CLUSTER}/apps/{APP}"}
        standby.set({f"{CLUSTER}/apps/{APP}": Answer(STANDBY, 200, header), "*": Answer(NO_ACTIVE)})
        assert len(locate(f"{standby.url},{active.url}").hosts) == 2


@pytest.mark.parametrize("body", [STANDBY, NO_ACTIVE, b"There is no active RM right now."])
def test_the_second_is_asked_and_then_stays_the_first(body: bytes) -> None:
    with Server(small_cluster()) as active, Server({"*": Answer(body)}) as standby:
        assert len(locate(f"{standby.url},{active.url}").hosts) == 2
        assert len(active.asked) == 5 and len(standby.asked) <= 2


def test_the_first_is_down(closed: str) -> None:
    with Server(small_cluster()) as active:
        assert len(locate(f"{closed},{active.url}").hosts) == 2


def test_standbys_only() -> None:
    header = {"Refresh": "3; url=/again"}
    with Server({"*": Answer(NO_ACTIVE, 200, header)}) as one, Server({"*": Answer(STANDBY)}) as two:
        error = refusal(one.url)
        assert "is a standby ResourceManager, and no active one is known" in error.reason
        assert "--yarn http://rm1:8088,http://rm2:8088" in error.remedy
        assert refusal(f"{one.url},{two.url}").reason.startswith("no ResourceManager answers: http")


def test_standbys_that_send_round_in_circles() -> None:
    with Server() as one:
        one.set({"*": Answer(b"", 307, {"Location": f"{one.url}/x"})})
        assert "redirects too often" in refusal(one.url).reason


# Rights


def test_kerberos_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is in tests/contract/test_kerberos.py."""
    monkeypatch.setitem(sys.modules, "requests_gssapi", None)
    with Server({"*": Answer(b"", 401, {"WWW-Authenticate": "Negotiate"})}) as server:
        error = refusal(server.url)
    assert error.reason.endswith("requires Kerberos")
    assert error.remedy == "install hprofiler[kerberos] and run kinit"


def test_a_gateway_wants_a_login_and_gets_it() -> None:
    wants = Answer(b"", 401, {"WWW-Authenticate": 'Basic realm="KNOX"'})
    with Server({"*": wants}) as server:
        assert "requires a login (401)" in refusal(server.url).reason
        with_password = server.url.replace("//", "//kim:s3cr%40t@")
        error = refusal(f"{with_password}/gateway/default/yarn")
        assert "s3cr" not in error.reason + error.remedy
        assert server.headers[-1]["Authorization"] == "Basic a2ltOnMzY3JAdA=="  # kim:s3cr@t
        assert server.asked[-1][0] == f"/gateway/default/yarn{CLUSTER}/apps/{APP}"


def test_passwords_are_in_no_message() -> None:
    with Server() as server:
        for login in ("//kim:secret@", "//kim:sec@ret@"):
            assert "kim" not in refusal(server.url.replace("//", login)).reason
        assert "kim" not in refusal(server.url.replace("http://", "kim:secret@")).reason


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
def test_passwords_are_in_no_message_about_an_address_that_is_none(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        locate(wrong)
    assert "kim" not in caught.value.reason and "ret" not in caught.value.reason
    assert "rm:" in caught.value.reason


def test_who_may_not_see_it() -> None:
    with Server({"*": remote_exception(403, "User dr.who cannot\nview it")}) as server:
        assert refusal(server.url).reason.endswith("refuses: User dr.who cannot view it")


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    certificate = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(str(certificate))
    with Server(small_cluster(), tls) as server:
        error = refusal(server.url)
        assert "TLS: " in error.reason and "certificate" in error.reason
        assert error.remedy == "name the CA with --yarn-ca FILE"
        assert len(locate(server.url, ca_file=str(certificate)).hosts) == 2
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other"))
        assert len(locate(server.url, ca_file=str(certificate)).hosts) == 2
        (tmp_path / "empty.pem").write_text("nothing")
        assert refusal(server.url, ca_file=str(tmp_path / "empty.pem")).reason


# Answers that are none


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"<html>Hue</html>"), "something that is not JSON"),
        (Answer(b""), "something that is not JSON"),
        (Answer(b'{"app":' + b"[" * 100_000), "something that is not JSON"),
        (Answer(b"\xff\xfe\x00"), "something that is not JSON"),
        (Answer([]), f"something that is not {APP}"),
        (Answer({"app": [1, 2]}), f"something that is not {APP}"),
        (Answer({"app": app("application_1_1")}), f"something that is not {APP}"),
        (Answer({}, 500), "answered 500"),
        (
            remote_exception(400, "Application id x\x1b[31m is bad"),
            "answered 400: Application id x\ufffd[31m is bad",
        ),
    ],
)
def test_answers_that_make_no_sense(answer: Answer, words: str) -> None:
    with Server({"*": answer}) as server:
        reason = refusal(server.url).reason
    assert words in reason and reason.isprintable()


def test_an_answer_of_too_many_values() -> None:
    """Each takes many times its bytes."""
    bounds = rest.Bounds(1600, 30.0)
    with Server({"*": Answer([[]] * 40)}) as server:
        assert rest.Rest().get(server.url, None, bounds) == [[]] * 40
        server.set({"*": Answer([[]] * 60)})
        with pytest.raises(YarnError, match="no JSON"):
            rest.Rest().get(server.url, None, bounds)


def test_an_answer_that_is_too_long() -> None:
    bounds = rest.Bounds(1 << 20, 30.0)
    too_long = pytest.raises(YarnError, match="answered with more than 1 MiB")
    with Server({"*": Answer(b"x" * (2 << 20))}) as server, too_long:
        rest.Rest().get(server.url, None, bounds)


@pytest.mark.parametrize("beginning", [b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_an_answer_without_end(beginning: bytes) -> None:
    """A byte now and then keeps a connection alive for ever, in its headers as in its body."""
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


def test_a_packed_answer_is_not_asked_for() -> None:
    with Server(small_cluster()) as server:
        locate(server.url)
        assert {headers["Accept-Encoding"] for headers in server.headers} == {"identity"}


def test_numbers_that_are_none() -> None:
    """Python has no largest number, and what is told of it must be divided and shown."""
    long = app(elapsedTime=10**400, allocatedMB=10**400, runningContainers=-1)
    with Server({f"{CLUSTER}/apps": {"apps": {"app": [long]}}}) as server:
        (told,) = running_applications("", YarnOptions(server.url))
    assert (told.elapsed, told.memory_mb, told.containers) == (0, 0, 0)


def test_only_the_newest_attempt_is_asked() -> None:
    attempts = [attempt(number) for number in (3, 12, 1)]
    newest = attempts[1]["appAttemptId"]
    paths = {
        f"{CLUSTER}/apps/{APP}/appattempts": {"appAttempts": {"appAttempt": attempts}},
        f"{CLUSTER}/apps/{APP}/appattempts/{newest}/containers": {"container": [container(2, "n2")]},
    }
    with Server({**application_paths([], applicationType="X"), **paths}) as server:
        assert [host.name for host in locate(server.url).hosts] == ["n2"]
        assert len(server.asked) == 3


def test_more_nodes_than_there_are() -> None:
    """Those of a ResourceManager that is too old to list containers would each be asked."""
    nodes = [{"nodeHTTPAddress": f"n{n}:8042", "numContainers": 1} for n in range(MAX_HOSTS + 1)]
    paths = {f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="X")}}
    with Server({**paths, f"{CLUSTER}/nodes": {"nodes": {"node": nodes}}}) as server:
        assert "more than 5000 nodes" in refusal(server.url).reason
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [Answer(b"<html>Not found", 404), remote_exception(404, "java.lang.Exception: HTTP 404 Not Found")],
)
def test_what_is_no_resource_manager_does_not_know_applications(answer: Answer) -> None:
    """A web server, and a NodeManager, which answers as YARN does."""
    with Server({"*": answer}) as server:
        error = refusal(server.url)
    assert error.reason.endswith(": no ResourceManager answers there") and "-c" in error.remedy


def test_a_wrong_address_does_not_hide_the_right_one() -> None:
    with Server({"*": Answer(b"<html>Not found", 404)}) as wrong, Server(small_cluster()) as right:
        assert len(locate(f"{wrong.url},{right.url}").hosts) == 2


@pytest.mark.parametrize(
    "node", ["-oProxyCommand=touch /tmp/x", "a b", "..", "n1;reboot", "x" * 300, "$(reboot)", "\u00e9"]
)
def test_nodes_that_are_no_hosts(node: str) -> None:
    """They would end up in ssh's arguments and in names of folders."""
    hostile = {**container(1, "n1"), "nodeHttpAddress": f"http://{node}:8042", "nodeId": f"{node}:8041"}
    with Server(application_paths([container(2, "n2"), hostile], applicationType="X")) as server:
        assert "which is not a host" in refusal(server.url).reason


# The command line's part


@pytest.mark.parametrize(
    "url", ["ftp://rm", "http://", "http://rm:port", "http://rm:99999", "http://r m", "http://[::"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError, match=r"-c: .* is not an address of a ResourceManager"):
        locate(url)


def test_no_address_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="-c names no ResourceManager"):
        locate(" , ")
    with pytest.raises(UsageError, match="no ResourceManager is configured"):
        resolve(TargetOptions(application=APP))
