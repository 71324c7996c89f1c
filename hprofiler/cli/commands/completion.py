"""`hprofiler completion SHELL`: prints argcomplete's script, with which the shell asks hprofiler."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from hprofiler.cli.options.parser import VERBS, general_parser, verb_parser
from hprofiler.cli.terminal.exit_codes import Exit


def command(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["hprofiler"], shell=options.shell), end="")
    return Exit.OK


def complete() -> None:
    """Write the completions of the command line in the environment, and exit."""
    import argcomplete

    parser = general_parser()
    verbs = parser.add_subparsers()
    for verb in VERBS:
        verbs.add_parser(verb, parents=[verb_parser(verb)], add_help=False)
    for one in (parser, *verbs.choices.values()):
        for action in one._actions:
            for name in action.option_strings:
                if name in _COMPLETERS:
                    action.completer = _COMPLETERS[name]  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _names(**_: object) -> Iterable[str]:
    from hprofiler.selectors.selection import load_selectors, selector_directories

    return load_selectors(selector_directories())


def _selectors(prefix: str, **_: object) -> list[str]:
    from hprofiler.resolve.kubernetes.asked import KINDS

    if prefix.startswith("k8s:"):
        return [f"k8s:{kind}/" for kind in dict.fromkeys(KINDS.values())]
    return [*_names(), "k8s:"]


def _events(prefix: str, **_: object) -> list[str]:
    from hprofiler.model.event_names import OWN

    before, comma, _last = prefix.rpartition(",")
    return [f"{before}{comma}{event}" for event in OWN]


def _read_formats(**_: object) -> list[str]:
    from hprofiler._flamegraph import READ_FORMATS

    return list(READ_FORMATS)


def _write_formats(**_: object) -> list[str]:
    from hprofiler._flamegraph import WRITE_FORMATS

    return list(WRITE_FORMATS)


def _conditions(**_: object) -> list[str]:
    return ["stage 1", "task > 3 x median", "gc > 20%", "cpu > 3"]


_COMPLETERS: dict[str, Callable[..., Iterable[str]]] = {
    "--selector": _selectors,
    "--match": _names,
    "--event": _events,
    "--when": _conditions,
    "--from": _read_formats,
    "--to": _write_formats,
}
