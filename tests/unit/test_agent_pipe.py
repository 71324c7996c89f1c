"""Shell pipes over the process list."""

from __future__ import annotations

import pytest

from hprofiler.agent.messages import Listed
from hprofiler.agent.pipe import pids_of_pipe
from hprofiler.base.errors import HostError
from tests.unit.stand_in import local

PROCESSES = (
    Listed(10, 1, "root", "java -cp a Main 123456789"),
    Listed(123456, 10, "averylongname", "java Other"),
    Listed(77, 1, "hdfs", "sh -c 'java Main'"),
)


@pytest.mark.parametrize(
    ("pipe", "pids"),
    [
        ("grep 123456789 | grep -v hdfs", [10]),
        ("grep java | awk '{print $2}'", [10, 123456, 77]),
        ("awk 'NR > 1 && $1 == \"hdfs\"'", [77]),
        ("echo 99 77 ; echo 78; echo 77; echo ' 10 '", [77, 10]),
        ("grep -c java", []),
    ],
)
def test_pids_that_a_pipe_returns(pipe, pids):
    assert sorted(pids_of_pipe(local(), pipe, PROCESSES, 60)) == sorted(pids)


@pytest.mark.parametrize(
    ("pipe", "says"),
    [
        ("grep '(unclosed", "nterminated"),
        ("no-such-filter x | cat", "not found"),
        ("exit 7", "exit status 7"),
        ("sleep 60", "did not end within 0.5 s"),
    ],
)
def test_a_failing_pipe_is_an_error(pipe, says):
    with pytest.raises(HostError, match=says) as caught:
        pids_of_pipe(local(), pipe, PROCESSES, 0.5 if "sleep" in pipe else 60)
    assert caught.value.stage == "find"
