"""YARN on the command line: -j with -c, addresses and yarn-site.xml, the confirmation, apps."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.cli import main
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.cli.options.target import wanted
from hprofiler.resolve import TooMany
from hprofiler.resolve.yarn.rest import base_urls
from hprofiler.resolve.yarn.site import configured, is_configured
from tests.unit.command import Terminal
from tests.unit.yarn_server import APP, CLUSTER, Server, app, application_paths, container, site

C = ["-c", "http://rm:8088"]


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


MEANINGS = [
    # Words, target of the resolver, selector.
    (["-j", APP, *C], APP, None),
    (["-j", APP, *C, "--match", "spark-executor"], APP, "spark-executor"),
    (["-j", APP], None, APP),
    (["-j", APP, "-h", "n1"], None, APP),
    (["-j", "spark-executor", *C], "", "spark-executor"),
    (["-j", "spark-executor"], None, "spark-executor"),
    (["-j", "yarn:name=nightly*,user=etl", *C], "name=nightly*,user=etl", None),
    (["-j", "yarn:name=x", "--match", "java"], "name=x", "java"),
    (["-j", "yarn:", *C], "", None),
    (["-j", "job_1700000000000_0042", *C], APP, None),
    (["-j", "job_1700000000000_0042"], None, "job_1700000000000_0042"),
]


@pytest.mark.parametrize(
    ("words", "asked", "selector"), MEANINGS, ids=[" ".join(case[0]) for case in MEANINGS]
)
def test_what_j_means(words: list[str], asked: str | None, selector: str | None) -> None:
    options = parse(words)
    assert (wanted(options).application, wanted(options).selector) == (asked, selector)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-j", APP, *C, "--match", "spark-executr"], "no selector is named"),
        (["-j", APP, *C, "-h", "n1"], "-h and -c exclude each other"),
        (["-j", "yarn:name=x"], "no ResourceManager is configured"),
        (["-j", APP, *C, "--yarn-ca", "/no/such"], "no such file"),
        (["-j", APP, *C, "--host-map", "a=-x"], "is not a host"),
        (["-j", f"{APP},{APP}", *C], "not the id of an application"),
        (["-j", "aplication_1700000000000_0042", *C], "not the id of an application"),
        (["-j", "java", "-h", "n1", "--host-map", "n1=n2"], "--host-map is for an application or pods"),
        (["-j", "java", "--yarn-ca", "x"], "--yarn-ca is for an application,"),
    ],
)
def test_bad_targets(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", *words]) == 2
    assert reason in capsys.readouterr().err


def test_an_id_without_a_cluster_is_text_and_a_note_says_so() -> None:
    (note,) = chosen.target(parse(["-j", APP])).notes
    assert note.startswith(
        f"-j {APP} matches command lines on this machine; for a YARN application add -c http"
    )
    (note,) = chosen.target(parse(["-j", "job_1700000000000_0042", "-h", "n1"])).notes
    assert "on these hosts" in note
    assert chosen.target(parse(["-j", "java"])).notes == ()


def located(words: list[str], monkeypatch: pytest.MonkeyPatch, typed: str | None = None) -> Any:
    """The hosts, with this input on a terminal; None: no terminal."""
    monkeypatch.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
    monkeypatch.setattr(sys, "stderr", Terminal())
    return chosen.target(parse(words))


def test_many_containers_need_a_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = application_paths([container(1, "n1")], applicationType="X", runningContainers=201)
    with Server(
        {**paths, f"{CLUSTER}/apps": {"apps": {"app": [app(applicationType="X", runningContainers=201)]}}}
    ) as server:
        words = ["-j", "java", "-c", server.url]
        with pytest.raises(TooMany, match="1 application with 201 containers") as caught:
            located(words, monkeypatch)
        assert "--yes" in caught.value.remedy and isinstance(caught.value, UsageError)
        for no in ("n\n", "\n", ""):
            with pytest.raises(TooMany):
                located(words, monkeypatch, no)
        for found in (
            located(words, monkeypatch, "y\n"),
            located([*words, "--yes"], monkeypatch),
            located(["-j", APP, "-c", server.url], monkeypatch),
        ):
            assert [host.name for host in found.hosts] == ["n1"]


# apps


def test_apps(capsys: pytest.CaptureFixture[str]) -> None:
    other = app(
        "application_1_0001", name="ad\x1bhoc", elapsedTime=3_700_000, applicationTags="a,b", user="kim"
    )
    with Server({f"{CLUSTER}/apps": {"apps": {"app": [other, app()]}}}) as server:
        assert main(["apps", "-c", server.url]) == 0
        heading, first, second = capsys.readouterr().out.splitlines()
        assert " ".join(heading.split()) == "APPLICATION TYPE USER QUEUE CONTAINERS MEMORY RUNS FOR NAME"
        assert first.split()[:6] == [APP, "SPARK", "etl", "root.nightly", "4", "3.0"]
        assert first.endswith("1 min  nightly load") and second.endswith("1 h  ad\ufffdhoc")
        assert main(["apps", "user=kim", "-c", server.url, "--json"]) == 0
        (record,) = json.loads(capsys.readouterr().out)
        assert record["id"] == "application_1_0001" and record["tags"] == ["a", "b"]
        assert main(["apps", "Nightly", "-c", server.url, "--json"]) == 0
        assert [record["id"] for record in json.loads(capsys.readouterr().out)] == [APP]
        assert main(["apps", "yarn:user=nobody", "-c", server.url]) == 0
        said = capsys.readouterr()
        assert said.out == "" and said.err == "no running application that matches user=nobody\n"


@pytest.mark.parametrize(
    ("typed", "bases"),
    [
        ("http://rm:8088", ["http://rm:8088"]),
        ("rm:8088/", ["http://rm:8088"]),
        ("http://rm:8088/ws/v1/cluster/nodes", ["http://rm:8088"]),
        ("http://rm:8088/cluster/apps/RUNNING?x=1#y", ["http://rm:8088"]),
        ("http://rm:8088/proxy/application_1700000000000_0042/", ["http://rm:8088"]),
        ("https://gw:8443/gateway/cluster/yarn", ["https://gw:8443/gateway/cluster/yarn"]),
        ("https://gw/gateway/default/yarn/ws/v1/cluster", ["https://gw/gateway/default/yarn"]),
        ("http://rm1:8088, http://rm2:8088,http://rm1:8088/", ["http://rm1:8088", "http://rm2:8088"]),
        ("http://[::1]:8088", ["http://[::1]:8088"]),
    ],
)
def test_forms_of_an_address(typed: str, bases: list) -> None:
    assert list(base_urls(typed, "-c")) == bases


RM = "yarn.resourcemanager."
NAMED = {RM + "hostname": "rm"}
HA = {RM + "ha.enabled": "true", RM + "ha.rm-ids": "a, b", RM + "hostname.a": "rm1"}
SITES = [
    ("by name", NAMED, ("http://rm:8088",)),
    ("by another", {**NAMED, RM + "webapp.address": "${yarn.resourcemanager.hostname}:1"}, ("http://rm:1",)),
    ("everywhere", {**NAMED, RM + "webapp.address": "0.0.0.0:1"}, ("http://rm:1",)),
    ("tls", {**NAMED, "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:8090",)),
    ("two", {**HA, RM + "webapp.address.b": "rm2:9"}, ("http://rm1:8088", "http://rm2:9")),
    ("nowhere", {RM + "hostname": "${env.RM}"}, None),
    ("by default", {}, None),
]


@pytest.mark.parametrize(("desc", "properties", "bases"), SITES, ids=[case[0] for case in SITES])
def test_yarn_site(
    tmp_path: Path, desc: str, properties: dict[str, str], bases: tuple[str, ...] | None
) -> None:
    (tmp_path / "yarn-site.xml").write_text(site(properties))
    environment = {"HADOOP_CONF_DIR": str(tmp_path)}
    assert is_configured(environment)
    if bases is None:
        with pytest.raises(UsageError, match="does not say where the ResourceManager is"):
            configured(environment)
    else:
        assert configured(environment) == bases


def test_no_yarn_site(tmp_path: Path) -> None:
    assert configured({}) is None and not is_configured({"HADOOP_CONF_DIR": str(tmp_path)})
    (tmp_path / "yarn-site.xml").write_text(
        '<!DOCTYPE x [<!ENTITY a "b">]><configuration>&a;</configuration>'
    )
    with pytest.raises(UsageError, match="entities"):
        configured({"YARN_CONF_DIR": str(tmp_path)})
    hidden = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'.encode(
        "utf-16"
    )
    for content in (b"<configuration>", hidden, b"", b'<?xml version="1.0" encoding="odd"?><x>'):
        (tmp_path / "yarn-site.xml").write_bytes(content)
        with pytest.raises(UsageError, match=r"yarn-site\.xml: "):
            configured({"YARN_CONF_DIR": str(tmp_path)})
