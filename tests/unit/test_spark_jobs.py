"""The rounds of the Spark job that merges an archive, as executors do them. tests/lab runs it on YARN."""

import pyarrow

from hprofiler import Profile
from hprofiler.spark_jobs.merge import merged_profiles, profiles_of_stacks

COLUMN = ("alloc_space", "bytes")


def rows(*stacks: tuple[list[str], int]) -> pyarrow.RecordBatch:
    frames, values = zip(*stacks, strict=True)
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(frames), pyarrow.array(values)], ["frames", "value"]
    )


def test_two_rounds_add_up_every_stack():
    first = rows((["left out"], 99), (["[task]", "main", "a;b"], 1), (["[task]", "main"], 2)).slice(1)
    other = rows((["[task]", "main", "a;b"], 4), ([], 8))
    made = [list(profiles_of_stacks(batches, COLUMN)) for batches in ([first], [other, other], [])]
    assert [len(batches) for batches in made] == [1, 1, 0]
    (merged,) = merged_profiles(batch for batches in made for batch in batches)
    profile = Profile.from_bytes(merged.column("profile")[0].as_py(), "compact")
    assert profile.values == [COLUMN]
    found = {stack.frames: stack.values[0] for stack in profile.paths()}
    assert found == {("[task]", "main", "a;b"): 9, ("[task]", "main"): 2, (): 16}
