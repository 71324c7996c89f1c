"""Commands and their options. Imports only argparse, so that `--help` prints at once."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from hprofiler.base.errors import UsageError
from hprofiler.base.version import __version__
from hprofiler.cli.options import archive_verbs
from hprofiler.cli.options import convert as convert_options
from hprofiler.cli.options import diff as diff_options
from hprofiler.cli.options import kubernetes as kubernetes_options
from hprofiler.cli.options import questions as question_options
from hprofiler.cli.options import safety as care_options
from hprofiler.cli.options import sampling as sampling_options
from hprofiler.cli.options import spark as spark_options
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.numbers import named, seconds, time_range, whole_number
from hprofiler.cli.options.target import SelectorAction
from hprofiler.model.event_names import known_as
from hprofiler.model.target import pids_alone

_HELP = "print this help"
_WITH_PROCESSES = ("run", "ps", "top", "dump", "memory", "doctor")
# Without a selector these look at all JVMs.
_LOOKING = ("ps", "top")
_WITH_HOSTS = ("run", "ps", "top", "dump", "memory", "doctor", "cleanup")
# Least similarity of a word and a suggestion, from 0 to 1.
_LIKE = 0.8

SELECTORS = """\
SELECTOR (docs/selectors.md):
  NAME                  a named selector; `hprofiler selectors` lists them
  pid:123,456           process ids; also 123,456 alone, without -j, and -p 123,456
  TEXT or re:REGEX      found in the command line
  'grep X | grep -v Y'  a pipe over the process list
  application_…         a YARN application
  yarn:name=nightly*,…  YARN applications, by name, user, queue, tag or type
  k8s:LABEL=VALUE,…     pods with these labels
  k8s:KIND/NAME         pods of a pod, deployment, statefulset, daemonset, replicaset, job, cronjob or
                        sparkapplication; -j k8s:… may be repeated
"""

_TARGET = "-j SELECTOR|PID [-h HOSTS | -c URL | -n NAMESPACE]"

RUN_EXAMPLES = """\
examples:
  hprofiler 4242                                               a process of this machine, by its id
  hprofiler -j spark-executor                                  Spark executors on this machine
  hprofiler -f 300 -t 60 -j spark-executor -h n1,n2            on two hosts over SSH, 60 s at 300 Hz
  hprofiler -j application_1700000000000_0042 -c http://rm:8088   a YARN application
  hprofiler -j k8s:spark-role=executor -n analytics            pods on Kubernetes
  hprofiler -e cpu,alloc,lock -j pid:4242                      CPU, allocations and locks of a process
  hprofiler -i -j kafka-broker                                 what its threads wait for
  hprofiler -j kafka-broker --when 'gc > 20%' -t 30            once garbage collection takes so much time
  hprofiler -j kafka-broker --keep-last 60                     the last 60 s before Ctrl-C
  hprofiler -j impala-daemon --hosts-file nodes.txt            native processes, with perf
  hprofiler -j python -e cpu,wall                              Python processes, with py-spy
  hprofiler -j 're:Main --job \\d+' -h 'node[01-40]' --become sudo -o results

exit status:
  0  every process was recorded
  2  bad usage
  3  some processes or events are missing or cut short
  4  nothing was recorded
  70  a bug in hprofiler
  130, 143, 129  interrupted by Ctrl-C, SIGTERM, SIGHUP
"""


FIRST_STEPS = """\
hprofiler: where does a distributed job spend its time?

  hprofiler ps -j java                            list the JVMs of this machine
  hprofiler 4242 -t 30                            record the process 4242 for 30 s
  hprofiler -j Main -e cpu,alloc,lock,wall        record all JVMs with Main in the command line
  hprofiler -j spark-executor -h node1,node2      record on hosts, over SSH
  hprofiler -j application_… -c http://rm:8088    record a YARN application
  hprofiler top -j java                           show what processes use now
  hprofiler dump 4242                             show what its threads do now: where does it hang?
  hprofiler report RUN --open                     open the report of a run
  hprofiler demo                                  record a small job, to see a report

commands: {commands}
hprofiler --help has all options, hprofiler COMMAND --help those of a command.
"""


class Parser(argparse.ArgumentParser):
    """Its errors are UsageErrors, which say what is wrong, and which help to read."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("ignored explicit argument", "takes no value, but was given")
        if message.startswith("unrecognized arguments: "):
            word = message.split(": ", 1)[1].partition(" ")[0]
            near = _most_like(word.partition("=")[0], self._option_string_actions)
            message += f" (did you mean {near}?)" if word.startswith("--") and near else ""
        raise UsageError(message, f"see `{self.prog} --help`") from None

    def print_help(self, file: Any = None) -> None:
        # argparse would ignore an error of the write.
        print(self.format_help(), end="", file=file)


class HostsOrHelp(argparse.Action):
    """`-h` alone prints the help; `-h host1,host2` names hosts."""

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
    """Options of the command, with its function as `command`. Raises UsageError; exits after help."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        importlib.import_module("hprofiler.cli.commands.completion").complete()
    words = list(argv)
    if not words:
        print(FIRST_STEPS.format(commands=", ".join(VERBS)), end="")
        general_parser().exit(2)
    if words[0] in ("-h", "--help", "help") and len(words) == 1:
        parser = general_parser()
        parser.print_help()
        parser.exit(0)
    if words[0] == "--version":
        print(f"hprofiler {__version__}")
        general_parser().exit()
    verb = words.pop(0) if words[0] in VERBS else "run"
    if verb == "run" and words and not words[0].startswith("-") and not pids_alone(words[0]):
        near = _most_like(words[0].lower(), VERBS)
        job = f"to profile a job of that name: -j {shlex.quote(words[0])}"
        meant = f"did you mean {near}?" if near else job
        general_parser().error(f"unknown command {words[0]!r} ({meant}); commands are {', '.join(VERBS)}")
    parser = verb_parser(verb)
    options, others = parser.parse_known_args(words)
    if verb in _WITH_PROCESSES and options.selector is None:
        if others and pids_alone(others[0]):
            options.selector = f"pid:{others.pop(0)}"
        elif verb in _LOOKING:
            options.selector = "java"
        elif not (others and others[0].startswith("-")):  # an unknown option
            parser.error("name processes with -j SELECTOR, or by their ids")
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options.words = [verb, *words]
    options.command = importlib.import_module(f"hprofiler.cli.commands.{VERBS[verb].module or verb}").command
    return options


def _most_like(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_LIKE)), "")


def general_parser() -> argparse.ArgumentParser:
    """The help of `hprofiler` itself: the options of `run`, and the commands."""
    verbs = "\n".join(f"  {name:<11} {verb.summary}" for name, verb in VERBS.items())
    parser = _new_parser("hprofiler", "Profile a distributed job: where does it spend its time?")
    parser.usage = f"hprofiler [run] {_TARGET} [OPTION …]\n       hprofiler COMMAND [OPTION …]"
    parser.epilog = (
        f"{SELECTORS}\ncommands (hprofiler COMMAND --help for details):\n{verbs}\n\n{RUN_EXAMPLES}"
    )
    _run_options(parser)
    parser.add_argument("--version", action="version", version=f"hprofiler {__version__}")
    return parser


def verb_parser(name: str) -> argparse.ArgumentParser:
    verb = VERBS[name]
    parser = _new_parser(f"hprofiler {name}", f"{verb.summary[:1].upper()}{verb.summary[1:]}.")
    if name not in _WITH_HOSTS:  # where -h names hosts
        parser.add_argument("-h", "--help", action="help", help=_HELP)
    verb.add_options(parser)
    return parser


def _new_parser(name: str, description: str) -> argparse.ArgumentParser:
    return Parser(
        prog=name,
        description=description,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = parser.usage or f"hprofiler run {_TARGET} [OPTION …]"
    sampling_options.add_to(parser)
    _target_options(parser)
    care_options.add_to(parser)
    spark_options.add_to(parser)
    _output_options(parser)
    archive_verbs.add_to_run(parser)
    parser.epilog = parser.epilog or f"{SELECTORS}\n{RUN_EXAMPLES}"


def _target_options(parser: argparse.ArgumentParser) -> None:
    """Which processes, where, and how to get there."""
    group = parser.add_argument_group("processes")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "-j",
        "--selector",
        action=SelectorAction,
        metavar="SELECTOR",
        help="which processes to profile; see SELECTOR below",
    )
    either.add_argument(
        "-p", "--pid", dest="selector", type="pid:{}".format, metavar="PID,…", help="processes by their ids"
    )
    _selector_directory_option(group)
    _host_options(parser)
    yarn_options.add_to(parser)
    kubernetes_options.add_to(parser)
    _ssh_options(parser)


def _selector_directory_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--selectors",
        metavar="DIR",
        dest="selector_dir",
        help="folder with more selectors (*.yaml); they replace others of the same name",
    )


def _host_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("hosts (default: this machine)")
    group.add_argument(
        "-h",
        "-H",
        "--hosts",
        nargs="?",
        action=HostsOrHelp,
        metavar="HOSTS",
        help="[user@]host[:port],… or ranges such as node[01-12]; -h alone prints this help",
    )
    group.add_argument("--help", action="help", help=_HELP)
    group.add_argument(
        "--hosts-file",
        type=named,
        metavar="FILE",
        help="file with one host per line; # starts a comment; - is stdin",
    )


def _ssh_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument("--user", help="SSH user (default: from ssh_config, else yours)")
    group.add_argument(
        "--port",
        type=partial(whole_number, least=1, most=65_535, meaning="a port from 1 to 65535"),
        help="SSH port (default: from ssh_config, else 22)",
    )
    group.add_argument("--identity", metavar="FILE", help="private key")
    group.add_argument("--ssh-config", metavar="FILE", help="SSH configuration (default ~/.ssh/config)")
    group.add_argument(
        "--accept-new-host-keys",
        action="store_true",
        help="accept and store keys of unknown hosts; changed keys are still refused",
    )
    group.add_argument(
        "--become",
        choices=["sudo"],
        help="run the agent as root with sudo, to profile processes of other users",
    )
    group.add_argument(
        "--parallel",
        type=partial(whole_number, least=1, most=10_000, meaning="a number from 1 to 10000"),
        default=32,
        metavar="N",
        help="hosts to connect to at once (default 32)",
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        metavar="TIME",
        help="time allowed for each step on a host: 60 (seconds), 60s or 2m (default 30)",
    )


def _output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    _folder_options(group, "run", "hprofiler-DATE-TIME")
    _picture_options(group)
    group.add_argument(
        "-d",
        "--outliers",
        action="store_true",
        help="also print how much each host differs from the others",
    )
    group.add_argument("--json", action="store_true", help="print the result as JSON")


def _folder_options(group: argparse._ActionsContainer, kind: str, usual: str) -> None:
    group.add_argument(
        "-o",
        "--output",
        type=named,
        metavar="DIR",
        help=f"{kind} folder (default {usual}); if DIR holds a {kind}, the new {kind} goes to DIR-2",
    )
    group.add_argument("--force", action="store_true", help=f"replace the {kind} in the folder")


def _picture_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--threads", action="store_true", help="group the stacks by thread name")
    parser.add_argument(
        "--raw-names",
        action="store_true",
        help="do not merge generated names that differ from JVM to JVM, such as lambdas and proxies",
    )
    _trim_option(parser)


def _trim_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--trim",
        action="store_true",
        help="start stacks at the job's own code, the roots of the selector (docs/selectors.md)",
    )


def _ps_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"hprofiler ps {_TARGET} [OPTION …]"
    group = parser.add_argument_group("recording")
    sampling_options.add_engine_to(group)
    _target_options(parser)
    care_options.add_looking_to(parser)
    parser.add_argument(
        "--watch",
        action="store_true",
        help="go on until Ctrl-C: print a line for each process that starts or ends, on new hosts too",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the list as JSON; with --watch, each change as a line"
    )
    parser.epilog = (
        f"{SELECTORS}\nexamples:\n  hprofiler ps -j spark-executor -h node1,node2\n"
        "  hprofiler ps -j k8s:deployment/web -n shop\n"
        "  hprofiler ps --watch -j application_1700000000000_0042 -c http://rm:8088\n\n"
        "exit status:\n  0  processes found, and every host answered\n  2  bad usage\n"
        "  3  some hosts failed\n  4  nothing found"
    )


def _top_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"hprofiler top {_TARGET} [OPTION …]"
    parser.set_defaults(engine="auto")
    _target_options(parser)
    care_options.add_looking_to(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--ipc",
        action="store_true",
        help="also show instructions per cycle of the matching processes, where a host has hardware counters",
    )
    group.add_argument(
        "--count",
        type=partial(whole_number, least=1, most=1_000_000, meaning="a number from 1 to 1000000"),
        metavar="N",
        help="print the table N times, once a second (default: on a terminal until q or Ctrl-C, else once)",
    )
    group.add_argument("--json", action="store_true", help="print each table as a line of JSON")
    parser.epilog = (
        f"{SELECTORS}\nexamples:\n  hprofiler top                        all JVMs of this machine\n"
        "  hprofiler top -j spark-executor -h node1,node2\n"
        "  hprofiler top -j application_1700000000000_0042 -c http://rm:8088\n"
        "  hprofiler top -j java --json --count 60 > minute.json\n\n"
        "exit status:\n  0  every host answered\n  2  bad usage\n"
        "  3  some hosts failed\n  4  no host answered"
    )


def _dump_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"hprofiler dump {_TARGET} [OPTION …]"
    parser.set_defaults(engine="auto")
    group = _looks_options(parser, every=2.0)
    group.add_argument(
        "--owners",
        action="store_true",
        help="JVMs also say which threads own locks of java.util.concurrent. A JVM stands still while it "
        "searches its heap for them: up to 2 s for each GB of small objects. Without --owners it does so for "
        "milliseconds",
    )
    _target_options(parser)
    care_options.add_asking_to(parser)
    group = parser.add_argument_group("output")
    _folder_options(group, "dump", "hprofiler-dump-DATE-TIME")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"{SELECTORS}\nexamples:\n  hprofiler dump 4242\n"
        "  hprofiler dump -j spark-executor -h node1,node2\n"
        "  hprofiler dump -j application_1700000000000_0042 -c http://rm:8088 --times 3\n"
        "  hprofiler dump -j k8s:deployment/web -n shop --times 5 --every 10s -o dumps\n\n"
        "exit status:\n  0  every process was dumped\n  2  bad usage\n"
        "  3  some processes are missing, or did not answer themselves\n  4  nothing was dumped\n"
        "  130, 143, 129  interrupted by Ctrl-C, SIGTERM, SIGHUP"
    )


def _looks_options(parser: argparse.ArgumentParser, every: float) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("looks")
    group.add_argument(
        "--times",
        type=partial(whole_number, least=1, most=1000, meaning="a number from 1 to 1000"),
        default=1,
        metavar="N",
        help="look N times, at all processes at about the same moment (default 1)",
    )
    group.add_argument(
        "--every",
        type=seconds,
        default=every,
        metavar="TIME",
        help=f"time between two looks: 2 (seconds), 2s or 1m (default {every:g})",
    )
    return group


def _memory_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"hprofiler memory {_TARGET} [OPTION …]"
    parser.set_defaults(engine="auto", slices="stage", no_timeline=False)
    group = _looks_options(parser, every=10.0)
    group.add_argument(
        "--heap",
        action="store_true",
        help="JVMs also count their objects by class, at the last look, one JVM of a host after the other. A "
        "JVM stands still meanwhile: about 0.5 s for each GB of small objects",
    )
    _target_options(parser)
    care_options.add_looking_to(parser)
    group = parser.add_argument_group("output")
    spark_options.add_source_to(group, "the sizes that Spark was configured with")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"{SELECTORS}\nexamples:\n  hprofiler memory 4242\n"
        "  hprofiler memory -j spark-executor -h node1,node2 --times 6 --every 10s\n"
        "  hprofiler memory -j application_1700000000000_0042 -c http://rm:8088 --heap\n"
        "  hprofiler memory -j k8s:deployment/web -n shop --json\n\n"
        "exit status:\n  0  the memory of every process is known\n  2  bad usage\n"
        "  3  some processes are missing, or a JVM did not answer\n  4  nothing was read\n"
        "  130, 143, 129  interrupted by Ctrl-C, SIGTERM, SIGHUP"
    )


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"hprofiler doctor {_TARGET} [OPTION …]"
    sampling_options.add_to(parser)
    _target_options(parser)
    care_options.add_to(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"{SELECTORS}\nexample:\n"
        "  hprofiler doctor -f 300 -t 60 -e cpu,alloc -j spark-executor -h node1,node2\n\n"
        "exit status:\n  0  a run would record everything\n  2  bad usage\n"
        "  3  a run would record only a part, or not as well as asked\n  4  a run would record nothing"
    )


def _selectors_options(parser: argparse.ArgumentParser) -> None:
    _selector_directory_option(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.epilog = "example:\n  hprofiler selectors\n\ndocs/selectors.md explains how to write one."


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="run folder")
    _picture_options(parser)
    spark_options.add_slices_to(parser)
    parser.add_argument(
        "--time",
        type=time_range,
        metavar="FROM-TO",
        help="only samples of these seconds, such as 5-12.5 or 10-, from the start of the run",
    )
    parser.add_argument("--open", action="store_true", help="show the page in your browser")
    parser.add_argument(
        "--serve",
        nargs="?",
        const=0,
        type=partial(
            whole_number,
            least=0,
            most=65_535,
            meaning="a port from 0 (any that is free) to 65535; name DIR before --serve",
        ),
        metavar="PORT",
        help="serve the page on 127.0.0.1 until Ctrl-C, and print how to open it (default: a free port)",
    )
    parser.epilog = (
        "examples:\n  hprofiler report results --open\n  hprofiler report results --serve 8080\n\n"
        "With --open or --serve alone, the existing page is shown as it is."
    )


def _outliers_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="run folder")
    parser.add_argument(
        "-e",
        "--event",
        type=known_as,
        metavar="EVENT",
        help="only this event, such as cpu or alloc (default: all events of the run)",
    )
    _trim_option(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = "example:\n  hprofiler outliers results\n\ndocs/outliers.md explains the numbers."


def _spark_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="an event log (file or folder; hdfs://, s3:// and others), the address of a history server or "
        "of a driver, or an application id",
    )
    yarn_options.add_cluster_to(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json",
        action="store_true",
        help="print all as JSON, with the names of Spark's REST interface",
    )
    group.add_argument(
        "-o", "--output", type=named, metavar="FILE.html", help="also write a page with the timeline"
    )
    group.add_argument("--csv", type=named, metavar="DIR", help="also write tables as CSV files into DIR")
    group.add_argument(
        "--parquet", type=named, metavar="DIR", help="also write tables as Parquet files into DIR"
    )
    parser.epilog = (
        "examples:\n"
        "  hprofiler spark /logs/application_1700000000000_0042\n"
        "  hprofiler spark hdfs://namenode:9870/spark-logs/application_1700000000000_0042.zstd\n"
        "  hprofiler spark http://history:18080/history/application_1700000000000_0042 --json\n"
        "  hprofiler spark application_1700000000000_0042 -c http://rm:8088\n"
        "  hprofiler spark http://driver:4040 --csv tables\n\n"
        "exit status:\n  0  done\n  2  bad usage\n"
        "  3  a part of the log is damaged or missing (see its notes)\n"
        "  4  nothing could be read\n\ndocs/spark-log.md explains the figures."
    )


def _scale_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="RUN",
        help="an event log of one run, a run folder of hprofiler, or another SOURCE of `hprofiler spark`; "
        "with run folders: which methods cost more with more cores",
    )
    parser.add_argument(
        "--by",
        metavar="SIZE",
        default="cores",
        help="size of a run: executors, cores (of executors, the default), tasks (that can run at the "
        "same time), or a property of Spark, such as spark.sql.shuffle.partitions",
    )
    parser.add_argument(
        "-o", "--output", type=named, metavar="FILE.html", help="also write a page with a plot"
    )
    yarn_options.add_cluster_to(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        "examples:\n"
        "  hprofiler scale logs/application_*\n"
        "  hprofiler scale --by executors logs/two-1 logs/two-2 logs/four-1 logs/four-2\n"
        "  hprofiler scale -o speedup.html results-2-cores results-8-cores logs/application_*\n\n"
        "exit status:\n  0  done\n  2  bad usage\n"
        "  3  a part of a log is damaged or missing (see `hprofiler spark LOG`)\n"
        "  4  a log could not be read\n\ndocs/scaling.md explains the figures."
    )


def _apps_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "filter",
        nargs="?",
        default="",
        metavar="FILTER",
        help="beginning of a name, or name=nightly*,user=…,queue=…,tag=…,type=…",
    )
    yarn_options.add_cluster_to(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.epilog = "example:\n  hprofiler apps -c http://rm:8088 'queue=nightly'"


def _cleanup_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hprofiler cleanup [-h HOSTS | --hosts-file FILE] [--yes] [OPTION …]"
    _host_options(parser)
    _ssh_options(parser)
    care_options.add_audit_to(parser)
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--json", action="store_true", help="print the result as JSON; does not ask")
    parser.epilog = (
        "examples:\n  hprofiler cleanup -h node1,node2\n"
        "  hprofiler cleanup --hosts-file nodes.txt --become sudo --yes\n\n"
        "exit status:\n  0  nothing is left\n  2  bad usage\n  3  something is left, or a host failed\n"
        "  4  no host answered"
    )


def _demo_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hprofiler demo [OPTION …]"
    sampling_options.add_to(parser)
    _output_options(parser)
    parser.epilog = "example:\n  hprofiler demo -e cpu,alloc -o demo"


def _completion_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")
    parser.epilog = "example:\n  source <(hprofiler completion bash)"


class _Verb(NamedTuple):
    """A command. Its module in `cli.commands` has its name, or is named here."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    module: str = ""


VERBS = {
    "run": _Verb("profile processes (the default command: `run` may be left out)", _run_options),
    "ps": _Verb("list the hosts and processes that a run would profile", _ps_options),
    "top": _Verb("show live what hosts and processes use", _top_options),
    "dump": _Verb("show what all threads of processes do now, to see where a job hangs", _dump_options),
    "memory": _Verb("show where the memory of processes is, beside their limits", _memory_options),
    "doctor": _Verb("check whether a run would succeed, without touching any process", _doctor_options),
    "apps": _Verb("list the running applications of a YARN cluster", _apps_options),
    "selectors": _Verb("list the named selectors for -j", _selectors_options),
    "convert": _Verb("merge, filter and convert profiles", convert_options.add_to),
    "report": _Verb("regenerate or show the report of a run or a dump", _report_options),
    "diff": _Verb("compare two runs or profiles", diff_options.add_to),
    "spark": _Verb("show what a Spark application did: stages, tasks, executors", _spark_options),
    "scale": _Verb(
        "compare runs of a Spark job on more and fewer cores, from their event logs", _scale_options
    ),
    "archive": _Verb("keep many runs in one place: add, compact, prune, check, sql", archive_verbs.add_to),
    "history": _Verb(
        "show a method's share in the runs of an archive", question_options.add_history_to, "questions"
    ),
    "grew": _Verb(
        "show which methods of archived runs cost more than before", question_options.add_grew_to, "questions"
    ),
    "cost": _Verb(
        "show what archived runs used a day: core hours by kind of work, application …",
        question_options.add_cost_to,
        "questions",
    ),
    "where": _Verb("show which archived runs contain a frame", question_options.add_where_to, "questions"),
    "outliers": _Verb("show which hosts and processes of a run differ from the others", _outliers_options),
    "cleanup": _Verb("list and remove hprofiler's leftovers on hosts", _cleanup_options),
    "demo": _Verb("profile a small JVM job on this machine", _demo_options),
    "completion": _Verb("print a completion script for bash, zsh or fish", _completion_options),
}
