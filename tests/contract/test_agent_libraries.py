"""An agent without arguments, as sudo runs it, takes libraries of its own package and no others."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator

import pytest

from hprofiler.base import resources
from tests.contract import real
from tests.contract.agent_driver import LIBRARIES, Agent, sampling
from tests.needed import lacking

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
REQUESTS = ("check", "prepare")
OTHER = b"another library"


def started(arch: str, *arguments: str) -> Agent:
    if arch not in resources.agents():
        lacking(f"the package has no agent for {arch}")
    command = [str(resources.agents()[arch].path), *arguments]
    if arch != platform.machine():
        emulator = shutil.which(f"qemu-{arch}-static")
        command = [emulator or lacking(f"qemu-{arch}-static is not installed"), *command]
    agent = Agent(command)
    agent.hello()
    return agent


@pytest.fixture(params=resources.ARCHITECTURES)
def bare(request: pytest.FixtureRequest) -> Iterator[Agent]:
    agent = started(request.param)
    agent.arch = request.param  # type: ignore[attr-defined]
    yield agent
    agent.end()


def ask(agent: Agent, request: str, **blobs: str) -> None:
    agent.send(request, sampling=sampling(), blobs=blobs, processes=[])


def test_its_packages_are_taken(bare):
    mine = {name: resources.blobs()[name].get(bare.arch) for name in LIBRARIES}
    assert mine["async-profiler"] is not None
    blobs = {name: blob.sha256 for name, blob in mine.items() if blob}
    ask(bare, "check", **blobs)
    bare.expect("checked")
    for blob in filter(None, mine.values()):
        bare.put(blob.path.read_bytes())
    ask(bare, "prepare", **blobs)
    bare.expect("ready")


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_another_is_refused(bare, name, request_):
    ask(bare, request_, **{name: bare.put(OTHER)})
    error = bare.expect("error")
    assert f"this library of {name}" in error["reason"] and "as root" in error["remedy"], error


@pytest.mark.parametrize("request_", REQUESTS)
def test_with_the_argument_any_is_taken(request_):
    agent = started(platform.machine(), "--any-library")
    try:
        ask(agent, request_, **{"async-profiler": agent.put(OTHER)})
        agent.expect({"check": "checked", "prepare": "ready"}[request_])
    finally:
        agent.end()
