"""Fixtures of several files: scripted agents, pods of a fake API server, and a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hprofiler.kubernetes import Access
from hprofiler.resolve import KubernetesOptions, Located, TargetOptions, resolve
from tests.unit.kubernetes_server import ApiServer, serving
from tests.unit.limits import Limits
from tests.unit.stand_in import Fleet, StandIns

Locate = Callable[..., Located]
MakeFleet = Callable[..., Fleet]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of tests are on this machine: no proxy applies."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving() as made:
        yield made


@pytest.fixture
def stand_ins(tmp_path: Path) -> Iterator[StandIns]:
    made = StandIns(tmp_path)
    yield made
    made.clean()


@pytest.fixture
def fleet(stand_ins: StandIns) -> MakeFleet:
    """Makes hosts from the scripts of their agents, by name."""
    return lambda timeout=60.0, **bodies: Fleet(stand_ins, timeout, bodies)


@pytest.fixture
def locate(server: ApiServer, tmp_path: Path) -> Locate:
    def located(*asked: str, **options: Any) -> Located:
        kubernetes = KubernetesOptions(access=Access(server.kubeconfig(tmp_path)), **options)
        return resolve(TargetOptions(pods=asked or ("app=x",), kubernetes=kubernetes))

    return located


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    return Limits(monkeypatch)
