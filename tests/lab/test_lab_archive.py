"""The merge of an archive as a Spark job, on YARN hosts that have Python and pyarrow, but no hprofiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hprofiler import Profile
from hprofiler.archive.add import add
from hprofiler.archive.compact import compact
from tests.bench.core_cluster import Maker
from tests.lab import cache
from tests.lab.yarn.cluster import YarnCluster, running_cluster
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

RUNS, HOSTS, STACKS = 6, 4, 300
JOB = cache.CHECKOUT / "hprofiler/spark_jobs/merge.py"


@pytest.fixture(scope="module")
def yarn(workshop: Path, spark_home: Path) -> Iterator[YarnCluster]:
    shown = [spark_home, Path(sys.base_prefix), Path(sys.prefix)]
    with running_cluster(workshop / "archive-yarn", shown, here=True) as cluster:
        yield cluster


def runs(folder: Path) -> list[Path]:
    """Run folders that have some stacks in common."""
    maker, made = Maker(STACKS), []
    for run in range(RUNS):
        numbers = range(run * HOSTS, (run + 1) * HOSTS)
        found = [MadeHost(f"n{n}", {100 + n: b"".join(maker.host(n)).decode()}) for n in numbers]
        one = make_run(folder / f"run{run}", found)
        rewrite(one, {**content_of(one), "started": f"2026-11-{10 + run}T06:12:03+00:00"})
        made.append(one.path)
    return made


def merged_here(folders: Sequence[Path]) -> Profile:
    """The processes of these runs, merged on this machine by the names that reports use."""
    files = [file for folder in folders for file in sorted(folder.glob("hosts/*/*/cpu.pb.gz"))]
    profile = Profile.open(files, threads="groups")
    return profile.canonical().select("samples").merged_tiers()


def stacks(profile: Profile) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for stack in profile.paths(annotate=False):
        found[stack.frames] += stack.values[0]
    return found


def test_the_job_gives_the_profile_that_one_machine_gives(
    yarn: YarnCluster, spark_home: Path, tmp_path: Path
) -> None:
    shared = yarn.lab.shared
    assert shared is not None
    folders, place = runs(tmp_path), shared / "archive"
    for some in (folders[:3], folders[3:]):  # a compacted file, and three of single runs
        list(compact(str(place))) if place.exists() else None
        assert [one.failure for one in add(some, str(place))] == [None] * 3
    # A wheel is such a file under another name.
    wheel = shutil.make_archive(str(tmp_path / "hprofiler"), "zip", cache.CHECKOUT, "hprofiler")
    settings, environment = yarn.client(spark_home)
    settings |= {
        "spark.executor.instances": "3",
        "spark.executor.memoryOverhead": "384m",
        "spark.executorEnv.PYTHONPATH": "hprofiler-wheel",
        "spark.pyspark.python": sys.executable,
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.shuffle.partitions": "9",
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = [str(spark_home / "bin/spark-submit"), "--master", "yarn", *options]
    submit += ["--archives", f"{wheel}#hprofiler-wheel"]
    output = tmp_path / "cluster.pb.gz"
    words = [str(place), "--app", "spark-executor", "-o", str(output)]
    command = yarn.lab.coordinator([*submit, str(JOB), *words])
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    here, there = merged_here(folders), Profile.open(output, threads="groups")
    assert there.values == here.values
    assert stacks(there) == stacks(here)
    workers = set(re.findall(r"Starting task .*? \((host\d), ?executor", done.stderr))
    assert len(workers) > 1, "nothing was merged across hosts"
