"""What a Spark application was configured with, for the processes of its executors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hprofiler.model.memory import MeasuredProcess
from hprofiler.resolve import SparkDriver
from hprofiler.spark.application import Application
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.memory import Limits, limits
from hprofiler.spark.rest.application import fetch_settings
from hprofiler.spark.rest.server import Answer


def executor_limits(
    source: SparkDriver | Path, processes: Sequence[MeasuredProcess]
) -> dict[tuple[str, int], Limits]:
    """By host and pid. Raises HprofilerError."""
    application = read_application(local_files(source)) if isinstance(source, Path) else _ask(source)
    found = {}
    for one in processes:
        labels = one.process.labels
        executor = application.executors.get(labels.get("executor", ""))
        if executor and labels.get("application", application.id) == application.id:
            found[one.process.host, one.process.pid] = limits(application, executor)
    return found


def _ask(driver: SparkDriver) -> Application:
    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        sent = time.time()
        return Answer(driver.get(path, parameters)[0], sent, time.time())

    return fetch_settings(ask, driver.application, attempt=driver.attempt)
