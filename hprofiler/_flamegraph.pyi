"""Types of the Rust binding (`flamegraph/binding`); `hprofiler.Profile` is its `Profile`.

A profile is a call tree with one or more values. Values are integers of 64 bits, never negative; what they
count and in which unit is in `Profile.values`. Where a function takes a value, it is its index or its name.

Errors of readers, writers and operations are ValueError with a reason (for a file: its name and the place
in it), and an OptionError where what was asked for is wrong: a value or a format that there is not, a pattern
that is none; a number out of bounds is a ValueError. Errors of the core have the attribute `code`:
"foreign" (the file is something else, which the message names), "unknown-format", "merge-overflow",
"unlike-values", "usage" or "other". A
file that cannot be written is an OSError. Regular expressions are those of Rust's `regex`: no look-around,
no back-references, linear time. The interpreter is let go in every long call, and profiles may be shared
between threads.

    from hprofiler import Profile

    cluster = Profile.open(["n1.pb.gz", "n2.jfr"], mean=True)
    for method in cluster.canonical().trim("^java/lang/Thread.run").top(5):
        print(method.name, method.self_value / cluster.total())
    cluster.write("cluster.svg")
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import (
    Any,
    BinaryIO,
    Literal,
    TypedDict,
    final,
)

from typing_extensions import Unpack

__all__ = [
    "BROKEN_STACKS",
    "DOING",
    "DOING_KINDS",
    "READ_FORMATS",
    "WRITE_FORMATS",
    "Change",
    "Diff",
    "Difference",
    "Distance",
    "DumpedThread",
    "FlameChart",
    "MeanMerger",
    "Method",
    "MethodSums",
    "Node",
    "OptionError",
    "Outliers",
    "Profile",
    "Stack",
    "StackTable",
    "SureCallers",
    "ThreadDumps",
    "ThreadGroup",
    "ViewerData",
    "WorkTable",
    "category_label",
    "category_patterns",
    "frame_category",
]

READ_FORMATS: tuple[str, ...]
"""What `format` may be for readers."""
BROKEN_STACKS: str
"""The frame above stacks that lost their callers, as `Profile.without_callers` makes them."""
DOING: tuple[tuple[str, str, str, str], ...]
"""What threads do: a code, its kind, "sleeps in", "sleeping in"; the first is that of threads that run."""
DOING_KINDS: tuple[tuple[str, str], ...]
"""Their kinds, and what these are called."""
WRITE_FORMATS: dict[str, str]
"""What `format` may be for `write`, and how the names of such files usually end: {"svg": ".svg", ...}."""

class OptionError(ValueError):
    """What was asked for makes no sense, or is not in this profile; the message says what there is."""

_Path = str | os.PathLike[str]
# An int is the number of a file that is open: it is read from where it stands, and stays open.
_Source = _Path | int
_Value = int | str

class _Look(TypedDict, total=False):
    """How a picture is to look; names and meanings are flamegraph.pl's. None is as if it was not given."""

    subtitle: str | None
    width: int | None  # of the picture, in pixels: 1200
    height: int | None  # of a frame, in pixels: 16
    min_width: float | str | None  # narrower frames are left out: pixels, or "0.5%" of the whole: 0.1
    font_type: str | None
    font_size: float | None
    font_width: float | None  # of a letter, as part of its size
    count_name: str | None  # what the counts are called: the name of the value
    name_type: str | None  # what stands before the details of a frame
    colors: str | None  # one of flamegraph.pl's palettes instead of ours: hot, mem, io, java ...
    bgcolors: str | None  # yellow, blue, green, grey or #rrggbb
    hash: bool | None  # shades by the first letters of the name
    reverse: bool | None  # stacks turned round: merged from the leaves
    inverted: bool | None  # the root on top
    negate: bool | None  # in a difference: blue is more
    width_from: str | None  # in a difference: "before" or "after"
    factor: float | None  # what the counts shown are multiplied by

class _Picture(_Look, total=False):
    title: str | None

@final
class FlameChart:
    """Folded text with its stacks in the order of its lines, of which only neighbours are merged."""

    @staticmethod
    def open(path: _Source, format: str | None = None, *, reverse: bool = False) -> FlameChart:
        """Read folded text with one count a line, compressed or not; with `reverse` every stack turned round.

        Other formats are merged when they are read, have no order left, and are an OptionError.
        """
    @property
    def malformed_lines(self) -> int:
        """Lines that were counted and left out."""
    def total(self) -> int:
        """The sum of all counts."""
    def write(self, target: _Path | BinaryIO, **options: Unpack[_Picture]) -> None:
        """Draw it as SVG, the last line leftmost; without `reverse`. `target` is as for `Profile.write`."""

@final
class Method:
    """A row of `Profile.top`: one method with all its tiers; or of `Profile.frames`, with one tier."""

    @property
    def name(self) -> str:
        """Without annotation."""
    @property
    def kind(self) -> str:
        """The tier: plain, interpreted, c1, jit, inlined, kernel or waker.

        Of several, the one with the most self value.
        """
    @property
    def self_value(self) -> int:
        """The value of the stacks that end in it."""
    @property
    def total_value(self) -> int:
        """The value of the stacks it is in; a stack counts once however often it is in it."""

@final
class Stack:
    """A row of `Profile.paths`: one stack."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Root first, annotated (`run_[j]`) unless asked otherwise; empty for values of the root itself."""
    @property
    def values(self) -> tuple[int, ...]:
        """One for each of `Profile.values`."""

@final
class Node:
    """A row of `Profile.nodes`: one node of the call tree."""

    @property
    def parent(self) -> int:
        """The parent's place in the list; the root, at place 0, is its own."""
    @property
    def depth(self) -> int:
        """0 for the root."""
    @property
    def name(self) -> str:
        """Without annotation; empty for the root."""
    @property
    def kind(self) -> str: ...
    @property
    def self_value(self) -> int: ...
    @property
    def total_value(self) -> int:
        """Its own value and that of all nodes below."""
    @property
    def tiers(self) -> dict[str, int]:
        """What each tier has of the total: several have some after `merged_tiers`."""

@final
class Change:
    """What became of a path, or of a method wherever it is."""

    @property
    def path(self) -> tuple[str, ...]:
        """Names from the root to the frame; for a method its name alone."""
    @property
    def name(self) -> str:
        """The last name of the path."""
    @property
    def self_before(self) -> int: ...
    @property
    def self_after(self) -> int: ...
    @property
    def total_before(self) -> int: ...
    @property
    def total_after(self) -> int: ...

@final
class Diff:
    """The difference of two profiles: one tree with a value before and a value after at every node.

    Tiers are merged. When it is normalised, values before are scaled so that both totals are the total
    after: a delta is then a change of share. They are integers all the same, and add up exactly.
    """

    @property
    def normalized(self) -> bool: ...
    @property
    def before_total(self) -> int:
        """As it was measured, before scaling."""
    @property
    def after_total(self) -> int: ...
    @property
    def profile(self) -> Profile:
        """The tree as a profile with the values `before` and `after`."""
    def changes(self, limit: int = 20) -> list[Change]:
        """The methods whose self value changed most, up or down; those that did not change are left out."""
    def appeared(self, limit: int = 20) -> list[Change]:
        """Paths that are only in the profile after, largest first; of a new subtree its outermost frame."""
    def vanished(self, limit: int = 20) -> list[Change]:
        """Paths that are only in the profile before, largest first; of a lost subtree its outermost frame."""
    def to_folded(self, annotate: bool = True) -> bytes:
        """Differential folded text: `stack before after`."""
    def to_svg(self, **options: Unpack[_Picture]) -> bytes:
        """The differential flame graph: `Profile.to_svg` of the profile with both values."""
    def write(
        self,
        target: _Path | BinaryIO,
        format: str | None = None,
        *,
        title: str | None = None,
        **options: Unpack[_Look],
    ) -> None:
        """Write a file as `Profile.write` does; formats with room for one value get the values after."""

@final
class Times:
    """When a profile's samples were taken: how many each stack has in each bucket of time."""

    @property
    def start(self) -> int:
        """When the first bucket begins, in microseconds since 1970."""
    @property
    def end(self) -> int:
        """When the last bucket that has samples ends."""
    @property
    def width(self) -> int:
        """The length of a bucket, in microseconds."""
    @property
    def slices(self) -> list[tuple[str, bool]]:
        """(name, certain) of each slice, such as a stage; slice 1 is the first."""
    @property
    def has_amounts(self) -> bool:
        """Whether samples differ in what they stand for, in the profile's last value."""
    @property
    def has_bands(self) -> bool:
        """Whether it is known how long each sample lasted."""
    @property
    def samples(self) -> int: ...
    @property
    def slice_samples(self) -> list[int]:
        """How many samples there are of no slice, then of each."""
    @property
    def rows(self) -> int:
        """Combinations of a stack, a bucket, a slice and a band that have samples."""

@final
class Profile:
    """Stacks and what they cost. Operations return another profile; only `merge` changes one.

    Labels (host, pid ...) hold for the whole profile, and survive operations.
    """

    @property
    def values(self) -> list[tuple[str, str]]:
        """(type, unit) of each value, e.g. [("samples", "count"), ("cpu", "nanoseconds")]."""
    @property
    def labels(self) -> dict[str, str]: ...
    @property
    def skips_stubs(self) -> bool:
        """Whether the CPU samples are those of a JDK up to 24, which leave out array copies and other stubs.

        Shares of all else are too large.
        """
    @property
    def incomplete(self) -> bool:
        """Whether a part of the file was left out, or it may be no profile at all; `warnings` say which."""
    @property
    def alloc_share_error(self) -> int:
        """By how many percentage points shares of allocated bytes may be off; 0 where that is not known.

        Only recordings of the JDK have it, if it dropped most of its allocation samples.
        """
    @property
    def unknown(self) -> dict[str, Any] | None:
        """What of a perf.data file could not be named; None for others, and after any operation but merge.

        Counts, of all events together: `samples`, `leaf_samples` (those whose leaf is unknown), `frames`,
        `unknown_frames` (a frame counts in every sample it is in), `modules` (unknown frames by module;
        "[unknown]" is where nothing was mapped), `copied_stacks` (samples whose user stack was copied,
        `--call-graph dwarf`, and is not walked).
        """
    @property
    def malformed_lines(self) -> int:
        """Lines of text that were counted and left out."""
    @property
    def warnings(self) -> list[str]:
        """What could not be read of the input, and why; the first few of many."""
    @property
    def times(self) -> Times | None:
        """When its samples were taken; None if that is not known, as of a merged profile."""
    @staticmethod
    def read(path: _Source, format: str | None = None) -> Profile:
        """Open one file; see `open`."""
    @staticmethod
    def open(
        paths: _Source | Sequence[_Source],
        format: str | None = None,
        *,
        mean: bool = False,
        threads: bool | Literal["groups"] = False,
        estimate: bool = False,
        off_cpu: bool = False,
        time: tuple[float, float] | None = None,
        times: bool = False,
        cells: int = 1 << 25,
        rows: int = 1 << 22,
        bytes: int = 1 << 28,
        pid: bool = False,
        tid: bool = False,
        kernel: bool = False,
        jit: bool = False,
        addrs: bool = False,
        event_filter: str | None = None,
    ) -> Profile:
        """Open a file, or several and merge them one by one: by sum, or with `mean` as `MeanMerger` does.

        The format and the compression are detected by content unless `format` names one; an unknown name is
        an error that lists the known ones. `threads` puts a frame `[name tid=N]` at the root of each stack,
        where the format knows threads, or with "groups" one that threads of like names share, `[name N]`
        (pprof: from the samples' label `thread`). `estimate`, `off_cpu` and `time` are for JFR recordings:
        sampled allocations and locks count as all those they stand for; wall-clock samples that do not run
        are the values offcpu_samples and offcpu too, below a frame that says what they wait for; only the
        samples from one second to another, counted from the start. `times` keeps when samples were taken, of
        a JFR recording of one event. `cells` is how many nodes times values are accepted, `rows` how many of
        `times`, `bytes` how many of a pprof message or a compact profile after decompression, and of the
        names in the latter. The others are stackcollapse-perf.pl's, for perf.data and `perf script` text:
        `pid` and `tid` in the root frame, `kernel` and `jit` annotations, `addrs` for frames without a
        symbol, samples of one event only (an OptionError where there is no such event). An option that is not
        for the file's format is an OptionError, too. Events of one file are values of one profile. Folded
        text with two counts on every line has the values "before" and "after".
        """
    @staticmethod
    def from_bytes(
        data: bytes,
        format: str | None = None,
        *,
        threads: bool | Literal["groups"] = False,
        estimate: bool = False,
        off_cpu: bool = False,
        time: tuple[float, float] | None = None,
        times: bool = False,
        pid: bool = False,
        tid: bool = False,
        kernel: bool = False,
        jit: bool = False,
        addrs: bool = False,
        event_filter: str | None = None,
    ) -> Profile:
        """The same for the content of one file."""
    @staticmethod
    def merged(profiles: Iterable[Profile], *, mean: bool = False) -> Profile:
        """The sum of profiles with the same values, or their host-fair mean (see `MeanMerger`).

        They are taken one by one: a generator never has more than one in memory. None at all is an error.
        """
    @staticmethod
    def of_parts(parts: Sequence[Profile], *, rows: int) -> Profile:
        """The sum of the parts of one recording that follow one another.

        Their times have at most `rows` rows, and are None if those of a part are not known. ValueError for no
        parts, or if their values differ.
        """
    def total(self, value: _Value = 0) -> int:
        """The sum of one value over all stacks."""
    def node_count(self) -> int:
        """Nodes of the call tree, without the root."""
    def thread_count(self) -> int:
        """How many of them are outermost frames in brackets, which name threads."""
    def with_labels(self, labels: dict[str, str]) -> Profile:
        """A copy with these labels added or replaced."""
    def merge(self, other: Profile) -> None:
        """Add another profile by sum, in place; ValueError when the values differ, with nothing changed.

        Labels that are not the same in both are dropped.
        """
    def diff(self, after: Profile, value: _Value = 0, *, normalize: bool = True) -> Diff:
        """What changed from this profile (before) to another.

        With `normalize` shares are compared, which both must have samples for; without, counts. Names such as
        lambdas' differ from JVM to JVM: `before.canonical().diff(after.canonical())`.
        """
    def filter(
        self,
        include: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> Profile:
        """Stacks with a frame in which any of `include` is found, and none in which any of `exclude` is.

        Expressions are searched in names without annotation. filter(include=x) and filter(exclude=x) are all
        stacks together, each once.
        """
    def without_times(self) -> Profile:
        """The same profile without `times`, which operations would carry along."""
    def in_range(self, start: int, end: int) -> Profile:
        """The samples from one moment to another, in microseconds since 1970: of buckets that begin then.

        `end` is not part of it. Neighbouring ranges add up exactly. An OptionError without `times`.
        """
    def since(self, start: int) -> Profile:
        """The samples from a moment on, in microseconds since 1970, with times that begin there."""
    def in_slice(self, number: int) -> Profile:
        """The samples of a slice, numbered as in `times.slices` from 1; 0: of none. They add up exactly."""
    def in_bands(self, first: int, end: int) -> Profile:
        """The samples of some bands. Band n lasted from 2^(n - 1) to 2^n µs; band 0 less, or unknown."""
    def with_slices_named(self, names: Mapping[str, str]) -> Profile:
        """The same with other names of slices; those that become the same are one, and "" is no slice."""
    def assigned(
        self,
        within: str | Sequence[str],
        without: str | Sequence[str],
        slices: Sequence[tuple[str, bool]],
        ranges: Sequence[tuple[int, int, int]],
    ) -> Profile:
        """The same samples, in slices by their time: those of stacks with a frame in which any of `within` is
        found, and none in which any of `without` is.

        `slices` are (name, certain) as in `times.slices`. `ranges` are (first bucket, bucket after the last,
        number of the slice from 1), in order and apart. A sample that has a slice keeps it, unless only the
        new one is certain; stacks with any of `without` have none.
        """
    def without_idle(self) -> Profile:
        """The stacks of a wall-clock profile without those of threads that wait for work."""
    def focus(self, pattern: str, *, callers: bool = True) -> Profile:
        """Stacks through a frame: whole (as pprof's focus), or from that frame on (as pprof's show_from)."""
    def trim(self, pattern: str) -> Profile:
        """All stacks, without what is above the outermost frame found; totals do not change."""
    def below(self, roots: str | Sequence[str]) -> Profile:
        """The stacks through a frame in which any of these is found, from the outermost such frame on.

        Frames in brackets that a stack begins with (thread, kind of wait) stay above it.
        """
    def into_callers(self, patterns: str | Sequence[str], *, kernel: bool = False) -> Profile:
        """All stacks, without the innermost frames as long as one of the regular expressions is found in them
        or, with `kernel`, they are the kernel's: what they cost is their caller's. Totals never change.
        """

    def into_waiters(self, *, locks: bool = False) -> tuple[Profile, list[tuple[str, str, str]]]:
        """Stacks that end in what their threads do: below the method that waits, a frame "sleeps in Job.run".

        Says of each such name the code of what is done, and the method. With `locks` stacks end in the
        class of what is waited for, as in lock profiles; without, threads that do not wait run.
        """
    def threads(self) -> Profile:
        """Thread frames `[pool-1-thread-7 tid=71]` at the root become groups, `[pool-N-thread-N]`.

        ValueError where no stack starts with one: open the file with `threads=True`.
        """
    def without_threads(self) -> Profile:
        """All stacks, without the outermost frame where that is in brackets, which tells threads apart."""
    def without_callers(self) -> Profile:
        """Each stack cut to its innermost frame outside the kernel, and the kernel's frames below that. Its
        thread, what it waits for and the frame BROKEN_STACKS stand above. Self costs do not change.
        """
    def unsure_callers(self) -> int:
        """The part of the first value in code that compiled Java methods enter without a safepoint: stubs,
        intrinsics, page faults. Without debug information its callers may be wrong.
        """
    def invert(self) -> Profile:
        """The reverse call tree: every stack from its leaf to its root."""
    def scale(self, factor: float) -> Profile:
        """All values times a factor above 0. Totals are rounded once; stacks add up to them exactly."""
    def with_total(self, value: _Value, total: int) -> Profile:
        """One value in proportion such that its total is this; stacks add up to it exactly."""
    def select(self, values: _Value | Sequence[_Value]) -> Profile:
        """These values only, in this order, and the stacks that have any of them."""
    def canonical(self, rules: str | None = None) -> Profile:
        """One name for what every JVM numbers anew: lambdas, accessors, proxies, hidden classes, threads.

        `rules` is the text of a file of rules instead of hprofiler's own, `flamegraph/src/ops/names.rules`,
        which says how they are written.
        """
    def raw_names(self) -> dict[str, list[str]]:
        """For each name that `canonical` made, the raw names it stands for, sorted; at most 1000 of each.

        Merging keeps them; files do not.
        """
    def modules(self) -> dict[str, str]:
        """For names of native functions and the kernel's the module that they lie in: `libc.so.6`, `[ext4]`.

        A name that is in several has up to three of them with commas between, else it is `several modules`.
        One that the kernel and a library have is in the modules of both. Java's methods have none, nor has
        what no format told. Merging keeps them; so do pprof, JSON and the compact profile.
        """
    def merged_tiers(self, value: _Value = 0) -> Profile:
        """One node for a method whatever tiers it ran in; its kind is the one with most of this value.

        `Node.tiers` tells what each tier had, until the next operation but `pruned`.
        """
    def pruned(self, *, share: float | None = None, frames: int | None = None) -> Profile:
        """The largest frames: those with a share (0 to 1) of the total of any value, or about this many.

        What is left out is one frame `(N smaller frames)` under each parent: all totals stay exact. A frame
        is never left out alone.
        """
    def top(self, limit: int = 20, value: _Value = 0) -> list[Method]:
        """Hottest methods by self value; tiers of one name are one method."""
    def frames(self, value: _Value = 0) -> list[Method]:
        """Every method in every tier that has some of this value, by name and tier."""
    def paths(self, annotate: bool = True) -> list[Stack]:
        """Every stack that has any value, in name order."""
    def nodes(self, value: _Value = 0) -> list[Node]:
        """Every node of the call tree, parents before their children."""
    def to_pandas(self, annotate: bool = True) -> Any:
        """The table of stacks as a pandas.DataFrame; ImportError when pandas is not installed.

        Column `stack` has the frames joined by `;`, then there is a column for each value; their units are
        in `attrs["units"]`.
        """
    def to_folded(self, value: _Value | None = None, annotate: bool = True) -> bytes:
        """Folded text of one value: the first unless one is named. Of the values `before` and `after` (a
        `Diff`'s, or differential folded text) both are written, two counts a line."""
    def to_pprof(self, *, thread_label: bool = False) -> bytes:
        """Gzipped pprof with all values; labels are written on every sample.

        With `thread_label` an outermost frame in brackets, `[name]`, is the label `thread` of its samples.
        """
    def to_svg(self, *, value: _Value = 0, **options: Unpack[_Picture]) -> bytes:
        """The flame graph of one value; tiers of one method are one frame. See `_Picture` for the options.

        A profile of just the values `before` and `after` (a `Diff`'s, or differential folded text) is drawn
        as a difference: what grew is red, what shrank is blue, what has no width is named in a line of text;
        `select` one of them to draw it alone. A value without samples is a ValueError.
        """
    def to_speedscope(self) -> bytes:
        """Speedscope's JSON, a profile of type `sampled` for each value."""
    def to_json(self) -> bytes:
        """The plain call tree as JSON."""
    def write(
        self,
        target: _Path | BinaryIO,
        format: str | None = None,
        *,
        value: _Value | None = None,
        title: str | None = None,
        thread_label: bool = False,
        **options: Unpack[_Look],
    ) -> None:
        """Write a file as a stream, in the format that its name or `format` asks for.

        A file appears whole or not at all; an object with `write` gets bytes in blocks, and needs `format`.
        `value` is for formats that have room for one, `title` for pictures and the page (.html, paths only),
        `thread_label` for pprof (see `to_pprof`), `options` for pictures (.svg). `.hpt` is the compact
        profile (`flamegraph/FORMAT.md`), which `open` reads too.
        """

@final
class MeanMerger:
    """Host-fair mean: every profile added weighs the same, however many samples it has.

    Totals are the mean of the totals, exact after rounding; memory grows with distinct stacks only.
    """

    def __new__(cls) -> MeanMerger: ...
    def add(self, profile: Profile) -> None:
        """One host's profile; a profile without samples is left out."""
    def finish(self) -> Profile:
        """The mean of what was added so far; ValueError when nothing was."""

@final
class Difference:
    """A method of `Distance.methods`; `(rare methods)` are all with less than 5 samples a profile."""

    @property
    def name(self) -> str: ...
    @property
    def share(self) -> float:
        """Its own part of this profile's samples, 0 to 1."""
    @property
    def usual(self) -> float:
        """Its usual part: the median of all profiles."""

@final
class Distance:
    """How far one profile is from what is usual; docs/outliers.md explains the numbers."""

    @property
    def divergence(self) -> float:
        """Jensen–Shannon divergence in bits: 0 where they are equal, 1 where nothing is shared."""
    @property
    def noise(self) -> float:
        """What the divergence would be on average if sampling, and the spread of most profiles, made it."""
    @property
    def cosine(self) -> float:
        """1 where they are equal, 0 where nothing is shared."""
    @property
    def moved(self) -> float:
        """The part of the samples that would have to be elsewhere for the two to be equal."""
    @property
    def outlier(self) -> bool:
        """Whether it is unlike the others beyond what sampling and their own spread explain."""
    @property
    def differs(self) -> bool:
        """Whether it differs from what is usual by more than sampling alone explains, outlier or not."""
    @property
    def methods(self) -> list[Difference]:
        """The methods that make the difference, the largest first; at most 5."""

@final
class Outliers:
    """Which of several profiles is unlike the others. Profiles are not kept, only their methods' samples."""

    def __new__(cls) -> Outliers: ...
    def add(self, profile: Profile, value: _Value = 0, *, samples: int | None = None) -> None:
        """A profile, compared by this value; `samples` is how many samples its whole stands for, where the
        value counts something else."""
    def distances(self) -> list[Distance | None]:
        """One for each profile, in the order in which they were added; None for one without samples."""

@final
class SureCallers:
    """Where stubs, intrinsics and page faults stand if only callers count that are surely right.

    Without debug information, below a compiled method it is not known which inlined method called them. From
    one profile to another other methods are inlined, so that a caller counts that is right in all of them.
    """

    def __new__(cls, profiles: Sequence[Profile]) -> SureCallers:
        """Of profiles with one value, in which callers are unsure, and that are compared with each other."""
    def cut(self, profile: Profile) -> Profile:
        """All stacks of one of these, or of a part of it, with this code below its nearest sure caller."""
    @property
    def doubts(self) -> dict[str, list[int]]:
        """By method the cost of such code, in each profile, that it may have called or not have called."""
    @property
    def code(self) -> list[str]:
        """The names of this code."""

@final
class ViewerData:
    """What a page shows: one call tree of many profiles, a column of self values for each.

    Profiles are not kept. Above 1,000,000 nodes the thinnest subtrees become frames `(N smaller frames)`, one
    below each parent; totals stay exact.
    """

    def __new__(cls) -> ViewerData: ...
    def add(self, profile: Profile, value: _Value = 0, *, start: int | None = None) -> int:
        """Add one value of a profile; the number of its column.

        `start` is when the page's time begins, in microseconds since 1970; without it there are no times.
        """
    def add_threads(
        self,
        profile: Profile,
        value: _Value = 0,
        *,
        most: int = 20,
        keep_frames: bool = False,
        start: int | None = None,
    ) -> list[tuple[str | None, tuple[str, bool] | None, int, int, int]]:
        """Add one value of a profile whose outermost frames in brackets are groups of threads.

        Gives the groups' names, without brackets, their slices (name, and whether it is certain), their
        columns, the sum of each, and that without idle threads. The heaviest group is first, by what is not
        idle. Groups after the first `most`, and stacks without a group, are one without a name; samples
        without a slice are a column of their own. The groups' own frames are in the tree only with
        `keep_frames`. For `start` see `add`.
        """
    @property
    def width(self) -> int | None:
        """Length of all columns' buckets in microseconds, after all were added; None if none has times."""
    def to_bytes(self) -> bytes:
        """The data of `flamegraph/viewer/FORMAT.md`."""

@final
class StackTable:
    """The rows of a run's profiles for tables, by columns: stacks, each once, and the samples of processes.

    A stack's id are the first 16 bytes of SHA-256(H, category, a zero byte, phase). H begins as nothing; each
    frame, root first, makes it SHA-256(H, name of the frame).
    """

    def __new__(
        cls, rules: Sequence[tuple[str, Sequence[str]]] = (), *, start: int | None = None
    ) -> StackTable:
        """Categories by `rules` as in `WorkTable`. Second 0 begins at `start`, in microseconds since 1970;
        without it seconds are not known."""
    def add(
        self, profile: Profile, *, process: int, event: int, kernel: bool = True
    ) -> list[tuple[str, str, int]]:
        """Add the first value of a process's profile, whose outermost frames in brackets are its threads.

        Returns what stacks of each category and phase cost in it: (category, phase, sum).
        """
    def columns(self) -> dict[str, Any]:
        """Texts as lists: `names` of frames, `words` (categories and phases), `groups` of threads, `stages`.

        The others are bytes of numbers, as in Arrow. Of each stack: `stack_high`, `stack_low` (64 bits),
        `ends` of its frames in `frames`, whose numbers are places in names; `categories`, `phases`. Of each
        row of samples: `processes`, `events`, `sample_groups` and `sample_stages` (-1: none), `seconds`
        (-2^31: not known), `stacks` (places), `values` (64 bits).
        """

@final
class WorkTable:
    """What the work of profiles is, by `flamegraph/rules/frames.yaml` and `rules` before it: categories and
    their patterns, in which `*` is any text. A name is matched once, whichever profiles have it.

    `kernel` is False where frames of that kind are no functions of the kernel: in allocation profiles.
    """

    def __new__(cls, rules: Sequence[tuple[str, Sequence[str]]] = ()) -> WorkTable: ...
    def sums(self, profile: Profile, *, kernel: bool = True) -> list[tuple[str, str, str, int]]:
        """What stacks of each category, phase and slice cost in the first value, with "" for no phase and no
        slice: (category, phase, slice, sum).
        """
    def by_category(self, profile: Profile, *, kernel: bool = True, flat: bool = False) -> Profile:
        """The same profile with each stack below a frame of its category's name, such as `[json]`; `flat`:
        with nothing but these frames."""

_SumsOf = tuple[int, float, float, float]

@final
class MethodSums:
    """Sums over processes of each method's cost, its square, and its product with the process's total and
    with what a sample stands for: of its own cost, and of its total."""

    def __new__(cls) -> MethodSums: ...
    def add(self, profile: Profile, per_sample: float, value: _Value = 0, *, threads: bool = False) -> None:
        """Add a process; with `threads`, its outermost frames in brackets are threads, not methods."""
    def put(self, name: str, own: _SumsOf, all: _SumsOf) -> None:
        """Put sums that were made earlier."""
    def of(self, name: str) -> tuple[_SumsOf, _SumsOf] | None:
        """Of its own cost, and of its total; None for an unknown method."""
    def names(self) -> list[str]: ...
    def own(self) -> list[_SumsOf]:
        """Of each method's own cost."""
    def columns(self) -> dict[str, bytes]:
        """`own_cost`, `own_squared` … `all_sampled` of each method, as numbers of 64 bits."""

def frame_category(name: str) -> str | None:
    """What a method of this name does ("regex-match", "gc"), by `flamegraph/rules/frames.yaml`.

    "application" for one of no rule and no framework, None for code that serves others.
    """

def category_label(category: str) -> str:
    """What a category of work is called: "JSON"."""

def category_patterns(category: str) -> list[str]:
    """Frames of a category, or what stacks end in (`wait`, `allocation`, `profiler`), as expressions.

    Of what tasks are blocked on ("shuffle-fetch") there are two: what is below, and what waits.
    """

@final
class DumpedThread:
    """A thread of a dump."""

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int | None:
        """The operating system's number, as the dump has it."""
    @property
    def java_number(self) -> int | None: ...
    @property
    def daemon(self) -> bool: ...
    @property
    def virtual_(self) -> bool: ...
    @property
    def state(self) -> str:
        """As `Thread.State`, also of Python's threads; "RUNNING" if the kernel runs it; "" if unknown."""
    @property
    def cpu(self) -> float | None:
        """Its CPU time so far in seconds, if the dump has it."""
    @property
    def stack(self) -> int:
        """The number of its stack; threads with the same frames and lines have the same."""
    @property
    def group(self) -> int:
        """The number of its group."""
    @property
    def group_name(self) -> str:
        """What threads of such names are called together."""
    @property
    def holds(self) -> list[tuple[str, str]]:
        """The locks that it holds: what tells them apart, and their classes."""
    @property
    def waits(self) -> tuple[str, str, str] | None:
        """How it waits for a lock ("monitor", "notify" or "park"), and the lock, as in `holds`."""
    @property
    def owner(self) -> int | None:
        """The place of the thread that has this lock, if that is known."""

@final
class ThreadGroup:
    """What threads with the same methods on their stacks have in common, by canonical names."""

    @property
    def frames(self) -> list[str]:
        """Leaf first; what the threads wait for may stand last, in brackets."""
    @property
    def does(self) -> str:
        """A code of `DOING`."""
    @property
    def above(self) -> int:
        """How many frames above the leaf the method is that does it."""

@final
class ThreadDumps:
    """Thread dumps of many processes; what is equal in them is kept once."""

    def __new__(cls) -> ThreadDumps: ...
    def read(self, source: _Source) -> list[list[DumpedThread]]:
        """The dumps of a file, each as its threads. Raises ValueError."""
    def stack(self, number: int) -> list[tuple[str, int]]:
        """The frames of a stack, leaf first, with their lines; a line is 0 if it is not known."""
    def group(self, number: int) -> ThreadGroup: ...
    def profile(self, counts: Sequence[tuple[int, str, int]]) -> Profile:
        """A profile of so many threads of groups, each below a group of threads of this name."""
