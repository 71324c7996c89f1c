"""From a run folder to the rows of every table, as Arrow tables, by the run's own analysis."""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hprofiler._flamegraph import Profile, StackTable
from hprofiler.analysis.attribution import counts_waits, with_waits_named, without_idle
from hprofiler.analysis.counters import MACHINE, ratios, totals
from hprofiler.analysis.diff_sides import of_part, role_of, samples_of
from hprofiler.analysis.facts import RunFacts, labels_of, read_facts
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.analysis.noise import Spread
from hprofiler.analysis.profiles import Names, Reader, unreadable
from hprofiler.analysis.sure_callers import Callers
from hprofiler.analysis.trust import Untrusted
from hprofiler.analysis.work import has_kernel, is_work, rules_version, user_rules
from hprofiler.archive.place import ArchiveError
from hprofiler.archive.schema import FORM, TABLES
from hprofiler.base.errors import RunFolderError, UsageError
from hprofiler.base.paths import is_file
from hprofiler.model import HostRecord, Outcome, Params, Process, Recording, Status
from hprofiler.model.measures import measure_of
from hprofiler.runfolder import RunFolder, RunRecord
from hprofiler.runfolder.metrics_file import read_metrics
from hprofiler.spark.facts import SparkError
from hprofiler.spark.facts import read_facts as read_spark_facts
from hprofiler.spark.saved import saved_application

KEY = "HPROFILER_PSEUDONYM_KEY"
_NANOSECONDS = 1e9
# Most programs that an application is named by.
_PROGRAMS = 3
_UNKNOWN_SECOND = -(2**31)
# Things whose ids may name hosts and users.
_WITH_NAMES = ("cgroup", "mount")
# Texts of Spark that may name hosts, users and files.
_FREE_TEXTS = ("name", "description", "failureReason")


class Pseudonyms:
    """Names of hosts and users as keyed hashes; without a key the names themselves."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = key

    @classmethod
    def asked_for(cls) -> Pseudonyms:
        """By the key of the environment. Without a key, names could be found by trying. Raises UsageError."""
        key = os.environ.get(KEY, "")
        if not key:
            remedy = f"set {KEY} to a secret text, the same for every run of the archive"
            raise UsageError(f"--pseudonymise needs ${KEY}", remedy)
        return cls(key.encode())

    def __bool__(self) -> bool:
        return bool(self._key)

    def of(self, what: str, name: str) -> str:
        """`host-5f0c…` for a name; what is empty stays empty."""
        if not self._key or not name:
            return name
        digest = hmac.new(self._key, f"{what} {name}".encode(), hashlib.sha256).hexdigest()
        return f"{what}-{digest[:12]}"


@dataclass
class RunRows:
    """A run's rows. `problems` are profiles and files that cannot be used, whose rows are missing."""

    run: str
    started: datetime
    application: str
    tables: dict[str, Any] = field(default_factory=dict)
    problems: list[Outcome] = field(default_factory=list)


def run_id(record: RunRecord) -> str:
    """When a run began, and a hash of what was recorded: the same wherever the folder is."""
    recorded = [
        (host.name, one.pid, one.process.start_time, one.event, one.samples.taken, sorted(one.totals.items()))
        for host in record.hosts
        for one in host.recordings
    ]
    what = repr((record.started, record.finished, record.command, record.target, recorded))
    return f"{_started(record):%Y%m%dT%H%M%SZ}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _started(record: RunRecord) -> datetime:
    try:
        return datetime.fromisoformat(record.started).astimezone(timezone.utc).replace(tzinfo=None)
    except ValueError as error:
        raise ArchiveError("the run has no start: it ended before anything was recorded") from error


def run_rows(path: Path, pseudonyms: Pseudonyms, application: str | None = None) -> RunRows:
    """The rows of a run folder, and `application` if the user gave its name.

    Raises RunFolderError, and ArchiveError for a run without recordings.
    """
    folder = RunFolder.open(path)
    return _Reading(folder, pseudonyms).rows(application)


class _Reading:
    def __init__(self, folder: RunFolder, pseudonyms: Pseudonyms) -> None:
        self._folder, self._record, self._pseudonyms = folder, folder.record, pseudonyms
        self._facts = replace(read_facts(folder.record), slices=True)
        self._run = run_id(folder.record)
        self._problems: list[Outcome] = []
        try:
            self._facts = replace(self._facts, spark=read_spark_facts(folder.path))
        except SparkError as error:
            self._problems.append(_note(self._facts, error.reason, error.remedy))
        self._processes = {
            process: number
            for number, process in enumerate(
                dict.fromkeys((host.name, one.pid) for host in self._facts.hosts for one in host.recordings)
            )
        }

    def rows(self, application: str | None) -> RunRows:
        if not self._processes:
            raise ArchiveError(f"{self._folder.path} has no recordings", "there is nothing to archive")
        run = RunRows(self._run, _started(self._record), application or self._application())
        made: dict[str, Any] = {"processes": self._of_processes()}
        broken = self._broken()
        if len(broken) == len(self._facts.events):
            first = _not_trusted(next(iter(broken[0].untrusted.values())), broken[0].event)
            raise ArchiveError(f"{first.host} pid {first.pid}: {first.reason}", first.remedy)
        made |= self._of_profiles()
        made |= self._of_spark()
        made |= self._of_metrics()
        run.tables = {name: table for name, table in made.items() if table.num_rows}
        run.tables["runs"] = self._of_run(run)
        run.problems = self._problems
        return run

    def _broken(self) -> list[RunFacts]:
        """The events that are left out."""
        events = [self._facts.of(event) for event in self._facts.events]
        return [facts for facts in events if facts.untrusted]

    def _application(self) -> str:
        """The job's name, which is the same every night; else what the user named."""
        if self._facts.spark and self._facts.spark.name:
            return self._facts.spark.name
        target = self._record.target
        if target.kind in ("hosts", "local"):
            return self._program() or self._record.selector or target.kind
        return target.name or target.kind

    def _program(self) -> str:
        """The main class if the user named it in part, or numbers of processes, which change; else ""."""
        recordings = [one for host in self._facts.hosts for one in host.recordings]
        names = sorted({one.process.main_class or one.label for one in recordings})
        selector = self._record.selector
        if selector.startswith("pid:"):
            return " + ".join(names[:_PROGRAMS])
        return names[0] if len(names) == 1 and selector in names[0] else ""

    def _of_run(self, run: RunRows) -> Any:
        record, target = self._record, self._record.target
        host = next(host for host in record.hosts if host.recordings)
        user = labels_of(host, host.recordings[0].process).get("user", "")
        named = target.name if target.kind not in ("hosts", "local") else self._hidden("target", target.name)
        row = {
            "run": self._run,
            "started": run.started,
            "seconds": self._facts.seconds,
            "kind": target.kind,
            "target": named,
            "application": run.application,
            "user": self._hidden("user", user),
            "command": "" if self._pseudonyms else shlex.join(record.command),
            "hprofiler": record.hprofiler,
            "hosts": sum(1 for host in record.hosts if host.recordings),
            "processes": len(self._processes),
            "form": FORM,
            "tables": sorted([*run.tables, "runs"]),
            "rules": rules_version(),
            "broken": [facts.event for facts in self._broken()],
        }
        return table_of("runs", [row])

    def _hidden(self, what: str, name: str) -> str:
        return self._pseudonyms.of(what, name)

    def _of_processes(self) -> Any:
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        for host in self._facts.hosts:
            for one in host.recordings:
                known = rows.get((host.name, one.pid))
                if known is None:
                    rows[host.name, one.pid] = self._of_process(host, one)
                else:
                    known["seconds"] = max(known["seconds"], one.seconds)
        return table_of("processes", list(rows.values()))

    def _of_process(self, host: HostRecord, one: Recording) -> dict[str, Any]:
        process: Process = one.process
        labels = labels_of(host, process)
        return {
            "run": self._run,
            "process": self._processes[host.name, one.pid],
            "host": self._hidden("host", host.name),
            "pid": one.pid,
            "role": role_of(one),
            "executor": labels.get("executor"),
            "container": labels.get("container"),
            "user": self._hidden("user", labels.get("user", "")),
            "engine": one.engine,
            "main": process.main_class,
            "seconds": one.seconds,
        }

    def _of_profiles(self) -> Mapping[str, Any]:
        stacks = StackTable(user_rules(), start=self._facts.start)
        events, work, spreads = [], [], []
        methods: list[Any] = []
        for number, event in enumerate(self._facts.events):
            facts = self._facts.of(event)
            if facts.untrusted:  # without these processes, all else would have a larger share
                self._problems += [_not_trusted(one, event) for one in facts.untrusted.values()]
                continue
            read = _Event(self._folder, facts, stacks, number, self._processes)
            read.all()
            self._problems += read.problems
            events.append({"run": self._run, **read.row()})
            if not read.spread.parts:
                continue
            work += [{"run": self._run, **row} for row in read.work]
            for role, kind in read.spread.kinds.items():
                of_kind = {"run": self._run, "event": event, "role": role}
                spreads.append({**of_kind, **read.of_role(role)})
                methods.append(_of_methods(of_kind, kind.methods.names(), kind.methods.columns()))
        columns = stacks.columns()
        # Names of threads have hosts and users: "IPC Client (N) connection to namenode from ann".
        columns["groups"] = [self._hidden("thread", group) for group in columns["groups"]]
        made = _of_stacks(self._run, self._facts.events, columns)
        return {
            **made,
            "events": table_of("events", events),
            "work": table_of("work", work),
            "spreads": table_of("spreads", spreads),
            "methods": _joined("methods", methods),
        }

    def _of_spark(self) -> Mapping[str, Any]:
        try:
            application = saved_application(self._folder.path)
        except SparkError as error:
            self._problems.append(_note(self._facts, error.reason, error.remedy))
            return {}
        if application is None:
            return {}
        from hprofiler.spark.export import stage_rows, task_rows
        from hprofiler.spark.figures import figures

        without = dict.fromkeys(_FREE_TEXTS) if self._pseudonyms else {}
        stages = ({**row, "run": self._run, **without} for row in stage_rows(figures(application)))
        tasks = ({**row, "run": self._run} for row in task_rows(application))
        return {"stages": table_of("stages", list(stages)), "tasks": table_of("tasks", list(tasks))}

    def _of_metrics(self) -> Mapping[str, Any]:
        rows: list[dict[str, Any]] = []
        counted: list[dict[str, Any]] = []
        for host in self._facts.hosts:
            path = self._folder.metrics_path(host.name)
            if not is_file(path):
                continue
            try:
                metrics = HostMetrics(read_metrics(path))
            except RunFolderError as error:
                self._problems.append(_note(self._facts, error.reason, error.remedy, host.name))
                continue
            named = {"run": self._run, "host": self._hidden("host", host.name)}
            for column in metrics.columns():
                mean = metrics.mean(column.values)
                if mean is not None:
                    id_ = self._hidden(column.of, column.id) if column.of in _WITH_NAMES else column.id
                    what = {"of": column.of, "id": id_, "metric": column.name, "unit": column.unit}
                    most = max(one for one in column.values if one is not None)
                    rows.append({**named, **what, "mean": float(mean), "most": float(most)})
            counted += [{**named, **row} for row in _counter_rows(metrics)]
        return {"metrics": table_of("metrics", rows), "counters": table_of("counters", counted)}


def _counter_rows(metrics: HostMetrics) -> Iterable[dict[str, Any]]:
    """Counts and ratios of each process, and of the machine, whose pid is not known."""
    found = metrics.counters()
    if found is None:
        return
    for owner, groups in {**found.processes, MACHINE: found.machine}.items():
        pid = None if owner == MACHINE else int(owner)
        for name, (count, share) in totals(groups).items():
            yield {"pid": pid, "name": name, "value": float(count), "counted": share}
        for name, value in ratios(groups).items():
            yield {"pid": pid, "name": name, "value": value, "counted": None}


class _Event:
    """Reads the profiles of an event one by one."""

    def __init__(
        self,
        folder: RunFolder,
        facts: RunFacts,
        stacks: StackTable,
        number: int,
        processes: Mapping[tuple[str, int], int],
    ) -> None:
        self._facts, self._stacks, self._number, self._processes = facts, stacks, number, processes
        self._reader = Reader(folder, facts, Names(threads=True))
        self._measure = measure_of(facts.event)
        columns = self._measure.columns
        self._time = next((name for name, unit in columns if unit == "nanoseconds"), None)
        self._nanoseconds = 0
        self._whole, self._all_samples, self._sampled = 0, 0, 0.0
        self._samples: dict[str, int] = {}
        self._known: dict[str, bool] = {}
        self._any_unsure = any(one.callers_unsure for one in facts.recordings)
        self._doubtful: Profile | None = None
        self.spread = Spread()
        self.work: list[dict[str, Any]] = []
        self.problems: list[Outcome] = []

    def all(self) -> None:
        for host in self._facts.hosts:
            for recording in host.recordings:
                try:
                    self._add(host, recording, self._reader.read(host, recording))
                except (OSError, ValueError, RuntimeError) as error:
                    self.problems.append(unreadable(host, recording, error))
        self.problems += self._reader.notes

    def _add(self, host: HostRecord, recording: Recording, profile: Profile) -> None:
        event, total = self._facts.event, profile.total()
        if not total:
            return
        process = self._processes[host.name, recording.pid]
        kernel = has_kernel(event)
        if kernel and (recording.callers_unsure or not self._any_unsure):
            stacks = profile.without_times().select(0)
            if self._doubtful is None:
                self._doubtful = stacks
            else:
                self._doubtful.merge(stacks)
        work = self._stacks.add(profile, process=process, event=self._number, kernel=kernel)
        nanoseconds = profile.total(self._time) if self._time else None
        self._nanoseconds += nanoseconds or 0
        if is_work(event):
            for category, phase, value in work:
                seconds = None if nanoseconds is None else nanoseconds / _NANOSECONDS * value / total
                of = {"event": event, "process": process, "category": category, "phase": phase}
                self.work.append({**of, "value": value, "seconds": seconds})
        samples, role = samples_of(profile, recording), role_of(recording)
        self._whole += total
        self._all_samples += samples
        self._sampled += total * total / samples if samples else 0.0
        methods = profile
        if counts_waits(event):
            methods, _ = with_waits_named(event, without_idle(event, profile.without_times()))
        samples = of_part(samples, methods, profile)
        self.spread.add(methods, samples, role, threads=True)
        self._samples[role] = self._samples.get(role, 0) + samples
        self._known[role] = self._known.get(role, True) and samples > 0

    def row(self) -> dict[str, Any]:
        return {
            "event": self._facts.event,
            "unit": self._measure.column[1],
            "per_sample": self._sampled / self._whole if self._whole else 0.0,
            "samples": self._all_samples,
            "total": self._whole,
            "seconds": self._nanoseconds / _NANOSECONDS if self._time else None,
            "callers_unsure": sum(one.callers_unsure for one in self._facts.recordings),
            "totals_unknown": self._totals_unknown(),
        }

    def _totals_unknown(self) -> list[str]:
        """The methods whose totals are not known where stubs may be below wrong callers.

        If all callers are sure here, they are not in other runs, where such a method may not be seen at all.
        """
        if self._doubtful is None:
            return []
        return Callers([self._doubtful], counts_waits(self._facts.event), [self._whole]).unknown

    def of_role(self, role: str) -> dict[str, Any]:
        kind = self.spread.kinds[role]
        return {
            "parts": kind.parts,
            "known": self._known[role],
            "samples": self._samples[role],
            "whole": kind.whole.cost,
            "squared": kind.whole.squared,
            "weighted": kind.whole.weighted,
            "sampled": kind.whole.sampled,
        }


def _not_trusted(one: Untrusted, event: str) -> Outcome:
    """The event's totals would be wrong in every question."""
    reason = f"{100 * one.share:.0f} % of its {event} stacks are broken: the run’s {event} is not archived"
    process = one.pid, one.label
    parameters: Params = {"event": event, "share": one.share}
    line = Outcome(one.host, Status.DEGRADED, "report", reason, one.remedy, *process)
    return replace(line, code=one.code, parameters=parameters)


def _note(facts: RunFacts, reason: str, remedy: str, host: str = "") -> Outcome:
    name = host or (facts.hosts[0].name if facts.hosts else "")
    return Outcome(name, Status.DEGRADED, "report", reason, remedy, code="not-archived")


# Arrow.


def library() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        remedy = "pip install 'hprofiler[archive]'"
        raise UsageError("an archive needs the libraries duckdb and pyarrow", remedy) from error
    return pyarrow


def schema_of(name: str) -> Any:
    arrow = library()
    types: Mapping[str, Callable[[], Any]] = {
        "BIGINT": arrow.int64,
        "INTEGER": arrow.int32,
        "DOUBLE": arrow.float64,
        "VARCHAR": arrow.string,
        "BOOLEAN": arrow.bool_,
        "TIMESTAMP": lambda: arrow.timestamp("us"),
        "VARCHAR[]": lambda: arrow.list_(arrow.string()),
    }
    return arrow.schema([(column, types[type_]()) for column, type_ in TABLES[name].columns.items()])


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """A table of these rows; columns that a row lacks are null, others than the table's are left out."""
    arrow, schema = library(), schema_of(name)
    columns = [arrow.array([row.get(one.name) for row in rows], one.type) for one in schema]
    return arrow.Table.from_arrays(columns, schema=schema)


def _joined(name: str, tables: Sequence[Any]) -> Any:
    arrow = library()
    return arrow.concat_tables([arrow.Table.from_batches([], schema_of(name)), *tables])


def _numbers(type_: Any, content: bytes) -> Any:
    arrow = library()
    size = type_.bit_width // 8
    return arrow.Array.from_buffers(type_, len(content) // size, [None, arrow.py_buffer(content)])


def _same(value: Any, type_: Any, length: int) -> Any:
    return library().repeat(library().scalar(value, type_), length)


def _chosen(texts: Sequence[str], places: Any) -> Any:
    """Texts by their places; null for a place below 0."""
    arrow = library()
    known = arrow.compute.if_else(arrow.compute.less(places, 0), None, places)
    return arrow.array(list(texts), arrow.string()).take(known)


def _of_methods(of_kind: Mapping[str, str], names: Sequence[str], columns: Mapping[str, bytes]) -> Any:
    arrow, schema = library(), schema_of("methods")
    made = []
    for one in schema:
        if one.name in of_kind:
            made.append(_same(of_kind[one.name], one.type, len(names)))
        elif one.name == "method":
            made.append(arrow.array(names, one.type))
        else:
            made.append(_numbers(one.type, columns[one.name]))
    return arrow.Table.from_arrays(made, schema=schema)


def _of_stacks(run: str, events: Sequence[str], columns: Mapping[str, Any]) -> Mapping[str, Any]:
    arrow = library()
    small, large = arrow.int32(), arrow.int64()
    high, low = _numbers(large, columns["stack_high"]), _numbers(large, columns["stack_low"])
    frames = _chosen(columns["names"], _numbers(small, columns["frames"]))
    begins = arrow.Array.from_buffers(
        small, len(high) + 1, [None, arrow.py_buffer(bytes(4) + columns["ends"])]
    )
    stacks = [
        high,
        low,
        arrow.ListArray.from_arrays(begins, frames),
        _chosen(columns["words"], _numbers(small, columns["categories"])),
        _chosen(columns["words"], _numbers(small, columns["phases"])),
        _same(FORM, small, len(high)),
    ]
    places = _numbers(small, columns["stacks"])
    seconds = _numbers(small, columns["seconds"])
    unknown = arrow.compute.equal(seconds, _UNKNOWN_SECOND)
    samples = [
        _same(run, arrow.string(), len(places)),
        _numbers(small, columns["processes"]),
        _chosen(events, _numbers(small, columns["events"])),
        _chosen(columns["groups"], _numbers(small, columns["sample_groups"])),
        _chosen(columns["stages"], _numbers(small, columns["sample_stages"])),
        arrow.compute.if_else(unknown, None, seconds),
        high.take(places),
        low.take(places),
        _numbers(large, columns["values"]),
    ]
    return {
        "stacks": arrow.Table.from_arrays(stacks, schema=schema_of("stacks")),
        "samples": arrow.Table.from_arrays(samples, schema=schema_of("samples")),
    }
