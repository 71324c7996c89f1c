"""Reports: every picture and the page, made from a run folder alone, so that they can be made again later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Attribution, attribute
from hprofiler.analysis.coverage import clock_in_words, host_coverage, host_sampled, sampled
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.profiles import Names
from hprofiler.analysis.result import (
    AnalysisResult,
    EventAnalysis,
    HostAnalysis,
    ProfileSink,
    analyze,
    open_facts,
)
from hprofiler.analysis.stages import stage_labels
from hprofiler.analysis.time_part import facts_of_range
from hprofiler.base.errors import PicturesError, RunFolderError
from hprofiler.base.time_range import TimeRange
from hprofiler.model import HostRecord, Outcome, Recording
from hprofiler.model.measures import measure_of
from hprofiler.report.file_page import write_page
from hprofiler.report.lanes import pause_lanes
from hprofiler.report.machines_view import machines_view
from hprofiler.report.page import PageCallers, PageData
from hprofiler.report.pictures import (
    left_out,
    picture_title,
    remove_pictures,
    run_title,
    subtitle,
    write_pictures,
)
from hprofiler.report.sections import event_of_page, event_summary, run_record, with_left_out
from hprofiler.report.spark.job import curves_record, job_record, recorded
from hprofiler.report.stages import spark_lanes
from hprofiler.runfolder import RunFolder, safe_name

__all__ = ["Report", "make_report", "write_page"]


@dataclass(frozen=True)
class Report:
    """What was made: the page, and what it says."""

    page: Path
    analysis: AnalysisResult

    @property
    def events(self) -> tuple[EventAnalysis, ...]:
        return self.analysis.events

    @property
    def coverage(self) -> str:
        """Such as "37 of 40 processes on 9 of 10 hosts"."""
        return self.analysis.coverage

    @property
    def empty(self) -> bool:
        """There was not one sample of any event; the page says why."""
        return self.analysis.empty


def make_report(
    folder: Path,
    raw_names: bool = False,
    threads: bool = False,
    trim: bool = False,
    time: TimeRange | None = None,
    slices: bool = True,
) -> Report:
    """Make all pictures of a run folder, and its page; for `raw_names` and `threads` see `profiles.Names`.

    With `trim`, stacks start at the roots that the run's selector names; with `time` only samples of that
    range are shown; with `slices` they are divided by the stages of a Spark application, if those are known.
    Raises RunFolderError if it is not a run folder or cannot be written, PicturesError if profiles are too
    large for pictures, UsageError if it is not known when samples were taken.
    """
    run_folder, facts = open_facts(folder, trim, slices)
    if time is not None:
        facts = facts_of_range(run_folder, facts, time)
    names = Names(raw_names, threads)
    try:
        writer = _Writer(run_folder, facts, names)
        analysis = analyze(run_folder, facts, names, writer)
        writer.data.run = run_record(analysis)
        writer.add_times(facts)
        writer.data.machines = machines_view(run_folder, facts, analysis.machines, writer.data)
        if facts.job is not None:
            by_event = {one.event: one.stages for one in analysis.events}
            writer.data.job = job_record(facts.job, recorded(facts, by_event))
        writer.data.write(run_folder.page_path)
    except OSError as error:
        reason = f"cannot write the report in {folder}: {error.strerror or error}"
        raise RunFolderError(reason, "free some space there, or copy the run folder elsewhere") from error
    except RuntimeError as error:
        raise PicturesError(
            f"cannot make the report of {folder}: {error}",
            f"the profiles of processes are in {folder / 'hosts'}: `hprofiler convert` reads them",
        ) from error
    return Report(run_folder.page_path, analysis)


class _Writer(ProfileSink):
    """Writes the pictures of hosts and cluster as they are read, and fills the page's data.

    Pictures of an earlier report are removed if there is no data for new ones.
    """

    def __init__(self, folder: RunFolder, facts: RunFacts, names: Names) -> None:
        self._folder = folder
        self._events: dict[str, int] = {}
        self._processes: dict[tuple[str, int], int] = {}
        self.data = PageData(run_title(facts), thread_frames=names.threads, trimmed=facts.trimmed)
        for host in facts.hosts:
            if any(any(one.totals.values()) for one in host.recordings):
                self.data.host(host.name)

    def take_process(self, facts: RunFacts, host: HostRecord, recording: Recording, profile: Profile) -> None:
        process = self.data.process(host, recording)
        self._processes[host.name, recording.pid] = self.data.number_of_process(process)
        self.data.add(self._event(facts), process, profile, facts.start)

    def add_times(self, facts: RunFacts) -> None:
        """What else is known by time, once all processes are there."""
        if not self.data.seconds or facts.start is None:
            return
        ends = [
            (one.times.start - facts.start) / 1e6 + min(one.seconds, facts.duration)
            for one in facts.recordings
            if one.times
        ]
        if facts.time is None:  # also where nothing ran in the end
            self.data.show_until(max(ends))
        lanes = pause_lanes(facts, self._processes, self.data.seconds)
        if facts.spark is not None:
            lanes += spark_lanes(facts.spark, facts.start, self.data.seconds)
            if facts.job is not None:
                job = facts.job.application
                self.data.curves = curves_record(job, facts.spark, facts.start, self.data.seconds)
            self.data.slice_labels = stage_labels(facts.spark)
        self.data.lanes = lanes
        self.data.clock = clock_in_words(facts.hosts)

    def take_host(
        self,
        facts: RunFacts,
        host: HostRecord,
        analysis: HostAnalysis | None,
        attribution: Attribution | None,
        problems: Sequence[Outcome],
    ) -> None:
        folder, name = self._folder.host_dir(host.name), safe_name(facts.event)
        if analysis is None or attribution is None:
            remove_pictures(folder, name)
            return
        trimmed = left_out(facts, analysis.total, analysis.whole)
        words = subtitle(facts, attribution, host_sampled(facts, host), trimmed, host.recordings)
        words = f"{host_coverage(facts, host, problems)} · {words}"
        title = picture_title(facts, host.name)
        write_pictures(attribution.original, measure_of(facts.event), folder, name, title, words)

    def take_cluster(
        self, analysis: EventAnalysis, cluster: Attribution | None, mean: Profile | None
    ) -> None:
        facts, name = analysis.facts, safe_name(analysis.event)
        trimmed = left_out(facts, analysis.total, analysis.whole)
        for attribution, file_name, scope in (
            (cluster, name, "cluster, every sample counts once"),
            (
                attribute(facts, mean) if mean else None,
                f"{name}-mean",
                "cluster average, every host weighs the same",
            ),
        ):
            folder = self._folder.cluster_dir
            if attribution is None:
                remove_pictures(folder, file_name)
                continue
            words = subtitle(facts, attribution, sampled(facts), trimmed, facts.recordings)
            words = f"{analysis.coverage.interrupted} · {words}"
            title = picture_title(facts, scope)
            write_pictures(attribution.original, measure_of(facts.event), folder, file_name, title, words)
        number = self._event(facts)
        if cluster is not None:
            self.data.change_event(number, with_left_out(event_of_page(facts), cluster))
        self.data.summaries[number] = event_summary(self.data, analysis)
        if unsure := analysis.unsure_callers:
            self.data.callers[number] = PageCallers(unsure.code, unsure.methods)
        self.data.coverage[number] = {
            "runs": [f"{analysis.coverage.interrupted} · {sampled(facts)}"],
            "hosts": {
                known: f"{host_coverage(facts, host, analysis.problems)} · {host_sampled(facts, host)}"
                for host in facts.hosts
                if host.recordings and (known := self.data.number_of_host(host.name)) is not None
            },
            "short": {
                self.data.number_of_process(self.data.process(host, recording)): part
                for host in facts.hosts
                for recording in host.recordings
                if (part := analysis.short.get((host.name, recording.pid)))
            },
        }

    def _event(self, facts: RunFacts) -> int:
        if facts.event not in self._events:
            self._events[facts.event] = self.data.event(event_of_page(facts))
        return self._events[facts.event]
