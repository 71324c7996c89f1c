"""Where the ResourceManagers are: what -c takes, yarn-site.xml, and names of hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.resolve.host_list import parse_host_map
from hprofiler.resolve.host_names import HostEntry
from hprofiler.resolve.yarn.rest import base_urls
from hprofiler.resolve.yarn.site import configured, is_configured


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
def test_what_people_copy_from_elsewhere(typed: str, bases: list) -> None:
    assert list(base_urls(typed, "-c")) == bases


SITES = [
    ("by name", {"yarn.resourcemanager.hostname": "rm"}, ("http://rm:8088",)),
    (
        "in terms of another",
        {
            "yarn.resourcemanager.hostname": "rm",
            "yarn.resourcemanager.webapp.address": "${yarn.resourcemanager.hostname}:1",
        },
        ("http://rm:1",),
    ),
    (
        "everywhere",
        {"yarn.resourcemanager.hostname": "rm", "yarn.resourcemanager.webapp.address": "0.0.0.0:1"},
        ("http://rm:1",),
    ),
    ("tls", {"yarn.resourcemanager.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:8090",)),
    (
        "two",
        {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "a, b",
            "yarn.resourcemanager.hostname.a": "rm1",
            "yarn.resourcemanager.webapp.address.b": "rm2:9",
        },
        ("http://rm1:8088", "http://rm2:9"),
    ),
    ("nowhere", {"yarn.resourcemanager.hostname": "${env.RM}"}, None),
    ("by default", {}, None),
]


@pytest.mark.parametrize(("desc", "properties", "bases"), SITES, ids=[case[0] for case in SITES])
def test_yarn_site(
    tmp_path: Path, desc: str, properties: dict[str, str], bases: tuple[str, ...] | None
) -> None:
    items = "".join(
        f"<property><name>{n}</name><value> {v} </value></property>" for n, v in properties.items()
    )
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{items}</configuration>")
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


def test_a_map_of_hosts(tmp_path: Path) -> None:
    want = {"a": HostEntry("b", None, None), "c.d": HostEntry("10.0.0.1", "kim", 22)}
    assert parse_host_map("a=b, c.d=kim@10.0.0.1:22") == want
    (tmp_path / "map").write_text("# names\na = b\n\nc.d=kim@10.0.0.1:22  # the other\n")
    assert parse_host_map(str(tmp_path / "map")) == want


@pytest.mark.parametrize("text", ["a=", "=b", "a=-oX", "-a=b", "a=b=c", ",=,", "no-such-file"])
def test_maps_that_are_none(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_host_map(text)
    assert caught.value.reason.startswith("--host-map") and caught.value.remedy
