"""The page of a dump: a flame graph by number of threads, the tables, and each process' own text."""

from __future__ import annotations

from urllib.parse import quote

from hprofiler.analysis.dump import DumpAnalysis, ThreadOf
from hprofiler.base.text import printable
from hprofiler.report.blocks import Block, Lines, Links, Part
from hprofiler.report.dump.parts import methods_of, parts_of
from hprofiler.report.dump.words import Said, counts, findings
from hprofiler.report.page import PageData, PageEvent, PageProcess
from hprofiler.report.sections import chip, reason_record, summary
from hprofiler.runfolder.dumps import DumpFolder

_EVENT = PageEvent("threads", "threads", "threads", "count", "threads")


def write_dump_page(folder: DumpFolder, found: DumpAnalysis) -> None:
    """Write it into the folder. Raises OSError."""
    record = folder.record
    title = printable(record.target.name or "dump")
    data = PageData(title, (title,))
    said = findings(found)
    event = data.event(_EVENT)
    for process, groups in found.counts:
        data.add(event, _process(data, process), found.stacks.profile(groups))
    partial = not found.whole
    chips = [chip(text, partial and at == 0) for at, text in enumerate(counts(found))]
    empty = None if found.threads else _empty(found, said[0])
    data.summaries[event] = summary([_finding(one) for one in said], chips, empty=empty)
    parts = [*parts_of(found), *_texts(folder), *_outcomes(found)]
    data.job = {
        "name": "Threads",
        "methods": methods_of(found),
        "headline": [],  # it stands above all views
        "findings": [printable(one.text) for one in said[1:]],
        "sections": [part.record() for part in parts],
    }
    data.write(folder.page_path)


def _process(data: PageData, process: ThreadOf) -> PageProcess:
    return PageProcess(data.host(process.host), process.pid, process.label)


def _finding(one: Said) -> dict[str, object]:
    parts = [("text", printable(one.before))]
    if one.method:
        parts.append(("method", printable(one.method)))
    return {"method": one.method, "parts": [*parts, ("text", printable(one.after))]}


def _empty(found: DumpAnalysis, said: Said) -> dict[str, object]:
    reasons = [
        reason_record([one.host], printable(one.reason), printable(one.remedy)) for one in found.outcomes
    ]
    reasons += [reason_record([where], printable(reason)) for where, reason in found.unreadable]
    return {"answer": said.text, "why": "", "reasons": reasons, "remedy": ""}


def _texts(folder: DumpFolder) -> list[Part]:
    """Links to the text of each process, as its JVM printed it."""
    links = []
    for host in folder.record.hosts:
        for dump in host.dumps:
            path = folder.text_path(host.name, dump).relative_to(folder.path)
            name = f"{host.name}: {dump.label or dump.kind} (pid {dump.pid}), look {dump.look}"
            links.append((printable(name), quote(str(path))))
    blocks: list[Block] = [Links(links)]
    return [Part("texts", blocks, about="What each process printed, at each look.")] if links else []


def _outcomes(found: DumpAnalysis) -> list[Part]:
    lines = [
        f"{one.where}: {one.reason}" + (f"; {one.remedy}" if one.remedy else "") for one in found.outcomes
    ]
    lines += [f"{where}: {reason}" for where, reason in found.unreadable]
    blocks: list[Block] = [Lines([printable(line) for line in lines], list=True)]
    return [Part("outcomes", blocks)] if lines else []
