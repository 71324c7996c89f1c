"""From the stored profiles of an event to pictures of hosts and cluster, one host in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import attrgetter

from hprofiler._flamegraph import MeanMerger, Profile
from hprofiler.model import Outcome
from hprofiler.model.measures import in_words, measure_of, summed
from hprofiler.report.comparison import Compared
from hprofiler.report.covered import host_covered, host_sampled, recorded_for, run_covered, sampled
from hprofiler.report.description import Covered, HostNumbers, PageData, PageEvent, PageProcess
from hprofiler.report.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.report.findings import Evidence, Finding, findings
from hprofiler.report.pictures import remove_pictures, write_pictures
from hprofiler.report.reading import HostProfile, Names, Reader
from hprofiler.report.telling import Telling, telling
from hprofiler.report.words import percent, short_name
from hprofiler.runfolder import RunFolder, safe_name

# How many of a host's methods are remembered to tell where a method of the cluster is hot.
_REMEMBERED = 200
_EVERYTHING = 2**31 - 1


@dataclass(frozen=True)
class Shares:
    """What is kept of a host once its pictures are written: its total, and what its hottest methods cost.

    `number` is the host's in the page; `whole` is the total before trimming; `telling` is that of which the
    methods are parts: the `hottest` by themselves, and the `widest` with all they call.
    """

    key: str
    number: int
    name: str
    total: int
    whole: int
    telling: int
    hottest: dict[str, int]
    widest: dict[str, int]

    def share(self, method: str) -> float:
        """The method's own part of what tells; 0 for a method that is not among the remembered."""
        return self.hottest.get(method, 0) / self.telling

    @property
    def forgot(self) -> float:
        """What no method that is not among the remembered has more of; 0 where all are."""
        least = min(self.hottest.values()) if len(self.hottest) >= _REMEMBERED else 0
        return least / self.telling

    def share_of(self, told: Finding) -> float | None:
        """What the finding's method takes here, as it is told; None where that is not known."""
        known = self.widest if told.with_calls else self.hottest
        value = known.get(told.method or "", None if len(known) >= _REMEMBERED else 0)
        return None if value is None else value / self.telling


@dataclass
class Gathered:
    """The run's profiles of an event put together; the first value of each is the one that is shown.

    `told` is the cluster's profile without what its stacks end in. `cluster`, `mean` and `told` are None when
    there is not one sample. `whole` is all hosts' total before trimming.
    """

    cluster: Profile | None = None
    mean: Profile | None = None
    told: Telling | None = None
    hosts: list[Shares] = field(default_factory=list)
    problems: list[Outcome] = field(default_factory=list)
    compared: Compared = field(default_factory=Compared)
    findings: list[Finding] = field(default_factory=list)
    whole: int = 0


def gather(folder: RunFolder, facts: RunFacts, page: PageData, event: int, names: Names) -> Gathered:
    """Write all pictures of the event; the page gets its processes' profiles, as `event` of its own.

    Pictures of an earlier report that nothing is left for are removed.
    """
    evidence = Evidence(facts)
    short: dict[PageProcess, str] = {}

    def take(host: HostFacts, recording: RecordingFacts, profile: Profile) -> None:
        evidence.add(host, recording, profile)
        if profile.total():
            process = _page_process(page, host, recording)
            page.add(event, process, profile)
            if told := recorded_for(facts, recording):
                short[process] = told

    reader = Reader(folder, facts, names, take)
    gathered = Gathered(problems=reader.problems)
    merger = MeanMerger()
    for host in facts.hosts:
        read = reader.read_host(host)
        gathered.whole += read.whole if read else 0
        if read is None or read.profile.total() == 0:
            remove_pictures(folder.host_dir(host.key), safe_name(facts.event))
            continue
        gathered.hosts.append(_write_host(folder, facts, host, read, gathered, page))
        merger.add(read.profile)
        gathered.cluster = _merged(gathered.cluster, read.profile)
    if gathered.cluster is not None:
        gathered.mean = merger.finish()
    gathered.compared = reader.comparison.finish()
    if gathered.cluster is not None:
        gathered.told = telling(facts, gathered.cluster)
        gathered.findings = findings(
            facts, gathered.cluster, gathered.told, gathered.compared, evidence, gathered.problems
        )
    page.tell(event, _numbers(facts, page, gathered), gathered.findings)
    page.cover(event, _covered(facts, page, gathered.problems, short))
    _write_cluster(folder, facts, gathered)
    return gathered


def page_event(facts: RunFacts) -> PageEvent:
    """What the page says of the event itself; a sample of CPU time is told in seconds, too."""
    measure, name = measure_of(facts.event), facts.event
    recordings = [one for host in facts.hosts for one in host.recordings]
    seconds = max((one.seconds for one in recordings), default=0.0) or facts.duration
    totals = summed(one.totals for one in recordings)
    second = None
    if name == "cpu" and totals.get("samples"):
        column, unit = measure.columns[1]
        second = (column, unit, totals.get(column, 0) / totals["samples"])
    return PageEvent(name, measure.title, *measure.column, measure.wider, seconds, second)


def _page_process(page: PageData, host: HostFacts, recording: RecordingFacts) -> PageProcess:
    labels = tuple(recording.labels.items())
    return PageProcess(page.host(host.key, host.name), recording.pid, recording.label, labels)


def _numbers(facts: RunFacts, page: PageData, gathered: Gathered) -> list[HostNumbers]:
    """Every host with a recording that the page knows."""
    told = []
    for host in facts.hosts:
        number = page.number_of_host(host.key)
        if number is not None and host.recordings:
            samples = [one.samples for one in host.recordings]
            expected, taken = sum(one.expected for one in samples), sum(one.taken for one in samples)
            unlike = gathered.compared.by_host.get(host.key)
            told.append(HostNumbers(number, expected, taken, unlike))
    return told


def _covered(
    facts: RunFacts, page: PageData, problems: Sequence[Outcome], short: dict[PageProcess, str]
) -> Covered:
    hosts: dict[int, str] = {}
    for host in facts.hosts:
        number = page.number_of_host(host.key)
        if number is not None and host.recordings:
            hosts[number] = f"{host_covered(facts, host, problems)} · {host_sampled(facts, host)}"
    return Covered([f"{run_covered(facts, len(problems))} · {sampled(facts)}"], hosts, short)


def run_title(facts: RunFacts) -> str:
    return facts.selector or facts.target or "all processes"


def picture_title(facts: RunFacts, scope: str) -> str:
    return f"{run_title(facts)} · {scope} · {measure_of(facts.event).title}"


def totals_of(profile: Profile) -> dict[str, int]:
    """The sums of a profile by value name."""
    return {name: profile.total(name) for name, _ in profile.values}


def _merged(into: Profile | None, profile: Profile) -> Profile:
    if into is None:
        return profile
    into.merge(profile)
    return into


def _write_host(
    folder: RunFolder,
    facts: RunFacts,
    host: HostFacts,
    read: HostProfile,
    gathered: Gathered,
    page: PageData,
) -> Shares:
    profile = read.profile
    named = telling(facts, profile)
    recorded, how = host_covered(facts, host, gathered.problems), host_sampled(facts, host)
    write_pictures(
        profile,
        measure_of(facts.event),
        folder.host_dir(host.key),
        safe_name(facts.event),
        picture_title(facts, host.name),
        f"{recorded} · {_subtitle(facts, profile, named, how, left_out(facts, profile.total(), read.whole))}",
    )
    methods = named.profile.top(_EVERYTHING)
    hottest = {method.name: method.self_value for method in methods[:_REMEMBERED] if method.self_value > 0}
    methods = nlargest(_REMEMBERED, methods, key=attrgetter("total_value"))
    widest = {method.name: method.total_value for method in methods}
    number = page.host(host.key, host.name)
    return Shares(
        host.key, number, host.name, profile.total(), read.whole, named.profile.total(), hottest, widest
    )


def _write_cluster(folder: RunFolder, facts: RunFacts, gathered: Gathered) -> None:
    told = run_covered(facts, len(gathered.problems))
    name = safe_name(facts.event)
    mean = telling(facts, gathered.mean) if gathered.mean else None
    scopes: list[tuple[Profile | None, Telling | None, str, str]] = [
        (gathered.cluster, gathered.told, name, "cluster, every sample counts once"),
        (gathered.mean, mean, f"{name}-mean", "cluster average, every host weighs the same"),
    ]
    cluster = gathered.cluster
    trimmed = left_out(facts, cluster.total(), gathered.whole) if cluster else ""
    for profile, named, file_name, scope in scopes:
        if profile is None or named is None:
            remove_pictures(folder.cluster_dir, file_name)
            continue
        title = picture_title(facts, scope)
        subtitle = f"{told} · {_subtitle(facts, profile, named, sampled(facts), trimmed)}"
        write_pictures(profile, measure_of(facts.event), folder.cluster_dir, file_name, title, subtitle)


def left_out(facts: RunFacts, left: int, whole: int) -> str:
    """ "trimmed to the job's own frames, 12.3 % left out"; "" where nothing was trimmed."""
    if not facts.trimmed:
        return ""
    return f"trimmed to the job's own frames, {percent(whole - left, whole)} left out"


def _subtitle(facts: RunFacts, profile: Profile, named: Telling, how: str, trimmed: str) -> str:
    hottest = named.profile.top(1)[0]
    share = percent(hottest.self_value, named.profile.total())
    told = [f"{in_words(facts.event, totals_of(profile))}, {how}", trimmed]
    name = short_name(hottest.name)[:80]
    return " · ".join([*filter(None, told), f"hottest{named.besides}: {name} {share}"])
