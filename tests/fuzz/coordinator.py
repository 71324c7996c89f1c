"""The coordinator's readers of foreign bytes, each as a fuzz target.

A target reads its input; an error of ours is fine, any other exception is a finding, as is what takes long.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, cast

from hprofiler.agent import bootstrap, checks, events, leftovers
from hprofiler.agent.wire import BadEvent, Wire
from hprofiler.errors import HprofilerError
from hprofiler.kubernetes.commands import exit_status
from hprofiler.kubernetes.configuration import configured as kube_configured
from hprofiler.report.diff.sides import RunSource
from hprofiler.report.facts import read_facts
from hprofiler.resolvers.answers import objects
from hprofiler.resolvers.host_map import parse_host_map
from hprofiler.resolvers.host_names import MAX_HOSTS, named_hosts, parse_entries
from hprofiler.resolvers.kubernetes import owners, pods
from hprofiler.resolvers.kubernetes.listing import label_selector
from hprofiler.resolvers.yarn import site
from hprofiler.resolvers.yarn.applications import application, running
from hprofiler.resolvers.yarn.containers import containers
from hprofiler.resolvers.yarn.ids import belongs
from hprofiler.resolvers.yarn.rest import Bounds, NotFound, ResourceManager, Rest
from hprofiler.resolvers.yarn.spark import spark_facts
from hprofiler.selector_file import read_selector_file
from hprofiler.store import RunFolder, safe_name
from hprofiler.text import printable
from hprofiler.transports.base import Channel
from hprofiler.transports.ssh.config_file import read_config
from hprofiler.transports.ssh.known_hosts import KnownHosts

APPLICATION = "application_1700000000000_0042"
_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "hello": events.parse_hello,
    "processes": events.parse_listed,
    "found": lambda event: events.parse_found(event, "here"),
    "ready": events.parse_ready,
    "watched": events.parse_watched,
    "checked": checks.parse_checked,
    "audited": checks.parse_audited,
    "cleaned": leftovers.parse_cleaned,
    "leftovers": leftovers.parse_leftovers,
}
_SOME_KEY = b"\0" * 32


class _Said:
    """A channel whose other side has said it all."""

    can_end_input = True

    def __init__(self, data: bytes) -> None:
        self._left = data

    def read(self, size: int) -> bytes:
        piece, self._left = self._left[: min(size, 1000)], self._left[min(size, 1000) :]
        return piece

    def stderr_tail(self) -> str:
        return ""

    def exit_status(self, timeout: float) -> Optional[int]:
        return 0


def agent_events(data: bytes) -> None:
    """What an agent sends: lines, and behind a profile's its bytes."""
    wire = Wire(cast(Channel, _Said(data)))
    with contextlib.suppress(BadEvent, EOFError):
        while (event := wire.receive()) is not None:
            parsed = _PARSERS.get(event["type"], events.parse_record_event)(event)
            _check_texts(parsed)
            if isinstance(parsed, events.ProfileHeader):
                sum(map(len, wire.payload(parsed.size)))


def _check_texts(parsed: object) -> None:
    """Nothing in it moves a terminal's cursor or cannot be written."""
    shown = repr(parsed)
    assert shown == printable(shown)
    shown.encode()


def agent_start(data: bytes) -> None:
    """What a host's shell and the start script say."""
    channel = cast(Channel, _Said(data))
    answer = bootstrap.marked(channel, Wire(channel))
    assert answer.arch == printable(answer.arch)


def selector_file(data: bytes) -> None:
    selector = _of_file(data, read_selector_file)
    json.dumps(selector.query).encode()


def _of_file(data: bytes, read: Callable[[Path], Any], name: str = "file") -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return read(path)


class _Servers(ResourceManager, Rest):
    """A ResourceManager, its nodes and a driver, which answer every question alike."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self._bases = ["http://rm:8088"]
        self.rest = self

    def ask(self, path: str, *_: object) -> Any:
        if "allexecutors" in path:
            raise NotFound("not there", "", "")
        return self._answer

    def get(self, url: str, parameters: Optional[Mapping[str, str]] = None, *_: Bounds) -> Any:
        if url.endswith("/appattempts") and not isinstance(self._answer, dict):
            raise NotFound("not there", "", "")
        return self._answer


def yarn(data: bytes) -> None:
    """What a ResourceManager, its nodes and a Spark driver answer."""
    servers = _Servers(_json(data))
    for ask in (
        lambda: application(servers, APPLICATION),
        lambda: running(servers, {"name": "a*", "queue": "b", "tag": "c"}),
        lambda: _check_labels(spark_facts(servers, APPLICATION).labels),
        lambda: _check_containers(containers(servers, APPLICATION)[0]),
    ):
        _ours(cast(Callable[[], object], ask))


def _check_labels(labels: Mapping[str, Mapping[str, str]]) -> None:
    for container, own in labels.items():
        assert container.isprintable() and all(value.isprintable() for value in own.values())


def _check_containers(found: Any) -> None:
    assert all(belongs(one.id, APPLICATION) and one.node.isprintable() for one in found)


def kubernetes(data: bytes) -> None:
    """What an API server lists, and says of a command."""
    exit_status(data)
    answer = _json(data)
    items = objects(answer, "items")
    found = pods.read(items)
    for container in found.running:
        assert all(value.isprintable() for value in container.labels.values())
    for kind in ("deployment", "cronjob", "job"):
        for pod in items:
            owners.owned(pod, kind, "a")
    label_selector(answer)


def kubeconfig(data: bytes) -> None:
    _of_file(data, lambda path: kube_configured(str(path), None, {}))


def hadoop_site(data: bytes) -> None:
    _of_file(data, lambda path: site.configured({"YARN_CONF_DIR": str(path.parent)}), "yarn-site.xml")


def ssh_config(data: bytes) -> None:
    """A file that may include itself, and no other: paths could lead to anything on this machine."""
    if b"/" not in data and b".." not in data:
        _of_file(data, lambda path: read_config(path, path.parent))


def known_hosts(data: bytes) -> None:
    def check(path: Path) -> None:
        known = KnownHosts()
        for name in ("host", "[host]:2222"):
            known.check([path], name, _SOME_KEY)
            known.kinds([path], name)

    _of_file(data, check)


def hosts(data: bytes) -> None:
    """A list of hosts, as an option or in a file, and a map of their names."""
    text = data.decode("utf-8", "replace")
    _ours(lambda: _check_hosts(text))
    _ours(lambda: parse_host_map(f"a={text}"))


def _check_hosts(text: str) -> None:
    found = named_hosts(parse_entries(text, "test"), "test")
    assert len(found) <= MAX_HOSTS
    for host in found:
        assert not host.address.startswith("-") and safe_name(host.name) not in ("", ".", "..")
        assert "/" not in safe_name(host.name)


def run_file(data: bytes) -> None:
    """A run.json, and the profiles that it speaks of."""

    def read(path: Path) -> None:
        run = RunFolder.open(path.parent)
        facts = read_facts(run.run)
        for host in facts.hosts:
            assert path.parent in run.host_dir(host.key).resolve().parents
        source = RunSource(path.parent)
        for event, column in list(source.events.items())[:3]:
            source.read(event, column, lambda *_: None)

    _of_file(data, read, "run.json")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _ours(work: Callable[[], object]) -> None:
    try:
        work()
    except HprofilerError as error:
        assert str(error)


TARGETS: Dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        agent_events,
        agent_start,
        selector_file,
        yarn,
        kubernetes,
        kubeconfig,
        hadoop_site,
        ssh_config,
        known_hosts,
        hosts,
        run_file,
    )
}


def run(target: str, data: bytes) -> None:
    """Does what a target does with an input."""
    _ours(lambda: TARGETS[target](data))
