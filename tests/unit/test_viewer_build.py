"""The viewer's modules as one script, in the page's template."""

from __future__ import annotations

import importlib.util

import pytest

from tests.unit.command import ROOT

VIEWER = ROOT / "flamegraph" / "viewer"
spec = importlib.util.spec_from_file_location("viewer_build", VIEWER / "build.py")
assert spec and spec.loader
viewer_build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer_build)


def write_modules(folder, **sources):
    for name, source in sources.items():
        (folder / f"{name}.js").write_text(source)
    return folder / "a.js"


def test_modules_are_joined_in_order_of_imports(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "b.js").write_text("// @ts-check\nexport const two = 2;\n")
    entry = write_modules(tmp_path, a='import { two } from "./data/b.js";\nshow(two);\n')
    assert viewer_build.join_modules(entry) == "const two = 2;\n\nshow(two);\n"


@pytest.mark.parametrize(
    "twin", ["const rows = 1;", "class rows {}", "const [c, rows] = x;", "function* rows() {}"]
)
def test_a_name_that_two_modules_define_is_refused(tmp_path, twin):
    entry = write_modules(
        tmp_path, a=f'import {{ b }} from "./b.js";\n{twin}\n', b="export async function rows() {}\n"
    )
    with pytest.raises(ValueError, match=r"rows is in b\.js and in a\.js"):
        viewer_build.join_modules(entry)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ('import { b } from "./b.js";\n', 'import { a } from "./a.js";\n', r"a\.js -> b\.js -> a\.js"),
        ('import * as b from "./b.js";\n', "", "cannot be joined: import"),
        ("const end = '</script>';\n", "", "would end its own element"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path, a, b, why):
    with pytest.raises(ValueError, match=why):
        viewer_build.join_modules(write_modules(tmp_path, a=a, b=b))


@pytest.mark.parametrize(
    ("name", "starts"), [("page.html", "new Explorer("), ("plain.html", "new Sections(")]
)
def test_a_template_has_the_script_and_a_policy_that_names_it(tmp_path, name, starts):
    viewer_build.build(tmp_path / "page.html")
    page = (tmp_path / name).read_text()
    assert starts in page and "script-src 'sha256-" in page
    assert "'unsafe-inline'" not in page.split("style-src")[0]
    assert "{{script}}" not in page and "{{title}}" in page and "{{data}}" in page


def test_modules_keep_markup_and_the_network_out():
    markup = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write")
    for module in VIEWER.rglob("*.js"):
        for word in (*markup, "eval(", "fetch(", "XMLHttp"):
            assert word not in module.read_text(), f"{module.name}: {word}"
