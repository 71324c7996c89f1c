"""The viewer's modules as one script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hprofiler.report import bundle

VIEWER = Path(__file__).resolve().parent.parent.parent / "flamegraph" / "viewer"


@pytest.mark.parametrize(
    "twin",
    [
        "const rows = 1;",
        "let rows;",
        "class rows {}",
        "const [b, rows] = x;",
        "function* rows() {}",
        "export const rows = 1;",
    ],
)
def test_a_name_that_two_modules_define_is_refused(monkeypatch, twin):
    sources = {
        "a.js": f'import {{ b }} from "./b.js";\n{twin}\n',
        "b.js": "export async function rows() {}\n",
    }
    monkeypatch.setattr(bundle, "viewer_file", sources.__getitem__)
    with pytest.raises(ValueError, match=r"rows is in b\.js and in a\.js"):
        bundle.script("a.js")


def test_no_definition_at_the_top_is_of_a_list_of_names():
    """Only the first would be seen where names are compared."""
    top = r"^(?:const|let|var) \w+(?: = [^;(\[{'\"`]*)?,"
    assert re.findall(top, bundle.script(), re.MULTILINE) == []


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
