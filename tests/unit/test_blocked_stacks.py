"""What stacks of tasks are blocked on: the innermost rule decides."""

from __future__ import annotations

import pytest

from hprofiler._flamegraph import Profile, category_patterns
from hprofiler.analysis.blocked_stacks import BLOCKED_ON, BlockedRules, most_first

RUN = "org/apache/spark/executor/Executor$TaskRunner.run"
FETCH = "org/apache/spark/storage/ShuffleBlockFetcherIterator.next"
TAKE = ("java/util/concurrent/LinkedBlockingQueue.take", "java/util/concurrent/locks/LockSupport.park")
READ = ("java/io/FileInputStream.read", "java/io/FileInputStream.readBytes")
SOCKET = ("java/net/SocketInputStream.read", "java/net/SocketInputStream.socketRead0")
SPARK = "org/apache/spark"
NIO = "sun/nio/ch/FileDispatcherImpl"
SQL = f"{SPARK}/sql/execution/python"
WRITE = ("java/io/FileOutputStream.write", "java/io/FileOutputStream.writeBytes")
WAIT = "java/lang/Object.wait"


@pytest.mark.parametrize(
    ("expected", "stack"),
    [
        ("shuffle-fetch", (RUN, FETCH, *TAKE)),
        (None, (RUN, FETCH, "org/apache/spark/storage/BlockManager.getLocalBlockData")),
        (None, (RUN, "App.run", *TAKE)),
        ("shuffle-write", (RUN, f"{SPARK}/storage/DiskBlockObjectWriter.write", *WRITE)),
        ("shuffle-write", (RUN, f"{SPARK}/shuffle/sort/UnsafeShuffleWriter.write", f"{NIO}.write0")),
        ("local-disk", (RUN, "App.read", *READ)),
        ("local-disk", (RUN, FETCH, "sun/nio/ch/UnixFileDispatcherImpl.pread0")),
        (None, ("Main.main", *READ)),
        ("child-process", (RUN, f"{SPARK}/rdd/PipedRDD$$anon$1.hasNext", *READ)),
        ("socket", (RUN, "org/postgresql/core/PGStream.receiveChar", *SOCKET)),
        ("socket", (RUN, "sun/nio/ch/SocketDispatcher.read", f"{NIO}.read0")),
        ("hdfs", (RUN, "org/apache/hadoop/hdfs/DFSInputStream.read", *SOCKET)),
        ("object-store", (RUN, "org/apache/hadoop/fs/s3a/S3AInputStream.read", *SOCKET)),
        ("python", (RUN, f"{SPARK}/api/python/BasePythonRunner$ReaderIterator.read", *SOCKET)),
        ("python", (RUN, FETCH, f"{SQL}/BasePythonUDFRunner$ReaderIterator.read", *SOCKET)),
        ("memory", (RUN, f"{SPARK}/memory/ExecutionMemoryPool.acquireMemory", WAIT)),
        ("broadcast", (RUN, f"{SPARK}/storage/BlockInfoManager.lockForReading", WAIT)),
        ("monitor", (RUN, "App.lock", "ObjectMonitor::enter")),
        (None, (RUN, "App.compute")),
    ],
)  # fmt: skip
def test_rules(expected: str | None, stack: tuple[str, ...]) -> None:
    text = ";".join(stack) + " 3\nMain.main;App.other 2\n"
    counts = BlockedRules().counts(Profile.from_bytes(text.encode(), "folded"))
    assert counts == ({expected: 3} if expected else {})


def test_every_rule_has_patterns_and_a_text() -> None:
    assert all(len(category_patterns(rule)) == 2 for rule in BLOCKED_ON)
    assert list(most_first({"hdfs": 1, "python": 2})) == [("Python", 2), ("HDFS", 1)]
