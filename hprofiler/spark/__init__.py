"""What Spark knows of its application: jobs, stages, tasks by executor; from a driver, a history server or an
event log. `facts.py` describes it; `windows.py` says which stage ran when.
"""

from hprofiler.spark.application import Application
from hprofiler.spark.event_log import read_application
from hprofiler.spark.facts import (
    ClockOf,
    DriverClock,
    RecordedExecutor,
    RecordedJob,
    RecordedStage,
    SparkError,
    SparkFacts,
    Tasks,
    Waits,
    facts_of,
    read_facts,
    write_facts,
)
from hprofiler.spark.log_files import local_files
from hprofiler.spark.rest import Answer, Ask, driver_clock
from hprofiler.spark.rest_application import fetch_application
from hprofiler.spark.saved import save_application, saved_application
from hprofiler.spark.windows import (
    SEVERAL,
    Assignment,
    StageTime,
    assignment,
    stage_name,
    stage_times,
)

__all__ = [
    "SEVERAL",
    "Answer",
    "Application",
    "Ask",
    "Assignment",
    "ClockOf",
    "DriverClock",
    "RecordedExecutor",
    "RecordedJob",
    "RecordedStage",
    "SparkError",
    "SparkFacts",
    "StageTime",
    "Tasks",
    "Waits",
    "assignment",
    "driver_clock",
    "facts_of",
    "fetch_application",
    "local_files",
    "read_application",
    "read_facts",
    "save_application",
    "saved_application",
    "stage_name",
    "stage_times",
    "write_facts",
]
