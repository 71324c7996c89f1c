"""Outliers among hosts and processes of made-up runs: numbers, table and JSON."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from hprofiler.analysis.result import find_outliers
from hprofiler.app.run import RunResult
from hprofiler.base.errors import RunFolderError
from hprofiler.cli.terminal.run_text import print_json, print_summary
from hprofiler.model import Selector
from hprofiler.report import make_report
from hprofiler.report.text import outliers_table
from hprofiler.runfolder import Coverage
from tests.unit.command import hprofiler
from tests.viewer.made_profile import counted
from tests.viewer.made_run import MadeHost, make_run

METHODS = 30
USUAL = [1 / rank for rank in range(1, METHODS + 1)]
# A tenth more of all work, in one method.
MORE = [share + (0.1 * sum(USUAL) if number == 2 else 0) for number, share in enumerate(USUAL)]
HOT = "com/acme/Job.m2"


def sampled(dice: random.Random, weights: list[float], samples: int, bursts: bool = False) -> str:
    """Folded text of this many samples; with `bursts` a method is sampled several times in a row."""
    counts: Counter[int] = Counter()
    while (left := samples - sum(counts.values())) > 0:
        drawn = dice.choices(range(len(weights)), weights, k=max(1, left // 20) if bursts else left)
        for method in drawn:
            counts[method] += dice.randint(1, 20) if bursts else 1
    stacks = (f"main;com/acme/Job.run;com/acme/Job.m{method} {n}\n" for method, n in sorted(counts.items()))
    return "".join(stacks)


def identical(dice: random.Random, hosts: int, samples: int, bursts: bool = False) -> list[MadeHost]:
    """Hosts with the same work and different numbers of samples."""
    return [
        MadeHost(f"host{n}", {100 + n: sampled(dice, USUAL, samples * (1 + n % 3), bursts)})
        for n in range(hosts)
    ]


def cluster(dice: random.Random) -> list[MadeHost]:
    hosts = identical(dice, 6, 5000)
    hosts[4] = MadeHost("host4", {104: sampled(dice, MORE, 5000)})
    return hosts


def test_the_json_of_the_command_line(tmp_path):
    folder = make_run(tmp_path / "run", cluster(random.Random(9)))
    events = json.loads(hprofiler("outliers", folder.path, "--json", "-e", "cpu").stdout)["events"]
    assert [event["event"] for event in events] == ["cpu"]
    first = events[0]["hosts"][0]
    assert (first["host"], first["outlier"], first["methods"][0]["method"]) == ("host4", True, HOT)
    assert set(first) == {
        *("host", "outlier", "differs", "samples", "divergence", "noise", "cosine", "moved", "methods")
    }
    process = events[0]["processes"][0]
    assert (process["host"], process["pid"], process["label"]) == ("host4", 104, "executor 4")


def test_a_host_that_waits_for_something_else_is_named_by_its_wait(tmp_path):
    natives = "JVM_Sleep;___pthread_cond_timedwait;__futex_abstimed_wait_common"
    sleeps = f"com/acme/Job.nap;java/lang/Thread.sleep;{natives}"
    idle = f"java/lang/Thread.run;java/util/concurrent/ThreadPoolExecutor.getTask;{natives}"
    rows = [
        f"{sleeps} {100 if n else 900}\nmain;a 500\nmain;b 500\n{idle} {9000 * n + 1}\n" for n in range(6)
    ]
    hosts = [MadeHost(f"h{n}", events={"wall": {1: counted("wall", row)}}) for n, row in enumerate(rows)]
    result = make_report(make_run(tmp_path / "run", hosts, events=["wall"]).path)
    (unlike,) = [one for one in result.events[0].findings if one.code == "unlike-host"]
    assert unlike.text.startswith("h0 is unlike the others: sleeping in Job.nap 47.4")
    assert (unlike.method, unlike.row) == ("com/acme/Job.nap", "sleeps in com/acme/Job.nap")


FEW = [
    # The samples of the methods a and b on each host, the verdict, the mark in the first row.
    ([(3000, 0), (0, 3000), (0, 3000)], "1 of 3 hosts is unlike the others", "yes"),
    (
        [(100, 0), (0, 100), (0, 100)],
        "none of 3 hosts stands out beyond doubt; 1 differs",
        "maybe",
    ),
    ([(3000, 0), (0, 3000)], "2 hosts: with fewer than 3 none can be the odd one; they differ", "maybe"),
    ([(300, 0), (200, 0), (100, 0)], "all 3 hosts are alike, as far as the samples tell", "300"),
]


@pytest.mark.parametrize(("hosts", "verdict", "mark"), FEW)
def test_the_verdict_on_few_hosts(tmp_path, hosts, verdict, mark):
    texts = ["".join(f"main;{name} {n}\n" for name, n in zip("ab", counts, strict=True)) for counts in hosts]
    folder = make_run(tmp_path / "run", [MadeHost(f"host{n}", {n + 1: text}) for n, text in enumerate(texts)])
    ((event, compared),) = find_outliers(folder.path, None, trim=False).events
    said, _, first, *_ = outliers_table(event, compared).splitlines()
    assert said.startswith(f"cpu: {verdict}") and first.split()[1] == mark


def test_the_table_is_printed_on_request_and_always_in_json(tmp_path, capsys):
    folder = make_run(tmp_path / "run", cluster(random.Random(11)))
    result = RunResult(folder, Coverage(), (), False, make_report(folder.path))
    selector = Selector("spark-executor", "rule", {})
    print_summary(result, selector, outliers=False)
    out = capsys.readouterr().out
    assert "\n  host4 is unlike the others: Job.m2 16.2% here, 8.4% usually.\n" in out
    assert "hosts is unlike" not in out, "the ranking is not asked for"
    print_summary(result, selector, outliers=True)
    assert "cpu: 1 of 6 hosts is unlike the others\n  host " in capsys.readouterr().out
    print_json(result)
    (event,) = json.loads(capsys.readouterr().out)["events"]
    answer, odd = event["findings"][:2]
    assert answer["text"].startswith("2") and answer["text"].endswith("% of CPU time is spent in Job.m0.")
    assert answer["method"] == "com/acme/Job.m0" and (odd["host"], odd["method"]) == ("host4", HOT)
    assert event["outliers"]["hosts"][0]["host"] == "host4" and event["left_out"] == 0


def test_runs_that_cannot_be_compared_are_an_error(tmp_path):
    one = make_run(tmp_path / "one", [MadeHost("a", {1: "x 3\n"})])
    assert hprofiler("outliers", one.path).stdout == "cpu: nothing to compare: 1 host\n"
    none = make_run(tmp_path / "none", [MadeHost("a").fails("failed", "gone")])
    assert hprofiler("outliers", none.path).stdout == "cpu: nothing to compare: no samples\n"
    done = hprofiler("outliers", one.path, "-e", "alloc")
    assert done.returncode == 2 and "has no event 'alloc'; it has cpu" in done.stderr
    with pytest.raises(RunFolderError):
        find_outliers(tmp_path, None, trim=False)
