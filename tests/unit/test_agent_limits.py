"""What agents may take of their hosts, as the coordinator asks for it, and the time it gives them."""

from __future__ import annotations

import argparse

import pytest

from hprofiler.cli.options import numbers
from hprofiler.cli.options import safety as care_options
from hprofiler.cli.options.parser import parse
from hprofiler.collect import AGENT_CPU, Care, collect
from hprofiler.model import Status
from tests.unit.stand_in import ANY, Fleet


@pytest.mark.parametrize(("text", "cores"), [("0.1", 0.1), ("1", 1.0), ("2.5", 2.5), ("1024", 1024.0)])
def test_numbers_of_processors(text, cores):
    assert numbers.cores(text) == cores


@pytest.mark.parametrize("text", ["0", "0.05", "-1", "1e3", "nan", "inf", "1025", "all", "", "1,5"])
def test_what_is_no_number_of_processors(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of processors"):
        numbers.cores(text)


@pytest.mark.parametrize("verb", ["run", "doctor"])
def test_the_option(verb):
    given = care_options.care(parse([verb, "-j", "java", "--agent-cpu", "0.5"]))
    assert given.agent_cpu == 0.5
    assert care_options.care(parse([verb, "-j", "java"])).agent_cpu == AGENT_CPU


@pytest.mark.parametrize(("cores", "told"), [(99.0, True), (2.0, False)])
def test_more_processors_than_there_are_are_told_to_be_no_limit(stand_ins, cores, told):
    body = "hello(); found(); read()"
    fleet = Fleet(stand_ins, 60.0, {"a": body})
    (result,) = collect(fleet.hosts, ANY, fleet.sampling, fleet.reach, fleet.sink, care=Care(agent_cpu=cores))
    reasons = [line.reason for line in result.outcomes if line.status is Status.DEGRADED]
    assert reasons == (["--agent-cpu 99 has no effect: the host has 2 processors"] if told else [])


def test_the_agent_is_told(stand_ins):
    refusal = "say('outcome', pid=7, status='failed', stage='prepare', reason=str(asked), remedy='')"
    body = "hello(); found(7); asked = prepare_request()['agent_cpu']; " + refusal
    body += "; say('ready', processes=[]); read()"
    fleet = Fleet(stand_ins, 60.0, {"a": body})
    (result,) = collect(
        fleet.hosts,
        ANY,
        fleet.sampling,
        fleet.reach,
        fleet.sink,
        fleet.listener,
        fleet.stop,
        Care(agent_cpu=0.25),
    )
    assert [line.reason for line in result.outcomes if line.pid == 7] == ["0.25"]
    assert [step.detail for step in fleet.progress if step.stage == "done"] == ["nothing was recorded"]
