"""What Spark knows of its application: jobs, stages, tasks by executor; from a driver, a history server or an
event log. `facts.py` describes it; `windows.py` says which stage ran when.
"""

from hprofiler.spark.event_log import read_event_log
from hprofiler.spark.facts import (
    DriverClock,
    Executor,
    Job,
    SparkError,
    SparkFacts,
    Stage,
    Tasks,
    Waits,
    read_facts,
    write_facts,
)
from hprofiler.spark.rest import Answer, Ask, ClockOf, fetch_facts
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
    "Ask",
    "Assignment",
    "ClockOf",
    "DriverClock",
    "Executor",
    "Job",
    "SparkError",
    "SparkFacts",
    "Stage",
    "StageTime",
    "Tasks",
    "Waits",
    "assignment",
    "fetch_facts",
    "read_event_log",
    "read_facts",
    "stage_name",
    "stage_times",
    "write_facts",
]
