"""A connection that is lost before anybody has started is made once more; the agents are stand-ins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Status
from tests.unit.stand_in import Fleet, Named, StandIns
from tests.unit.test_comeback import LEFT


@pytest.fixture
def fleet(tmp_path):
    stand_ins = StandIns(tmp_path)
    yield lambda body: Fleet(stand_ins, 60.0, {"one": body})
    stand_ins.clean()


class Torn(Named):
    """The connection breaks where it is asked to prepare, so many times."""

    left = 0

    def open(self, command):
        channel = super().open(command)
        write = channel.write

        def written(data):
            if b'{"type":"prepare"' not in data or not Torn.left:
                return write(data)
            Torn.left -= 1
            channel._socket.shutdown(2)
            channel.exit_status = lambda timeout: None

        channel.write = written
        return channel


AGAIN = """
exec({left!r})
hello(session="4711-99")
request = read()
if request["type"] == "clean":
    open({log!r}, "a").write("clean ")
    cleaned(request, DONE, {failed!r})
    if read()["type"] == "bye":
        sys.exit(0)
say("found", searched=9, processes=[process(7)], ignored=[]); prepared(7); recording(7)
profile(7, b"p"); outcome(7); say("done", left=[]); read()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_one_that_breaks_before_anybody_has_started_is_made_once_more(fleet, tmp_path, times):
    log = tmp_path / "log"
    hosts = fleet(AGAIN.format(log=str(log), left=LEFT, failed=[]))
    Torn.left = times
    hosts.reach = replace(hosts.reach, transport_for=Torn)
    result = hosts.collect()["one"]
    of_host = [one for one in result.outcomes if one.pid is None]
    if times == 1:
        (line,) = of_host
        assert (line.status, line.stage) == (Status.OK, "prepare") and "made again" in line.reason
        assert [one.status for one in result.outcomes if one.pid] == [Status.OK]
    else:
        assert [one.status for one in of_host] == [Status.OK, Status.FAILED]
    assert log.read_text() == "clean " * times, "the agent before may have been killed"


def test_what_the_connection_before_left_and_stays_is_told(fleet, tmp_path):
    failed = [{"what": "/tmp/x", "reason": "it is busy"}]
    hosts = fleet(AGAIN.format(log=str(tmp_path / "log"), left=LEFT, failed=failed))
    Torn.left = 1
    hosts.reach = replace(hosts.reach, transport_for=Torn)
    result = hosts.collect()["one"]
    _, line = (one for one in result.outcomes if one.pid is None)
    assert (line.status, line.stage) == (Status.DEGRADED, "clean") and "cleanup" in line.remedy
    assert line.reason == "/tmp/x of the connection before could not be removed: it is busy"
    assert [one.status for one in result.outcomes if one.pid] == [Status.OK]


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_the_first_agent_left_is_taken_away_or_told_where_the_second_try_fails(
    fleet, tmp_path, comes_back
):
    log = tmp_path / "log"
    hosts, connects = fleet(AGAIN.format(log=str(log), left=LEFT, failed=[])), []

    class Down(Torn):
        """For one try, or for good."""

        def connect(self):
            connects.append(self)
            if len(connects) == 2 or (len(connects) > 2 and not comes_back):
                raise HostError("connect", "nobody answers")
            super().connect()

    Torn.left = 1
    hosts.reach = replace(hosts.reach, transport_for=Down)
    line = hosts.collect()["one"].outcomes[-1]
    assert line.status is Status.FAILED and line.reason.startswith("nobody answers")
    assert log.exists() == comes_back and len(connects) == 3
    assert ("whether it left anything is not known" in line.reason) == (not comes_back)
    assert comes_back or "cleanup" in line.remedy
