"""Noise, shares, packages of names and categories of work: Python and the viewer have the same test vectors.

`python -m tests.viewer.test_vectors` writes what Python makes of the cases into the vectors.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import Profile, ViewerData, WorkTable
from hprofiler.analysis.attribution import attribute
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.noise import Noise, Spread
from hprofiler.analysis.words import package_length, percent
from hprofiler.model.measures import measure_of
from tests.fuzz.targets import copy_viewer
from tests.needed import lacking
from tests.unit.test_viewer_build import viewer_build
from tests.viewer.made_profile import made_profile
from tests.viewer.made_run import record_of

HERE = Path(__file__).parent
VECTORS = HERE / "vectors.json"


def expected() -> dict[str, Any]:
    vectors: dict[str, Any] = json.loads(VECTORS.read_text(encoding="utf-8"))
    return vectors


def noise_of(case: dict[str, Any]) -> dict[str, Any]:
    sides = [Spread(), Spread()]
    for side, processes in zip(sides, case["sides"], strict=True):
        for one in processes:
            side.add(Profile.from_bytes(one["stacks"].encode(), "folded"), one["samples"], one["kind"])
    noise = Noise(*sides, absolute=case["absolute"])
    return {
        "known": noise.known,
        "counted_alone": noise.counted_alone,
        "methods": {name: [noise.of(which, name) for which in ("own", "all")] for name in case["methods"]},
        "paths": [noise.of_path(one["name"], one["parts"]) for one in case["paths"]],
    }


def expected_noise(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "known": case["known"],
        "counted_alone": case["counted_alone"],
        "methods": case["methods"],
        "paths": [one["noise"] for one in case["paths"]],
    }


def category_of(stack: str, rules: list[tuple[str, list[str]]], kernel: bool) -> str:
    profile = Profile.from_bytes(f"{stack} 1\n".encode(), "folded")
    ((category, _, _, _),) = WorkTable(rules).sums(profile, kernel=kernel)
    return category


def close(found: Any, to: Any) -> bool:
    if isinstance(to, dict):
        return found.keys() == to.keys() and all(close(found[key], to[key]) for key in to)
    if isinstance(to, list):
        return len(found) == len(to) and all(map(close, found, to))
    return bool(found == (pytest.approx(to, rel=1e-9) if isinstance(to, float) else to))


def test_python_computes_what_the_vectors_say() -> None:
    vectors = expected()
    for case in vectors["noise"]:
        assert close(noise_of(case), expected_noise(case)), case["about"]
    for part, whole, text in vectors["percent"]:
        assert percent(part, whole) == text
    for name, package in vectors["packages"]:
        assert name[: package_length(name)] == package
    work = vectors["work"]
    rules = [(name, patterns) for name, patterns in work["rules"]]
    for kind in ("stacks", "classes"):
        for stack, category in work[kind]:
            assert category_of(stack, rules, kernel=kind == "stacks") == category, stack


def test_the_viewer_computes_what_the_vectors_say(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        lacking("the viewer's modules run in node here, and there is none")
    copy_viewer(tmp_path / "viewer")
    command = ["node", str(HERE / "vectors.mjs"), str(tmp_path / "viewer"), str(VECTORS)]
    rules = json.dumps(viewer_build.frame_rules())
    done = subprocess.run(command, input=rules, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    vectors = expected()
    for made, case in zip(found["noise"], vectors["noise"], strict=True):
        assert close(made, expected_noise(case)), case["about"]
    assert found["percent"] == [text for _, _, text in vectors["percent"]]
    assert found["packages"] == [package for _, package in vectors["packages"]]
    for kind in ("stacks", "classes"):
        assert [
            (stack, made) for (stack, _), made in zip(vectors["work"][kind], found[kind], strict=True)
        ] == [(stack, category) for stack, category in vectors["work"][kind]]


def methods_of(event: str, profile: Profile) -> list[list[Any]]:
    """What tables say of a profile of threads that wait."""
    facts = read_facts(record_of({"sampling": {"events": [event]}, "hosts": [{"name": "h"}]}))
    return sorted([one.name, one.self_value, one.total_value] for one in attribute(facts, profile).methods)


def test_waits_have_the_same_names_and_costs_in_page_and_analysis(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        lacking("the viewer's modules run in node here, and there is none")
    copy_viewer(tmp_path / "viewer")
    blocks, expected_rows = {}, {}
    for event, stacks in expected()["waits"].items():
        profile, data = made_profile(event, "\n".join(stacks)), ViewerData()
        data.add_threads(profile, measure_of(event).shown)
        blocks[event] = [
            base64.b64encode(data.to_bytes()).decode(),
            measure_of(event).column[0],
        ]
        expected_rows[event] = methods_of(event, profile.select(measure_of(event).shown))
    command = ["node", str(HERE / "waits.mjs"), str(tmp_path / "viewer")]
    given = json.dumps({"rules": viewer_build.frame_rules(), "blocks": blocks})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for event, rows in expected_rows.items():
        without_heads = [
            [row for row in some if not row[0].startswith("[")]
            for some in (sorted(found[event]["methods"]), rows)
        ]
        assert without_heads[0] == without_heads[1]
    names = {row[0] for row in found["wall"]["methods"] if row[1]}
    assert names == {
        *("sleeps in App.nap", "waits for a monitor in App.enter", "flushes to disk in App.save"),
        *("writes to disk in App.save", "App.nap", "java/util/HashMap.get"),
    }
    kinds = found["wall"]["kinds"]
    assert kinds == {"running": 5, "lock": 40, "sleep": 50, "disk": 15}
    assert found["offcpu"]["kinds"] == {"sleep": 6, "queue": 5}
    assert found["lock"]["kinds"] == {"lock": 13}


def _write() -> None:
    vectors = expected()
    for case in vectors["noise"]:
        made = noise_of(case)
        for path, noise in zip(case["paths"], made.pop("paths"), strict=True):
            path["noise"] = noise
        case.update(made)
    text = json.dumps(vectors, indent=1, ensure_ascii=False)
    innermost = re.compile(r"\{[^{}\[\]]*\}|\[(?:[^{}\[\]\"]|\"[^\"]*\")*\]")
    text = innermost.sub(lambda found: re.sub(r"\n\s*", " ", found[0]), text)
    VECTORS.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
