"""Event logs of real Spark applications, and what Spark's own history server says of each.

Made once for each version of Spark, and kept in the lab's cache:

    python -m tests.lab.spark.logs      make all, and print their names and paths
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import cache, jdks
from tests.lab.procs import wait_for
from tests.lab.yarn.cluster import OPENED, SOON
from tests.lab.yarn.software import compiled, pyspark

HERE = Path(__file__).parent
JDK = 17
SAMPLES = "samples"
_TESTS = "org.apache.spark:spark-core_2.13:3.5.6:jar:tests"
SECONDS = 900
_CODECS = ("zstd", "lz4", "snappy", "lzf")
_ROLLING = "spark.eventLog.rolling.enabled=true,spark.eventLog.rolling.maxFileSize=10m"
_MEMORY = (
    "spark.eventLog.logStageExecutorMetrics=true,spark.executor.metrics.pollingInterval=50ms,"
    "spark.executor.processTreeMetrics.enabled=true"
)
_ON_TWO_WORKERS = "spark.driver.host=127.0.0.1,spark.executor.memory=512m,spark.cores.max=4"
SMALL = f"small,{_MEMORY}"
_PACKED = {
    codec: f"spark.eventLog.compress=true,spark.eventLog.compression.codec={codec}" for codec in _CODECS
}
LOCAL = (
    SMALL,
    *(f"small-{codec},{packed}" for codec, packed in _PACKED.items()),
    f"many,{_ROLLING}",
    *(f"many-{codec},{_ROLLING},{packed}" for codec, packed in _PACKED.items()),
    "spill,spark.shuffle.spill.numElementsForceSpillThreshold=5000",
    "failing",
    "killed",
)
STANDALONE = (
    f"skewed,{_ON_TWO_WORKERS},{_MEMORY}",
    f"speculative,{_ON_TWO_WORKERS},spark.speculation=true,spark.speculation.interval=100ms",
    f"lost,{_ON_TWO_WORKERS},{_MEMORY}",
)
SQL = ("queries", "queries-plain,spark.sql.adaptive.enabled=false", f"queries-memory,{_MEMORY}")
PYTHON = (f"python,{_MEMORY}",)
QUANTILES = "0.05,0.25,0.5,0.75,0.95"
STAGES = f"stages?details=true&withSummaries=true&quantiles={QUANTILES}"
TASK_SUMMARY = f"stages/{{}}/{{}}/taskSummary?quantiles={QUANTILES}"
SQL_QUERIES = "sql?details=true&planDescription=true&length=10000"
_PATHS = ("jobs", STAGES, "allexecutors", SQL_QUERIES, "environment", "storage/rdd")


@dataclass(frozen=True)
class Spark:
    """A version of Spark: its jars are in `home`/jars."""

    name: str
    home: Path

    @property
    def classes(self) -> str:
        return f"{self.home}/jars/*"


@dataclass(frozen=True)
class Logged:
    """An application: its name, its event log (file or folder), and the history server's answers by path.

    The path is what follows `/applications/ID/`; the empty path is the application itself.
    """

    name: str
    log: Path
    answers: dict[str, Any]


def spark_3() -> Spark:
    """Spark 3.5 with SQL. Raises Unavailable."""
    if not shutil.which("mvn"):
        raise cache.Unavailable("the Spark logs need mvn to fetch Spark")

    def fetch(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars"]
        _run(["mvn", "-B", "-q", "-f", str(HERE / "sql.xml"), *goal])

    xml = (HERE / "sql.xml").read_bytes()
    return Spark("spark-3", cache.made(cache.folder("spark"), "spark-sql", xml, fetch))


def spark_4() -> Spark:
    """PySpark 4, which has all of Spark's jars. Raises Unavailable."""
    return Spark("spark-4", pyspark())


def made(version: str) -> list[Logged]:
    """All applications of a version, from the cache or run now (some minutes). Raises Unavailable."""
    spark = VERSIONS[version]()
    recipe = b"".join(file.read_bytes() for file in sorted(HERE.iterdir()) if file.is_file())
    make = _fetch_samples if version == SAMPLES else _make
    key = recipe + str(spark.home).encode()
    return _read(cache.made(cache.folder("spark-logs"), version, key, lambda folder: make(spark, folder)))


def _fetch_samples(spark: Spark, folder: Path) -> None:
    """The logs of Spark's own tests, by versions 1.3 to 3.3; some are of two attempts of an application."""
    _run(["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={_TESTS}", f"-DoutputDirectory={folder}"])
    (jar,) = folder.glob("*.jar")
    (folder / "logs").mkdir()
    with zipfile.ZipFile(jar) as content:
        for name in content.namelist():
            if name.startswith("spark-events/") and not name.endswith("/"):
                (folder / "logs" / Path(name).name).write_bytes(content.read(name))
    ask_history(spark, folder)


def _make(spark: Spark, folder: Path) -> None:
    (folder / "logs").mkdir()
    _run_jobs(spark, "CoreJobs", "local[2,3]", folder / "logs", LOCAL)
    _run_jobs(spark, "SqlJobs", "local[2]", folder / "logs", SQL)
    with _two_workers(spark) as master:
        _run_jobs(spark, "CoreJobs", master, folder / "logs", STANDALONE)
    if spark.name == "spark-4":
        _run_python(spark, folder / "logs")
    ask_history(spark, folder)


def quick(folder: Path) -> list[Logged]:
    """A small application and one with queries, run now. Raises Unavailable."""
    spark = spark_3()
    (folder / "logs").mkdir()
    _run_jobs(spark, "CoreJobs", "local[2,3]", folder / "logs", [SMALL])
    _run_jobs(spark, "SqlJobs", "local[2]", folder / "logs", SQL[:1])
    ask_history(spark, folder)
    return _read(folder)


def _run_jobs(spark: Spark, program: str, master: str, logs: Path, names: Sequence[str]) -> None:
    jar = compiled("spark-logs-jobs", [HERE / "CoreJobs.java", HERE / "SqlJobs.java"], spark.home / "jars")
    java = _java(spark, "-Xmx512m", *SOON.split(), path=f"{jar}:{spark.classes}")
    more = f",spark.jars={jar}" if master.startswith("spark:") else ""
    _run([*java, program, master, str(logs), *(name + more for name in names)], spark)


def _run_python(spark: Spark, logs: Path) -> None:
    (zipped,) = (spark.home / "python" / "lib").glob("py4j-*.zip")
    path = f"{spark.home.parent}:{zipped}"
    own = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    _run([sys.executable, str(HERE / "python_jobs.py"), str(logs), *PYTHON], spark, own)


@contextlib.contextmanager
def _two_workers(spark: Spark) -> Iterator[str]:
    """A standalone cluster on loopback; its workers are different hosts to Spark. Gives its address."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as running:
        port = free_port()
        master = f"spark://127.0.0.1:{port}"
        place = "org.apache.spark.deploy"

        def start(name: str, *arguments: str) -> None:
            java = [*_java(spark, "-Xmx256m"), f"{place}.{name}", "--webui-port", "0", *arguments]
            running.enter_context(started(java, spark, Path(scratch) / "log"))

        start("master.Master", "--host", "127.0.0.1", "--port", str(port))
        wait_for("the master of Spark", lambda: _listens(port))
        for host in ("127.0.0.2", "127.0.0.3"):
            work = ["--cores", "2", "--memory", "1g", "--work-dir", f"{scratch}/{host}"]
            start("worker.Worker", "--host", host, *work, master)
        yield master


def ask_history(spark: Spark, folder: Path) -> None:
    """Write what the history server says of each log in `folder`/logs into `folder`/answers."""
    (folder / "answers").mkdir()
    with history_server(spark, folder / "logs") as api:
        for application in get(api):
            for attempt in application["attempts"]:
                parts = [application["id"], *([attempt["attemptId"]] if "attemptId" in attempt else [])]
                answers = {"": {**application, "attempts": [attempt]}}
                for path in _PATHS:
                    answers[path] = get(f"{api}/{'/'.join(parts)}/{path}")
                for stage in answers[STAGES]:
                    path = TASK_SUMMARY.format(stage["stageId"], stage["attemptId"])
                    answers[path] = get(f"{api}/{'/'.join(parts)}/{path}")
                (folder / "answers" / f"{'_'.join(parts)}.json").write_text(json.dumps(answers, indent=1))


@contextlib.contextmanager
def history_server(spark: Spark, logs: Path, memory: str = "1g") -> Iterator[str]:
    """A history server that has listed all logs of a folder. Gives the address of its applications."""
    port = free_port()
    settings = {
        "spark.history.fs.logDirectory": f"file://{logs}",
        "spark.history.ui.port": str(port),
        "spark.history.fs.update.interval": "1s",
        "spark.history.retainedApplications": "1",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    java = [*_java(spark, f"-Xmx{memory}", *options), "org.apache.spark.deploy.history.HistoryServer"]
    with tempfile.TemporaryDirectory() as scratch, started(java, spark, Path(scratch) / "log"):
        api = f"http://127.0.0.1:{port}/api/v1/applications"
        wanted = len(list(logs.iterdir()))

        def attempts() -> int:
            return sum(len(application["attempts"]) for application in get(api) or [])

        wait_for("the history server", lambda: attempts() >= wanted, 180)
        yield api


def _read(folder: Path) -> list[Logged]:
    found = []
    logs = {_attempt_of(log): log for log in (folder / "logs").iterdir()}
    for path in sorted((folder / "answers").iterdir()):
        answers = json.loads(path.read_text())
        found.append(Logged(answers[""]["name"], logs[path.stem], answers))
    return found


def _attempt_of(log: Path) -> str:
    """ID or ID_ATTEMPT, as the log's name has it; plain files of Spark's tests may have any name."""
    if log.is_file() and "." not in log.name:
        for line in log.read_text().splitlines():
            if line.startswith('{"Event":"SparkListenerApplicationStart"'):
                event = json.loads(line)
                return "_".join(filter(None, (event["App ID"], event.get("App Attempt ID"))))
    return log.name.removeprefix("eventlog_v2_").partition(".")[0]


def get(address: str) -> Any:
    """The JSON at an address; None if there is none."""
    try:
        with urllib.request.urlopen(address, timeout=120) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError):
        return None


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def _java(spark: Spark, *options: str, path: str = "") -> list[str]:
    snappy = f"-Dorg.xerial.snappy.lib.path={_snappy(spark)}"
    return [jdks.java(JDK), *options, snappy, "-XX:+UseSerialGC", *OPENED, "-cp", path or spark.classes]


def _snappy(spark: Spark) -> Path:
    """The folder of Snappy's library. Itself it takes the wrong one where musl is installed beside glibc."""
    (jar,) = (spark.home / "jars").glob("snappy-java-*.jar")
    member = f"org/xerial/snappy/native/Linux/{platform.machine()}/libsnappyjava.so"

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(jar) as content:
            (folder / "libsnappyjava.so").write_bytes(content.read(member))

    return cache.made(cache.folder("spark"), "snappy", jar.name.encode(), unpack)


def _environment(spark: Spark) -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(jdks.home(JDK)),
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # else Spark looks for its build folders
    }


@contextlib.contextmanager
def started(command: Sequence[str], spark: Spark, log: Path) -> Iterator[None]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(spark)
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _run(command: Sequence[str], spark: Spark | None = None, own: dict[str, str] | None = None) -> None:
    environment = {**_environment(spark), **(own or {})} if spark else None
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    if done.returncode:
        raise OSError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-3000:]}")


VERSIONS: dict[str, Callable[[], Spark]] = {SAMPLES: spark_3, "spark-3": spark_3, "spark-4": spark_4}
"""What there are logs of, and the Spark whose history server answers."""


if __name__ == "__main__":
    for version in VERSIONS:
        for one in made(version):
            print(one.name, one.log)
