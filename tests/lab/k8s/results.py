"""What a run of hprofiler on pods came to, and what the documentation says that a user should write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from hprofiler import Profile
from hprofiler.runfolder import RunFolder
from tests.burners.burner import HOT
from tests.lab import cache
from tests.lab.coordinator import Result
from tests.lab.folded import Stacks
from tests.lab.k8s.api import Object
from tests.lab.k8s.cluster import KubeCluster


def recorded(result: Result) -> dict[str, dict[str, Any]]:
    """The recorded processes, by pod and container."""
    found = [recording["process"] for host in result.run["hosts"] for recording in host["recordings"]]
    return {f"{one['labels']['pod']}/{one['labels']['container']}": one for one in found}


def ledger(result: Result) -> dict[str, str]:
    """What was said of each host, by its name."""
    lines = [line for host in result.run["hosts"] for line in host["outcomes"]]
    said: dict[str, list[str]] = {}
    for line in lines:
        said.setdefault(line["host"], []).append(f"{line['status']}: {line['reason']}; {line['remedy']}")
    return {name: "\n".join(words) for name, words in said.items()}


def check_shares(stacks: Stacks, role: str) -> None:
    """Seventy, twenty and ten percent of what the burner did, but for chance and its own bookkeeping."""
    counts = [stacks.count(method) for method in (HOT[role], "Burner.warm", "Burner.cool")]
    total = sum(counts)
    assert total > 10, counts
    for count, share in zip(counts, (0.7, 0.2, 0.1), strict=False):
        deviation = (share * (1 - share) / total) ** 0.5
        assert abs(count / total - share) < 5 * deviation + 0.02, counts


def stacks_of(result: Result, container: str) -> Stacks:
    """Of one process's own profile."""
    path = profile_of(result, container)
    path.with_suffix(".folded").write_bytes(Profile.read(str(path)).to_folded())
    return Stacks(path.with_suffix(".folded"))


def profile_of(result: Result, container: str) -> Path:
    assert result.folder is not None
    process = recorded(result)[container]
    return RunFolder.open(result.folder).profile_path(process["host"], process["pid"], "cpu")


def documented_rules() -> list[Object]:
    """Those of the role in the documentation: to look, to exec, for workloads, for --debug-container."""
    text = (cache.CHECKOUT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    rules: list[Object] = yaml.safe_load(block)["rules"]
    return rules


def readmes_recipe(application: str, namespace: str) -> list[str]:
    """README's command for a Spark job, but for the names of these; where to is the coordinator's choice."""
    text = (cache.CHECKOUT / "README.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^hprofiler (.* -j k8s:spark-role.*) -o etl$", text, re.M)
    return str(recipe.replace("=etl", f"={application}").replace("-n analytics", f"-n {namespace}")).split()


ASKED = {
    ("list", "pods"),
    ("get", "pods/exec"),
    ("patch", "pods/ephemeralcontainers"),
    *(("get", workloads) for workloads in ("deployments", "replicasets", "statefulsets", "daemonsets")),
}
"""All that hprofiler ever asks an API server for."""
_CLIENT = "python-httpx/"
"""What its requests name themselves, but for exec, which nobody else asks for."""


def check_all_that_was_asked(kube: KubeCluster) -> None:
    """Of the API server, by whichever account, verb and way."""
    done = {
        (event["verb"], "/".join(resource(event)))
        for event in kube.whole_audit()
        if event.get("userAgent", "").startswith(_CLIENT) or resource(event)[1:] == ["exec"]
    }
    assert ("get", "pods/exec") in done and done <= ASKED, done - ASKED


def resource(event: Object) -> list[str]:
    """What an entry of the audit log was about, and which part of it."""
    target = event.get("objectRef") or {"resource": event["requestURI"]}
    return [target["resource"], *([target["subresource"]] if "subresource" in target else [])]
