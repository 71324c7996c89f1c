"""Steps that `hprofiler convert` applies to each input before merging, which saves memory."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hprofiler._flamegraph import OptionError, Profile, WorkTable
from hprofiler.analysis.work import has_kernel_in, user_rules
from hprofiler.base.errors import UsageError
from hprofiler.selectors.rule_file import check_regex

REGEX = "the syntax is that of Rust's regex crate: no look-around, no back-references; \\ escapes a character"

# Frames named in an error.
_NAMED = 5


class Step(NamedTuple):
    """One operation on an input, and the reason if it leaves no stack; `trims`: it is that of --trim."""

    apply: Callable[[Profile], Profile]
    nothing: str = ""
    trims: bool = False


class Findings(NamedTuple):
    """Of an input: why no samples are left, and what it had; `untrimmed`: --trim matched no frame."""

    emptied: str = ""
    there_was: str = ""
    untrimmed: bool = False


def check_patterns(options: argparse.Namespace) -> None:
    """Refuses bad regular expressions before anything is read."""
    given = {name: getattr(options, name) or [] for name in ("include", "exclude", "focus")}
    given["trim"] = [] if options.trim is None else [options.trim]
    for option, patterns in given.items():
        for pattern in patterns:
            if not pattern:
                raise UsageError(f"--{option}: an empty expression matches every frame", "leave it out")
            try:
                check_regex(pattern)
            except ValueError as error:
                raise UsageError(f"--{option} {pattern}: not a regular expression: {error}", REGEX) from error


def steps_of(options: argparse.Namespace) -> list[Step]:
    """The requested steps, in order."""
    steps: list[Step] = []
    if options.value is not None:
        nothing = f"it has no samples for --value {options.value}"
        steps.append(Step(lambda profile: profile.select(options.value), nothing))
    if options.threads:
        steps.append(Step(_by_threads))
    if options.canonical:
        steps.append(Step(lambda profile: profile.canonical()))
    if options.include:
        nothing = f"no stack matches {_given('--include', options.include)}"
        steps.append(Step(lambda profile: profile.filter(include=options.include), nothing))
    if options.exclude:
        nothing = f"every stack matches {_given('--exclude', options.exclude)}"
        steps.append(Step(lambda profile: profile.filter(exclude=options.exclude), nothing))
    steps += [_focus(pattern) for pattern in options.focus or ()]
    if options.trim:
        steps.append(Step(lambda profile: profile.trim(options.trim), trims=True))
    if options.by:
        steps.append(Step(_by_category))
    return steps


def _by_category(profile: Profile) -> Profile:
    return WorkTable(user_rules()).by_category(profile, kernel=has_kernel_in(profile.values[0][0]))


def _by_threads(profile: Profile) -> Profile:
    """The stacks by thread group; most readers have grouped them already."""
    try:
        return profile.threads()
    except OptionError:
        # An outermost frame in brackets is a group; without one, threads are unknown.
        if profile.thread_count():
            return profile
        raise


def _focus(pattern: str) -> Step:
    nothing = f"no stack matches {_given('--focus', [pattern])}"
    return Step(lambda profile: profile.focus(pattern), nothing)


def _given(option: str, patterns: Sequence[str]) -> str:
    return " ".join(f"{option} {shlex.quote(pattern)}" for pattern in patterns)


def reduced(profile: Profile, steps: Sequence[Step], trim: str | None) -> tuple[Profile, Findings]:
    """Apply the steps to an input; `trim` is the pattern of --trim."""
    untrimmed = bool(trim)
    for step in steps:
        left = step.apply(profile)
        if is_empty(left) and not is_empty(profile):
            return left, Findings(step.nothing, _there_was(profile, left), untrimmed)
        if trim and step.trims:
            untrimmed = is_empty(profile.filter(include=trim))
        profile = left
    return profile, Findings(untrimmed=untrimmed)


def is_empty(profile: Profile) -> bool:
    """Whether no value has a sample."""
    return not any(profile.total(index) for index in range(len(profile.values)))


def _there_was(profile: Profile, left: Profile) -> str:
    """What the input had: its values, or its hottest frames."""
    totals = {name: profile.total(index) for index, (name, _) in enumerate(profile.values)}
    if len(left.values) < len(totals):
        return "it has " + ", ".join(f"{name} {total}" for name, total in totals.items() if total)
    value = next(name for name, total in totals.items() if total)
    names = [method.name for method in profile.top(_NAMED, value) if method.self_value]
    return f"it had {value} {totals[value]}, most of it in {', '.join(names)}"
