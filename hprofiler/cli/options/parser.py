"""Options and verbs. Only argparse is imported here: `--help` has to answer at once."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from hprofiler import __version__
from hprofiler.cli.options import convert as convert_options
from hprofiler.cli.options import diff as diff_options
from hprofiler.cli.options import kubernetes as kubernetes_options
from hprofiler.cli.options import safety as care_options
from hprofiler.cli.options import sampling as sampling_options
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.numbers import named, whole_number
from hprofiler.model.event_names import IN_WORDS, known_as

# verb -> (module in hprofiler.cli, one line for the help)
VERBS = {
    "run": ("run", "profile every matching process (the default: `hprofiler -j …` is `hprofiler run -j …`)"),
    "ps": ("ps", "list the hosts and processes that a run would profile; touches no process"),
    "doctor": ("doctor", "check whether a run would succeed on every host and process; touches no process"),
    "apps": ("apps", "list the running applications of a YARN cluster"),
    "selectors": ("selectors", "list the selectors that -j knows by name"),
    "convert": ("convert", "merge profiles and write them in another format"),
    "report": ("report", "regenerate the pictures and the page of a run folder"),
    "diff": ("diff", "show what changed from one run, or profile, to another"),
    "outliers": ("outliers", "show the outliers among the hosts and processes of a run folder"),
    "cleanup": ("cleanup", "list and remove hprofiler's leftovers on hosts, and its cached agent"),
    "demo": ("demo", "start a small JVM job on this machine and profile it"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
}

# How much a word must be like what may have been meant.
_LIKE = 0.8

RUN_EXAMPLES = """\
examples:
  hprofiler -j spark-executor                         every Spark executor on this machine, 99 Hz, 5 s
  hprofiler -f 300 -t 60 -j spark-executor -h n1,n2   on two hosts over SSH
  hprofiler -f 300 -t 60 -j "grep 123456789 | grep -v root" --hosts-file nodes.txt
  hprofiler -t 30 -j pid:4242                         one process here, a JVM or not
  hprofiler -t 60 -e cpu,alloc,lock -j spark-executor CPU time, allocations and lock waits in one recording
  hprofiler -f 300 -t 60 -j application_1700000000000_0042 -c http://rm:8088   a YARN application
  hprofiler -f 300 -t 60 -j k8s:spark-role=executor,spark-app-name=etl -n analytics   pods of Kubernetes
  hprofiler -t 30 -i -j kafka-broker                  what its threads wait for
  hprofiler -t 30 -j impala-daemon --hosts-file nodes.txt   native processes, with the host's perf
  hprofiler -t 30 -j 're:Main --job \\d+' -h 'node[01-40]' --become sudo -o results

exit status: 0 all recorded, 2 bad usage, 3 recorded in part, 4 nothing recorded, 130 interrupted (143 by
SIGTERM, 129 by SIGHUP)
"""


class Parser(argparse.ArgumentParser):
    """A parser whose help is output like any other: argparse would not say that it could not be written.

    What is wrong is one line, as of any other error, and where to read more is another.
    """

    def error(self, message: str) -> NoReturn:
        message = message.replace("ignored explicit argument", "it takes no value, and was given")
        if message.startswith("unrecognized arguments: "):
            message += self._meant(message.split(": ", 1)[1].partition(" ")[0])
        self.exit(2, f"hprofiler: {message}\n  see `{self.prog} --help`\n")

    def _meant(self, word: str) -> str:
        """The option that is most like an unknown one, in brackets."""
        near = _most_like(word.partition("=")[0], self._option_string_actions)
        return f" (did you mean {near}?)" if word.startswith("--") and near else ""

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)


class HostsOrHelp(argparse.Action):
    """`-h` alone is help; `-h host1,host2` is the list of hosts, as it always was in hprofiler."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if values is None:
            parser.print_help()
            parser.exit()
        setattr(namespace, self.dest, values)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Options of the verb, with `command`: the function that carries it out.

    Exits by itself: 2 on bad usage, 0 after help.
    """
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        importlib.import_module("hprofiler.cli.commands.completion").complete()
    words = list(argv)
    if not words or (words[0] in ("-h", "--help", "help") and len(words) == 1):
        parser = general_parser()
        parser.print_help()
        parser.exit(0 if words else 2)
    if words[0] == "--version":
        print(f"hprofiler {__version__}")
        general_parser().exit()
    verb = words.pop(0) if words[0] in VERBS else "run"
    if verb == "run" and words and not words[0].startswith("-"):
        general_parser().error(_no_verb(words[0]))
    parser = verb_parser(verb)
    options = parser.parse_args(words)
    options.words = [verb, *words]
    options.command = _command(VERBS[verb][0])
    return options


def _no_verb(word: str) -> str:
    """What may have been meant: a verb, or what a run takes with -j."""
    near = _most_like(word.lower(), VERBS)
    meant = f"did you mean {near}?" if near else f"to profile a job of that name: -j {shlex.quote(word)}"
    return f"unknown verb {word!r} ({meant}); verbs are {', '.join(VERBS)}"


def _most_like(word: str, known: Iterable[str]) -> str:
    """The one that may have been meant; "" where none is like the word."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_LIKE)), "")


def general_parser() -> argparse.ArgumentParser:
    """The help of `hprofiler` itself: the main job's options and the verbs."""
    verbs = "\n".join(f"  {verb:<11} {text}" for verb, (_, text) in VERBS.items())
    parser = _new_parser("hprofiler", "Where does my distributed job spend its time?")
    parser.usage = (
        "hprofiler [run] -j SELECTOR [-f HZ] [-t SECONDS] [-h HOSTS | --hosts-file F | -c URL | -n NAMESPACE]"
        " [-o DIR] …\n"
        "       hprofiler VERB …"
    )
    parser.epilog = f"verbs (see also hprofiler VERB --help):\n{verbs}\n\n{RUN_EXAMPLES}"
    _run_options(parser)
    parser.add_argument("--version", action="version", version=f"hprofiler {__version__}")
    return parser


def verb_parser(verb: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    parser = _new_parser(f"hprofiler {verb}", _capitalised(VERBS[verb][1]) + ".")
    _VERB_OPTIONS[verb](parser)
    return parser


def _new_parser(name: str, description: str) -> argparse.ArgumentParser:
    return Parser(
        prog=name,
        description=description,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _help_option(parser: argparse._ActionsContainer, *names: str) -> None:
    parser.add_argument(*names, action="help", help="this help")


def _run_options(parser: argparse.ArgumentParser) -> None:
    sampling_options.add_to(parser)
    _selection_options(parser, required=True)
    _host_options(parser)
    yarn_options.add_to(parser)
    kubernetes_options.add_to(parser)
    _ssh_options(parser)
    care_options.add_to(parser)
    _output_options(parser)
    parser.epilog = parser.epilog or RUN_EXAMPLES


def _selection_options(parser: argparse.ArgumentParser, required: bool) -> None:
    group = parser.add_argument_group("which processes")
    group.add_argument(
        "-j",
        "--selector",
        required=required,
        action=kubernetes_options.SelectorAction,
        metavar="SELECTOR",
        help="a name (`hprofiler selectors` lists them); pid:123,456; a shell pipe over the process list "
        "('grep X | grep -v Y'); re:REGEX or plain text found in the command line; the id of a YARN "
        "application, or yarn:name=nightly*,user=…,queue=…,tag=…,type=…; pods: k8s:LABEL=VALUE,… or "
        "k8s:KIND/NAME (pod, deployment, statefulset, daemonset, replicaset, job, cronjob, "
        "sparkapplication); k8s: may be given several times",
    )
    _selector_directory_option(group)


def _selector_directory_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--selectors",
        metavar="DIR",
        dest="selector_dir",
        help="a folder with more *.yaml selectors, which win over others",
    )


def _host_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which hosts (none: this machine)")
    group.add_argument(
        "-h",
        "-H",
        "--hosts",
        nargs="?",
        action=HostsOrHelp,
        metavar="HOSTS",
        help="[user@]host[:port],… with ranges such as node[01-12]; -h alone is this help",
    )
    _help_option(group, "--help")
    group.add_argument(
        "--hosts-file",
        type=named,
        metavar="FILE",
        help="hosts, one a line, # comments; - reads them from stdin",
    )


def _ssh_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to reach them")
    group.add_argument("--user", help="user to connect as (default: ssh_config's, else yours)")
    group.add_argument("--port", type=_port, help="SSH port (default: ssh_config's, else 22)")
    group.add_argument("--identity", metavar="FILE", help="private key to use")
    group.add_argument(
        "--ssh-config", metavar="FILE", help="SSH configuration to read (default ~/.ssh/config)"
    )
    group.add_argument(
        "--accept-new-host-keys",
        action="store_true",
        help="trust and remember the keys of unknown hosts; a changed key is still refused",
    )
    group.add_argument(
        "--become",
        choices=["sudo"],
        help="run the agent as root through sudo, to attach to JVMs of other users",
    )
    group.add_argument(
        "--parallel", type=_positive, default=32, metavar="N", help="hosts to connect to at once (default 32)"
    )
    group.add_argument(
        "--timeout",
        type=sampling_options.seconds,
        default=30.0,
        metavar="S",
        help="seconds that each step may take on a host (default 30)",
    )


def _output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to write")
    group.add_argument(
        "-o",
        "--output",
        type=named,
        metavar="DIR",
        help="run folder (default hprofiler-DATE-TIME); if it holds a run, the new one gets a number",
    )
    group.add_argument("--force", action="store_true", help="replace the old run in the folder")
    _picture_options(group)
    group.add_argument(
        "-d",
        "--outliers",
        action="store_true",
        help="after the hottest methods, print how much each host differs, and in which methods",
    )
    group.add_argument("--json", action="store_true", help="print the outcome as JSON on stdout")


def _picture_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--threads", action="store_true", help="split the pictures by groups of threads")
    parser.add_argument(
        "--raw-names",
        action="store_true",
        help="do not merge names that each JVM numbers: lambdas, accessors, proxies, hidden classes",
    )
    _trim_option(parser)


def _trim_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--trim",
        action="store_true",
        help="show only frames below the roots that the selector names (docs/selectors.md)",
    )


def _ps_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what a run would record with")
    sampling_options.add_engine_to(group)
    _selection_options(parser, required=True)
    _host_options(parser)
    yarn_options.add_to(parser)
    kubernetes_options.add_to(parser)
    _ssh_options(parser)
    care_options.add_looking_to(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.epilog = (
        "examples:\n  hprofiler ps -j spark-executor -h node1,node2\n"
        "  hprofiler ps -j k8s:deployment/web -n shop\n\n"
        "exit status: 0 something found and every host answered, 3 some hosts failed, 4 nothing found"
    )


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    sampling_options.add_to(parser)
    _selection_options(parser, required=True)
    _host_options(parser)
    yarn_options.add_to(parser)
    kubernetes_options.add_to(parser)
    _ssh_options(parser)
    care_options.add_to(parser)
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.epilog = (
        "example:\n  hprofiler doctor -f 300 -t 60 -e cpu,alloc -j spark-executor -h node1,node2\n\n"
        "exit status: 0 all would be recorded as asked, 3 some would not, or only in part, 4 nothing would be"
    )


def _selectors_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    _selector_directory_option(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def _report_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    parser.add_argument("folder", metavar="DIR", help="a run folder (it has a run.json)")
    _picture_options(parser)
    parser.add_argument("--open", action="store_true", help="show the page in your browser")
    parser.add_argument(
        "--serve",
        nargs="?",
        const=0,
        type=_any_port,
        metavar="PORT",
        help="serve the page to browsers on this machine (127.0.0.1) until Ctrl-C; prints the address, and "
        "how to open it from another machine (default: a free port)",
    )
    parser.epilog = (
        "examples:\n  hprofiler report results --open\n  hprofiler report results --serve 8080\n\n"
        "--open and --serve alone show the existing page; they do not regenerate it"
    )


def _outliers_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    parser.add_argument("folder", metavar="DIR", help="a run folder (it has a run.json)")
    parser.add_argument(
        "-e",
        "--event",
        type=known_as,
        metavar="EVENT",
        help=f"this event only, such as {IN_WORDS} (default: all of the run)",
    )
    _trim_option(parser)
    parser.add_argument("--json", action="store_true", help="print the distances as JSON")
    parser.epilog = "example:\n  hprofiler outliers results\n\nwhat the numbers mean: docs/outliers.md"


def _apps_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    parser.add_argument(
        "filter",
        nargs="?",
        default="",
        metavar="FILTER",
        help="the beginning of a name, or name=nightly*,user=…,queue=…,tag=…,type=…",
    )
    yarn_options.add_cluster_to(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.epilog = "example:\n  hprofiler apps -c http://rm:8088 'queue=nightly'"


def _cleanup_options(parser: argparse.ArgumentParser) -> None:
    _host_options(parser)
    _ssh_options(parser)
    care_options.add_audit_to(parser)
    parser.add_argument("--yes", action="store_true", help="remove what is left over without asking")
    parser.add_argument(
        "--json", action="store_true", help="print what was found and removed as JSON; does not ask"
    )
    parser.epilog = (
        "examples:\n  hprofiler cleanup -h node1,node2\n"
        "  hprofiler cleanup --hosts-file nodes.txt --become sudo --yes\n\n"
        "exit status: 0 nothing is left over, 3 something is, or a host failed, 4 no host answered"
    )


def _demo_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    sampling_options.add_to(parser)
    _output_options(parser)


def _completion_options(parser: argparse.ArgumentParser) -> None:
    _help_option(parser, "-h", "--help")
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    parser.epilog = "example:\n  source <(hprofiler completion bash)"


_VERB_OPTIONS = {
    "run": _run_options,
    "ps": _ps_options,
    "doctor": _doctor_options,
    "apps": _apps_options,
    "selectors": _selectors_options,
    "convert": convert_options.add_to,
    "report": _report_options,
    "diff": diff_options.add_to,
    "outliers": _outliers_options,
    "cleanup": _cleanup_options,
    "demo": _demo_options,
    "completion": _completion_options,
}


def _command(module: str) -> Callable[[argparse.Namespace], int]:
    function: Callable[[argparse.Namespace], int] = importlib.import_module(
        f"hprofiler.cli.commands.{module}"
    ).command
    return function


def _port(text: str) -> int:
    return whole_number(text, 1, 65_535, "a port from 1 to 65535")


def _any_port(text: str) -> int:
    return whole_number(text, 0, 65_535, "a port from 0 (any that is free) to 65535; name DIR before --serve")


def _positive(text: str) -> int:
    return whole_number(text, 1, 10_000, "a number from 1 to 10000")


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
