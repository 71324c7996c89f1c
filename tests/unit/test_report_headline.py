"""The line below the answer: where the answer's own method is, by the measure of the answer."""

from __future__ import annotations

from hprofiler.report import make_report
from tests.viewer.block import described, summaries, words
from tests.viewer.made_run import MadeHost, make_run

JOB = "java/lang/Thread.run_[j];com/acme/Job.run_[j]"
CLEAN = f"{JOB};com/acme/Job.clean_[j];java/util/regex/Pattern.compile_[j]"
OTHER = f"{JOB};com/acme/Other.work_[j]"


def seconds(page):
    """The second lines of a page."""
    lines = [words(one["second"]) for one in summaries(page).values()]
    return [line for line in lines if line]


def page_of(path, *hosts):
    made = [MadeHost(f"node{number}", {number: text}) for number, text in enumerate(hosts, 1)]
    return make_report(make_run(path, made).path).page


def test_hosts_are_told_of_the_answer_with_all_it_calls(tmp_path):
    """The hottest by itself is on node2, where the answer's method is not."""
    page = page_of(
        tmp_path / "run", f"{CLEAN};java/util/regex/Pattern.curly_[j] 500\n{CLEAN} 480\n", f"{OTHER} 900\n"
    )
    assert "52.1 % of CPU time is spent in Job.clean" in words(described(page))
    assert seconds(page) == ["Most on node1, where it takes 100 %, against 0 % on node2."]


def test_hosts_are_told_of_an_answer_by_itself(tmp_path):
    page = page_of(tmp_path / "run", f"{OTHER} 600\n{JOB} 400\n", f"{OTHER} 580\n{JOB} 420\n")
    assert seconds(page) == ["About the same on all 2 hosts: 58.0 % to 60.0 %."]


def test_what_follows_is_told_where_the_answer_is_by_itself(tmp_path):
    page = page_of(tmp_path / "one", f"{OTHER} 600\n{JOB} 400\n")
    assert seconds(page) == ["Then Job.run (40.0 %)."]
    assert seconds(page_of(tmp_path / "calls", f"{CLEAN} 700\n{OTHER} 300\n")) == []
