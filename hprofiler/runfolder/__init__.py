"""The run folder: the files of a run.

    DIR/run.json                            command, versions, target, every host and process with its outcome
    DIR/spark.json                          a Spark application's jobs, stages and tasks
    DIR/report.html                         the page of all events
    DIR/cluster/EVENT.{svg,folded,pb.gz}    and EVENT-mean.*
    DIR/hosts/HOST/EVENT.*                  one host
    DIR/hosts/HOST/metrics.json.gz          what the host's kernel and JVMs published every second
    DIR/hosts/HOST/PID/EVENT.pb.gz          one process; threads are labels
    DIR/hosts/HOST/PID/EVENT.time           the same with the times of its samples, as the agent sent it
    DIR/hosts/HOST/PID/EVENT.part-N-M       parts of it, while it is recorded; .json: their figures
    DIR/hosts/HOST/PID/recording.jfr        the engine's own file, with --keep-raw

Names on disk are made from names of hosts and events, which are not trusted: they cannot leave the folder.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

from hprofiler.base.paths import is_folder, is_there
from hprofiler.base.text import printable
from hprofiler.runfolder.record_folder import PAGE_FILE, RecordFolder, replacing
from hprofiler.runfolder.schema import FORMAT, Coverage, RunRecord, pieces, read

__all__ = ["FORMAT", "Coverage", "RunFolder", "RunRecord", "replacing", "safe_name"]

RUN_FILE = "run.json"
SPARK_FILE = "spark.json"
APPLICATION_FILE = "spark-application.msgpack"
METRICS_FILE = "metrics.json.gz"


class RunFolder(RecordFolder[RunRecord]):
    """A run folder on disk. `create` makes a new one, `open` reads an old one."""

    KIND = "run"
    FILE = RUN_FILE
    FOLDERS = ("cluster", "hosts")
    FILES = (PAGE_FILE, SPARK_FILE, APPLICATION_FILE)
    empty = RunRecord
    decode = staticmethod(read)
    encode = staticmethod(pieces)

    @property
    def cluster_dir(self) -> Path:
        return self.path / "cluster"

    def host_dir(self, host: str) -> Path:
        """The host's folder, always inside `hosts/`.

        Runs of earlier versions keep their names of containers.
        """
        host = printable(host)
        hosts = self.path / "hosts"
        folder, old = hosts / safe_name(host), hosts / _hashed(host)
        return old if "/" in host and not is_there(folder) and is_folder(old) else folder

    def profile_path(self, host: str, pid: int, event: str) -> Path:
        return self.host_dir(host) / str(int(pid)) / f"{safe_name(event)}.pb.gz"

    def times_path(self, host: str, pid: int, event: str) -> Path:
        profile = self.profile_path(host, pid, event)
        return profile.with_name(times_name(profile))

    def raw_path(self, host: str, pid: int, name: str) -> Path:
        return self.host_dir(host) / str(int(pid)) / safe_name(name)

    def metrics_path(self, host: str) -> Path:
        return self.host_dir(host) / METRICS_FILE

    def how_to_read_profiles(self) -> str:
        """Where the profiles are if run.json is missing, or ""."""
        hosts = self.path / "hosts"
        names = sorted({path.name for path in hosts.glob("*/*/*.pb.gz")})
        if not names:
            return ""
        name = "cpu.pb.gz" if "cpu.pb.gz" in names else names[0]
        files = f"{shlex.quote(str(hosts))}/*/*/{shlex.quote(name)}"
        return f"the profiles are in {hosts}; `hprofiler convert {files} -o out.html` reads them"


def times_name(profile: Path) -> str:
    """The name of the file beside a process's `EVENT.pb.gz` that says when its samples were taken."""
    return f"{profile.name.removesuffix('.pb.gz')}.time"


def safe_name(name: str) -> str:
    """A file name for any text: the text if it is safe, else its safe part and a hash.

    In POD/CONTAINER the slash becomes ~, which no safe text contains.
    """
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
        return name
    if re.fullmatch(r"(?=.{1,100}$)[a-z0-9][a-z0-9.-]*(/[a-z0-9][a-z0-9.-]*){1,2}", name):
        return name.replace("/", "~")
    return _hashed(name)


def _hashed(name: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable or 'host'}-{digest}"


def is_run_file(path: Path) -> bool:
    """Whether the path stands for its run folder: the page, or run.json."""
    return RunFolder.is_file_of(path)
