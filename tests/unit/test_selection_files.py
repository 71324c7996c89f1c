"""Selector files: the shipped ones keep the rules, and every broken rule is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hprofiler.base.errors import SelectorError
from hprofiler.selectors.rule_file import MAX_FILE_BYTES, read_selector_file

SHIPPED = Path(__file__).resolve().parent.parent.parent / "selectors"


@pytest.mark.parametrize("path", sorted(SHIPPED.iterdir()), ids=lambda path: path.name)
def test_shipped_file(path: Path) -> None:
    selector = read_selector_file(path)
    assert path.name == f"{selector.name}.yaml"
    assert len(selector.summary) <= 110
    assert json.loads(json.dumps(selector.query)) == selector.query
    for alternative in selector.query["any"]:
        # A glob that starts with * would make a name mean half the cluster; only `java` means every JVM.
        globs = [*alternative.get("program", []), *alternative.get("main_class", [])]
        assert globs and (selector.name == "java" or all(re.match(r"[a-z]", glob) for glob in globs))


def read(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return dict(read_selector_file(path).query)


def test_every_key(tmp_path: Path) -> None:
    query = read(
        tmp_path,
        """
name: mine
summary: All there is
any:
  - main_class: com.acme.Main
    arguments: '--queue (\\S+)'
    options: -Dacme
    environment: {ACME: '^1$'}
    user: [acme, etl]
    cgroup: kubepods
  - user: root
    program: acmed
labels:
  queue: {from: arguments, regex: '--queue (\\S+)'}
  zone: {from: environment, name: ZONE, regex: '(.+)'}
process_label: '{queue} in {zone}'
""",
    )
    assert query == {
        "kind": "rule",
        "any": [
            {
                "main_class": ["com.acme.Main"],
                "arguments": r"--queue (\S+)",
                "options": "-Dacme",
                "environment": {"ACME": "^1$"},
                "user": ["acme", "etl"],
                "cgroup": "kubepods",
            },
            {"user": ["root"], "program": ["acmed"]},
        ],
        "labels": {
            "queue": {"from": "arguments", "regex": r"--queue (\S+)"},
            "zone": {"from": "environment", "name": "ZONE", "regex": "(.+)"},
        },
        "process_label": "{queue} in {zone}",
    }


HEAD = "name: mine\nsummary: S\n"
RULE = HEAD + "any: [{main_class: [A]}]\n"
ERRORS = [
    (
        "unknown key",
        RULE + "label: {}",
        "unknown key 'label'; known keys: name, summary, any, labels, process_label",
    ),
    (
        "unknown matcher",
        HEAD + "any: [{mainclass: A}]",
        "any[0]: unknown key 'mainclass'; known keys: main_class, program",
    ),
    ("missing keys", "name: mine", "missing key 'summary', 'any'"),
    ("nothing", "", "must be a mapping of keys to values, not nothing"),
    ("bad name", "name: Mine_1\nsummary: S\nany: [{user: a}]", "name: a name is made of"),
    ("any is empty", HEAD + "any: []", "any: must be a list with at least one entry, not nothing"),
    ("empty alternative", HEAD + "any: [{}]", "any[0]: is empty and would match every JVM"),
    (
        "a user that YAML reads as a number",
        HEAD + "any: [{user: [1000]}]",
        "any[0].user[0]: must be text, not a number",
    ),
    (
        "broken regex",
        HEAD + "any: [{arguments: '(a'}]",
        "any[0].arguments: bad regular expression '(a': missing )",
    ),
    ("label name", RULE + "labels: {A-b: {from: options, regex: (a)}}", "labels: label 'A-b'"),
    (
        "unknown source",
        RULE + "labels: {a: {from: jar, regex: (a)}}",
        "labels.a.from: 'jar' is not one of: arguments",
    ),
    ("no group", RULE + "labels: {a: {from: options, regex: a}}", "labels.a.regex: needs exactly one group"),
    (
        "no variable",
        RULE + "labels: {a: {from: environment, regex: (a)}}",
        "labels.a: 'name' is the variable's",
    ),
    (
        "unknown label",
        RULE + "process_label: 'x {b}'",
        "process_label: {b} is not one of the labels: there are none",
    ),
    ("lone brace", RULE + "process_label: 'x {b'", "process_label: has an unmatched brace"),
    ("repeated key", RULE + "any: [{user: a}]", "line 4: key 'any' is given twice"),
    ("not YAML", "name: [", "not valid YAML"),
    ("a Python object", RULE + "process_label: !!python/object/apply:os.getpid []", "not valid YAML"),
    ("a part of itself", HEAD + "any: &a [*a]", "more than 20000 values"),
    (
        "doubled often",
        "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(60)).replace("*a0", "x"),
        "values",
    ),
    ("deep nesting", "[" * 5000, "not valid YAML"),
    ("too large", "#" * (MAX_FILE_BYTES + 1), "larger than 64 KiB"),
]


@pytest.mark.parametrize(("desc", "text", "part"), ERRORS, ids=[case[0] for case in ERRORS])
def test_error_names_file_and_key(tmp_path: Path, desc: str, text: str, part: str) -> None:
    with pytest.raises(SelectorError) as caught:
        read(tmp_path, text)
    assert caught.value.reason.startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert part in caught.value.reason


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"name: a\x00", b"name: \xe9"])
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(SelectorError, match=r"mine\.yaml: "):
        read_selector_file(tmp_path / "mine.yaml")
