"""Programs that are no JVMs, by the host's perf: C, Rust and Go beside their own counters."""

from __future__ import annotations

import pytest

from tests.burners.counting import Native
from tests.engines.conftest import Zoo
from tests.engines.measured import Run, Runner, near, points, share_of_unknown

pytestmark = pytest.mark.nightly

SHARES = {
    "c": {"hot": ["hot"], "warm": ["slice", "outer", "middle", "warm"], "kernel": ["kernel"]},
    "rust": {"hot": ["native_rust::hot"], "warm": ["Warm as", "burn"], "closure": ["through"]},
    "go": {"hot": ["main.hot"], "warm": ["main.(*Worker).burn"]},
}
"""For each counter words that its stacks have, in frames of their own."""
LANGUAGES = tuple(SHARES)


@pytest.fixture(scope="module")
def programs(zoo: Zoo) -> dict[str, Native]:
    return {"c": zoo.native("c", 0.2), "rust": zoo.native("rust", 0.4)}


@pytest.fixture(scope="module")
def go(zoo: Zoo) -> Native:
    return zoo.native("go", 0.4)


@pytest.fixture(scope="module")
def run(record: Runner, programs: dict[str, Native]) -> Run:
    """Without a word of engines: perf is what there is for them."""
    return record(list(programs.values()), "--threads", seconds=5)


@pytest.fixture(scope="module")
def run_go(record: Runner, go: Native) -> Run:
    return record([go], seconds=4)


def _shares(run: Run, program: Native, language: str) -> None:
    assert run.recording(program)["engine"] == "perf"
    counted = run.grown(program)
    assert run.cpu_seconds_agree(program)
    samples = run.stacks(program, "cpu", "samples")
    whole = sum(counted[name] for name in SHARES[language])
    found = {name: samples.of(*words) for name, words in SHARES[language].items()}
    total = sum(found.values())
    assert total > 0.7 * samples.total  # going to sleep takes time too, and more of it on a busy machine
    for name, amount in found.items():
        truth = counted[name] / whole
        assert amount / total == pytest.approx(truth, abs=points(total, truth)), (name, found, counted)


@pytest.mark.parametrize("language", ["c", "rust"])
def test_shares_of_cpu_time(run: Run, programs: dict[str, Native], language: str) -> None:
    _shares(run, programs[language], language)


def test_shares_of_cpu_time_of_go(run_go: Run, go: Native) -> None:
    _shares(run_go, go, "go")


def test_kernel_frames(run: Run, programs: dict[str, Native]) -> None:
    samples = run.stacks(programs["c"], "cpu", "samples")
    assert samples.of_leaf("k", "kernel") > 0.9 * samples.of("kernel")


def test_thread_groups(run: Run) -> None:
    folded = (run.folder / "cluster/cpu.folded").read_text()
    assert "[c-worker-N]" in folded and "[rust-worker-N]" in folded
    assert "[c-worker-1]" not in folded


def test_nothing_is_unknown(run: Run, programs: dict[str, Native]) -> None:
    for program in programs.values():
        samples = run.stacks(program, "cpu", "samples")
        assert share_of_unknown(samples, program) < 0.02


@pytest.fixture(scope="module")
def off_cpu(record: Runner, programs: dict[str, Native]) -> Run:
    return record([programs["c"]], "-e", "offcpu", seconds=4)


@pytest.mark.parametrize(
    ("thread", "method", "kind", "part"),
    [
        ("[c-sleeper", "nap", "[sleep]", 0.95),
        ("[c-reader", "read_pipe", "[", 0.95),
        ("[c-locker", "lock_mutex", "[lock]", 0.80),
    ],
)
def test_off_cpu(
    off_cpu: Run, programs: dict[str, Native], thread: str, method: str, kind: str, part: float
) -> None:
    """A wait that began before the recording, or ends after it, is not seen by who records switches."""
    program = programs["c"]
    seconds = off_cpu.recording(program, "offcpu")["seconds"]
    waited = off_cpu.stacks(program, "offcpu", "offcpu")
    assert near(waited.of(thread), seconds * 1e9, 0.10)
    assert waited.of(thread, method, kind) > part * waited.of(thread)


@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize("event", ["context-switches", "sched:sched_switch"])
def test_switches_are_as_many_as_the_kernel_counts(
    record: Runner, programs: dict[str, Native], event: str
) -> None:
    """As a software event, and as a tracepoint."""
    program = programs["c"]
    run = record([program], "-e", event, seconds=3)
    assert run.recording(program, event)["engine"] == "perf"
    (value,) = run.profile(program, event).values
    assert value == (event, "count")
    switches = run.stacks(program, event, event)
    assert run.agree(program, event, "process.switches", 0.10, switches.total)
    assert run.agree(program, event, "naps", 0.10, switches.of("nap"))
