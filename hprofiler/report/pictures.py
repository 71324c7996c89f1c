"""A profile as files: the flame graph, folded text and pprof, side by side under one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Attribution
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.result import LEAST_UNSURE, totals_of
from hprofiler.analysis.words import percent
from hprofiler.model import Recording
from hprofiler.model.measures import Measure, in_words, measure_of

KINDS = (".svg", ".folded", ".pb.gz")


def write_pictures(
    profile: Profile, measure: Measure, folder: Path, name: str, title: str, subtitle: str
) -> None:
    """Write `folder/name.svg`, `.folded` and `.pb.gz`; each appears whole or not at all.

    The flame graph and the folded text show the first value of the profile; pprof has all, in the
    measure's order, and a thread group as a label.
    """
    count_name, factor = _unit(measure)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"{name}.svg"
    profile.write(picture, title=title, subtitle=subtitle, count_name=count_name, factor=factor)
    profile.write(folder / f"{name}.folded", value=0)
    all_values = profile.select([column for column, _ in measure.columns])
    all_values.write(folder / f"{name}.pb.gz", thread_label=True)


def remove_pictures(folder: Path, name: str) -> None:
    """Remove what an earlier report wrote under this name."""
    for kind in KINDS:
        (folder / f"{name}{kind}").unlink(missing_ok=True)


def _unit(measure: Measure) -> tuple[str, float]:
    """What the flame graph's counts are called, and what they are multiplied by."""
    words = measure.words[measure.shown]
    if measure.column[1] == "nanoseconds":
        return f"ms {words}", 1e-6
    return (f"KiB {words}", 1 / 1024) if measure.column[1] == "bytes" else (words, 1.0)


def run_title(facts: RunFacts) -> str:
    """What was asked for; the name of a process that was asked for by its pid."""
    names = {one.label for one in facts.recordings}
    if facts.record.selector.startswith("pid:") and len(names) == 1 and all(names):
        return names.pop()
    return facts.record.selector or facts.target or "all processes"


def picture_title(facts: RunFacts, scope: str) -> str:
    return f"{run_title(facts)} · {scope} · {measure_of(facts.event).title}"


def subtitle(
    facts: RunFacts,
    attribution: Attribution,
    sampled: str,
    trimmed: str,
    recordings: Sequence[Recording],
) -> str:
    """ "39,123 samples, 2.2 min of CPU time, 300 Hz for 60 s · hottest: Foo.bar 12.3 %", and whether callers
    may be wrong. `recordings` are what the picture is of."""
    hottest = attribution.methods[0]
    share = percent(hottest.self_value, attribution.attributed)
    amounts = f"{in_words(facts.event, totals_of(attribution.original))}, {sampled}"
    named = f"hottest{attribution.besides}: {hottest.short[:80]} {share}"
    return " · ".join(filter(None, [amounts, trimmed, named, _doubt(attribution, recordings)]))


def _doubt(attribution: Attribution, recordings: Sequence[Recording]) -> str:
    if attribution.self_only:
        return "too many stacks are broken for totals"
    original = attribution.original
    unsure = original.unsure_callers() if any(one.callers_unsure for one in recordings) else 0
    return "callers of stubs may be wrong" if unsure and unsure >= LEAST_UNSURE * original.total() else ""


def left_out(facts: RunFacts, left: int, whole: int) -> str:
    """ "only 12.4-13.1 s, trimmed to the job's own frames, 12.3 % left out"; "" where nothing is left out."""
    words = [f"only {facts.time}"] if facts.time else []
    words += ["live objects were cut"] if facts.live_cut else []
    if facts.trimmed:
        words += ["trimmed to the job's own frames", f"{percent(whole - left, whole)} left out"]
    return ", ".join(words)
