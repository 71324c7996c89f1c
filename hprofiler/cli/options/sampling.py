"""Options of `model.Sampling`. Imports only argparse."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial

from hprofiler.base.errors import UsageError
from hprofiler.cli.options import numbers
from hprofiler.model.event_names import IN_WORDS, OWN, known_as, unknown
from hprofiler.model.trigger import Trigger

ENGINES = ("auto", "async-profiler", "perf", "pyspy")
MOST_EVENTS = 16
JOB = "job"
LIMIT = 4 * 3600.0
"""Seconds after which a recording until the job's end is over."""
WAIT = 3600.0
"""Seconds for which the first process is waited for."""
PRESETS = ("ipc", "topdown", "cache", "memory", "energy")
MOST_COUNTERS = 32
_INTERVALS_OF = {
    "alloc_interval": ("alloc", "live", "nativemem", "nativelive"),
    "lock_threshold": ("lock",),
    "wall_interval": ("wall", "offcpu"),
}

# Names of perf events, tracepoints (sched:sched_switch) and Java methods (a.b.C.m).
_LIKE_A_PRESET = 0.8
_COUNTER = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,99}")
_EVENT = re.compile(r"[A-Za-z0-9_.:*$<>/@][A-Za-z0-9_.:*$<>/@-]{0,199}")


class _EventsAction(argparse.Action):
    """`-e` once: a second one would replace the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice; name all events in one, such as -e cpu,alloc")
        setattr(namespace, self.dest, values)


def _condition(text: str) -> Trigger:
    try:
        return Trigger.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class _KeepLastAction(argparse.Action):
    """`--keep-last 60`: without `-t`, for as long as a job is recorded at most."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        namespace.keep_last = values
        if not namespace.duration_given:
            namespace.duration = LIMIT


class _DurationAction(argparse.Action):
    """`-t 60`, `-t job` or `-t job:8h`: the time, and whether it is a limit until the job ends."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        text = str(values)
        namespace.until_job = text.partition(":")[0] == JOB
        namespace.duration_given = True
        try:
            namespace.duration = LIMIT if text == JOB else numbers.seconds(text.removeprefix(f"{JOB}:"))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, f"{error}; or job, or job:8h") from error


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("recording")
    group.add_argument(
        "-f",
        "--frequency",
        type=partial(numbers.whole_number, least=1, most=10_000, meaning="a frequency from 1 to 10000 Hz"),
        default=99,
        metavar="HZ",
        help="CPU samples per second (default 99)",
    )
    group.add_argument(
        "-t",
        "--duration",
        action=_DurationAction,
        default=5.0,
        metavar="TIME",
        help="how long to record: 30 (seconds), 30s, 5m or 1h (default 5); job: until the job ends, for at "
        "most 4 hours; job:8h: for at most 8 hours (docs/whole-job.md)",
    )
    group.add_argument(
        "--wait",
        nargs="?",
        type=numbers.seconds,
        const=WAIT,
        default=0.0,
        metavar="TIME",
        help="if there is no process, application or pod yet, wait for the first one: for at most an hour, "
        "or for TIME",
    )
    group.add_argument(
        "--no-join",
        action="store_true",
        help="record only the processes that are there at the beginning; without it, those that start "
        "during the recording join it",
    )
    group.set_defaults(until_job=False, duration_given=False)
    group.add_argument(
        "--when",
        type=_condition,
        metavar="COND",
        help="watch, and record once a condition is true: 'stage 14' (a Spark stage is active), "
        "'task > 3 x median' (a Spark task takes longer than the finished ones of its stage), 'gc > 20%%' "
        "(of the last 5 s, in any JVM) or 'cpu > 3' (cores, any process); waits for at most an hour, or "
        "for the time of --wait (docs/whole-job.md)",
    )
    group.add_argument(
        "--keep-last",
        type=numbers.seconds,
        action=_KeepLastAction,
        metavar="TIME",
        help="record all the time, and keep only the last seconds: until Ctrl-C, SIGTERM, --when or the end "
        "of -t (4 hours without -t)",
    )
    group.add_argument(
        "-e",
        "--event",
        action=_EventsAction,
        dest="events",
        type=events,
        metavar="EVENT,…",
        help=f"events to record at the same time (default cpu): {', '.join(OWN)}, or another event "
        "such as page-faults or a Java method a.b.C.m; Python has cpu and wall (docs/events.md)",
    )
    group.add_argument(
        "-i", "--off-cpu", action="store_true", help="record what threads wait for; same as -e offcpu"
    )
    add_engine_to(group)
    _intervals(group)
    group.add_argument(
        "--keep-raw", action="store_true", help="keep async-profiler's JFR files in the run folder"
    )
    group.add_argument(
        "--no-timeline",
        action="store_true",
        help="do not record when samples were taken, and when garbage was collected",
    )
    group.add_argument(
        "--no-metrics",
        action="store_true",
        help="do not read every second what hosts, processes and JVMs do (docs/metrics.md)",
    )
    group.add_argument(
        "--counters",
        nargs="?",
        type=counters,
        const=PRESETS,
        metavar="NAME,…",
        help="count what processors do in the recorded processes: "
        f"{', '.join(PRESETS)} (all of them without a name), or events of the machine such as cycles or "
        "cpu/mem-loads (docs/metrics.md)",
    )
    group.add_argument(
        "--thread-names",
        action="store_true",
        help="follow names of threads, which tell the stages of a Spark job apart, in JVMs of JDK 21 and "
        "later too, which print a warning then (docs/selectors.md)",
    )
    group.add_argument(
        "--python-native",
        action="store_true",
        help="Python processes: record native frames too, such as NumPy's; this stops a process for its "
        "samples (docs/python.md)",
    )
    group.add_argument(
        "--async-profiler",
        metavar="FILE",
        help="use this libasyncProfiler.so (default: $HPROFILER_ASYNC_PROFILER, else the one in the package)",
    )


def add_engine_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="auto (default): async-profiler for JVMs that allow an attach, py-spy for Python, else the "
        "host's perf; perf: perf for all, and -j also matches programs of other languages; pyspy: py-spy "
        "only, and -j also matches programs that embed Python",
    )


def _intervals(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--alloc-interval",
        type=numbers.size,
        metavar="SIZE",
        help="alloc, live, nativemem, nativelive: bytes allocated per sample, at least 4k (default: chosen "
        "from each JVM's allocation rate; native memory 512k)",
    )
    group.add_argument(
        "--lock-threshold",
        type=numbers.time,
        metavar="TIME",
        help="lock: time waited per sample; every longer wait is recorded (default 10us)",
    )
    group.add_argument(
        "--wall-interval",
        type=numbers.period,
        metavar="TIME",
        help="wall, offcpu: time between samples of a thread, at least 1ms (default 10ms; 50ms above 200 "
        "threads)",
    )


def events(text: str) -> tuple[str, ...]:
    """The events of "cpu,alloc"."""
    names = []
    for given in text.split(","):
        if why := unknown(given):
            raise argparse.ArgumentTypeError(why)
        names.append(known_as(given))
        name = names[-1]
        if not _EVENT.fullmatch(name):
            raise argparse.ArgumentTypeError(
                f"{name!r} is not an event; events are {IN_WORDS}, and others such as page-faults"
            )
    twice = [name for name in OWN + tuple(names) if names.count(name) > 1]
    if twice:
        raise argparse.ArgumentTypeError(f"{twice[0]} is given twice in {text!r}")
    if len(names) > MOST_EVENTS:
        raise argparse.ArgumentTypeError(f"{len(names)} events; a recording can have at most {MOST_EVENTS}")
    return tuple(names)


def counters(text: str) -> tuple[str, ...]:
    """The presets and events of "ipc,cycles"; each once."""
    given = (name.strip() for name in text.split(","))
    names = tuple(dict.fromkeys(name.lower() if name.lower() in PRESETS else name for name in given))
    for name in names:
        meant = get_close_matches(name.lower(), PRESETS, 1, _LIKE_A_PRESET)
        if meant and name not in PRESETS:
            raise argparse.ArgumentTypeError(f"{name!r} is not a counter; did you mean {meant[0]}?")
        if not _COUNTER.fullmatch(name):
            raise argparse.ArgumentTypeError(
                f"{name!r} is not a counter; counters are {', '.join(PRESETS)}, and events of the machine"
            )
    if len(names) > MOST_COUNTERS:
        raise argparse.ArgumentTypeError(f"{len(names)} counters; there can be at most {MOST_COUNTERS}")
    return names


def chosen_events(options: argparse.Namespace) -> tuple[str, ...]:
    """The events of `-e` and `-i`."""
    asked: tuple[str, ...] = options.events or ()
    if options.off_cpu and "offcpu" not in asked:
        asked = (*asked, "offcpu")
    return asked or ("cpu",)


def refuse_not_kept(options: argparse.Namespace, asked: Sequence[str]) -> None:
    """UsageError for what has no last seconds."""
    last: float | None = options.keep_last
    if last is None:
        return
    for has, other in (
        (options.engine == "perf", "--engine perf, which gives all at the end"),
        (options.keep_raw, "--keep-raw"),
        (options.no_timeline, "--no-timeline"),
        ("live" in asked, "-e live"),
        ("nativelive" in asked, "-e nativelive"),
    ):
        if has:
            raise UsageError(f"--keep-last cannot be used with {other}", "leave one of them out")
    if last >= options.duration:
        reason = f"-t is how long is recorded at most, and --keep-last {last:g} is not less than that"
        raise UsageError(reason, "leave out -t")


def refuse_unused(options: argparse.Namespace, asked: Sequence[str]) -> None:
    """UsageError for options of what is not recorded, and for counters without metrics."""
    if options.python_native and options.engine not in ("auto", "pyspy"):
        reason = f"--python-native is for py-spy, but --engine is {options.engine}"
        raise UsageError(reason, "leave it out, or use --engine auto or pyspy")
    if options.counters and options.no_metrics:
        raise UsageError("--counters needs metrics, but --no-metrics is given", "leave one of them out")
    for name, of in _INTERVALS_OF.items():
        if getattr(options, name) is not None and not set(of) & set(asked):
            option = f"--{name.replace('_', '-')}"
            reason = f"{option} is for {', '.join(of)}, but -e is {', '.join(asked)}"
            raise UsageError(reason, f"leave it out, or use -e {','.join((*asked, of[0]))}")
