"""The coordinator's readers of untrusted bytes, each as a fuzz target.

A target reads its input. Our own errors are fine; any other exception is a finding, and so is a timeout.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from hprofiler.agent import bootstrap, visiting
from hprofiler.agent.messages import BadEvent, ProfileHeader
from hprofiler.agent.wire import Wire
from hprofiler.base.answers import objects
from hprofiler.kubernetes.commands import exit_status
from hprofiler.kubernetes.configuration import configured as kube_configured
from hprofiler.resolve.host_list import parse_host_map
from hprofiler.resolve.host_names import MAX_HOSTS, named_hosts, parse_entries
from hprofiler.resolve.kubernetes import pods
from hprofiler.resolve.kubernetes.listing import label_selector
from hprofiler.resolve.yarn import site
from hprofiler.runfolder import safe_name
from hprofiler.selectors.rule_file import read_selector_file
from hprofiler.transport.base import Channel, Transport
from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict
from tests.fuzz.invariants import check_text, check_texts, of_file, ours
from tests.fuzz.reports import outcomes, run_file
from tests.fuzz.yarn_servers import yarn

BETWEEN = b"\xff\xff"
"""Separates the outputs of commands in the input."""
_LONGEST_REFUSAL = 1000
_LONGEST_ADDRESS = 30_000
_SOME_KEY = b"\0" * 32
_NAMES = ("host", "[host]:2222")


class _Said:
    """A channel whose other side has sent everything and ended."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def read(self, size: int) -> bytes:
        piece, self._left = self._left[: min(size, 1000)], self._left[min(size, 1000) :]
        return piece

    def write(self, data: bytes) -> None:
        pass

    def end_input(self) -> None:
        pass

    def stderr_tail(self) -> str:
        return ""

    def exit_status(self, timeout: float) -> int | None:
        return 0

    def close(self) -> None:
        pass

    def leave(self) -> None:
        pass


def agent_events(data: bytes) -> None:
    """Fuzzes an agent's messages: lines, and the bytes of profiles."""
    try:
        for _ in read_events(data):
            pass
    except BadEvent as refused:
        check_text(str(refused), _LONGEST_REFUSAL)
    except EOFError:
        pass


def read_events(data: bytes) -> Iterator[object]:
    """The events as types. Raises BadEvent, and EOFError within a payload."""
    wire = Wire(cast(Channel, _Said(data)))
    while (event := wire.receive()) is not None:
        check_texts(event)
        if isinstance(event, ProfileHeader):
            sum(map(len, wire.payload(event.size)))
        yield event


class _Blob(NamedTuple):
    """A placeholder for the agent's binary, which is never read."""

    path: Path = Path(__file__)
    sha256: str = "0" * 64


class _Shell:
    """A host that answers each command with the next output; `ran` has the commands."""

    become = None

    def __init__(self, data: bytes) -> None:
        self.ran: list[str] = []
        self._answers = iter(data.split(BETWEEN))

    def open(self, command: str) -> _Said:
        self.ran.append(command)
        return _Said(next(self._answers, b""))

    def last(self, command: str) -> None:
        self.ran.append(command)


def agent_start(data: bytes) -> None:
    """Fuzzes the output of a host's shell and of the scripts that start the agent, and its use."""
    binaries = bootstrap.AgentBinaries({"x86_64": _Blob()})
    for launch in (bootstrap.launch, visiting.launch):
        shell = _Shell(data)
        ours(lambda: check_text(launch(cast(Transport, shell), binaries, lambda wire: None).arch))  # noqa: B023
        assert not any("\0" in command for command in shell.ran)
        if launch is bootstrap.launch:  # the first command is the same for all hosts
            assert all(len(shlex.split(command)) == 4 and "\n" not in command for command in shell.ran[1:])
    answer = bootstrap.marked(cast(Channel, _Said(data)), Wire(cast(Channel, _Said(data))))
    ours(lambda: _check_quoted(answer.folder))


def _check_quoted(word: str) -> None:
    """A shell must parse it as one word, with the host's text."""
    with contextlib.suppress(bootstrap.HostError):
        assert re.sub(r"\\(.)", r"\1", bootstrap._quoted(word)[1:-1]) == word
        assert not re.search(r"(?<!\\)(?:\\\\)*[$`]", bootstrap._quoted(word))
    assert shlex.split(visiting._quoted(word)) == [word]


def selector_file(data: bytes) -> None:
    selector = of_file(data, read_selector_file)
    json.dumps(selector.query).encode()


def kubernetes(data: bytes) -> None:
    """Fuzzes an API server's lists, and its status of a command."""
    exit_status(data)
    answer = _json(data)
    items = objects(answer, "items")
    found = pods.read(items)
    for container in found.running:
        assert all(value.isprintable() for value in container.labels.values())
    label_selector(answer)


def kubeconfig(data: bytes) -> None:
    """Its programs must not run, and files that it names not be read, before they are needed."""
    found = of_file(data, lambda path: kube_configured(str(path), None, {}))
    assert isinstance(found.cluster, dict) and isinstance(found.user, dict)


def hadoop_site(data: bytes) -> None:
    found = of_file(data, lambda path: site.configured({"YARN_CONF_DIR": str(path.parent)}), "yarn-site.xml")
    assert found
    for address in found:
        assert address.startswith(("http://", "https://")) and len(address) < _LONGEST_ADDRESS


def hosts(data: bytes) -> None:
    """Fuzzes a list of hosts, as an option and as a file, and a map of their names."""
    text = data.decode("utf-8", "replace")
    ours(lambda: _check_hosts(text))
    ours(lambda: parse_host_map(f"a={text}"))


def _check_hosts(text: str) -> None:
    found = named_hosts(parse_entries(text, "test"), "test")
    assert len(found) <= MAX_HOSTS
    for host in found:
        assert not host.address.startswith("-") and safe_name(host.name) not in ("", ".", "..")
        assert "/" not in safe_name(host.name)


def known_hosts(data: bytes) -> None:
    """Fuzzes known and revoked host keys."""

    def check(path: Path) -> None:
        before = [KnownHosts().check([path], name, _SOME_KEY)[0] for name in _NAMES]
        known = KnownHosts()
        for name in _NAMES:
            known.kinds([path], name)
        ours(lambda: known.revoked([path], _SOME_KEY))
        known.add(path, "another", "ssh-rsa", _SOME_KEY)
        now = KnownHosts()
        assert now.check([path], "another", _SOME_KEY)[0] in (Verdict.KNOWN, Verdict.REVOKED)
        assert before == [now.check([path], name, _SOME_KEY)[0] for name in _NAMES]

    of_file(data, check)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        agent_events,
        agent_start,
        outcomes,
        selector_file,
        yarn,
        kubernetes,
        kubeconfig,
        hadoop_site,
        known_hosts,
        hosts,
        run_file,
    )
}


def run(target: str, data: bytes) -> None:
    """Run a target with an input."""
    ours(lambda: TARGETS[target](data))
