"""The viewer's modules as one script."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest

from hprofiler.report import bundle

VIEWER = Path(__file__).resolve().parent.parent.parent / "flamegraph" / "viewer"


def test_no_two_modules_define_the_same_name():
    defined = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", bundle.script(), re.MULTILINE)
    assert [name for name, times in collections.Counter(defined).items() if times > 1] == []


def test_every_module_is_in_it_once_and_before_its_users():
    script = bundle.script()
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    for module in set(VIEWER.glob("*.js")) - {VIEWER / bundle.ENTRY}:
        defined = re.search(
            r"^(?:export )?((?:async )?(?:function|class|const) \w+)", module.read_text(), re.M
        )
        assert defined, module
        assert len(re.findall(rf"^{defined.group(1)}\b", script, re.M)) == 1, module
    assert script.index("class Profile") < script.index("class Explorer") < script.index("new Explorer")


def test_modules_keep_markup_and_the_network_out():
    for module in VIEWER.glob("*.js"):
        source = module.read_text()
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "fetch(",
            "XMLHttp",
        ):
            assert word not in source, f"{module.name}: {word}"


def test_the_policy_names_the_script_and_nothing_else():
    policy = bundle.policy("x")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-inline'" not in policy.split("style-src")[0]


def test_a_circle_of_modules_is_refused(monkeypatch):
    sources = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    monkeypatch.setattr(bundle, "viewer_file", sources.__getitem__)
    with pytest.raises(ValueError, match=r"a\.js -> b\.js -> a\.js"):
        bundle.script("a.js")
