"""What `-j` means, and selector files: the shipped ones follow the rules, and errors name the broken rule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import SelectorError
from hprofiler.base.resources import selector_directory
from hprofiler.model import SliceRule
from hprofiler.selectors.rule_file import MAX_FILE_BYTES, read_selector_file
from hprofiler.selectors.selection import job_selector, load_selectors, parse_selector, selector_directories
from tests.unit.command import ROOT

SHIPPED = ROOT / "selectors"

QUERIES = [
    ("one pid", "pid:123", {"kind": "pids", "pids": [123]}),
    ("pids, blanks and repetition", "pid: 123, 456,123", {"kind": "pids", "pids": [123, 456]}),
    ("regex", r"re:--executor-id \d+", {"kind": "regex", "regex": r"--executor-id \d+"}),
    ("regex with a bar is not a pipe", "re:a|b", {"kind": "regex", "regex": "a|b"}),
    ("flags and code points", r"re:a(?i)b(?U:c+)\x{41}", {"kind": "regex", "regex": r"a(?i)b(?U:c+)\x{41}"}),
    (
        "the original's pipe",
        "grep 123456789 | grep -v root",
        {"kind": "pipe", "pipe": "grep 123456789 | grep -v root"},
    ),
    ("one filter", "awk '/Child/'", {"kind": "pipe", "pipe": "awk '/Child/'"}),
    (
        "an application id",
        "application_1700000000000_0001",
        {"kind": "text", "text": "application_1700000000000_0001"},
    ),
    ("a word unlike any name", "orders", {"kind": "text", "text": "orders"}),
    ("an unknown prefix", "spark://10.0.0.1:7077", {"kind": "text", "text": "spark://10.0.0.1:7077"}),
    ("forced text: a name", "text:java", {"kind": "text", "text": "java"}),
]


@pytest.mark.parametrize(("desc", "typed", "query"), QUERIES, ids=[case[0] for case in QUERIES])
def test_query(desc: str, typed: str, query: dict[str, Any]) -> None:
    selector = parse_selector(typed, [SHIPPED])
    assert selector.query == query
    assert selector.kind == query["kind"]
    assert selector.text == typed


@pytest.mark.parametrize("typed", ["123,456", " 123,456 ", "pid:123,456"])
def test_pids_need_no_prefix(typed: str) -> None:
    selector = parse_selector(typed, [SHIPPED])
    assert (selector.text, selector.query, selector.native) == (
        "pid:123,456",
        {"kind": "pids", "pids": [123, 456]},
        True,
    )


ERRORS = [
    ("empty", " ", "empty"),
    ("no pid", "pid:", "'' is not a process id"),
    ("a negative pid", "pid:-1", "'-1' is not a process id"),
    ("broken regex", "re:(a", "unclosed group"),
    ("look-ahead", "re:a(?!b)", "look-around"),
    ("back reference", r"re:(a)\1", "backreferences"),
    ("empty text", "text:", "text: is empty"),
    ("a bar alone", "|", "not a complete shell pipe"),
    ("ps in the pipe", "ps aux | grep java", "reads the process list by itself"),
    ("two lines", "grep a\nrm b", "control character"),
    ("too long", "x" * 5000, "longer than"),
    ("a misspelt name", "spark-exekutor", "spark-executor"),
    ("a name in other case", "Spark-Executor", "spark-executor"),
    ("half a name", "hdfs", "hdfs-datanode, hdfs-journalnode, hdfs-namenode"),
]


@pytest.mark.parametrize(("desc", "typed", "part"), ERRORS, ids=[case[0] for case in ERRORS])
def test_error(desc: str, typed: str, part: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(typed, [SHIPPED])
    assert part in caught.value.reason


def write(directory: Path, file: str, name: str, main_class: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / file).write_text(
        f"name: {name}\nsummary: S\nany: [{{main_class: [{main_class}]}}]\n", encoding="utf-8"
    )


def test_a_later_directory_overrides_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "a", "x.yaml", "x", "first.X")
    write(tmp_path / "a", "y.yaml", "y", "first.Y")
    write(tmp_path / "b", "other.yml", "x", "second.X")
    (tmp_path / "b" / "notes.txt").write_text("not a selector", encoding="utf-8")
    selectors = load_selectors([tmp_path / "a", tmp_path / "b"])
    assert list(selectors) == ["x", "y"]
    assert selectors["x"].query["any"] == [{"main_class": ["second.X"]}]
    assert selectors["x"].source == tmp_path / "b" / "other.yml"


def test_directories_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, extra = selector_directory(), tmp_path / "extra"
    own = tmp_path / "config" / "hprofiler" / "selectors"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert selector_directories(str(extra)) == [shipped, extra]
    own.mkdir(parents=True)
    assert selector_directories(str(extra)) == [shipped, own, extra]
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "paths"))
    own = tmp_path / "paths" / ".config" / "hprofiler" / "selectors"
    own.mkdir(parents=True)
    assert selector_directories() == [shipped, own]


@pytest.mark.parametrize("path", sorted(SHIPPED.iterdir()), ids=lambda path: path.name)
def test_shipped_file(path: Path) -> None:
    selector = read_selector_file(path)
    assert path.name == f"{selector.name}.yaml"
    assert len(selector.summary) <= 110
    assert json.loads(json.dumps(selector.query)) == selector.query
    for alternative in selector.query["any"]:
        # A glob that starts with * would match too much; only `java` matches every JVM.
        globs = [*alternative.get("program", []), *alternative.get("main_class", [])]
        assert globs and (selector.name == "java" or all(re.match(r"[a-z]", glob) for glob in globs))


@pytest.mark.parametrize(
    ("engine", "thread", "wanted"),
    [
        # Spark 3.1 and later; 2.1 to 3.0
        ("spark-executor", "Executor task launch worker for task 3.0 in stage 12.1 (TID 47)", "stage 12.1"),
        ("spark-executor", "Executor task launch worker for task 47", "task 47"),
        ("spark-executor", "Executor task launch worker-4", None),
        ("spark-executor", "Executor task idle worker for task 3.0 in stage 12.1 (TID 47)", None),
        ("flink-taskmanager", "Source: numbers -> Map (2/4)#0", "operator Source: numbers -> Map"),
        ("flink-taskmanager", "OutputFlusher for count words (1/1)#0", "operator count words"),
        ("flink-taskmanager", "Legacy Source Thread - Source: lines (1/1)", "operator Source: lines"),
        ("flink-taskmanager", "flink-pekko.actor.default-dispatcher-4", None),
    ],
)
def test_names_of_threads(engine: str, thread: str, wanted: str | None) -> None:
    found = [
        rule.name.replace("{}", match[1])
        for rule in parse_selector(engine, [SHIPPED]).slices
        if (rule.prefix == "*" or thread.startswith(rule.prefix)) and (match := re.search(rule.regex, thread))
    ]
    assert found[:1] == ([wanted] if wanted else [])


def test_rules_of_all_shipped_selectors() -> None:
    each = [parse_selector(engine, [SHIPPED]) for engine in ("spark-executor", "flink-taskmanager")]
    job = job_selector("application_1_1", [SHIPPED])
    assert set(job.slices) == {rule for one in each for rule in one.slices}
    assert all(rule.main_class for one in each for rule in one.slices)


def test_children_come_along(tmp_path: Path) -> None:
    workers = load_selectors([SHIPPED])["pyspark-worker"].query
    executor = parse_selector("spark-executor", [SHIPPED])
    assert (executor.children, executor.starters, executor.program_roots) == ((workers,), (), ())
    python, program = (load_selectors([SHIPPED])[name] for name in ("python", "pyspark-program"))
    # The driver of an application in containers may be a client, and its program a notebook.
    for driver in (parse_selector("spark-driver", [SHIPPED]), job_selector("application_1_1", [SHIPPED])):
        assert driver.children == (workers, program.query) and driver.starters[0]["rule"] == python.query
        assert set(driver.program_roots) == set(python.roots) and not set(python.roots) & set(driver.roots)
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nsummary: S\nany: [{main_class: [X]}]\nchildren: [nobody]\n", encoding="utf-8")
    with pytest.raises(SelectorError, match="children: no selector is named 'nobody'"):
        parse_selector("x", [SHIPPED, tmp_path])


def read(tmp_path: Path, text: str) -> dict[str, object]:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return dict(read_selector_file(path).query)


def test_rules_for_slices(tmp_path: Path) -> None:
    slices = "slices: [{prefix: 'Source: ', regex: '^(.+?) \\(\\d+/', name: 'operator {}'}]\n"
    (tmp_path / "mine.yaml").write_text(RULE + slices)
    (rule,) = read_selector_file(tmp_path / "mine.yaml").slices
    assert rule == SliceRule("Source: ", r"^(.+?) \(\d+/", "operator {}", ("A",))
    (tmp_path / "mine.yaml").write_text(ANY + "[{main_class: [A]}, {user: b}]\n" + slices)
    (rule,) = read_selector_file(tmp_path / "mine.yaml").slices
    assert rule.main_class == ()


def test_keys_of_a_file(tmp_path: Path) -> None:
    text = """
name: mine
summary: All there is
any:
  - {main_class: com.acme.Main, environment: {ACME: '^1$'}, user: [acme, etl], cgroup: kubepods}
  - {user: root, program: acmed}
labels:
  zone: {from: environment, name: ZONE, regex: '[^](]*(.+)'}
process_label: 'in {zone}'
"""
    query = read(tmp_path, text)
    environment = {"ACME": "^1$"}
    assert query["any"] == [
        {
            "main_class": ["com.acme.Main"],
            "environment": environment,
            "user": ["acme", "etl"],
            "cgroup": "kubepods",
        },
        {"user": ["root"], "program": ["acmed"]},
    ]
    assert query["labels"] == {"zone": {"from": "environment", "name": "ZONE", "regex": "[^](]*(.+)"}}
    assert query["process_label"] == "in {zone}"


HEAD = "name: mine\nsummary: S\n"
RULE = HEAD + "any: [{main_class: [A]}]\n"
ANY, LABELS, SLICES = HEAD + "any: ", RULE + "labels: ", RULE + "slices: "
FILE_ERRORS = [
    (RULE + "label: {}", "unknown key 'label'; known keys: name, summary, any, labels, process_label"),
    (ANY + "[{mainclass: A}]", "any[0]: unknown key 'mainclass'; known keys: main_class, program"),
    ("name: mine", "missing key 'summary', 'any'"),
    ("", "must be a mapping of keys to values, not nothing"),
    ("name: Mine_1\nsummary: S\nany: [{user: a}]", "name: a name is made of"),
    (ANY + "[{}]", "any[0]: is empty and would match every JVM"),
    (ANY + "[{user: [1000]}]", "any[0].user[0]: must be text, not a number"),
    (ANY + "[{arguments: '(a'}]", "any[0].arguments: bad regular expression '(a': unclosed group"),
    (LABELS + "{a: {from: jar, regex: (a)}}", "labels.a.from: 'jar' is not one of: arguments"),
    (LABELS + "{a: {from: options, regex: a}}", "labels.a.regex: needs exactly one group"),
    (RULE + "process_label: 'x {b}'", "process_label: {b} is not one of the labels: there are none"),
    (RULE + "roots: [3]", "roots"),
    (SLICES + "[{prefix: a, regex: (a)}]", "missing key 'name'"),
    (SLICES + "[{prefix: a, regex: a, name: 'a {}'}]", "slices[0].regex: needs exactly one group"),
    (SLICES + "[{prefix: 'a,b', regex: (a), name: 'a {}'}]", "slices[0].prefix: must be at most 60 bytes"),
    (SLICES + "[{prefix: a, regex: (a), name: a}]", "slices[0].name: needs one {}"),
    (SLICES + str(9 * ["{prefix: a, regex: (a), name: 'a {}'}"]).replace('"', ""), "more than 8 rules"),
    ("name: \x00", "not valid YAML"),
    (RULE + "process_label: !!python/object/apply:os.getpid []", "not valid YAML"),
    ("[" * 5000, "not valid YAML"),
    ("#" * (MAX_FILE_BYTES + 1), "larger than 64 KiB"),
]


@pytest.mark.parametrize(("text", "part"), FILE_ERRORS, ids=[part for _, part in FILE_ERRORS])
def test_error_names_file_and_key(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(SelectorError) as caught:
        read(tmp_path, text)
    assert caught.value.reason.startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert part in caught.value.reason
