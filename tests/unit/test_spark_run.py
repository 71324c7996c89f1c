"""A run gets what Spark knows: from the driver, an address or an event log; without it the run is as good."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from hprofiler.app import spark
from hprofiler.app import spark_driver as spark_driver_here
from hprofiler.app.spark import LastLook, add_facts
from hprofiler.base.errors import UsageError
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.model import HERE as HERE_ADDRESS
from hprofiler.model import Clock, HostRecord, Outcome, Process, Recording, Samples, Target
from hprofiler.resolve import Located, SparkDriver, YarnOptions, spark_driver
from hprofiler.resolve.yarn.locating import locate
from hprofiler.spark.facts import DriverClock, SparkFacts, read_facts
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.saved import saved_application
from tests.lab.procs import wait_for
from tests.unit.spark_application import ANSWERS, ID, LOG, served
from tests.unit.test_spark import BEGIN, END
from tests.unit.yarn_server import APP, CLUSTER, Answer, Server, small_cluster


def host(name: str, clock: Clock | None = None, **labels: str) -> HostRecord:
    process = Process(name, 7, 1, 0, "etl", "x", labels=labels)
    recording = Recording(process, "cpu", "perf", "x", 1, Samples(1, 1, 0), 1.0)
    return HostRecord(name=name, address=name, recordings=(recording,), clock=clock)


HERE = (host("127.0.0.1", Clock(0.0, 0.0)),)


def facts_of(folder: Path) -> SparkFacts:
    found = read_facts(folder)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "page", ["", "/", "/jobs/", f"/history/{ID}/1/stages/", f"/api/v1/applications/{ID}", "/api/v1"]
)
def test_from_an_address(tmp_path: Path, page: str) -> None:
    with Server(served()) as server:
        assert add_facts(spark_driver(f"{server.url}{page}", None), tmp_path, HERE, BEGIN, END) is None
    facts = facts_of(tmp_path)
    assert facts.application == ID and len(facts.tasks["driver"]) == 8


def test_from_an_event_log(tmp_path: Path) -> None:
    assert add_facts(LOG, tmp_path, HERE, BEGIN, END) is None
    assert facts_of(tmp_path).source == str(LOG)
    application = saved_application(tmp_path)
    assert application is not None
    known = read_application(local_files(LOG))
    assert {key: list(stage.tasks.rows()) for key, stage in application.stages.items()} == {
        key: list(stage.tasks.rows()) for key, stage in known.stages.items()
    }


def test_from_the_driver_of_an_application_of_yarn(tmp_path: Path) -> None:
    with Server(small_cluster()) as server:
        located = locate(APP, YarnOptions(server.url))
        assert located.driver is not None
        below = f"/proxy/{APP}"
        server.set(served(json.loads(json.dumps(ANSWERS).replace(ID, APP)), below))
        assert add_facts(located.driver, tmp_path, HERE, BEGIN, END) is None
    assert len(facts_of(tmp_path).tasks["driver"]) == 8


def test_from_the_history_server_once_the_application_of_yarn_has_ended(tmp_path: Path) -> None:
    with Server(small_cluster()) as manager, Server(served()) as history:
        located = locate(APP, YarnOptions(manager.url))
        page = {"state": "FINISHED", "trackingUrl": f"{manager.url}/proxy/{APP}/"}
        there = Answer(b"", 302, {"Location": f"{history.url}/history/{ID}/1"})
        history.set({f"/history/{ID}/1": Answer(b"<html>")})
        manager.set({f"{CLUSTER}/apps/{APP}": {"app": page}, f"/proxy/{APP}/": there})
        assert located.driver is not None
        assert add_facts(located.driver, tmp_path, HERE, BEGIN, END) is None
    assert facts_of(tmp_path).application == ID and saved_application(tmp_path) is not None


def test_what_the_driver_said_last_once_it_is_gone(tmp_path: Path) -> None:
    """No history server knows the application."""
    with Server(small_cluster()) as server:
        located = locate(APP, YarnOptions(server.url))
        assert located.driver is not None
        server.set(served(json.loads(json.dumps(ANSWERS).replace(ID, APP)), f"/proxy/{APP}"))
        last_look = LastLook(located.driver)
        wait_for("an answer", lambda: last_look.known)
        last_look.end()
        below = f"/proxy/{APP}/api/v1/applications/{APP}"
        server.set({below: Answer(b"", 500), f"{CLUSTER}/apps/{APP}": {"app": {"state": "FINISHED"}}})
        outcome = add_facts(located.driver, tmp_path, HERE, BEGIN, END, last_look)
    assert outcome is not None and "the driver has ended" in outcome.reason, outcome
    assert len(facts_of(tmp_path).tasks["driver"]) == 8 and saved_application(tmp_path) is not None


CLOCK = Clock(2.5, 0.001)
OTHER = Clock(0.0, 0.5)


@pytest.mark.parametrize(
    ("hosts", "known"),
    [
        ([host("n1", OTHER), host("n2", CLOCK, role="driver")], 2.5),
        ([host("n1", OTHER), host("127.0.0.1", CLOCK)], 2.5),
        ([host("n1", OTHER), host("127.0.0.2", CLOCK)], None),
        ([host("n1", None, role="driver")], None),
    ],
)
def test_the_clock_of_the_drivers_host(tmp_path: Path, hosts: list[HostRecord], known: float | None) -> None:
    add_facts(LOG, tmp_path, hosts, BEGIN, END)
    clock = facts_of(tmp_path).clock
    assert (clock and clock.offset) == known


def test_the_clock_of_a_driver_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is visited as localhost, and Spark names it by its address or its name."""

    def clock(driver: str) -> DriverClock | None:
        content = LOG.read_text().replace('"Host":"127.0.0.1"', f'"Host":"{driver}"')
        (tmp_path / "log").write_text(content)
        add_facts(tmp_path / "log", tmp_path, hosts, BEGIN, END)
        return facts_of(tmp_path).clock

    name = socket.gethostname()
    hosts = [HostRecord(name=name, address="localhost", clock=CLOCK)]
    monkeypatch.setattr(spark, "is_own", lambda driver: driver == "192.0.2.2")
    found = clock("192.0.2.2")
    assert found is not None and found.offset == CLOCK.offset
    assert clock("192.0.2.3") is None
    hosts = [host("n1", CLOCK)]
    assert clock("192.0.2.2") == DriverClock(0.0, 0.0, "clock of this machine")


def test_addresses_of_this_machine() -> None:
    assert spark_driver_here.is_own(socket.gethostname())
    for other in ("127.0.0.1", "0.0.0.0", "::1", "192.0.2.77", "another-host"):
        assert not spark_driver_here.is_own(other), "a loopback address is that of any machine"


def test_the_process_of_a_driver_on_this_machine(tmp_path: Path) -> None:
    """It listens at the port of its block manager."""
    log = LOG.read_text()
    port = re.search(r'"Host":"127.0.0.1","Port":([0-9]+)', log)
    assert port is not None
    here = [HostRecord(name="n1", address=HERE_ADDRESS, clock=CLOCK)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        listened = str(server.getsockname()[1])
        (tmp_path / "log").write_text(log.replace(port.group(1), listened))
        add_facts(tmp_path / "log", tmp_path, here, BEGIN, END)
        assert facts_of(tmp_path).driver_pid == os.getpid()
        add_facts(tmp_path / "log", tmp_path, [host("n1", CLOCK)], BEGIN, END)
        assert facts_of(tmp_path).driver_pid == 0, "this machine was not visited"
    add_facts(tmp_path / "log", tmp_path, here, BEGIN, END)
    assert facts_of(tmp_path).driver_pid == 0, "it has ended"


def test_a_driver_that_does_not_answer_is_a_note(tmp_path: Path) -> None:
    def problem(source: SparkDriver | Path) -> Outcome:
        found = add_facts(source, tmp_path, HERE, BEGIN, END)
        assert found is not None and found.status.value == "degraded" and found.host == "127.0.0.1"
        return found

    with Server({}) as server:
        missing = problem(spark_driver(server.url, None))
        server.set(served({**ANSWERS, "/applications": [{"id": 5}]}))
        unknown = problem(spark_driver(server.url, None))
        server.set({"/api/v1/applications": Answer(b"<html>")})
        html = problem(spark_driver(server.url, None))
    lost = problem(spark_driver(server.url, None))
    for one in (missing, unknown, html, lost, problem(tmp_path / "none")):
        assert one.code == "spark-unknown" and "--spark" in one.remedy, one
    assert read_facts(tmp_path) is None
    early = add_facts(LOG, tmp_path, HERE, BEGIN - 9000, END - 9000)
    assert early is not None and early.code == "spark-incomplete" and "no task" in early.reason

    def broken(path: str, parameters: Mapping[str, str]) -> tuple[object, str | None]:
        raise AssertionError("a bug")

    assert "unexpected AssertionError" in problem(SparkDriver(None, broken)).reason


def test_the_options(tmp_path: Path) -> None:
    own = SparkDriver(APP, lambda path, parameters: (None, None))
    located = Located(Target("yarn", APP), [], driver=own)
    log = tmp_path / "log"
    log.touch()

    def source(*words: str) -> SparkDriver | Path | None:
        options: argparse.Namespace = parse(["-j", APP, *words])
        return chosen.spark_source(options, located)

    assert source() is own
    assert source("--slices", "none") is None and source("--no-timeline") is None
    assert source("--spark", str(log)) == log
    named = source("--spark", "http://history:18080")
    assert isinstance(named, SparkDriver) and named.application == APP
    other = source("--spark", "history:18080/history/app-2026-0001/jobs/")
    assert isinstance(other, SparkDriver) and other.application == "app-2026-0001"
    for words, reason in (
        (["--spark", str(tmp_path / "none")], "no such file"),
        (["--spark", "hdfs://n1/logs/x"], "not an address"),
        (["--spark", "http://user:secret@n1:x/"], "not an address"),
        (["--spark", str(log), "--slices", "none"], "no effect"),
        (["--spark", str(log), "--no-timeline"], "no effect"),
    ):
        with pytest.raises(UsageError, match=reason) as error:
            source(*words)
        assert "secret" not in error.value.reason


def test_facts_are_json_that_others_can_read(tmp_path: Path) -> None:
    add_facts(LOG, tmp_path, HERE, BEGIN, END)
    written = json.loads((tmp_path / "spark.json").read_text())
    assert written["stages"][0]["name"] == "count at SparkStages.java:52"
    assert set(written["tasks"]["driver"]) == {"tid", "stage", "attempt", "launch", "finish", "cpu"}
    assert written["stages"][0]["from"] < written["stages"][0]["to"]
