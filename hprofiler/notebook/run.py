"""A recorded run in Python: its page in a notebook, its tables as pandas frames."""

from __future__ import annotations

import os
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from hprofiler._flamegraph import Profile
from hprofiler.analysis.profiles import Names
from hprofiler.analysis.result import AnalysisResult, ProfileSink, analyze, open_facts
from hprofiler.base.errors import HprofilerError, ProfileError, UsageError
from hprofiler.base.paths import at_home
from hprofiler.notebook import tables
from hprofiler.notebook.display import explained
from hprofiler.runfolder import RunFolder, RunRecord, safe_name
from hprofiler.spark.facts import SparkFacts, read_facts

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_INLINE = 8 << 20
"""Longest page that is shown inside a notebook, which keeps it in its file."""
_HEIGHT = 720
# Without `allow-same-origin` the page, which shows names from hosts, cannot reach the notebook.
_SANDBOX = "allow-scripts allow-downloads allow-popups"


class Run:
    """A run folder. `Run.open` opens one; `hprofiler.record` makes one.

    As the value of a notebook's cell it shows its page. The tables are made when they are first asked for;
    they need pandas.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    @classmethod
    @explained()
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder. Raises RunFolderError if there is none."""
        run = cls()
        run.take(RunFolder.open(at_home(os.fspath(folder))).path)
        return run

    def take(self, folder: Path, analysis: AnalysisResult | None = None) -> None:
        """From now on it is the run in this folder."""
        self._folder = folder
        if analysis is not None:
            self._analysis = analysis

    @property
    @explained()
    def folder(self) -> Path:
        if self._folder is None:
            raise HprofilerError("the recording has not ended", "use the run after the `with` block")
        return self._folder

    @property
    def page(self) -> Path:
        """The page, report.html."""
        return RunFolder(self.folder).page_path

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""
        return self._record.interrupted

    @explained()
    def profile(self, event: str = "cpu") -> Profile:
        """The stacks of an event, of all processes together. Raises ProfileError if there are none."""
        path = RunFolder(self.folder).cluster_dir / f"{safe_name(event)}.pb.gz"
        if not path.is_file():
            events = ", ".join(self._record.sampling.events)
            raise ProfileError(f"{self.folder} has no samples of {event}; its events are {events}")
        return Profile.read(path)

    @property
    def findings(self) -> list[tables.RunFinding]:
        """What stands out in each event, the answer first. Needs no pandas."""
        return tables.findings(self._analysis)

    # Tables

    @property
    def processes(self) -> DataFrame:
        """Each process and event: samples, seconds, the total of what was measured, outcome."""
        return tables.frame(tables.PROCESSES, tables.processes(self._record))

    @property
    def methods(self) -> DataFrame:
        """Each method of each event: its own cost (self), and with the methods it calls (total)."""
        return tables.frame(tables.METHODS, tables.methods(self._analysis))

    @property
    def stages(self) -> DataFrame:
        """Each attempt of a stage that ran during the recording, and its samples of each event."""
        return tables.frame(tables.STAGES, tables.stages(self._spark, self._analysis))

    @property
    def tasks(self) -> DataFrame:
        """Each task that ran during the recording. Times are on the driver's clock."""
        return tables.frame(tables.TASKS, tables.tasks(self._spark))

    @property
    def jobs(self) -> DataFrame:
        """Each Spark job that ran during the recording."""
        return tables.frame(tables.JOBS, tables.jobs(self._spark))

    @property
    def outcomes(self) -> DataFrame:
        """What happened to each host and process; `docs/reference/outcomes.md` lists the codes."""
        return tables.frame(tables.OUTCOMES, tables.outcomes(self._record))

    @cached_property
    def _record(self) -> RunRecord:
        return RunFolder(self.folder).record

    @cached_property
    def _spark(self) -> SparkFacts:
        return read_facts(self.folder) or SparkFacts()

    @cached_property
    def _analysis(self) -> AnalysisResult:
        folder, facts = open_facts(self.folder, trim=False, slices=True)
        return analyze(folder, facts, Names(), ProfileSink())

    # In a notebook

    @explained()
    def __enter__(self) -> Run:
        raise UsageError("this recording has ended", "record a `with` block without seconds=")

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return "hprofiler run, not recorded yet" if self._folder is None else f"hprofiler run: {self.page}"

    def _repr_html_(self) -> str | None:
        if self._folder is None:
            return None
        try:
            size = self.page.stat().st_size
            if size <= MOST_INLINE:
                content = escape(self.page.read_text(encoding="utf-8", errors="replace"))
                style = f"width:100%;height:{_HEIGHT}px;border:0"
                return (
                    f'<iframe srcdoc="{content}" sandbox="{_SANDBOX}" style="{style}"></iframe>{self._link()}'
                )
        except OSError as error:
            return f"<p>hprofiler: {escape(str(self.page))} cannot be read: {escape(str(error.strerror))}</p>"
        why = f"The page has {size / (1 << 20):.0f} MiB, too much to show in a notebook."
        serve = f"<code>hprofiler report {escape(str(self.folder))} --serve</code>"
        return f"<p>{why} Open it in a browser, or run {serve}.</p>{self._link()}"

    def _link(self) -> str:
        """A link for notebooks in the folder above the run's; they show paths below their own folder."""
        path = os.path.relpath(self.page)
        if path.startswith(".."):
            return f"<p><code>{escape(str(self.page))}</code></p>"
        return f'<p><a href="{quote(path)}" target="_blank">{escape(path)}</a></p>'
