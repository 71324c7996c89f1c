"""The forms of `-j`: a name, a list of pids, a regular expression, a shell pipe, or plain text.

The first form that fits wins:

1. `pid:123,456` or `123,456`: these processes, JVMs or not.
2. `re:EXPRESSION`: a regular expression (Rust's `regex` syntax) searched in the whole command line.
3. `text:ANYTHING`: plain text, whatever it looks like.
4. The exact name of a selector.
5. A shell pipe: it holds a `|`, or its first word is a filter such as `grep` or `awk`.
6. A bare word of a-z, 0-9 and - that is similar to a selector's name is an error that lists those names,
   because a misspelt name would match nothing, or the wrong thing.
7. Everything else is plain text: a substring of the command line.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hprofiler.base.errors import SelectorError
from hprofiler.base.paths import at_home, is_folder, usual
from hprofiler.base.resources import selector_directory
from hprofiler.model import Selector
from hprofiler.model.target import pids_alone
from hprofiler.selectors.rule_file import NAME, NamedSelector, check_regex, read_selector_file

_FILTER = re.compile(r"(?:[efz]|pcre)?grep|rg|[gmn]?awk|sed|perl|head|tail|sort|uniq|cut|tr")
_JOBS = ("spark-executor", "spark-driver", "mapreduce-task", "tez-task", "flink-taskmanager")
MAX_PIDS = 4096
MAX_TEXT = 4096
_PID_LIMIT = 2**22  # the kernel's PID_MAX_LIMIT on 64 bits


def selector_directories(extra: str | None = None) -> list[Path]:
    """Folders of selectors, in this order: shipped, the user's own, `extra` (the option `--selectors`)."""
    own = usual(f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/hprofiler/selectors")
    owns = [own] if own and is_folder(own) else []
    return [selector_directory(), *owns, *([at_home(extra)] if extra else [])]


def load_selectors(directories: Sequence[Path]) -> dict[str, NamedSelector]:
    """Every selector of the directories by name, sorted; a later directory overrides an earlier one.

    SelectorError if a directory cannot be listed, a file is invalid, or a directory has a name twice.
    """
    selectors: dict[str, NamedSelector] = {}
    for directory in directories:
        selectors.update(_load_directory(directory))
    return dict(sorted(selectors.items()))


def parse_selector(text: str, directories: Sequence[Path]) -> Selector:
    """Parse the value of `-j` (for the order, see the module).

    `query` is the protocol's selector object, except for a pipe: {"kind": "pipe", "pipe": text without a
    leading `|`}, which the client evaluates on the host into pids. SelectorError lists similar names for an
    unknown one.
    """
    typed = text.strip()
    _check_typed(typed)
    if pids_alone(typed):
        typed = text = f"pid:{typed}"
    prefix, colon, rest = typed.partition(":")
    if colon and prefix in _PREFIXES:
        query = _PREFIXES[prefix](rest.strip())
        return Selector(text, query["kind"], query, native=prefix == "pid")
    named = load_selectors(directories)
    if typed in named:
        return _rules(text, "rule", named[typed].query, [named[typed]], named)
    if "|" in typed or _FILTER.fullmatch(typed.split()[0]):
        return Selector(text, "pipe", {"kind": "pipe", "pipe": _pipe(typed)})
    _refuse_near_name(typed, named)
    return Selector(text, "text", {"kind": "text", "text": typed})


def job_selector(text: str, directories: Sequence[Path]) -> Selector:
    """Everything in containers, of whatever kind of application: Spark, MapReduce, Tez, Flink."""
    named = load_selectors(directories)
    return _rules(text, "containers", {}, [named[name] for name in _JOBS if name in named], named)


def _rules(
    text: str,
    kind: str,
    query: Mapping[str, Any],
    selectors: Sequence[NamedSelector],
    named: Mapping[str, NamedSelector],
) -> Selector:
    """A selector with what is known of the processes that it may match, and their relatives."""

    def relatives(key: str) -> dict[str, NamedSelector]:
        return {name: _relative(one, key, name, named) for one in selectors for name in getattr(one, key)}

    children, programs, starters = (relatives(key) for key in ("children", "programs", "starters"))
    return Selector(
        text,
        kind,
        query,
        roots=_roots(*selectors, *children.values()),
        program_roots=_roots(*programs.values(), *starters.values()),
        slices=tuple(rule for one in selectors for rule in one.slices),
        children=tuple(child.query for child in (*children.values(), *programs.values())),
        starters=tuple(
            {"rule": starters[name].query, "arguments": arguments}
            for one in selectors
            for name, arguments in one.starters.items()
        ),
    )


def _roots(*selectors: NamedSelector) -> tuple[str, ...]:
    return tuple(dict.fromkeys(root for one in selectors for root in one.roots))


def _relative(
    selector: NamedSelector, key: str, name: str, named: Mapping[str, NamedSelector]
) -> NamedSelector:
    if name not in named:
        raise SelectorError(f"{selector.source}: {key}: no selector is named {name!r}")
    return named[name]


def _load_directory(directory: Path) -> dict[str, NamedSelector]:
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        reason = f"selector folder {directory}: {error.strerror}"
        raise SelectorError(reason, "name a folder of *.yaml files") from error
    selectors: dict[str, NamedSelector] = {}
    for file in files:
        selector = read_selector_file(file)
        if selector.name in selectors:
            twin = selectors[selector.name].source.name
            raise SelectorError(f"{file}: name: {selector.name!r} is also the name of {twin}", "rename one")
        selectors[selector.name] = selector
    return selectors


def _check_typed(typed: str) -> None:
    if not typed:
        raise SelectorError("the selector is empty", "`hprofiler selectors` lists the known ones")
    if len(typed) > MAX_TEXT:
        raise SelectorError(f"the selector is longer than {MAX_TEXT} characters")
    if not typed.replace("\t", " ").isprintable():
        raise SelectorError(
            "the selector contains a line break or a control character", "write it on one line"
        )


def _pids(typed: str) -> dict[str, Any]:
    pids = []
    for word in map(str.strip, typed.split(",")):
        if not (word.isascii() and word.isdigit() and 0 < int(word) <= _PID_LIMIT):
            reason = f"pid:{typed}: {word!r} is not a process id"
            raise SelectorError(reason, "write pid:123 or pid:123,456")
        pids.append(int(word))
    if len(pids) > MAX_PIDS:
        raise SelectorError(f"more than {MAX_PIDS} process ids")
    return {"kind": "pids", "pids": list(dict.fromkeys(pids))}


def _regex(typed: str) -> dict[str, Any]:
    if not typed:
        raise SelectorError("re: is empty", "write re:EXPRESSION, or `java` for every JVM")
    try:
        check_regex(typed)
    except ValueError as error:
        raise SelectorError(
            f"re:{typed}: bad regular expression: {error}",
            "the syntax is that of Rust's regex crate; text:… matches plain text",
        ) from error
    return {"kind": "regex", "regex": typed}


def _text(typed: str) -> dict[str, Any]:
    if not typed:
        raise SelectorError("text: is empty", "write text:WORDS, or `java` for every JVM")
    return {"kind": "text", "text": typed}


_PREFIXES: dict[str, Callable[[str], dict[str, Any]]] = {"pid": _pids, "re": _regex, "text": _text}


def _pipe(typed: str) -> str:
    """The pipe for the shell. It reads process lines from stdin, so it must not start with `ps`."""
    pipe = typed.lstrip("|").strip()
    if not pipe or pipe.endswith("|"):
        raise SelectorError(
            f"{typed!r} is not a complete shell pipe", "write it as 'grep one | grep -v other'"
        )
    if pipe.split()[0] == "ps":
        raise SelectorError(
            "a pipe selector reads the process list by itself", "leave out `ps`: 'grep one | grep -v other'"
        )
    return pipe


def _refuse_near_name(typed: str, names: Iterable[str]) -> None:
    known = list(names)
    if len(typed) < 3 or not (NAME.fullmatch(typed) or typed.lower() in known):
        return
    word = typed.lower()  # a name in other case is meant too
    near = [name for name in known if (name + "-").startswith(word) or name.endswith("-" + word)]
    near += [name for name in difflib.get_close_matches(word, known, n=5, cutoff=0.7) if name not in near]
    # A misspelt word of a name: `sprk` for spark-executor.
    near += [
        name
        for name in known
        if name not in near and difflib.get_close_matches(word, name.split("-"), n=1, cutoff=0.85)
    ]
    if near:
        raise SelectorError(
            f"no selector is named {typed!r}, which is too close to the name of one: {', '.join(near)}",
            f"`hprofiler selectors` lists all; use text:{typed} if you mean text of the command line",
        )
