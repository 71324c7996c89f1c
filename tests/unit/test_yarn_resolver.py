"""From an application to hosts and containers: queries to a ResourceManager, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from hprofiler.base.errors import NotYet, UsageError
from hprofiler.model import MANAGER_PORT, OWNER, PROCESS, RUN_FOR, JobAccount, Target
from hprofiler.resolve import Located, TargetOptions, YarnOptions, resolve
from hprofiler.resolve.host_names import HostEntry
from hprofiler.resolve.yarn.rest import YarnError
from tests.unit.yarn_server import (
    APP,
    CLUSTER,
    PROXY,
    Answer,
    Server,
    app,
    application_paths,
    attempt,
    container,
    container_id,
    executor,
    small_cluster,
    spark_paths,
)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(small_cluster()) as made:
        yield made


def locate(server: Server, asked: str = APP, **options: Any) -> Located:
    return resolve(TargetOptions(application=asked, yarn=YarnOptions(server.url, **options)))


def containers(located: Located) -> dict[str, list[str]]:
    return {host.name: list(host.containers) for host in located.hosts}


def test_hosts_and_labels_of_containers(server: Server) -> None:
    located = locate(server)
    assert located.target == Target("yarn", APP) and located.notes == ()
    assert containers(located) == {"n1": [container_id(1), container_id(3)], "n2": [container_id(2)]}
    assert [host.address for host in located.hosts] == ["n1", "n2"]
    one, two = located.hosts
    base = {"application": APP, "app_attempt": "1", RUN_FOR: "etl", MANAGER_PORT: "8042"}
    assert one.containers[container_id(1)] == {
        **base, "node": "n1", "role": "driver", "executor": "driver", PROCESS: "driver"
    }  # fmt: skip
    assert two.containers[container_id(2)] == {
        **base, "node": "n2", "role": "executor", "executor": "1", PROCESS: "executor 1", "stage": "3, 7"
    }  # fmt: skip
    assert len(server.asked) == 5


def test_host_map_by_full_and_short_names(server: Server) -> None:
    entries = {"n1": HostEntry("10.0.0.1", "root", 2222), "n2.example": HostEntry("other", None, None)}
    one, two = locate(server, host_map=entries).hosts
    assert (one.name, one.address, one.user, one.port) == ("n1", "10.0.0.1", "root", 2222)
    assert (two.name, two.address, two.user, two.port) == ("n2", "n2", None, None)
    listed = application_paths([container(2, "n2.example"), container(3, "n1.rack7.example")])
    server.set(listed)
    assert [host.address for host in locate(server, host_map=entries).hosts] == ["10.0.0.1", "other"]


# Spark


@pytest.mark.parametrize("node", ["n2", "N2.example"])
def test_a_driver_in_client_mode_on_a_host_of_the_run(server: Server, node: str) -> None:
    server.set(spark_paths([executor("driver", None, node), executor("1", 2, "n2")], []))
    located = locate(server)
    assert located.notes == ()
    assert containers(located) == {
        "n1": [container_id(1), container_id(3)],
        "n2": [container_id(2), "spark_driver_40001"],
    }
    assert located.hosts[1].containers["spark_driver_40001"] == {
        "application": APP, "role": "driver", "executor": "driver", PROCESS: "driver", OWNER: "etl"
    }  # fmt: skip


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=x:1", "n1", "n1:0", "n1:70000", "n1:x", ":1", "", 7, None]
)
def test_a_driver_at_no_address_is_not_looked_for(server: Server, address: Any) -> None:
    server.set(spark_paths([executor("driver", None, "n1", hostPort=address)], []))
    located = locate(server)
    assert located.notes == (
        "the Spark driver runs outside of containers at an unknown address, and is not profiled",
    )
    assert containers(located)["n1"] == [container_id(1), container_id(3)]


def test_answers_of_a_driver_are_not_trusted(server: Server) -> None:
    """It may label containers of its own application only."""
    liar = executor("\x1b[31m9", 2, "n2", tasks=1)
    foreign = executor("1", 77, "evil")
    odd: list[Any] = ["x", 7, None, {"id": {}}, {"id": "8", "executorLogs": ["a"]}, {"id": "9" * 5000}]
    server.set({f"{PROXY}/executors": [liar, foreign, *odd]})
    located = locate(server)
    assert [host.name for host in located.hosts] == ["n1", "n2"]
    assert located.hosts[1].containers[container_id(2)]["executor"] == "\ufffd[31m9"


# Several applications

OTHER = "application_1700000000000_0043"


@pytest.fixture
def two(server: Server) -> Server:
    other = app(
        OTHER, name="Ad hoc", user="kim", queue="default", applicationTags="a,b", runningContainers=300
    )
    server.set({f"{CLUSTER}/apps": {"apps": {"app": [app(), other, {"id": "../../x", "name": "evil"}]}}})
    server.set(application_paths([container(1, "n5", identity=OTHER)], OTHER, applicationType="TEZ"))
    return server


@pytest.mark.parametrize("asked", ["nme=x", "name", "name=,user=x", "nightly"])
def test_bad_filters(server: Server, asked: str) -> None:
    with pytest.raises(UsageError, match="is not a filter"):
        locate(server, asked)
    assert server.asked == []


# Changes during the recording


def test_new_containers_during_the_recording(server: Server) -> None:
    located = locate(server)
    assert list(located.new_processes(())) == []
    name = attempt(1)["appAttemptId"]
    listed = [container(n, node) for n, node in ((1, "n1"), (2, "n2"), (3, "n1"), (5, "n4"), (6, "n2"))]
    server.set({f"{CLUSTER}/apps/{APP}/appattempts/{name}/containers": {"container": listed}})
    server.set(spark_paths([executor("5", 5, "n4")], []))
    came = located.new_processes(())
    assert [(line.host, line.reason) for line in came] == [
        ("n4", "executor 5 on n4 started during the recording and is not in it"),
        ("n2", f"{container_id(6)} on n2 started during the recording and is not in it"),
    ]
    server.paths.clear()
    server.set({"*": Answer(b"", 500)})
    with pytest.raises(YarnError, match="answered 500"):
        located.new_processes(())


def test_what_an_application_has_now(server: Server) -> None:
    """New containers and hosts with the application's prefix, until it is over; a new attempt is no end."""
    located = locate(server)
    assert located.look is not None
    prefix = container_id(1).removesuffix("01_000001")
    assert all(host.prefixes == {prefix: {"application": APP, RUN_FOR: "etl"}} for host in located.hosts)
    name = attempt(1)["appAttemptId"]
    listed = [container(n, node) for n, node in ((2, "n2"), (3, "n1"), (5, "n4"))]
    server.set({f"{CLUSTER}/apps/{APP}/appattempts/{name}/containers": {"container": listed}})
    now = located.look()
    assert {host.name: list(host.containers) for host in now.hosts} == {
        "n1": [container_id(3)],
        "n2": [container_id(2)],
        "n4": [container_id(5)],
    }
    assert not now.over
    assert [line.host for line in located.new_processes({container_id(5)})] == []
    for state, over in (("ACCEPTED", False), ("FINISHED", True)):
        server.set({f"{CLUSTER}/apps/{APP}": {"app": app(state=state)}})
        now = located.look()
        assert (list(now.hosts), now.over) == ([], over)


# The account of a job

JOB = f"job_{APP.partition('_')[2]}"


def mapreduce_paths(base: str) -> dict[str, Any]:
    """A job of two map tasks, the first at its second attempt; the job's own counters."""
    id_ = JOB.partition("_")[2]
    tasks = [
        {"id": f"task_{id_}_m_{number:06}", "startTime": 1_700_000_001_000, "finishTime": 1_700_000_009_000}
        for number in (0, 1)
    ]
    tasks[0]["successfulAttempt"] = f"attempt_{id_}_m_000000_1"
    below = f"{base}/{JOB}"
    cpu = {"counterGroupName": "org.apache.hadoop.mapreduce.TaskCounter"}
    times = {"startTime": 1_700_000_002_500, "finishTime": 1_700_000_008_000, "nodeHttpAddress": "n2:8042"}
    attempts = [{"id": f"attempt_{id_}_m_000000_{number}", **times} for number in (0, 1)]
    counter = [{"name": "GC_TIME_MILLIS", "value": 7}, {"name": "CPU_MILLISECONDS", "value": 5250}]
    return {
        f"{below}/counters": {
            "jobCounters": {
                "counterGroup": [
                    {**cpu, "counter": [{"name": "CPU_MILLISECONDS", "totalCounterValue": 9500}]}
                ]
            }
        },
        f"{below}/tasks": {"tasks": {"task": tasks}},
        f"{below}/tasks/{tasks[0]['id']}/attempts": {"taskAttempts": {"taskAttempt": attempts}},
        f"{below}/tasks/{tasks[0]['id']}/counters": {
            "jobTaskCounters": {"taskCounterGroup": [{**cpu, "counter": counter}]}
        },
    }


@pytest.mark.parametrize("state", ["RUNNING", "FINISHED"])
def test_the_account_of_a_mapreduce_job(server: Server, state: str) -> None:
    """A job that runs says it itself, one that has ended the history server. The second task is not asked."""
    server.set({f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="MAPREDUCE")}})
    located = locate(server)
    assert located.account is not None and located.driver is None
    page = f"/jobhistory/job/{JOB}"
    if state == "RUNNING":
        server.set(mapreduce_paths(f"/proxy/{APP}/ws/v1/mapreduce/jobs"))
    else:
        over = app(applicationType="MAPREDUCE", state=state, trackingUrl=f"{server.url}/proxy/{APP}/")
        server.set({f"{CLUSTER}/apps/{APP}": {"app": over}, page: b"<html>"})
        server.set({f"/proxy/{APP}/": Answer(b"", 302, {"Location": f"{server.url}{page}"})})
        server.set(mapreduce_paths("/ws/v1/history/mapreduce/jobs"))
    account = located.account()
    assert (account.manager, account.cpu_seconds) == ("mapreduce", 9.5)
    first, second, unknown = account.parts
    assert (first.name, first.counts, first.cpu_seconds) == ("task m_000000_0", False, None)
    assert (second.name, second.counts, second.cpu_seconds) == ("task m_000000_1", True, 5.25)
    assert (second.host, second.labels) == ("n2", {"attempt": "m_000000_1"})
    # The Date of this server is of today: its clock is right, whatever the times are.
    assert (second.started, second.ended) == (1_700_000_002.5, 1_700_000_008.0)
    assert (unknown.name, unknown.labels, unknown.started) == (
        "task m_000001",
        {"task": "m_000001"},
        1_700_000_001,
    )


def test_the_account_of_a_job_with_impossible_numbers_can_be_read_again(server: Server) -> None:
    """Its ApplicationMaster runs its user's code."""
    server.set({f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="MAPREDUCE")}})
    located = locate(server)
    base = f"/proxy/{APP}/ws/v1/mapreduce/jobs"
    paths = mapreduce_paths(base)
    paths[f"{base}/{JOB}/tasks"]["tasks"]["task"][1]["startTime"] = 2**53
    groups = paths[f"{base}/{JOB}/counters"]["jobCounters"]["counterGroup"]
    groups[0]["counter"][0]["totalCounterValue"] = 2**53
    server.set(paths)
    assert located.account is not None
    account = located.account()
    assert msgspec.json.decode(msgspec.json.encode(account), type=JobAccount) == account
    assert (account.cpu_seconds, account.parts[2].started) == (None, 0.0)


def test_the_account_of_an_application_that_says_nothing_itself(server: Server) -> None:
    """What runs at the end, by the ResourceManager. An ended job without a history server is an error."""
    server.set({f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="TEZ")}})
    located = locate(server)
    assert located.account is not None
    account = located.account()
    assert (account.manager, account.cpu_seconds) == ("yarn", None)
    assert [(part.name, part.host) for part in account.parts] == [
        (container_id(number), node) for number, node in ((1, "n1"), (2, "n2"), (3, "n1"))
    ]
    server.set({f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="MAPREDUCE")}})
    located = locate(server)
    assert located.account is not None
    server.set({f"{CLUSTER}/apps/{APP}": {"app": app(applicationType="MAPREDUCE", state="FINISHED")}})
    with pytest.raises(YarnError, match="links to no history server"):
        located.account()


def test_applications_that_match_a_filter_later_belong_to_it(server: Server) -> None:
    server.set({f"{CLUSTER}/apps": {"apps": {"app": [app()]}}})
    located = locate(server, "name=nightly*")
    assert located.look is not None
    other = "application_1700000000000_0043"
    server.set({f"{CLUSTER}/apps": {"apps": {"app": [app(), app(other, applicationType="TEZ")]}}})
    server.set(application_paths([container(1, "n5", identity=other)], other, applicationType="TEZ"))
    now = located.look()
    assert [host.name for host in now.hosts] == ["n1", "n2", "n5"] and not now.over
    server.set({f"{CLUSTER}/apps": {"apps": None}})
    assert located.look().over


@pytest.mark.parametrize(("asked", "app_now"), [("name=nightly*", None), (APP, app(state="ACCEPTED"))])
def test_what_does_not_run_yet_may_come(server: Server, asked: str, app_now: Any) -> None:
    server.set({f"{CLUSTER}/apps": {"apps": None}})
    if app_now:
        server.set({f"{CLUSTER}/apps/{APP}": {"app": app_now}})
    with pytest.raises(NotYet) as caught:
        locate(server, asked)
    assert "--wait" in caught.value.remedy


# A ResourceManager that does not list containers


def test_nodes_are_asked_where_containers_are_not_listed() -> None:
    with Server() as busy, Server() as other, Server() as broken, Server() as rm:
        busy.set({"/ws/v1/node/containers": {"containers": {"container": node_containers()}}})
        other.set({"/ws/v1/node/containers": {"containers": None}})
        broken.set({"*": Answer({}, 500)})
        nodes = [
            {"nodeHostName": name, "nodeHTTPAddress": server.address, "numContainers": count}
            for name, server, count in (("n1", busy, 3), ("n2", other, 1), ("n3", broken, 2), ("n4", rm, 0))
        ]
        hostile = {"nodeHostName": "x", "nodeHTTPAddress": "evil/path?#:80", "numContainers": 1}
        rm.set(
            {
                **application_paths([], applicationType="MAPREDUCE"),
                f"{CLUSTER}/nodes": {"nodes": {"node": [*nodes, hostile]}},
            }
        )
        del rm.paths[f"{CLUSTER}/apps/{APP}/appattempts/{attempt(1)['appAttemptId']}/containers"]
        located = locate(rm)
    assert containers(located) == {"n1": [container_id(2)]}
    (note,) = located.notes
    assert note.startswith("node n3 did not list its containers: http://127") and "answered 500" in note
    assert len(busy.asked) == len(other.asked) == len(broken.asked) == 1


def node_containers() -> list[dict[str, Any]]:
    return [
        {"id": container_id(2), "state": "RUNNING"},
        {"id": container_id(3), "state": "COMPLETE"},
        {"id": container_id(1, "application_1700000000000_0043"), "state": "RUNNING"},
    ]


def test_only_containers_of_the_running_attempt(server: Server) -> None:
    foreign = container(9, "n9", identity="application_1700000000000_0043")
    second = attempt(2)
    server.set(
        {
            f"{CLUSTER}/apps/{APP}/appattempts": {
                "appAttempts": {"appAttempt": [attempt(1, state="FAILED"), second, {"appAttemptId": "../x"}]}
            },
            f"{CLUSTER}/apps/{APP}/appattempts/{second['appAttemptId']}/containers": {
                "container": [container(2, "n2"), foreign]
            },
        }
    )
    assert containers(locate(server)) == {"n2": [container_id(2)]}


@pytest.mark.parametrize("asked", ["", "name=NIGHTLY*", "queue=nightly", "queue=root.nightly,user=etl"])
def test_by_filter(two: Server, asked: str) -> None:
    others = [app(OTHER, name="x", queue="q")] if asked else []
    two.set({f"{CLUSTER}/apps": {"apps": {"app": [app(), *others]}}})
    located = locate(two, asked)
    assert [host.name for host in located.hosts] == ["n1", "n2"]
    assert located.target.name == (f"yarn:{asked}" if asked else "every running application")
