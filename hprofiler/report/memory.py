"""The memory of processes as lines of text, and for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median

from hprofiler.analysis.memory import MemoryFinding, MemoryResult, Scope, tracked
from hprofiler.analysis.words import and_more
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, duration, size
from hprofiler.model.memory import GroupMemory, MeasuredProcess, Memory, Part
from hprofiler.spark.memory import Limits

_FEW = 3
"""So many processes are described one by one; of more, the largest one is."""
_CLASSES_SHOWN = 20
_FILES_SHOWN = 3
_COLUMNS: Mapping[str, tuple[Part, ...]] = {
    "heap": ("heap",),
    "metaspace": ("metaspace",),
    "code": ("code",),
    "stacks": ("stacks",),
    "malloc": ("malloc",),
    "anonymous": ("anonymous",),
    "shared": ("shared",),
    "files": ("libraries", "jars", "files"),
}
_WORDS: Mapping[Part, str] = {
    "heap": "Java heap",
    "metaspace": "metaspace",
    "code": "compiled code",
    "stacks": "stacks",
    "malloc": "small pieces of malloc",
    "anonymous": "anonymous memory (direct buffers, large pieces of malloc, tables of the collector)",
    "shared": "shared memory",
    "libraries": "libraries",
    "jars": "jars",
    "files": "mapped files",
}
_TRACK = (
    "start the JVM with -XX:NativeMemoryTracking=summary to see the JVM's own part, or record -e nativemem"
)
_TEXTS: Mapping[str, tuple[str, str]] = {
    "heap-does-not-fit": (
        "{rest} in use beside {heaps} are {over} more than the limit of {limit}: {killed}{already}",
        "raise the limit (for Spark: spark.executor.memoryOverhead), or lower -Xmx",
    ),
    "limit-near": ("{now} of the limit of {limit} are in use, without what the kernel can take back", ""),
    "oom-kills": ("the kernel has killed {kills} in this control group for memory", ""),
    "off-heap": ("{bytes} off the heap that nothing explains{of_it}", "{track}"),
    "arenas": (
        "{bytes} in small pieces of malloc, with {arenas:,.0f} arenas: if many threads take and free them, "
        "part of it is free memory that stays there",
        "try MALLOC_ARENA_MAX=4 in its environment, or preload jemalloc",
    ),
    "many-threads": ("{threads:,.0f} threads; {bytes} of their stacks are in memory", ""),
    "swapped": ("{bytes} are swapped out", ""),
    "grew": ("grew by {bytes} in {seconds}: {parts}", ""),
    "differs": ("{bytes}, where half of {processes:,.0f} such processes have at most {median}: {parts}", ""),
}
"""Sentence and remedy by code."""
_COUNTS = frozenset({"arenas", "threads", "processes"})


def memory_lines(result: MemoryResult) -> list[str]:
    """Tables, and what is known of the processes; findings are apart."""
    lines = _table(result)
    shown = result.processes
    if len(shown) > _FEW:
        shown = (max(shown, key=lambda one: one.last.resident),)
    for one in shown:
        lines += ["", *_details(one, result)]
    if result.classes:
        lines += ["", *_histogram(result)]
    return lines


def _table(result: MemoryResult) -> list[str]:
    processes = result.processes
    rows = [_amounts(one.last) for one in processes]
    used = [number for number, column in enumerate(zip(*rows, strict=True)) if any(column)]
    heads = ("RESIDENT", *(name.upper() for name in _COLUMNS), "SWAP")
    table = [("HOST", "PID", "LIMIT", *(heads[number] for number in used), "PROCESS")]
    limits = {id(one): scope.limit for scope in result.scopes for one in scope.processes}

    def add(host: str, pid: str, limit: int, amounts: Sequence[float], last: str) -> None:
        table.append((host, pid, _cell(limit), *(_cell(amounts[number]) for number in used), last))

    for one, amounts in zip(processes, rows, strict=True):
        process = one.process
        limit = limits.get(id(one), 0)
        add(printable(process.host), str(process.pid), limit, amounts, printable(process.label))
    if len(rows) > 1:
        columns = list(zip(*rows, strict=True))
        add("all", "", 0, list(map(sum, columns)), counted(len(rows), "processes"))
        add("median", "", 0, list(map(median, columns)), "")
    return table_lines(table, right=range(1, len(table[0]) - 1))


def _amounts(memory: Memory) -> list[int]:
    """The numbers of a row."""
    return [memory.resident, *(memory.of(*parts) for parts in _COLUMNS.values()), memory.swap]


def _cell(value: float) -> str:
    return size(round(value)) if value else "-"


def _details(one: MeasuredProcess, result: MemoryResult) -> Iterator[str]:
    process, memory, jvm = one.process, one.last, one.last.jvm
    yield printable(f"{process.host} pid {process.pid} ({process.label}):")
    if jvm:
        heap = [
            f"{size(value)} {what}"
            for value, what in (
                (jvm.heap_used, "used"),
                (jvm.heap_committed, "committed"),
                (jvm.heap_max, "at most (-Xmx)"),
            )
            if value is not None
        ]
        collector = [name.removeprefix("Use") for name in jvm.flags if name.endswith("GC")]
        yield f"  heap: {', '.join(heap) or 'not known'}{''.join(f'; {name}' for name in collector)}"
        if not jvm.heap_found and "heap" not in memory.parts:
            yield "  the JVM did not say where its heap is: it is counted as anonymous memory"
        direct = jvm.flags.get("MaxDirectMemorySize")
        if direct or jvm.heap_max:
            why = "-XX:MaxDirectMemorySize" if direct else "as the heap, without -XX:MaxDirectMemorySize"
            yield f"  direct buffers: at most {size(direct or jvm.heap_max or 0)} ({why})"
        known = tracked(one)
        if known is not None:
            of_jvm = sorted(jvm.native.items(), key=lambda pair: -pair[1])[:6]
            listed = ", ".join(f"{printable(name)} {size(value)}" for name, value in of_jvm)
            yield f"  tracked by the JVM (committed): {listed}"
    arenas = f", {counted(memory.arenas, 'arenas')} of malloc" if memory.arenas else ""
    yield f"  {counted(memory.threads, 'threads')}, {counted(memory.mappings, 'mappings')}{arenas}"
    files = [f"{printable(file.path)} {size(file.resident)}" for file in memory.files[:_FILES_SHOWN]]
    if files:
        yield f"  largest files: {', '.join(files)}"
    if memory.group:
        yield f"  {_group(memory.group)}"
    limits = result.limits.get((process.host, process.pid))
    if limits:
        yield f"  Spark: {_spark(limits)}"


def _group(group: GroupMemory) -> str:
    used = size(group.used) if group.used is not None else "?"
    limit = f" of {size(group.limit)}" if group.limit is not None else " (no limit)"
    kinds = [
        f"{size(value)} {what}"
        for value, what in ((group.anonymous, "anonymous"), (group.file, "page cache"))
        if value is not None
    ]
    kills = f"; {counted(group.oom_kills, 'processes')} killed for memory" if group.oom_kills else ""
    return printable(f"control group {group.id}: {used}{limit} in use; {', '.join(kinds)}{kills}")


def _spark(limits: Limits) -> str:
    sizes = (
        ("heap", limits.heap),
        ("unified pool in it", limits.unified),
        ("overhead", limits.overhead),
        ("off-heap", limits.off_heap),
        ("Python", limits.python),
        ("container", limits.container),
    )
    return ", ".join(f"{what} {size(value)}" for what, value in sizes if value)


def _histogram(result: MemoryResult) -> Iterator[str]:
    several = sum(bool(one.last.jvm and one.last.jvm.histogram) for one in result.processes) > 1
    heads = ("BYTES", "OBJECTS", *(("MEDIAN", "LARGEST") if several else ()), "CLASS")
    rows = [heads]
    for one in result.classes[:_CLASSES_SHOWN]:
        where = one.largest_process.process
        largest = f"{size(one.largest)} (pid {where.pid})"
        more = (_cell(one.median), largest) if several else ()
        rows.append((size(one.bytes), f"{one.objects:,}", *more, printable(one.name)))
    yield "objects in heaps, with those that are not reachable any more:"
    yield from table_lines(rows, right=range(len(heads) - 1), indent=2)
    yield from and_more(len(result.classes) - _CLASSES_SHOWN, "classes")
    for process in result.processes:
        histogram = process.last.jvm and process.last.jvm.histogram
        if histogram:
            stood = duration(histogram.seconds)
            yield printable(f"{process.process.host} pid {process.process.pid} stood still for {stood}")


def finding_lines(findings: Sequence[MemoryFinding]) -> list[tuple[str, str, str]]:
    """Severity, sentence and remedy. Processes alike are one sentence, by the worst of them."""
    alike: dict[tuple[str, str], list[MemoryFinding]] = {}
    for one in findings:
        alike.setdefault((one.severity, one.code), []).append(one)
    lines = []
    for (_, code), same in alike.items():
        worst = max(same, key=_badness)
        text, remedy = _TEXTS[code]
        words = _words(worst)
        more = f" ({len(same) - 1:,} more alike)" if len(same) > 1 else ""
        lines.append(
            (worst.severity, f"{_where(worst)}: {text.format(**words)}{more}", remedy.format(track=_TRACK))
        )
    return lines


def _badness(one: MemoryFinding) -> float:
    """Among those with the same code."""
    if one.code == "limit-near":
        return one.figures["now"] / one.figures["limit"]
    return next((one.figures[name] for name in ("over", "kills", "bytes") if name in one.figures), 0)


def _where(one: MemoryFinding) -> str:
    if one.pid is None:
        return printable(f"{one.host} {one.scope}")
    return printable(f"{one.host} pid {one.pid}" + (f" ({one.label})" if one.label else ""))


def _words(one: MemoryFinding) -> dict[str, object]:
    figures = one.figures
    words: dict[str, object] = {
        name: value if name in _COUNTS else size(round(value)) for name, value in figures.items()
    }
    words["parts"] = ", ".join(f"{_WORDS[part]} {size(value)}" for part, value in list(one.parts.items())[:3])
    if "seconds" in figures:
        words["seconds"] = duration(figures["seconds"])
    if "kills" in figures:
        words["kills"] = counted(figures["kills"], "processes")
    if one.code == "heap-does-not-fit":
        # What else is in use may be another process's, which was not asked.
        words["heaps"], words["killed"] = (
            (f"its heap and -Xmx {words['heap_max']}", "it will be killed if the heap fills")
            if one.pid is not None
            else (f"the heaps and all -Xmx, {words['heap_max']},", "one will be killed if the heaps fill")
        )
        committed = figures["rest"] + figures["heap_committed"] > figures["limit"]
        words["already"] = (
            f"; {size(figures['heap_committed'])} of it are committed already" if committed else ""
        )
    if one.code == "off-heap":
        if "tracked" in figures:
            words["of_it"] = (
                f": {size(figures['nameless'])}, of which the JVM tracks {size(figures['tracked'])}"
            )
        elif "direct_max" in figures:
            words["of_it"] = (
                f"; it may be direct buffers, of which the JVM allows {size(figures['direct_max'])}"
            )
        else:
            words["of_it"] = ""
    return words


def memory_record(result: MemoryResult) -> dict[str, object]:
    """All of it, for JSON."""
    return {
        "processes": [
            {
                "host": one.process.host,
                "pid": one.process.pid,
                "label": one.process.label,
                "labels": dict(one.process.labels),
                "user": one.process.user,
                "looks": [_look(when, memory) for when, memory in one.looks],
                "spark": _limits(result, one),
            }
            for one in result.processes
        ],
        "scopes": [_scope(scope) for scope in result.scopes],
        "findings": [asdict(one) for one in result.findings],
        "classes": [
            {
                "name": one.name,
                "objects": one.objects,
                "bytes": one.bytes,
                "median": one.median,
                "largest": one.largest,
                "largest_host": one.largest_process.process.host,
                "largest_pid": one.largest_process.process.pid,
            }
            for one in result.classes
        ],
    }


def _look(when: float, memory: Memory) -> dict[str, object]:
    return {"time": when, "resident": memory.resident, "swap": memory.swap, **asdict(memory)}


def _limits(result: MemoryResult, one: MeasuredProcess) -> dict[str, int] | None:
    limits = result.limits.get((one.process.host, one.process.pid))
    return asdict(limits) if limits else None


def _scope(scope: Scope) -> dict[str, object]:
    return {
        "host": scope.host,
        "name": scope.name,
        "limit": scope.limit,
        "now": scope.now,
        "heap_max": scope.heap_max,
        "heap_committed": scope.heap_committed,
        "rest": scope.rest,
        "most": scope.most,
        "pids": [one.process.pid for one in scope.processes],
    }
