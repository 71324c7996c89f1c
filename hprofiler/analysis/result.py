"""From a run folder to everything that its report says, one host in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

from hprofiler._flamegraph import MeanMerger, Profile
from hprofiler.analysis.attribution import Attribution, Method, attribute, counts_waits, without_idle
from hprofiler.analysis.coverage import CoverageText, coverage, recorded_for
from hprofiler.analysis.facts import RunFacts, read_facts
from hprofiler.analysis.faults import Faults
from hprofiler.analysis.findings import OWN_WORK, chosen, findings, in_sentence
from hprofiler.analysis.kept import kept_objects
from hprofiler.analysis.machines import Machines, read_machines
from hprofiler.analysis.outliers import Compared
from hprofiler.analysis.profiles import HostProfile, Names, Reader
from hprofiler.analysis.python import python_not_recorded
from hprofiler.analysis.seen import Seen, seen
from hprofiler.analysis.spark.findings import judge
from hprofiler.analysis.spark.words import sentence
from hprofiler.analysis.stages import StageShares, StageSums, stage_finding
from hprofiler.analysis.subject import Finding, says
from hprofiler.analysis.sure_callers import Callers
from hprofiler.analysis.trust import DEBUG_FLAGS, UnsureCallers
from hprofiler.analysis.words import moment, percent
from hprofiler.analysis.work import EventWork, WorkSums
from hprofiler.base.errors import UsageError
from hprofiler.model import HostRecord, Outcome, Recording, Status
from hprofiler.model.measures import measure_of, size
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.parts import settle_run
from hprofiler.spark.facts import SparkError, SparkFacts
from hprofiler.spark.facts import read_facts as read_spark_facts
from hprofiler.spark.replay.schedule import Replay
from hprofiler.spark.saved import saved_application

CUT_OFF = "run-cut-off"

# How many of a host's methods are remembered to say where a method of the cluster is hot.
_REMEMBERED = 200
_HOTTEST = 5
_STANDS_OUT = 1.5
# Fewer stacks with unsure callers are not worth a sentence.
LEAST_UNSURE = 0.01
_NO_MACHINES = Machines()
_NOTHING_SEEN = Seen()
# The part of what is not collected that is much less than it.
_MUCH_LESS = 0.8
# Events whose samples are explained by what the machine was doing.
_OF_TIME = ("cpu", "wall", "offcpu")


@dataclass(frozen=True)
class HostAnalysis:
    """A host with samples: its total, and what its hottest methods cost.

    `whole` is the total before trimming; `attributed` is that of which the methods are parts: the `hottest`
    by themselves, and the `widest` with all they call. Only so many methods of a host are remembered.
    """

    name: str
    total: int
    whole: int
    attributed: int
    hottest: dict[str, int]
    widest: dict[str, int]

    def share(self, method: str) -> float:
        """The method's own part of what is attributed; 0 for a method that is not remembered."""
        return self.hottest.get(method, 0) / self.attributed

    @property
    def forgot(self) -> float:
        """No method beyond the remembered ones has a larger share; 0 if all are remembered."""
        least = min(self.hottest.values()) if len(self.hottest) >= _REMEMBERED else 0
        return least / self.attributed

    def share_of(self, finding: Finding) -> float | None:
        """What the finding's method takes here, by the finding's measure; None where that is not known."""
        known = self.widest if finding.with_calls else self.hottest
        value = known.get(finding.listed or "", None if len(known) >= _REMEMBERED else 0)
        return None if value is None else value / self.attributed


@dataclass(frozen=True)
class EventAnalysis:
    """What a report says of one event, which `recorded` processes yielded.

    `facts` are of this event. `notes` are stored times that cannot be used. `totals` are the cluster's sums
    by value name, empty without one sample. `total` is the sum of the value that is shown
    (`measures.Measure`), `whole` what it was before trimming.
    `methods` are parts of `attributed`, hottest by self first. Where stacks end in classes these are among
    them, and have all of the self cost. `besides` says what was left out of that.
    `findings` has the answer first, and `second` is the line below it. `short` says for how much of the time
    processes were recorded that were not for all of it. `busy` is what each process has without idle threads,
    by host and pid, and `names` say how names were read. With `self_only` too many stacks are broken for
    totals: those of `methods` mean nothing.
    """

    facts: RunFacts
    coverage: CoverageText
    compared: Compared
    problems: tuple[Outcome, ...] = ()
    notes: tuple[Outcome, ...] = ()
    hosts: tuple[HostAnalysis, ...] = ()
    total: int = 0
    whole: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    methods: tuple[Method, ...] = ()
    attributed: int = 0
    share_of: str = ""
    besides: str = ""
    findings: tuple[Finding, ...] = ()
    second: str = ""
    short: Mapping[tuple[str, int], str] = field(default_factory=dict)
    busy: Mapping[tuple[str, int], int] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    stages: StageShares | None = None
    work: EventWork = field(default_factory=EventWork)
    self_only: bool = False
    unsure_callers: UnsureCallers | None = None
    seen: Seen = field(default_factory=Seen)

    @property
    def event(self) -> str:
        return self.facts.event

    @property
    def recorded(self) -> int:
        return self.coverage.counts.processes.recorded

    @property
    def hottest(self) -> tuple[Method, ...]:
        """The methods that the terminal and scripts are given."""
        return tuple(method for method in self.methods[:_HOTTEST] if method.self_value)

    @property
    def left_out(self) -> float:
        """The part of the whole that trimming left out."""
        return (self.whole - self.total) / self.whole if self.whole else 0.0


@dataclass(frozen=True)
class AnalysisResult:
    """What a report says of a run; `events` are in the order of `RunFacts.in_order`.

    `coverage` is of the run: a process counts where one of its profiles can be used. `problems` are the
    stored profiles that cannot be used.
    """

    facts: RunFacts
    coverage: str
    events: tuple[EventAnalysis, ...]
    machines: Machines = field(default_factory=Machines)
    seen: Seen = field(default_factory=Seen)

    @property
    def problems(self) -> tuple[Outcome, ...]:
        return tuple(problem for event in self.events for problem in event.problems)

    @property
    def notes(self) -> tuple[Outcome, ...]:
        of_events = (note for event in self.events for note in event.notes)
        return (*self.facts.notes, *self.machines.notes, *of_events)

    @property
    def trusted(self) -> bool:
        """No process has more broken stacks than `trust.MOST_BROKEN`."""
        return not any(event.facts.untrusted for event in self.events)

    @property
    def faults(self) -> tuple[Outcome, ...]:
        """Parts of the report that are missing because of a bug."""
        return tuple(note for note in self.notes if note.code == Faults.code)

    @property
    def whole(self) -> bool:
        """Nothing of what was recorded is missing, and all of it can be trusted."""
        cut = any(event.facts.live_cut for event in self.events)
        whole = self.trusted and not self.problems and not self.faults and not cut
        return whole and not self.facts.unfinished

    @property
    def cut_off(self) -> bool:
        """The run ended before anything of it was written."""
        return not self.facts.hosts

    @property
    def empty(self) -> bool:
        """There was not one sample of any event; the page says why."""
        return not any(event.total for event in self.events)


class ProfileSink:
    """Takes the profiles of an event while they are in memory; the value that is shown comes first.

    This one takes nothing: for an analysis that is made for its figures.
    """

    def take_process(self, facts: RunFacts, host: HostRecord, recording: Recording, profile: Profile) -> None:
        """A process with samples, with groups of threads as outermost frames `[group]`."""

    def take_host(
        self,
        facts: RunFacts,
        host: HostRecord,
        analysis: HostAnalysis | None,
        attribution: Attribution | None,
        problems: Sequence[Outcome],
    ) -> None:
        """A host; None for one without samples. `problems` are those so far."""

    def take_cluster(
        self, analysis: EventAnalysis, cluster: Attribution | None, mean: Profile | None
    ) -> None:
        """All hosts together, at the end of an event; None for an event without samples."""


def open_facts(folder: Path, trim: bool, slices: bool = False) -> tuple[RunFolder, RunFacts]:
    """The facts of a run; with `slices` those of its Spark application too, if they are there.

    Raises RunFolderError when it is not a run folder.
    """
    run_folder = RunFolder.open(folder)
    settle_run(run_folder)
    facts = replace(read_facts(run_folder.record), trimmed=trim, slices=slices)
    if facts.unfinished:
        facts = replace(facts, notes=(_cut_off(facts),))
    if slices:
        host = facts.hosts[0].name if facts.hosts else ""
        faults = Faults()
        try:
            with faults.within("what Spark did in each stage"):
                facts = replace(facts, spark=read_spark_facts(run_folder.path))
            with faults.within("the analysis of the Spark application"):
                application = saved_application(run_folder.path)
                replay = Replay(application) if application else None
                job = judge(application, replay) if application and replay else None
                facts = replace(facts, job=job, replay=replay)
        except SparkError as error:
            note = Outcome(host, Status.DEGRADED, "report", error.reason, error.remedy, code=error.code)
            facts = replace(facts, notes=(*facts.notes, note))
        facts = replace(facts, notes=(*facts.notes, *faults.outcomes))
    if facts.spark and "driver" in facts.spark.tasks and (facts.spark.driver_pid or facts.drivers):
        facts = replace(facts, notes=(*facts.notes, *_about_drivers(facts, facts.spark)))
    return run_folder, facts


def _cut_off(facts: RunFacts) -> Outcome:
    after = f"after {moment(facts.finished, seconds=True)}" if facts.finished else "in its last seconds"
    reason = f"the run was cut off, as where hprofiler is killed: what was sampled {after} is missing"
    return Outcome(facts.hosts[0].name, Status.DEGRADED, "record", reason, "record again", code=CUT_OFF)


def _about_drivers(facts: RunFacts, spark: SparkFacts) -> Iterator[Outcome]:
    """Whether it is known which process ran the tasks of an application in local mode."""
    if len(facts.drivers) == 1:
        return
    if spark.driver_pid:
        reason, remedy = (
            f"is process {spark.driver_pid}, which was not recorded",
            f"-j pid:{spark.driver_pid}",
        )
    else:
        reason, remedy = f"may be any of {len(facts.drivers)} processes", "record it alone: -j pid:N"
    yield Outcome(
        facts.hosts[0].name,
        Status.DEGRADED,
        "report",
        f"samples are not divided by Spark stage: the driver of {spark.application}, which runs its tasks, "
        f"{reason}",
        remedy,
        code="spark-unknown",
    )


def analyze(folder: RunFolder, facts: RunFacts, names: Names, sink: ProfileSink) -> AnalysisResult:
    """Everything that a report says of a run. Events with samples are read first."""
    # What hosts did is known of the whole run.
    machines = Machines()
    faults = Faults()
    with faults.within("what hosts did"):
        machines = read_machines(folder, facts) if facts.time is None else machines
    saw = Seen()
    with faults.within("what part of the job was recorded"):
        saw = seen(facts)
    machines = replace(machines, notes=(*machines.notes, *faults.outcomes))
    by_name = {
        event: analyze_event(folder, facts.of(event), names, sink, machines, saw)
        for event in sorted(
            facts.in_order,
            key=lambda event: not any(any(one.totals.values()) for one in facts.of(event).recordings),
        )
    }
    events = tuple(by_name[event] for event in facts.in_order)
    broken = Counter((one.host, one.pid) for event in events for one in event.problems)
    made = Counter((host.name, one.pid) for host in facts.hosts for one in host.recordings)
    lost = sum(1 for process, number in made.items() if broken[process] >= number)
    return AnalysisResult(facts, coverage(facts, lost).text, events, machines, saw)


def analyze_event(
    folder: RunFolder,
    facts: RunFacts,
    names: Names,
    sink: ProfileSink,
    machines: Machines = _NO_MACHINES,
    saw: Seen = _NOTHING_SEEN,
) -> EventAnalysis:
    stages, work = StageSums(facts), WorkSums(facts.event)
    short: dict[tuple[str, int], str] = {}
    unsure_of: list[int] = []
    unsure_stacks: Profile | None = None
    busy: dict[tuple[str, int], int] = {}

    def take(host: HostRecord, recording: Recording, profile: Profile) -> None:
        nonlocal unsure_stacks
        if (host.name, recording.pid) not in facts.untrusted:
            work.add(host.name, recording.pid, profile)
        stages.add(host, recording, profile)
        if recording.callers_unsure:
            unsure_of.append(profile.unsure_callers())
            stacks = profile.without_times().select(0)
            if unsure_stacks is None:
                unsure_stacks = stacks
            else:
                unsure_stacks.merge(stacks)
        if profile.total():
            busy[host.name, recording.pid] = without_idle(facts.event, profile.without_times()).total()
            sink.take_process(facts, host, recording, profile)
            if part := recorded_for(facts, recording):
                short[host.name, recording.pid] = part

    reader = Reader(folder, facts, names, take)
    merger = MeanMerger()
    cluster: Profile | None = None
    hosts: list[HostAnalysis] = []
    whole = 0
    for host in facts.hosts:
        read = reader.read_host(host)
        whole += read.whole if read else 0
        if read is None or read.profile.total() == 0:
            sink.take_host(facts, host, None, None, reader.problems)
            continue
        attribution = attribute(facts, read.profile)
        hosts.append(_host_analysis(host, read, attribution))
        sink.take_host(facts, host, hosts[-1], attribution, reader.problems)
        merger.add(read.profile)
        if cluster is None:
            cluster = read.profile
        else:
            cluster.merge(read.profile)
    problems, compared = tuple(reader.problems), reader.comparison.finish()
    callers = None
    if cluster is not None and unsure_stacks is not None:
        callers = Callers([unsure_stacks], counts_waits(facts.event), [cluster.total()])
    of_cluster = attribute(facts, cluster, callers) if cluster is not None else None
    analysis = EventAnalysis(
        facts,
        coverage(facts, len(problems)),
        compared,
        problems,
        tuple(reader.notes),
        whole=whole,
        short=short,
        busy=busy,
        names=names,
        stages=stages.shares(),
        seen=saw,
        work=EventWork() if of_cluster and of_cluster.self_only else work.finish(),
    )
    unsure = UnsureCallers(
        len(unsure_of),
        sum(unsure_of) / cluster.total() if cluster else 0.0,
        tuple(callers.code) if callers else (),
        tuple(callers.unknown) if callers else (),
    )
    faults = Faults()
    if cluster is not None and of_cluster is not None:
        found = findings(
            facts, cluster, of_cluster, compared, analysis.work, analysis.coverage, problems, faults
        )
        of_job = facts.job.findings if facts.job else ()
        more = [says("spark", sentence(of_job))] if of_job else []
        of_stage = stage_finding(facts.spark, analysis.stages, measure_of(facts.event).share_of)
        if of_stage and not any(one.code == "stage-share" for one in of_job):
            more.append(of_stage)
        more += kept_objects(folder, facts, cluster, machines) + _garbage(facts, cluster, machines)
        more[:0] = python_not_recorded(facts, machines.python)
        if machines.findings and facts.event in _OF_TIME:
            first = machines.findings[0]
            more.append(says(first.code, first.text, host=first.host))
        if unsure.share >= LEAST_UNSURE:
            more.append(_about_unsure_callers(unsure, of_cluster))
        answers = 2 if found[0].code in OWN_WORK else 1
        found = chosen([*found[:answers], *more, *found[answers:]])
        analysis = replace(
            analysis,
            notes=(*analysis.notes, *faults.outcomes),
            hosts=tuple(hosts),
            total=cluster.total(),
            totals=totals_of(cluster),
            methods=of_cluster.methods,
            attributed=of_cluster.attributed,
            share_of=of_cluster.share_of,
            besides=of_cluster.besides,
            self_only=of_cluster.self_only,
            unsure_callers=unsure if unsure.processes else None,
            findings=tuple(found),
            second=_second_line(of_cluster, found[0], hosts, compared),
        )
    sink.take_cluster(analysis, of_cluster, merger.finish() if cluster is not None else None)
    return analysis


def _garbage(facts: RunFacts, cluster: Profile, machines: Machines) -> list[Finding]:
    """That less is in use outside eden than is not collected, so that much of this is garbage or new."""
    jvms = {
        (host.name, one.pid) for host in facts.hosts for one in host.recordings if any(one.totals.values())
    }
    collected = {(host.name, one.pid) for host in facts.hosts for one in host.pauses if one.end}
    if facts.event != "live" or not jvms <= collected & machines.heaps.keys():
        return []
    used, kept = sum(machines.heaps[one] for one in jvms), cluster.total()
    if used > _MUCH_LESS * kept:
        return []
    heap = "The heap" if len(jvms) == 1 else "The heaps"
    text = f"{heap} without eden had {size(round(used))} in use at the end, less than these {size(kept)}"
    return [says("live-heap", f"{text}: the rest is garbage, or was allocated since the last collection.")]


def _about_unsure_callers(unsure: UnsureCallers, attribution: Attribution) -> Finding:
    share = f"{percent(unsure.share, 1)} of all {measure_of(attribution.event).wider}"
    what = f"{share} is in stubs, intrinsics and page faults"
    where = "1 process, which was" if unsure.processes == 1 else f"{unsure.processes} processes, which were"
    text = f"{what}: who calls them may be wrong in {where} compiled before the profiler was loaded."
    remedy = f"Start with {DEBUG_FLAGS}."
    return says("callers-unsure", f"{text} {remedy}", caveat=True)


def _host_analysis(host: HostRecord, read: HostProfile, attribution: Attribution) -> HostAnalysis:
    methods = attribution.methods
    widest = nlargest(_REMEMBERED, methods, key=attrgetter("total_value"))
    return HostAnalysis(
        name=host.name,
        total=read.profile.total(),
        whole=read.whole,
        attributed=attribution.attributed,
        hottest={one.name: one.self_value for one in methods[:_REMEMBERED] if one.self_value > 0},
        widest={one.name: one.total_value for one in widest},
    )


def totals_of(profile: Profile) -> dict[str, int]:
    """The sums of a profile by value name."""
    return {name: profile.total(name) for name, _ in profile.values}


@dataclass(frozen=True)
class Outliers:
    """The comparison of each event's hosts and processes, and what could not be read for it."""

    events: tuple[tuple[str, Compared], ...]
    problems: tuple[Outcome, ...]


def find_outliers(folder: Path, event: str | None, trim: bool) -> Outliers:
    """The comparison of each event of a run folder, or of this one, from what is stored there.

    Raises RunFolderError when it is not a run folder, UsageError for an event that was not recorded.
    """
    run_folder, facts = open_facts(folder, trim)
    if event is not None and event not in facts.events:
        raise UsageError(f"{folder} has no event {event!r}; it has {', '.join(facts.events)}")
    compared: list[tuple[str, Compared]] = []
    problems: list[Outcome] = []
    for name in facts.events if event is None else (event,):
        reader = Reader(run_folder, facts.of(name), Names())
        for host in facts.of(name).hosts:
            reader.read_host(host)
        compared.append((name, reader.comparison.finish()))
        problems += reader.problems
    return Outliers(tuple(compared), tuple(problems))


def _second_line(
    attribution: Attribution, answer: Finding, hosts: Sequence[HostAnalysis], compared: Compared
) -> str:
    """Where the answer's method is, by the answer's measure; of one host, the methods that follow it."""
    odd = compared.odd_hosts[0].most_different if compared.odd_hosts else None
    # What is said of the odd host says how the answer's method spreads over the hosts.
    same_matter = odd is not None and odd.name == answer.listed and not answer.with_calls
    method = next((one for one in attribution.methods if one.name == answer.listed), None)
    of_unknown = answer.with_calls and method is not None and not method.known
    if not answer.has_share or same_matter or of_unknown:
        return ""
    if len(hosts) < 2:
        return methods_that_follow(attribution, answer)
    shares = {host.name: host.share_of(answer) for host in hosts}
    known = {name: share for name, share in shares.items() if share is not None}
    if len(known) < len(shares):
        return ""
    cost = 0 if method is None else method.total_value if answer.with_calls else method.self_value
    return over_hosts(cost / attribution.attributed, known)


def methods_that_follow(attribution: Attribution, answer: Finding) -> str:
    """The methods after the answer's by their own cost; "" where the answer has another measure.

    A sleep that takes more than the answer is named first.
    """
    methods = attribution.methods
    at = next((at for at, one in enumerate(methods) if one.name == answer.listed), None)
    if (
        answer.with_calls
        or at is None
        or not all(one.is_sleep for one in methods[:at])
        or not answer.has_share
    ):
        return ""
    shares = (
        (one, one.self_value / attribution.attributed)
        for one in (*methods[:1][:at], *methods[at + 1 : at + 3])
    )
    named = [f"{in_sentence(one)} ({percent(share, 1)})" for one, share in shares if share >= 0.01]
    more = f"More is spent {named.pop(0)}. " if at else ""
    return f"{more}Then {' and '.join(named)}." if named else more.strip()


def over_hosts(cluster_share: float, shares: Mapping[str, float]) -> str:
    """One sentence on how a method's share spreads over two or more hosts.

    `cluster_share` and `shares` are fractions of all samples of the cluster and of each host.
    """
    ordered: list[tuple[float, str]] = sorted((share, host) for host, share in shares.items())
    (least, coolest), (most, hottest) = ordered[0], ordered[-1]
    if stands_out(most, cluster_share):
        usual, where = ordered[len(ordered) // 2] if len(ordered) > 2 else ordered[0]
        if len(ordered) > 2:
            where = "the median host"
        return (
            f"Most on {hottest}, where it takes {percent(most, 1)}, against {percent(usual, 1)} on {where}."
        )
    if least >= most / 2:
        return f"About the same on all {len(shares)} hosts: {percent(least, 1)} to {percent(most, 1)}."
    return f"Between {percent(least, 1)} on {coolest} and {percent(most, 1)} on {hottest}."


def stands_out(share: float, cluster_share: float) -> bool:
    """Whether a host's share of a method is far above the cluster's."""
    return share >= _STANDS_OUT * cluster_share


def reasons_without_samples(
    hosts: Iterable[HostRecord], problems: Sequence[Outcome]
) -> dict[tuple[str, str], list[str]]:
    """Each reason and remedy once, with the hosts it holds for."""
    places: dict[tuple[str, str], list[str]] = {}
    for outcome in (*problems, *(outcome for host in hosts for outcome in host.outcomes)):
        if outcome.status.value != "ok" and outcome.reason:
            places.setdefault((outcome.reason, outcome.remedy), []).append(outcome.host)
    return places
