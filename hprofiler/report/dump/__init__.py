"""The report of a dump: text, JSON and a page, made from its folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hprofiler.analysis.dump import DumpAnalysis, analyse
from hprofiler.base.errors import PicturesError
from hprofiler.report.dump.page import write_dump_page
from hprofiler.report.dump.parts import parts_of, stacks_of
from hprofiler.report.dump.record import record_of
from hprofiler.report.dump.words import counts, findings
from hprofiler.runfolder.dumps import DumpFolder

__all__ = ["DumpReport", "make_dump_report"]


@dataclass(frozen=True)
class DumpReport:
    """What was made: the page, and what it says."""

    page: Path
    analysis: DumpAnalysis

    @property
    def text(self) -> str:
        """The headline, other findings, and tables, as a terminal shows them."""
        found = self.analysis
        headline, *others = (one.text for one in findings(found))
        head = [headline, *(f"  {one}" for one in others), "; ".join(counts(found))]
        shown = [part.text for part in parts_of(found) if any(block.lines() for block in part.blocks)]
        parts = ["\n".join(head), *shown, "\n".join(stacks_of(found))]
        return "\n\n".join(filter(None, parts))

    @property
    def record(self) -> Mapping[str, object]:
        """The same for JSON."""
        return record_of(self.analysis)

    @property
    def empty(self) -> bool:
        """No process answered, and of none the kernel says something."""
        return not (self.analysis.dumped or self.analysis.silent)

    @property
    def whole(self) -> bool:
        return self.analysis.whole


def make_dump_report(path: Path) -> DumpReport:
    """Read the texts of a dump folder and write its page. Raises RunFolderError and PicturesError."""
    folder = DumpFolder.open(path)
    found = analyse(folder)
    try:
        write_dump_page(folder, found)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PicturesError(
            f"cannot write {folder.page_path}: {reason}", "free some space; the texts are kept"
        ) from error
    return DumpReport(folder.page_path, found)
