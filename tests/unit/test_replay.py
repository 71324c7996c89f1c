"""Replays of applications whose schedules are worked out by hand."""

from __future__ import annotations

import pytest

from hprofiler.spark.application import FAILED, KILLED, Note
from hprofiler.spark.replay.blocked import blocked_time
from hprofiler.spark.replay.schedule import Replay
from hprofiler.spark.windows import whole_stage_name
from tests.unit.spark_application import Made


def without(replay: Replay, name: str) -> float:
    """How long the application takes without the time in a column."""
    return replay.run(
        {
            number: [time - less for time, less in zip(stage.duration, stage.column(name), strict=True)]
            for number, stage in enumerate(replay.stages)
        }
    )


def test_two_waves_on_two_slots() -> None:
    made = Made(a=1, b=1)
    made.job(0, 0, 310, (0,))
    fetch = {"fetch_wait": 50}
    made.stage(0, 10, 305, [(10, 100, fetch), (10, 150), (110, 190, fetch), (160, 40)])
    replay = Replay(made.application)
    assert (replay.measured, replay.as_it_was, replay.in_short().error) == (310, 310, 0.0)
    # 10 to launch; then 50 + 140 on one slot and 150 + 40 on the other; 5 + 5 to end.
    assert without(replay, "fetch_wait") == 10 + 190 + 10
    gain = replay.gain({0: [50, 150, 140, 40]})
    assert (gain.time, gain.share) == (pytest.approx(100), pytest.approx(100 / 310))


def test_children_wait_for_all_parents() -> None:
    made = Made(a=2)
    made.job(0, 0, 400, (0, 1, 2, 3))
    made.stage(0, 0, 100, [(0, 100, {"gc_time": 80})])
    made.stage(1, 0, 60, [(0, 60)])
    made.stage(2, 105, 300, [(105, 195)], parents=(0, 1))
    made.stage(3, 300, 400, [(300, 100), (300, 100)], parents=(2, 99))  # 99 was skipped
    replay = Replay(made.application)
    assert replay.as_it_was == 400
    # Stage 1 is now the last parent: 60, 5 for the driver, 195, 100.
    assert without(replay, "gc_time") == 360


def test_time_of_the_driver_between_jobs_stays() -> None:
    made = Made(a=1)
    made.job(0, 0, 100, (0,))
    made.job(1, 600, 700, (1,))
    made.stage(0, 0, 100, [(0, 100, {"fetch_wait": 100})])
    made.stage(1, 600, 700, [(600, 100, {"fetch_wait": 100})], job=1)
    replay = Replay(made.application)
    assert replay.as_it_was == 700 and without(replay, "fetch_wait") == 500


def test_jobs_at_the_same_time_overlap_and_share_slots() -> None:
    made = Made(a=1)
    made.job(0, 0, 200, (0,))
    made.job(1, 50, 150, (1,))
    made.job(2, 160, 300, (2,))
    made.stage(0, 0, 200, [(0, 100, {"gc_time": 90}), (150, 50)])
    made.stage(1, 50, 150, [(100, 50)], job=1)
    made.stage(2, 160, 300, [(200, 100)], job=2)
    replay = Replay(made.application)
    assert replay.as_it_was == 300
    # 10, then stage 0's other task to 60, stage 1 to 110; job 2 still starts 10 after job 1.
    assert without(replay, "gc_time") == 220


def test_a_query_waits_for_all_its_earlier_jobs() -> None:
    made = Made(a=2)
    made.job(0, 0, 100, (0,), sql=5)
    made.job(1, 0, 80, (1,), sql=5)
    made.job(2, 100, 200, (2,), sql=5)
    made.stage(0, 0, 100, [(0, 100, {"gc_time": 90})])
    made.stage(1, 0, 80, [(0, 80)], job=1)
    made.stage(2, 100, 200, [(100, 100)], job=2)
    assert without(Replay(made.application), "gc_time") == 180


def test_executors_come_and_go() -> None:
    made = Made(a=1)
    made.executor("b", 1, added=100)
    made.executor("c", 8, added=0, removed=10)
    made.job(0, 20, 220, (0,))
    made.stage(0, 20, 220, [(20, 100), (100, 100), (120, 100)])
    replay = Replay(made.application)
    assert replay.slots.most == 9 and replay.slots.time(20 + 1_000_000, 220 + 1_000_000) == 200 + 120
    # The second executor comes 80 after the job's start, whatever tasks take.
    assert replay.as_it_was == 200
    assert replay.run({0: [100, 30, 30]}) == 130


def test_a_removed_executor_ends_its_tasks_and_starts_no_others() -> None:
    made = Made(a=1)
    made.executor("b", 1, removed=50)
    made.job(0, 0, 400, (0,))
    made.stage(0, 0, 400, [(0, 100), (0, 100), (100, 100), (200, 100), (300, 100)])
    assert Replay(made.application).as_it_was == 400


def test_failed_and_repeated_work_is_apart() -> None:
    made = Made(a=1)
    made.job(0, 0, 500, (0,))
    partition = {"partition": 0}
    made.stage(
        0,
        0,
        200,
        [
            (0, 50, {**partition, "status": FAILED}),
            (50, 100, partition),
            (150, 20, {"status": KILLED, "speculative": 1}),
        ],
    )
    made.stage(0, 300, 500, [(300, 150, partition), (450, 50)], attempt=1)
    replay = Replay(made.application)
    assert list(replay.stages[0].duration) == [150, 50]
    assert replay.left_out.count == {"failed": 1, "speculative": 1, "repeated": 1}
    assert replay.left_out.time == {"failed": 50, "speculative": 20, "repeated": 100}
    assert replay.in_short().error < -0.5
    (stage,) = blocked_time(made.application, replay).stages
    assert whole_stage_name(stage.stage, stage.attempts) == "stage 0 (attempts 0, 1)"


def test_nothing_gains_more_than_the_time_it_took() -> None:
    """Half of the job was a failed attempt, which is not replayed: a share of the replay says too much."""
    made = Made(a=1)
    made.job(0, 0, 400, (0, 1))
    made.stage(0, 0, 200, [(0, 200, {"status": FAILED})])
    made.stage(1, 200, 400, [(200, 200)], parents=(0,))
    replay = Replay(made.application)
    assert (replay.measured, replay.as_it_was) == (400, 200)
    assert replay.gain({1: [50]}).time == pytest.approx(150)  # not 3/4 of 400
    assert replay.gain({1: [0]}).share == pytest.approx(0.5)
    made.stage(1, 390, 400, [(200, 200)], parents=(0,))  # the stage itself took less than its tasks
    assert Replay(made.application).gain({1: [50]}).time == pytest.approx(10)


def test_logs_that_lack_events_have_a_replay() -> None:
    made = Made()
    made.application.executor_ids.append("7")
    made.stage(0, 0, 100, [(0, 100), (0, 50), (50, 50)], job=None)
    assert Replay(made.application).as_it_was == 100  # two tasks at once: two slots
    nothing = Made()
    assert Replay(nothing.application).as_it_was == 0 and Replay(nothing.application).in_short().error == 0
    lost = Made(a=1)
    lost.job(0, 0, 100, (0,))
    assert Replay(lost.application).as_it_was == 100


def test_stages_that_wait_for_each_other_do_not_hang() -> None:
    made = Made(a=1)
    made.job(0, 0, 50, (5,))
    made.job(1, 60, 100, (3,))
    made.stage(3, 60, 100, [(60, 40)], job=1)
    made.stage(5, 10, 50, [(10, 40)], parents=(3,))
    assert Replay(made.application).as_it_was > 0


def test_without_parents_stages_wait_for_those_that_ended_before() -> None:
    """The REST interface does not say which stage waits for which."""
    made = Made(a=2)
    made.job(0, 0, 200, (0, 1, 2))
    made.stage(0, 0, 100, [(0, 100, {"gc_time": 80})])
    made.stage(1, 0, 50, [(0, 50)])
    made.stage(2, 100, 200, [(100, 100)])
    made.application.notes.append(Note("by-rest"))
    replay = Replay(made.application)
    assert (replay.as_it_was, without(replay, "gc_time")) == (200, 120)


def test_a_slot_is_free_before_the_driver_has_noted_the_end_of_its_task() -> None:
    made = Made(a=1)
    made.job(0, 0, 340, (0,))
    rows = [(0, 130, {"run_time": 80}), (100, 140, {"run_time": 80}), (200, 140, {"run_time": 70})]
    made.stage(0, 0, 340, rows)
    replay = Replay(made.application)
    assert list(replay.stages[0].held) == [100, 100, 140] and replay.as_it_was == 340
    # 30 and 40 of what the tasks waited for the scheduler were without a slot.
    scheduler = blocked_time(made.application, replay).resources[3]
    assert scheduler.resource.name == "scheduler" and scheduler.time == 50 + 60 + 70
    assert scheduler.gain and scheduler.gain.time == pytest.approx(340 - 230)
