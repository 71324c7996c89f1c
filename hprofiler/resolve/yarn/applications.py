"""Applications: by id, or running ones by filter."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass

from hprofiler.base.answers import member, number, objects, text
from hprofiler.base.errors import UsageError
from hprofiler.resolve.yarn.ids import is_application_id
from hprofiler.resolve.yarn.rest import NotFound, NotRunning, ResourceManager, YarnError

FILTERS = ("name", "user", "queue", "tag", "type")
_NOT_YET = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")
_OVER = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class Application:
    """A running application as the ResourceManager lists it. `elapsed` is in seconds."""

    id: str
    name: str
    user: str
    queue: str
    type: str
    tags: tuple[str, ...]
    containers: int
    memory_mb: int
    elapsed: float


def parse_filter(words: str) -> Mapping[str, str]:
    """`name=nightly*,queue=etl` as a mapping. Raises UsageError."""
    wanted = {}
    for word in filter(None, (word.strip() for word in words.split(","))):
        name, _, pattern = word.partition("=")
        if name not in FILTERS or not pattern:
            known = ", ".join(f"{known}=" for known in FILTERS)
            raise UsageError(
                f"yarn:{words}: {word!r} is not a filter",
                f"write one of {known} with a value; * matches any text",
            )
        wanted[name] = pattern
    return wanted


def application(manager: ResourceManager, identity: str) -> Application:
    """The running application with that id. Raises YarnError if it cannot be profiled."""
    app = _asked(manager, identity)
    state, final = text(app, "state"), text(app, "finalStatus")
    if state != "RUNNING":
        how = f"{state} ({final})" if final not in ("", "UNDEFINED", state) else state or "in no known state"
        over = "`hprofiler apps` lists the running applications; it may have another id now"
        reason = f"{identity} is {how}: only a running application can be profiled"
        if state in _NOT_YET:
            raise NotRunning(reason, "wait until it runs: --wait")
        raise YarnError(reason, over)
    return _application(app)


def if_running(manager: ResourceManager, identity: str) -> Application | None:
    app = _asked(manager, identity)
    return _application(app) if text(app, "state") == "RUNNING" else None


def has_ended(manager: ResourceManager, identity: str) -> bool:
    """Whether the application is over. Between two attempts it is not."""
    return text(_asked(manager, identity), "state") in _OVER


def _asked(manager: ResourceManager, identity: str) -> object:
    try:
        app = member(manager.get(f"/apps/{identity}"), "app")
    except NotFound as error:
        if identity not in error.said:  # the ResourceManager's text; other YARN servers' differs
            remedy = "name the base address of the ResourceManager's web interface with -c"
            raise YarnError(f"{error.reason}: no ResourceManager answers there", remedy) from error
        reason = f"the ResourceManager {manager.base} does not know {identity}"
        raise YarnError(reason, "`hprofiler apps` lists the running ones") from error
    if text(app, "id") != identity:
        raise YarnError(f"{manager.base} answers with something that is not {identity}", "check the address")
    return app


def running(manager: ResourceManager, wanted: Mapping[str, str]) -> list[Application]:
    """The running applications that match the filter, newest first."""
    found = manager.get("/apps", {"states": "RUNNING"})
    applications = [_application(app) for app in objects(found, "apps", "app")]
    chosen = [app for app in applications if is_application_id(app.id) and _matches(app, wanted)]
    return sorted(chosen, key=lambda app: app.elapsed)


def _application(app: object) -> Application:
    return Application(
        id=text(app, "id"),
        name=text(app, "name"),
        user=text(app, "user"),
        queue=text(app, "queue"),
        type=text(app, "applicationType"),
        tags=tuple(filter(None, text(app, "applicationTags").split(","))),
        containers=number(app, "runningContainers"),
        memory_mb=number(app, "allocatedMB"),
        elapsed=number(app, "elapsedTime") / 1000,
    )


def _matches(app: Application, wanted: Mapping[str, str]) -> bool:
    values = {"name": [app.name], "user": [app.user], "type": [app.type], "tag": list(app.tags)}
    # A queue matches by its whole path or its last part.
    values["queue"] = [app.queue, app.queue.rpartition(".")[2]]
    return all(
        any(fnmatch.fnmatchcase(value.lower(), pattern.lower()) for value in values[name])
        for name, pattern in wanted.items()
    )
