"""The command line: help, usage errors, exit codes, convert, completion."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone

import pytest

from hprofiler import cli
from hprofiler.base import resources
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.objects import local_reach, sampling
from hprofiler.cli.options.parser import parse
from hprofiler.cli.options.questions import moment
from hprofiler.cli.terminal.exit_codes import Exit
from tests import cli_reference
from tests.unit.command import ROOT, as_process, exit_code, hprofiler
from tests.viewer.made_run import MadeHost, make_run


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["run", "-h"], ["help"]])
def test_help_goes_to_stdout(words):
    done = hprofiler(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: hprofiler" in done.stdout


def test_the_reference_page_has_every_help_text():
    """Written by `python -m tests.cli_reference`."""
    assert (ROOT / "docs/reference/cli.md").read_text() == cli_reference.page()


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "hprofiler --help has all options"),
        (["-f", "99"], "-j"),
        (["slectors"], "unknown command 'slectors' (did you mean selectors?)"),
        (
            ["EtlJob"],
            "unknown command 'EtlJob' (to profile a job of that name: -j EtlJob); commands are run, ps",
        ),
        (["-p", "12x"], "'12x' is not a process id"),
        (["-p", "12", "-j", "java"], "not allowed with argument"),
        (["-j", "java", "-f", "0"], "frequency from 1 to 10000"),
        (["-j", "spark-exector"], "spark-executor"),
        (["-j", "java", "-H", "a", "--hosts-file", "b"], "exclude each other"),
        (["-j", "java", "-H", "a", "--identity", "/no/such/key"], "no such file"),
        (["-j", "java", "--async-profiler", "/etc/hostname"], "shared library"),
        (["-j", "java", "--frequ", "9"], "unrecognized"),
        (["--bogus", "4242"], "unrecognized arguments: --bogus"),
        (["-j", "java", "-e", "cpu", "-e", "alloc"], "such as -e cpu,alloc"),
        (["-j", "java", "-H", "a", ""], "unrecognized"),
        (["-j", "java", "--max-host", "3"], "--max-host 3 (did you mean --max-hosts?)"),
        (["-j", "java", "--canary=3"], "takes no value, but was given '3'"),
        (["-j", "java", "-e", "cpu,,alloc"], "'' is not an event; events are cpu, alloc, live, lock"),
        (["-j", "java", "-e", "page-faults,cpu,page-faults"], "page-faults is given twice"),
        (["-j", "java", "-e", ",".join(f"a.B.c{n}" for n in range(17))], "at most 16"),
        (["-j", "java", "-t", "10q"], "'10q' is not a time from 0.1 to 86400 seconds, such as 10, 10s, 1.5m"),
        (["-j", "java", "-t", "2d"], "from 0.1 to 86400 seconds"),
        (["-j", "java", "-t", "job:2d"], "or job, or job:8h"),
        (["-j", "java", "-t", "jobs"], "'jobs' is not a time"),
        (["-j", "java", "--alloc-interval", "512q"], "a size such as 4096, 512k"),
        (["-j", "java", "--alloc-interval", "4095"], "from 4k to 1024g"),
        (["-j", "java", "--wall-interval", "999us"], "from 1ms to 1000s"),
    ],
)
def test_bad_usage_says_what_and_exits_2(words, says, capsys):
    assert exit_code(words) == 2
    said = capsys.readouterr()
    assert says in said.out + said.err and "Traceback" not in said.err


@pytest.mark.parametrize("verb", [["run"], ["ps"], ["top"], ["doctor"]])
@pytest.mark.parametrize("pids", [["12,34"], ["-p", "12,34"], ["-j", "12,34"], ["-j", "pid:12,34"]])
def test_a_process_is_named_by_its_id(verb, pids):
    for words in ([*verb, *pids, "--timeout", "2m"], [*verb, "--timeout", "2m", *pids]):
        assert chosen.selector(parse(words)).query == {"kind": "pids", "pids": [12, 34]}


def test_run_may_be_left_out_before_a_process_id():
    assert parse(["12", "-t", "1m"]).selector == parse(["-t", "1m", "12"]).selector == "pid:12"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-11-20", datetime(2026, 11, 20)),
        ("2026-11-20 17:12", datetime(2026, 11, 20, 17, 12)),
        ("2026-11-20T17:12:30Z", datetime(2026, 11, 20, 17, 12, 30)),
        ("2026-11-20 17:12+01:00", datetime(2026, 11, 20, 16, 12)),
    ],
)
def test_a_moment_is_a_date_perhaps_with_a_time(text, meant):
    assert moment(text) == meant


def test_a_moment_is_a_time_ago():
    before = datetime.now(timezone.utc).replace(tzinfo=None)
    assert before - timedelta(minutes=5) <= moment("5m") < before - timedelta(minutes=4)


@pytest.mark.parametrize(
    ("words", "events"),
    [
        ([], ("cpu",)),
        (["-e", "heap"], ("alloc",)),
        (["-e", "cpu, lock"], ("cpu", "lock")),
        (["-i"], ("offcpu",)),
        (["-i", "-e", "cpu"], ("cpu", "offcpu")),
        (["-e", "java/util/HashMap.merge"], ("java.util.HashMap.merge",)),
        (["-e", "power/energy-cores/,msr/tsc/"], ("power/energy-cores/", "msr/tsc/")),
        (["-e", "cpu/cache-misses/u,mem:0x10/8:w"], ("cpu/cache-misses/u", "mem:0x10/8:w")),
        (
            ["-e", "sched:sched_switch,java.util.HashMap.<init>"],
            ("sched:sched_switch", "java.util.HashMap.<init>"),
        ),
    ],
)
def test_events_as_they_are_asked_for(words, events):
    assert sampling(parse(["-j", "java", *words])).events == events


@pytest.mark.parametrize(
    ("words", "seconds", "members"),
    [
        ([], 5.0, {"joins": True, "until_over": False, "wait": 0.0}),
        (["-t", "1m", "--no-join"], 60.0, {"joins": False, "until_over": False, "wait": 0.0}),
        (["-t", "job"], 4 * 3600.0, {"joins": True, "until_over": True, "wait": 0.0}),
        (["-t", "job:8h", "--wait"], 8 * 3600.0, {"joins": True, "until_over": True, "wait": 3600.0}),
        (["--wait", "2h", "-t", "60"], 60.0, {"joins": True, "until_over": False, "wait": 7200.0}),
        (["-t", "job", "-t", "60"], 60.0, {"joins": True, "until_over": False, "wait": 0.0}),
    ],
)
def test_how_long_a_recording_lasts_and_who_joins_it(words, seconds, members):
    options = parse(["-j", "java", *words])
    found = chosen.joining(options, chosen.selector(options))
    assert sampling(options).duration == seconds
    assert {name: found[name] for name in members} == members


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-j", "java", "--wait", "--no-join"], "--no-join is given"),
        (["-j", "12", "--wait"], "-j pid:12 names some that are there"),
        (["-j", "grep x | grep y", "--wait"], "names some that are there"),
    ],
)
def test_only_what_may_join_is_waited_for(words, says):
    options = parse(words)
    with pytest.raises(UsageError, match=re.escape(says)):
        chosen.joining(options, chosen.selector(options))


def test_times_of_samples_are_recorded_unless_they_are_not_wanted():
    assert sampling(parse(["-j", "java"])).timeline
    assert not sampling(parse(["-j", "java", "--no-timeline"])).timeline


def test_an_async_profiler_that_crashes_jvms_is_refused(tmp_path):
    library = tmp_path / "libasyncProfiler.so"
    for release, good in (("3.0", False), ("4.0", False), ("4.1", True), ("4.10", True)):
        library.write_bytes(b"\x7fELF" + bytes(14) + b"\x3e\x00Async-profiler %s built" % release.encode())
        try:
            resources.blobs(str(library))
        except UsageError as error:
            assert not good and f"profiler {release}, which crashes" in error.reason
        else:
            assert good, release


def test_with_sudo_only_the_packages_library_is_sent(tmp_path, monkeypatch):
    other = tmp_path / "libasyncProfiler.so"
    other.write_bytes(b"\x7fELF" + bytes(14) + b"\x3e\x00")
    sudo, named = ["-j", "java", "--become", "sudo"], ["--async-profiler", str(other)]
    shipped = resources.blobs()["async-profiler"]["x86_64"]
    for words in ([*sudo, *named], ["doctor", *sudo, *named]):
        with pytest.raises(UsageError, match="accepts only the library of its package"):
            local_reach(parse(words))
    for words in (sudo, ["-j", "java", *named], [*sudo, *named, "--engine", "perf"]):
        local_reach(parse(words))
    monkeypatch.setenv(resources.LIBRARY_VARIABLE, str(other))
    with pytest.raises(UsageError, match="accepts only the library of its package"):
        local_reach(parse(sudo))
    local_reach(parse(["cleanup", "--become", "sudo"]))  # which sends none
    monkeypatch.setenv(resources.LIBRARY_VARIABLE, str(shipped.path))
    local_reach(parse(sudo))


@pytest.mark.parametrize("verb", [["run", "-j", "java"], ["doctor", "-j", "java"], ["demo"]])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--lock-threshold", "10us"],
            "is for lock, but -e is cpu\n  leave it out, or use -e cpu,lock",
        ),
        (
            ["--alloc-interval", "1m", "-e", "cpu,lock"],
            "is for alloc, live, nativemem, nativelive, but -e is",
        ),
        (["--wall-interval", "1ms", "-e", "alloc"], "is for wall, offcpu, but -e is alloc"),
        (["--python-native", "--engine", "perf"], "is for py-spy, but --engine is perf"),
    ],
)
def test_an_option_of_what_is_not_recorded_is_refused(verb, words, says, capsys):
    assert exit_code([*verb, *words]) == 2
    assert capsys.readouterr().err.startswith(f"hprofiler: {words[0]} {says}")


def test_selectors_are_listed_for_people_and_scripts():
    listed = hprofiler("selectors").stdout
    assert "spark-executor " in listed
    assert {"name", "summary"} == set(json.loads(hprofiler("selectors", "--json").stdout)[0])


def test_report_names_profiles_that_are_missing(tmp_path):
    made = [MadeHost("big", {1: "a;hot 270\n"}), MadeHost("small", {2: "a;cold 20\n"})]
    folder = make_run(tmp_path / "run", made)
    done = hprofiler("report", folder.path)
    assert (done.returncode, done.stderr) == (0, "")
    folder.profile_path("big", 1, "cpu").unlink()
    done = hprofiler("report", folder.path)
    assert done.returncode == 3
    assert "not in the pictures:\n  big pid 1: its profile in the run folder cannot be used" in done.stderr
    assert (folder.path / "cluster/cpu.folded").read_bytes() == b"a;cold 20\n"
    folder.profile_path("small", 2, "cpu").unlink()
    done = hprofiler("report", folder.path)
    assert done.returncode == 4
    assert "no samples to show (0 of 2 processes" in done.stderr
    assert not list(folder.path.rglob("*.svg")) and not list(folder.path.rglob("*.folded"))


def test_a_defect_has_an_exit_code_of_its_own(monkeypatch, capsys):
    def broken(words):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_carry_out", broken)
    assert cli.main(["diff", "a", "b"]) == Exit.DEFECT == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_messages_have_no_control_characters(capsys):
    cli.print_error(HprofilerError("a\x9b31m\x1b[1m\nhprofiler: forged", "b\x07\nc"))
    assert capsys.readouterr().err == (
        "hprofiler: a\ufffd31m\ufffd[1m\n  hprofiler: forged\n  b\ufffd\n  c\n"
    )


@pytest.fixture
def completions(tmp_path):
    """What the shell is offered for the last word of a line."""

    def offered(line):
        answer = tmp_path / "answer"
        variables = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        done = as_process(**variables, _ARGCOMPLETE_STDOUT_FILENAME=str(answer))
        assert (done.returncode, done.stderr) == (0, "")
        return answer.read_text().split()

    return offered


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("sel", ["selectors"]),
        ("run -e al", ["alloc"]),
        ("run -e cpu,lo", ["cpu,lock"]),
        ("-j spark-exec", ["spark-executor"]),
        ("completion z", ["zsh"]),
        ("archive com", ["compact"]),
        ("archive prune x --ol", ["--older-than"]),
        ("convert --to sp", ["speedscope"]),
        ("doctor --via ", ["exec", "ssh"]),
        ("ps -j k8", ["k8s:"]),
        ("ps -j k8s:dep", ["k8s:deployment/"]),
    ],
)
def test_completion(line, values, completions):
    assert completions(f"hprofiler {line}") == values
