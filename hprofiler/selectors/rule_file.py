"""Reads a selector file (YAML) into the protocol's rule query.

The keys are those of `agents/PROTOCOL.md` ("Selectors"). An unknown key, a wrong type or a regular
expression that the agent cannot compile is a `SelectorError` that names the file and the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hprofiler.base.errors import SelectorError
from hprofiler.base.paths import is_file, is_there
from hprofiler.model import SliceRule

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MAX_FILE_BYTES = 64 * 1024
FILE_KEYS = (
    "name",
    "summary",
    "any",
    "labels",
    "process_label",
    "roots",
    "slices",
    "children",
    "programs",
    "starters",
)
CAPTURE_KEYS = ("from", "name", "regex")
SLICE_KEYS = ("prefix", "regex", "name")
MAX_SLICES = 8
MAX_PREFIX = 60
CAPTURE_SOURCES = (
    "arguments",
    "argument_lines",
    "options",
    "environment",
    "cgroup",
    "main_class",
    "parents",
)

_FIELD = re.compile(r"\{([^{}]*)\}")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")
# Text without groups: escaped characters and classes.
_NO_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]])*\]")
_GROUP = re.compile(r"\((?!\?)|\(\?P?<")


@dataclass(frozen=True)
class NamedSelector:
    """A selector with a name: `query` is the protocol's rule, `source` the file it was read from.

    `roots` are the frames at which the job's own stacks start: whole names, `*` is any text. `slices` are
    rules for names of threads, `children` the selectors of processes that come along with their parents,
    `programs` those of such that are the job's program, with roots of their own, and `starters` those of the
    program where it has started a JVM, with what the JVM's arguments have then.
    """

    name: str
    summary: str
    query: Mapping[str, Any]
    source: Path
    roots: tuple[str, ...] = ()
    slices: tuple[SliceRule, ...] = ()
    children: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    starters: Mapping[str, str] = field(default_factory=dict)


def check_regex(regex: str) -> None:
    """ValueError says what is wrong with a regular expression, which the agent compiles the same way."""
    from hprofiler._flamegraph import OptionError, Profile

    try:
        Profile.from_bytes(b"", "folded").trim(regex)
    except OptionError as error:
        raise ValueError(str(error).rpartition("error: ")[2]) from error


def read_selector_file(path: Path) -> NamedSelector:
    """Read and check one file; SelectorError names the file, the key and a remedy."""
    document = _Node(path, "", _load_yaml(path))
    keys = document.mapping(FILE_KEYS)
    document.require("name", "summary", "any")
    name = keys["name"].text()
    if not NAME.fullmatch(name):
        raise keys["name"].error("a name is made of a-z, 0-9 and -, at most 63 characters")
    query: dict[str, Any] = {"kind": "rule", "any": [_alternative(node) for node in keys["any"].items()]}
    query["labels"] = _labels(keys["labels"]) if "labels" in keys else {}
    if "process_label" in keys:
        query["process_label"] = _template(keys["process_label"], query["labels"])
    roots = tuple(keys["roots"].texts()) if "roots" in keys else ()
    slices = _slices(keys["slices"], _main_classes(query["any"])) if "slices" in keys else ()
    children, programs = (tuple(keys[key].texts()) if key in keys else () for key in ("children", "programs"))
    starters = keys["starters"].regexes() if "starters" in keys else {}
    summary = keys["summary"].text()
    return NamedSelector(name, summary, query, path, roots, slices, children, programs, starters)


def _alternative(node: _Node) -> dict[str, Any]:
    keys = node.mapping(tuple(_ALTERNATIVE))
    if not keys:
        raise node.error(f"is empty and would match every JVM; give one of: {', '.join(_ALTERNATIVE)}")
    return {key: _ALTERNATIVE[key](value) for key, value in keys.items()}


def _main_classes(alternatives: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Those of all alternatives; none if one of them matches any class."""
    if any("main_class" not in one for one in alternatives):
        return ()
    return tuple(dict.fromkeys(name for one in alternatives for name in one["main_class"]))


def _slices(node: _Node, main_class: tuple[str, ...]) -> tuple[SliceRule, ...]:
    rules = tuple(_slice(item, main_class) for item in node.items())
    if len(rules) > MAX_SLICES:
        raise node.error(f"has more than {MAX_SLICES} rules")
    return rules


def _slice(node: _Node, main_class: tuple[str, ...]) -> SliceRule:
    keys = node.mapping(SLICE_KEYS)
    node.require(*SLICE_KEYS)
    prefix, name = keys["prefix"].text(), keys["name"].text()
    if len(prefix.encode()) > MAX_PREFIX or any(mark in prefix for mark in ",|\0"):
        raise keys["prefix"].error(f"must be at most {MAX_PREFIX} bytes without commas and bars")
    if name.count("{}") != 1:
        raise keys["name"].error("needs one {}, which the group of 'regex' replaces")
    return SliceRule(prefix, keys["regex"].group(), name, main_class)


def _labels(node: _Node) -> dict[str, Any]:
    captures = {}
    for name, capture in node.mapping(None).items():
        if not _LABEL.fullmatch(name):
            raise node.error(f"label {name!r} is not made of a-z, 0-9 and _")
        captures[name] = _capture(capture)
    return captures


def _capture(node: _Node) -> dict[str, str]:
    keys = node.mapping(CAPTURE_KEYS)
    node.require("from", "regex")
    source = keys["from"].text()
    if source not in CAPTURE_SOURCES:
        raise keys["from"].error(f"{source!r} is not one of: {', '.join(CAPTURE_SOURCES)}")
    if (source == "environment") != ("name" in keys):
        raise node.error("'name' is the variable's name: needed with 'from: environment', and only there")
    keys["regex"].group()
    return {key: value.text() for key, value in keys.items()}


def _template(node: _Node, labels: Mapping[str, Any]) -> str:
    template = node.text()
    for name in _FIELD.findall(template):
        if name not in labels:
            raise node.error(f"{{{name}}} is not one of the labels: {', '.join(labels) or 'there are none'}")
    if "{" in _FIELD.sub("", template) or "}" in _FIELD.sub("", template):
        raise node.error("has an unmatched brace")
    return template


@dataclass(frozen=True)
class _Node:
    """A value and its place in the file, for errors."""

    path: Path
    key: str
    value: Any

    def error(self, problem: str) -> SelectorError:
        where = f"{self.path}: {self.key}: " if self.key else f"{self.path}: "
        return SelectorError(where + problem, "docs/selectors.md explains the keys")

    def mapping(self, known: tuple[str, ...] | None) -> dict[str, _Node]:
        """Members by name; a key outside `known` (None: any) is an error."""
        if not isinstance(self.value, dict):
            raise self.error(f"must be a mapping of keys to values, not {_kind(self.value)}")
        for key in self.value:
            if not isinstance(key, str):
                raise self.error(f"key {key!r} must be text")
            if known is not None and key not in known:
                raise self.error(f"unknown key {key!r}; known keys: {', '.join(known)}")
        return {key: _Node(self.path, self._below(key), value) for key, value in self.value.items()}

    def require(self, *keys: str) -> None:
        missing = [key for key in keys if key not in self.value]
        if missing:
            raise self.error(f"missing key {', '.join(map(repr, missing))}")

    def items(self) -> list[_Node]:
        if not isinstance(self.value, list) or not self.value:
            raise self.error(f"must be a list with at least one entry, not {_kind(self.value)}")
        return [_Node(self.path, f"{self.key}[{index}]", value) for index, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(f"must be text, not {_kind(self.value)}; put it in quotes")
        return self.value

    def texts(self) -> list[str]:
        """A list of texts; a single text is a list of one."""
        return [self.text()] if isinstance(self.value, str) else [node.text() for node in self.items()]

    def regex(self) -> str:
        try:
            check_regex(self.text())
        except ValueError as error:
            raise self.error(f"bad regular expression {self.value!r}: {error}") from error
        return self.text()

    def group(self) -> str:
        """A regular expression with one group."""
        if len(_GROUP.findall(_NO_GROUP.sub("", self.regex()))) != 1:
            raise self.error("needs exactly one group, whose text is the value; write (?:…) for the others")
        return self.text()

    def regexes(self) -> dict[str, str]:
        members = self.mapping(None)
        if not members:
            raise self.error("must have at least one name")
        return {name: node.regex() for name, node in members.items()}

    def _below(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key


# Members of an alternative, and their readers.
_ALTERNATIVE: dict[str, Callable[[_Node], Any]] = {
    "main_class": _Node.texts,
    "program": _Node.texts,
    "arguments": _Node.regex,
    "options": _Node.regex,
    "environment": _Node.regexes,
    "user": _Node.texts,
    "cgroup": _Node.regex,
    "parents": _Node.regex,
}


def _kind(value: Any) -> str:
    if value is None or value == "" or value == [] or value == {}:
        return "nothing"
    names = {bool: "a yes/no value", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    return names.get(type(value), "blank text" if isinstance(value, str) else f"a {type(value).__name__}")


def _load_yaml(path: Path) -> Any:
    """The document of the file. PyYAML is imported here to keep `--help` fast."""
    import yaml

    if is_there(path) and not is_file(path):
        raise SelectorError(f"{path}: is not a regular file")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SelectorError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise SelectorError(f"{path}: larger than {MAX_FILE_BYTES // 1024} KiB: not a selector")
    try:
        return yaml.safe_load(content)
    except Exception as error:  # a value with a wrong tag (`!!bool maybe`) raises various exceptions
        problem = " ".join(str(error).split())
        raise SelectorError(f"{path}: not valid YAML: {problem}") from error
