"""What a Spark session says of its own application: where it runs, and how `hprofiler run` finds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.resolve.yarn.site import resource_managers

_LOCAL = re.compile(r"local(\[.*\])?$")
_PID = re.compile(r"/proc/([0-9]+)$")


@dataclass(frozen=True)
class Session:
    """A session's application.

    `words` are the options of `hprofiler run` that mean it. `page` is the address of the driver's own page,
    None without one. `driver` is the host and port of a driver in client mode, which is beside this Python
    and in no container of the cluster; None in local mode, where it is the application: then `pid` is its
    process, and `name` the application's name.
    """

    words: tuple[str, ...]
    page: str | None = None
    driver: tuple[str, int] | None = None
    pid: int = 0
    name: str = ""


def read_session(spark: object) -> Session:
    """The application of a SparkSession or SparkContext. Raises UsageError if it cannot be profiled."""
    context: Any = getattr(spark, "sparkContext", spark)
    if not hasattr(context, "_jsc"):
        raise UsageError(
            f"{type(spark).__name__} is not a SparkSession that has its driver's JVM beside this Python",
            "a session of Spark Connect is profiled from a terminal: hprofiler -j application_… -c URL",
        )
    if context._jsc is None:
        raise UsageError("the Spark session has ended", "make a new one with SparkSession.builder")
    try:
        return _session(context)
    except HprofilerError:
        raise
    except Exception as error:  # whatever the gateway to the JVM raises
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise HprofilerError(f"the session's JVM does not answer: {lines[0][:500]}") from error


def _session(context: Any) -> Session:
    settings = context.getConf()
    master, application = str(context.master), str(context.applicationId)
    is_client = settings.get("spark.submit.deployMode", "client") == "client"
    host, port = settings.get("spark.driver.host"), settings.get("spark.driver.port")
    driver = (str(host), int(port)) if is_client and host and port else None
    page = None if context.uiWebUrl is None else str(context.uiWebUrl)
    if _LOCAL.match(master):
        pid, name = _pid(context), str(settings.get("spark.app.name", ""))
        return Session(("-j", f"pid:{pid}"), page, pid=pid, name=name)
    if master == "yarn":
        managers = resource_managers(_hadoop(context), "the session's Hadoop configuration")
        # The driver's own page answers only the ResourceManager's proxy, so that is asked.
        return Session(("-j", application, "-c", ",".join(managers)), None, driver)
    if master.startswith("k8s://"):
        words = ["-j", f"k8s:spark-app-selector={application}"]
        words += ["-n", str(settings.get("spark.kubernetes.namespace", "default"))]
        chosen = settings.get("spark.kubernetes.context")
        return Session((*words, *(("--context", str(chosen)) if chosen else ())), page, driver)
    raise UsageError(
        f"the session's master is {master}; record() profiles sessions of local mode, YARN and Kubernetes",
        f"profile it from a terminal: hprofiler -j {application} -h HOSTS",
    )


def _pid(context: Any) -> int:
    """The process of the session's JVM, which need not be a child of this one."""
    path = str(context._jvm.java.io.File("/proc/self").getCanonicalPath())
    found = _PID.match(path)
    if found is None:
        raise UsageError(
            "the session's JVM is not on Linux, where hprofiler records", "run the notebook there"
        )
    return int(found.group(1))


def _hadoop(context: Any) -> dict[str, str]:
    """The properties of the session's Hadoop configuration that say where the ResourceManagers are."""
    configuration, found = context._jsc.hadoopConfiguration(), {}
    manager = "yarn.resourcemanager"
    ids = str(configuration.get(f"{manager}.ha.rm-ids") or "").split(",")
    names = ["yarn.http.policy", f"{manager}.ha.enabled", f"{manager}.ha.rm-ids"]
    for suffix in ("", *(f".{one.strip()}" for one in ids if one.strip())):
        names += [
            f"{manager}.{name}{suffix}" for name in ("hostname", "webapp.address", "webapp.https.address")
        ]
    for name in names:
        value = configuration.get(name)
        if value is not None:
            found[name] = str(value)
    return found
