"""What `-j` means: every form, and what is said of what is not one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import SelectorError
from hprofiler.selectors.selection import load_selectors, parse_selector, selector_directories

SHIPPED = Path(__file__).resolve().parent.parent.parent / "selectors"

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


def test_name() -> None:
    selector = parse_selector("spark-executor", [SHIPPED])
    assert selector.kind == selector.query["kind"] == "rule"
    assert set(selector.query) == {"kind", "any", "labels", "process_label"}


ERRORS = [
    ("empty", " ", "empty"),
    ("no pid", "pid:", "'' is not a process id"),
    ("a negative pid", "pid:-1", "'-1' is not a process id"),
    ("broken regex", "re:(a", "missing )"),
    ("look-ahead", "re:a(?!b)", "look-around"),
    ("back reference", r"re:(a)\1", "back reference"),
    ("empty text", "text:", "text: is empty"),
    ("a bar alone", "|", "not a complete shell pipe"),
    ("ps in the pipe", "ps aux | grep java", "reads the process list by itself"),
    ("two lines", "grep a\nrm b", "control character"),
    ("too long", "x" * 5000, "longer than"),
    ("a misspelt name", "spark-exekutor", "spark-executor"),
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
    shipped, extra = tmp_path / "shipped", tmp_path / "extra"
    own = tmp_path / "config" / "hprofiler" / "selectors"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert selector_directories(shipped, [extra]) == [shipped, extra]
    own.mkdir(parents=True)
    assert selector_directories(shipped, [extra]) == [shipped, own, extra]
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "paths"))
    own = tmp_path / "paths" / ".config" / "hprofiler" / "selectors"
    own.mkdir(parents=True)
    assert selector_directories(shipped) == [shipped, own]
