"""The client of the API server: kubeconfig, credentials, answers and errors."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.kubernetes import Access, Forbidden, KubernetesError, Need, connect, login
from hprofiler.kubernetes import cluster as client
from hprofiler.kubernetes.commands import exit_status
from hprofiler.kubernetes.configuration import configured
from tests.unit.http_server import make_certificate
from tests.unit.kubernetes_server import ApiServer, pod, serving, status

PODS = Need("list", "pods", "default")
PATH = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- a list", "is not a kubeconfig"),
        ("a: !!bool maybe", "is not YAML"),
        ("{}", "current context"),
        ("{current-context: x, contexts: [{name: x, context: {cluster: y, user: z}}]}", "is not valid"),
        ("\xff\xfe", "is no"),
    ],
)
def test_files_that_are_not_kubeconfigs(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "config").write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match=said):
        configured(str(tmp_path / "config"), None)


def plugin(folder: Path, body: str) -> dict[str, Any]:
    """A credential plugin beside the kubeconfig that names it."""
    program = folder / "login"
    program.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "args": ["a"]}


def test_a_token_file_is_read_again_when_its_token_is_refused(server: ApiServer, tmp_path: Path) -> None:
    """As that of a pod's service account, which the kubelet replaces every hour."""
    token = tmp_path / "token"
    token.write_text("old\n")
    refused: list[str] = []
    server.replies[PATH[1:]] = lambda _: (
        (401, status(401, "Unauthorized", "expired"))
        if server.tokens[-1] in refused
        else (200, {"items": []})
    )
    made = connect(Access(server.kubeconfig(tmp_path, tokenFile=str(token))))
    assert made.list(PATH, {}, PODS) == []
    refused.append("Bearer old")
    token.write_text("new\n")
    assert made.list(PATH, {}, PODS) == [] and made.list(PATH, {}, PODS) == []
    assert server.tokens == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


def test_a_plugin_logs_in_again_when_its_token_is_refused(server: ApiServer, tmp_path: Path) -> None:
    count = tmp_path / "count"
    body = (
        f"n = open({str(count)!r}, 'a+'); n.write('x'); n.flush(); n.seek(0); times = len(n.read())\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert asked['kind'] == 'ExecCredential' and sys.argv[1] == 'a'\n"
        "print(json.dumps({'status': {'token': f'token{times}'}}))"
    )
    config = server.kubeconfig(tmp_path, exec=plugin(tmp_path, body))
    server.replies[PATH[1:]] = lambda _: (
        (401, status(401, "Unauthorized", "expired"))
        if server.tokens[-1] != "Bearer token2"
        else (200, {"items": []})
    )
    made = connect(Access(config))
    assert made.list(PATH, {}, PODS) == [] and made.list(PATH, {}, PODS) == []
    assert server.tokens == ["Bearer token1", "Bearer token2", "Bearer token2"]
    assert count.read_text() == "xx"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(3)", "ended with status 3"),
        ("print('nothing')", "printed no credentials"),
        ("print(json.dumps({'status': 7}))", "printed no credentials"),
        (
            "print(json.dumps({'status': {'clientCertificateData': 'x', 'clientKeyData': 'y'}}))",
            "no usable cert",
        ),
    ],
)
def test_a_plugin_that_fails(server: ApiServer, tmp_path: Path, body: str, said: str) -> None:
    config = server.kubeconfig(tmp_path, exec=plugin(tmp_path, body))
    with pytest.raises(KubernetesError, match=said):
        connect(Access(config))


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (401, "Unauthorized", "does not accept the credentials"),
        (404, "NotFound", "the words"),
        (429, "TooManyRequests", "is overloaded"),
        (500, "InternalError", "answered 500: the words"),
    ],
)
def test_refusals(server: ApiServer, tmp_path: Path, code: int, reason: str, said: str) -> None:
    server.replies[PATH[1:]] = lambda _: (code, status(code, reason, "the words"))
    with pytest.raises(KubernetesError, match=said) as caught:
        connect(Access(server.kubeconfig(tmp_path))).list(PATH, {}, PODS)
    assert caught.value.remedy


def test_forbidden_names_the_smallest_role(server: ApiServer, tmp_path: Path) -> None:
    words = 'pods is forbidden: User "eve" cannot list resource "pods" in API group ""'
    server.replies[PATH[1:]] = lambda _: (403, status(403, "Forbidden", words))
    with pytest.raises(Forbidden, match=r"forbids eve to list pods in the namespace default$") as caught:
        connect(Access(server.kubeconfig(tmp_path))).list(PATH, {}, PODS)
    assert caught.value.remedy == (
        "the smallest Role that allows it has the rule  "
        '- {apiGroups: [""], resources: ["pods"], verbs: [list]}'
    )
    everywhere = Need("list", "pods", None)
    with pytest.raises(Forbidden, match="in all namespaces") as caught:
        connect(Access(server.kubeconfig(tmp_path))).list(PATH, {}, everywhere)
    assert "ClusterRole" in caught.value.remedy


def test_long_lists_come_in_pages(server: ApiServer, tmp_path: Path) -> None:
    def page(query: dict[str, Any]) -> Any:
        assert query["limit"] == ["500"]
        first = "continue" not in query
        return 200, {"items": [pod("a" if first else "b")], "metadata": {"continue": "next" if first else ""}}

    server.replies[PATH[1:]] = page
    found = connect(Access(server.kubeconfig(tmp_path))).list(PATH, {}, PODS)
    assert [one["metadata"]["name"] for one in found] == ["a", "b"]


def test_a_list_has_bounds_as_a_whole(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of its pages."""
    server.replies[PATH[1:]] = lambda _: (200, {"items": [pod("p")] * 20, "metadata": {"continue": "x"}})
    cluster = connect(Access(server.kubeconfig(tmp_path)))
    monkeypatch.setattr(client, "MAX_LIST", 1 << 16)
    with pytest.raises(KubernetesError, match="lists more than 64 KiB"):
        cluster.list(PATH, {}, PODS)
    assert len(server.asked) < 20
    monkeypatch.setattr(client, "LIST_SECONDS", 0.0)
    with pytest.raises(KubernetesError, match="took over 0 s for one list"):
        cluster.list(PATH, {}, PODS)


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    with serving(make_certificate(tmp_path)) as server:
        with pytest.raises(KubernetesError, match=r"TLS: .*certificate") as caught:
            connect(Access(server.kubeconfig(tmp_path))).list(PATH, {}, PODS)
        assert "certificate-authority" in caught.value.remedy
        config = server.kubeconfig(tmp_path, {"insecure-skip-tls-verify": True})
        assert connect(Access(config)).list(PATH, {}, PODS) == []


BAD_ADDRESSES = (
    "http://me:hush#more@127.0.0.1:1",
    "http://me@hush:more:1",
    "socks5://me:hush@127.0.0.1:1",
)


@pytest.mark.parametrize("place", ["server", "proxy-url", "HTTP_PROXY"])
@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_passwords_in_bad_addresses_are_not_shown(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, address: str
) -> None:
    """Messages of the libraries contain what looks like a port, which may be the password."""
    cluster = {} if place == "HTTP_PROXY" else {place: address}
    monkeypatch.setenv("HTTP_PROXY", address if place == "HTTP_PROXY" else "")
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(HprofilerError) as caught:
        connect(Access(server.kubeconfig(tmp_path, cluster))).list(PATH, {}, PODS)
    assert "hush" not in f"{caught.value.reason} {caught.value.remedy}"


def exited(code: str) -> Any:
    causes = [{"reason": "ExitCode", "message": code}]
    return {"reason": "NonZeroExitCode", "details": {"causes": causes}}


@pytest.mark.parametrize(
    ("said", "code", "begun"),
    [
        ({"status": "Success"}, 0, True),
        (exited("7"), 7, True),
        (exited("9" * 99), 255, True),
        ({"status": "Failure", "reason": "InternalError", "message": "no sh"}, None, False),
        ([], None, False),
    ],
)
def test_what_a_command_ended_with(said: Any, code: Any, begun: bool) -> None:
    found, failure = exit_status(json.dumps(said).encode())
    assert found == code and (failure is None) == begun
    assert exit_status(b"") == (None, None)


def test_arguments_of_a_plugin_are_never_shown(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body, said in (("sys.exit(3)", "status 3"), ("import time; time.sleep(600)", r"took over 0\.5 s")):
        named = {**plugin(tmp_path, body), "args": ["--password=hush"]}
        with pytest.raises(KubernetesError, match=said) as caught:
            connect(Access(server.kubeconfig(tmp_path, exec=named)))
        assert "hush" not in f"{caught.value.reason} {caught.value.remedy}"
        monkeypatch.setattr(login, "MAX_SECONDS", 0.5)


def test_kubeconfigs_are_merged_as_by_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry of a name counts, and paths are relative to their own file."""
    cluster = {"server": "https://other", "certificate-authority": "ca.crt"}
    contexts = [{"name": name, "context": {"cluster": "c", "namespace": name}} for name in ("one", "two")]
    (tmp_path / "a").write_text(yaml.safe_dump({"current-context": "one", "contexts": contexts}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b").write_text(yaml.safe_dump({"clusters": [{"name": "c", "cluster": cluster}]}))
    files = {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/absent:{tmp_path}/other/b"}
    found = configured(None, None, files)
    assert (found.single.namespace, found.single.cluster.server) == ("one", "https://other")
    assert found.cluster["certificate-authority"] == str(tmp_path / "other/ca.crt")
    assert configured(None, "two", files).single.namespace == "two"
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match="no Kubernetes cluster is configured"):
        configured(None, None, {})
