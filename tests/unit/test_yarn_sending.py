"""Servers that send elsewhere, and answers that are larger than they look."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.unit.test_yarn_errors import STANDBY, locate, refusal
from tests.unit.yarn_server import APP, CLUSTER, Answer, Server, app, container_id, small_cluster


@pytest.mark.parametrize("location", ["http://[::", "file:///etc/passwd", "http://x:99999/"])
def test_standbys_that_send_to_no_address(location: str) -> None:
    with Server({"*": Answer(b"", 307, {"Location": location})}) as one:
        assert refusal(one.url).reason.endswith("redirects to something that is not an address")


@pytest.mark.parametrize(
    ("status", "body", "name", "value"),
    [(302, b"", "Location", "{}/private"), (200, STANDBY, "Refresh", "3; url={}/private")],
)
def test_a_driver_sends_nowhere(status: int, body: bytes, name: str, value: str) -> None:
    """It runs its user's code, and what is asked is asked from where that user may not be."""
    with Server(small_cluster()) as manager, Server({"*": Answer([])}) as private:
        headers = {name: value.format(private.url)}
        manager.set({path: Answer(body, status, headers) for path in manager.paths if "/proxy/" in path})
        (note,) = locate(manager.url).notes
        assert private.asked == []
    assert note.startswith("the Spark driver did not list its executors: http")
    assert note.endswith(f"redirects to {private.url}/private, which is not a known ResourceManager")


@pytest.mark.parametrize("named", ["{standby}", "{standby},{active}"])
def test_a_standby_sends_to_the_active_ones_drivers(named: str) -> None:
    with Server(small_cluster()) as active, Server() as standby:
        for path in active.paths:
            standby.set({path: Answer(STANDBY, 307, {"Location": f"{active.url}{path}"})})
        located = locate(named.format(standby=standby.url, active=active.url))
    assert located.notes == () and located.hosts[0].containers[container_id(1)]["role"] == "driver"


def test_a_password_goes_to_nobody_else() -> None:
    with Server(small_cluster()) as other, Server() as gateway:
        for path in other.paths:
            gateway.set({path: Answer(b"", 302, {"Location": f"{other.url}{path}"})})
        locate(gateway.url.replace("//", "//kim:secret@"))
        assert all("Authorization" in headers for headers in gateway.headers)
        assert other.headers and not any("Authorization" in headers for headers in other.headers)


@pytest.mark.parametrize("status", [200, 302])
def test_a_packed_answer_is_refused(status: int) -> None:
    """64 KiB of it are 64 MiB, and a redirect is read as well where the library follows it."""
    packed = gzip.compress(json.dumps({"app": app()}).encode())
    headers = {"Content-Encoding": "GZIP", **({"Location": "/there"} if status == 302 else {})}
    with Server({"*": Answer(packed, 200, {"Content-Encoding": "gzip"})}) as server:
        server.set({f"{CLUSTER}/apps/{APP}": Answer(packed, status, headers)})
        assert refusal(server.url).reason.endswith("answered with compressed data")
