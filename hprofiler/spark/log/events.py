"""The events of Spark's event logs, as far as they are used. No field is required: old versions lack many.

Names are Spark's (`org.apache.spark.util.JsonProtocol`).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import field

Number = Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)]
_NOTHING = msgspec.Raw(b"")


class LogStart(msgspec.Struct):
    version: str = field(default="", name="Spark Version")


class ApplicationStart(msgspec.Struct):
    name: str = field(default="", name="App Name")
    id: str | None = field(default=None, name="App ID")
    attempt: str | None = field(default=None, name="App Attempt ID")
    time: Number = field(default=0, name="Timestamp")
    user: str | None = field(default=None, name="User")


class ApplicationEnd(msgspec.Struct):
    time: Number = field(default=0, name="Timestamp")
    exit_code: Number | None = field(default=None, name="ExitCode")


class EnvironmentUpdate(msgspec.Struct):
    properties: dict[str, Any] = field(default_factory=dict, name="Spark Properties")


class ResourceRequest(msgspec.Struct):
    amount: float = field(default=0, name="Amount")


class ResourceProfileAdded(msgspec.Struct):
    id: Number = field(default=0, name="Resource Profile Id")
    executor: dict[str, ResourceRequest] = field(default_factory=dict, name="Executor Resource Requests")
    task: dict[str, ResourceRequest] = field(default_factory=dict, name="Task Resource Requests")


class ExecutorInfo(msgspec.Struct):
    host: str = field(default="", name="Host")
    cores: Number = field(default=0, name="Total Cores")
    attributes: dict[str, Any] = field(default_factory=dict, name="Attributes")
    profile: Number = field(default=0, name="Resource Profile Id")


class ExecutorAdded(msgspec.Struct):
    id: str = field(default="", name="Executor ID")
    time: Number = field(default=0, name="Timestamp")
    info: ExecutorInfo = field(default_factory=ExecutorInfo, name="Executor Info")


class ExecutorRemoved(msgspec.Struct):
    id: str = field(default="", name="Executor ID")
    time: Number = field(default=0, name="Timestamp")
    reason: str | None = field(default=None, name="Removed Reason")


class BlockManager(msgspec.Struct):
    id: str = field(default="", name="Executor ID")
    host: str = field(default="", name="Host")
    port: Number = field(default=0, name="Port")


class BlockManagerAdded(msgspec.Struct):
    manager: BlockManager = field(default_factory=BlockManager, name="Block Manager ID")
    time: Number = field(default=0, name="Timestamp")
    memory: Number = field(default=0, name="Maximum Memory")
    onheap: Number | None = field(default=None, name="Maximum Onheap Memory")


class RddInfo(msgspec.Struct):
    id: Number = field(default=0, name="RDD ID")
    name: str | None = field(default=None, name="Name")
    scope: msgspec.Raw = field(default=_NOTHING, name="Scope")


class StageInfo(msgspec.Struct):
    id: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    name: str = field(default="", name="Stage Name")
    tasks: Number = field(default=0, name="Number of Tasks")
    rdds: list[RddInfo] = field(default_factory=list, name="RDD Info")
    parents: list[Number] = field(default_factory=list, name="Parent IDs")
    details: str = field(default="", name="Details")
    start: Number | None = field(default=None, name="Submission Time")
    end: Number | None = field(default=None, name="Completion Time")
    failure: str | None = field(default=None, name="Failure Reason")
    profile: Number = field(default=0, name="Resource Profile Id")


class StageEvent(msgspec.Struct):
    """StageSubmitted and StageCompleted."""

    info: StageInfo = field(default_factory=StageInfo, name="Stage Info")
    properties: dict[str, Any] | None = field(default=None, name="Properties")


class JobStart(msgspec.Struct):
    id: Number = field(default=0, name="Job ID")
    time: Number = field(default=0, name="Submission Time")
    stages: list[Number] = field(default_factory=list, name="Stage IDs")
    infos: list[StageInfo] = field(default_factory=list, name="Stage Infos")
    properties: dict[str, Any] | None = field(default=None, name="Properties")


class JobException(msgspec.Struct):
    message: str | None = field(default=None, name="Message")


class JobResult(msgspec.Struct):
    result: str = field(default="", name="Result")
    exception: JobException | None = field(default=None, name="Exception")


class JobEnd(msgspec.Struct):
    id: Number = field(default=0, name="Job ID")
    time: Number = field(default=0, name="Completion Time")
    result: JobResult = field(default_factory=JobResult, name="Job Result")


class TaskInfo(msgspec.Struct):
    tid: Number = field(default=0, name="Task ID")
    index: Number = field(default=0, name="Index")
    attempt: Number = field(default=0, name="Attempt")
    partition: Number | None = field(default=None, name="Partition ID")
    launch: Number = field(default=0, name="Launch Time")
    executor: str = field(default="", name="Executor ID")
    host: str = field(default="", name="Host")
    locality: str = field(default="", name="Locality")
    speculative: bool = field(default=False, name="Speculative")
    getting_result: Number = field(default=0, name="Getting Result Time")
    finish: Number = field(default=0, name="Finish Time")
    failed: bool = field(default=False, name="Failed")
    killed: bool = field(default=False, name="Killed")
    accumulables: msgspec.Raw = field(default=_NOTHING, name="Accumulables")


class TaskStart(msgspec.Struct):
    stage: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    info: TaskInfo = field(default_factory=TaskInfo, name="Task Info")


class TaskEndReason(msgspec.Struct):
    """`message` is that of FetchFailed, `address` is where the blocks were."""

    reason: str = field(default="", name="Reason")
    kind: str | None = field(default=None, name="Class Name")
    description: str | None = field(default=None, name="Description")
    stack: str | None = field(default=None, name="Full Stack Trace")
    kill: str | None = field(default=None, name="Kill Reason")
    loss: str | None = field(default=None, name="Loss Reason")
    executor: str | None = field(default=None, name="Executor ID")
    message: str | None = field(default=None, name="Message")
    address: BlockManager | None = field(default=None, name="Block Manager Address")


class ShuffleRead(msgspec.Struct):
    remote_blocks: Number = field(default=0, name="Remote Blocks Fetched")
    local_blocks: Number = field(default=0, name="Local Blocks Fetched")
    fetch_wait: Number = field(default=0, name="Fetch Wait Time")
    remote_bytes: Number = field(default=0, name="Remote Bytes Read")
    remote_to_disk: Number = field(default=0, name="Remote Bytes Read To Disk")
    local_bytes: Number = field(default=0, name="Local Bytes Read")
    records: Number = field(default=0, name="Total Records Read")
    remote_requests: Number = field(default=0, name="Remote Requests Duration")


class ShuffleWrite(msgspec.Struct):
    size: Number = field(default=0, name="Shuffle Bytes Written")
    time: Number = field(default=0, name="Shuffle Write Time")
    records: Number = field(default=0, name="Shuffle Records Written")


class Input(msgspec.Struct):
    size: Number = field(default=0, name="Bytes Read")
    records: Number = field(default=0, name="Records Read")


class Output(msgspec.Struct):
    size: Number = field(default=0, name="Bytes Written")
    records: Number = field(default=0, name="Records Written")


class TaskMetrics(msgspec.Struct):
    """Spark 1 leaves out groups that are not used."""

    deserialize: Number = field(default=0, name="Executor Deserialize Time")
    deserialize_cpu: Number = field(default=0, name="Executor Deserialize CPU Time")
    run: Number = field(default=0, name="Executor Run Time")
    cpu: Number = field(default=0, name="Executor CPU Time")
    peak: Number = field(default=0, name="Peak Execution Memory")
    result_size: Number = field(default=0, name="Result Size")
    gc: Number = field(default=0, name="JVM GC Time")
    serialize: Number = field(default=0, name="Result Serialization Time")
    memory_spilled: Number = field(default=0, name="Memory Bytes Spilled")
    disk_spilled: Number = field(default=0, name="Disk Bytes Spilled")
    read: ShuffleRead | None = field(default=None, name="Shuffle Read Metrics")
    write: ShuffleWrite | None = field(default=None, name="Shuffle Write Metrics")
    input: Input | None = field(default=None, name="Input Metrics")
    output: Output | None = field(default=None, name="Output Metrics")


class TaskEnd(msgspec.Struct):
    stage: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    reason: TaskEndReason = field(default_factory=TaskEndReason, name="Task End Reason")
    info: TaskInfo = field(default_factory=TaskInfo, name="Task Info")
    peaks: msgspec.Raw = field(default=_NOTHING, name="Task Executor Metrics")
    metrics: TaskMetrics | None = field(default=None, name="Task Metrics")


class StageExecutorMetrics(msgspec.Struct):
    executor: str = field(default="", name="Executor ID")
    stage: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    peaks: msgspec.Raw = field(default=_NOTHING, name="Executor Metrics")


class StageMetricsUpdate(msgspec.Struct):
    stage: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    peaks: msgspec.Raw = field(default=_NOTHING, name="Executor Metrics")


class ExecutorMetricsUpdate(msgspec.Struct):
    """Spark 4 logs one, of the driver when the application ends."""

    executor: str = field(default="", name="Executor ID")
    updates: list[StageMetricsUpdate] = field(default_factory=list, name="Executor Metrics Updated")


class AnyEvent(msgspec.Struct):
    """For lines that do not begin with the event's name."""

    name: str = field(default="", name="Event")


MEMORY = msgspec.json.Decoder(dict[str, Number])
"""Executor Metrics."""
ANY = msgspec.json.Decoder(AnyEvent)
SQL_PREFIX = b"org.apache.spark.sql.execution.ui.SparkListener"
