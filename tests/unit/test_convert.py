"""`hprofiler convert`: combined options, and errors."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.unit.command import ROOT, as_process, exit_code, hprofiler, in_shell

JOB = "main;parse;match_[j] 5\nmain;read 3\nmain 1\nidle;wait 7\n"


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.folded"
    path.write_text(JOB)
    return path


def convert(*words, stdin=None):
    run = hprofiler if stdin is None else partial(as_process, stdin=stdin)
    done = run("convert", *words, "-o", "-", "--to", "folded")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--include", "match", "--include", "wait"], ["idle;wait 7", "main;parse;match_[j] 5"]),
        (["--exclude", "idle", "--exclude", "parse"], ["main 1", "main;read 3"]),
        (["--focus", "main", "--focus", "parse"], ["main;parse;match_[j] 5"]),
        (["--focus", "parse", "--trim", "parse"], ["parse;match_[j] 5"]),
        (["--focus", "read", "--invert"], ["read;main 3"]),
        (["--prune", "1"], ["(2 smaller frames) 7", "main 1", "main;(3 smaller frames) 8"]),
        # One frame alone is not pruned: its remainder would be as large.
        (["--prune", "30%"], ["idle;wait 7", "main 1", "main;parse;match_[j] 5", "main;read 3"]),
    ],
)
def test_stacks_are_chosen_and_shaped(job, words, expected):
    assert convert(job, *words) == expected


def test_a_difference_is_of_shares_or_of_counts(job):
    after = "main;read 6\nmain;write 26\n"
    assert convert("-", "--diff", job, stdin=after) == [
        "idle;wait 14 0",
        "main 2 0",
        "main;parse;match_[j] 10 0",
        "main;read 6 6",
        "main;write 0 26",
    ]
    assert "main;read 3 6" in convert("-", "--diff", job, "--absolute", stdin=after)


def test_what_is_wrong_with_the_input_comes_before_a_wrong_output(job, tmp_path):
    def error(name):
        return hprofiler("convert", name, "-o", tmp_path / "x.png").stderr.splitlines()[0]

    (tmp_path / "heap").write_bytes(b"JAVA PROFILE 1.0.2\0")
    (tmp_path / "poem").write_text("Roses are red\n")
    assert "No such file" in error(tmp_path / "none") and "it is a folder" in error(tmp_path)
    assert "heap dump" in error(tmp_path / "heap") and "not a stack" in error(tmp_path / "poem")
    assert "cannot tell the format" in error(job)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "-"], "name it with --to"),
        (["-o", "x.png"], "end the name with one of"),
        (["-o", "x", "--to", "png"], "unknown format 'png' to write"),
        (["-o", "/no where/x.svg"], "cannot write /no where/x.svg: there is no folder /no where"),
        (["-o", "/", "--to", "svg"], "cannot write /: it is a folder"),
        (["-o", "x.svg", "--width", "0"], "width 0: it is 300 to 20000 pixels"),
        (["-o", "x.svg", "--from", "xml"], "unknown format 'xml' to read"),
        (["-o", "x.svg", "--absolute"], "--absolute needs --diff"),
        (["-o", "x.svg", "--diff", "y", "--prune", "5"], "--prune cannot be combined with --diff"),
        (["-o", "x.svg", "--prune", "0"], "neither a number of frames nor a percentage"),
        (["-o", "x.svg", "--focus", "a", "--focus", "("], "--focus (: not a regular expression"),
        (["-o", "x.svg", "--trim", ""], "--trim: an empty expression"),
        (["-o", "x.svg", "--bgcolors", "pink"], "known are: yellow, blue, green, grey, #rrggbb"),
        (["-o", "x.svg", "--time", "5-2"], "not FROM-TO in seconds"),
        (["-o", "x.svg", "--flamechart", "--kernel"], "--kernel cannot be combined with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--prune", "9"], "--prune cannot be combined with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--by", "category"], "--by cannot be combined with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--negate"], "--negate cannot be combined with --flamechart"),
        (["z", "-o", "x.svg", "--flamechart"], "--flamechart draws one file"),
        (["-o", "x.folded", "--flamechart"], "--flamechart is for pictures"),
        (["-o", "x.folded", "--title", "t"], "--title is for pictures and pages"),
    ],
)
def test_mistakes_are_errors_before_anything_is_read(words, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x", "y", "z"):  # an error, if it were read
        (tmp_path / name).write_text("no stack\n" * 10_000)
    assert exit_code(["convert", "x", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--value", "cpu"], 2, 'no value "cpu" in this profile; there are: samples (count)'),
        (["--threads"], 2, "no stack starts with a thread frame"),
        (["--time", "1-2"], 2, "it is not known when the samples of"),
        (["--kernel"], 2, "the option kernel is for perf-data and perf-script only, and this is folded"),
        (["--negate"], 2, "--negate is for differences, but nothing is compared"),
        (["--include", "nowhere"], 4, "no stack matches --include nowhere"),
        (["--focus", "main", "--focus", "wait"], 4, "no stack matches --focus wait"),
        (
            ["--exclude", "main", "--exclude", "i?le"],
            4,
            "every stack matches --exclude main --exclude 'i?le'",
        ),
        (["--from", "pprof"], 4, "pprof: "),
    ],
)
def test_errors_name_the_file(job, words, code, says, tmp_path, capsys):
    assert exit_code(["convert", job, *words, "-o", tmp_path / "x.svg"]) == code
    said = capsys.readouterr().err
    assert says in said and ("job.folded" in said or "--negate" in words)
    assert not (tmp_path / "x.svg").exists()


def test_files_that_do_not_fit_or_are_no_profiles_are_errors(job, tmp_path, capsys):
    other = tmp_path / "differential.folded"
    other.write_text("main 1 2\n")
    picture = tmp_path / "job.svg"
    assert exit_code(["convert", job, "-o", picture]) == 0
    for inputs, says in [
        ([job, other], f"cannot merge: {other}: unlike values do not add up: samples (count) and before"),
        (
            [picture],
            f"cannot read: {picture}: not a profile that can be read, but a picture that hprofiler drew",
        ),
    ]:
        assert exit_code(["convert", *inputs, "-o", tmp_path / "x.svg"]) == 4
        assert says in capsys.readouterr().err


def test_a_flame_graph_of_async_profiler_is_read(tmp_path):
    page = ROOT / "tests/golden/formats/async-profiler-4.html"
    done = hprofiler("convert", page, "--include", "work", "-o", "-", "--to", "folded")
    assert (done.returncode, done.stdout) == (0, "Main.main_[j];Main.work_[i] 3\n")


def test_a_file_that_is_a_difference_names_the_option_that_makes_one(tmp_path, capsys):
    file = tmp_path / "delta.json"
    profile = '{"type":"sampled","name":"d","unit":"none","samples":[[0]],"weights":[-3]}'
    file.write_text('{"shared":{"frames":[{"name":"a"}]},"profiles":[' + profile + "]}")
    assert exit_code(["convert", file, "-o", tmp_path / "x.svg"]) == 4
    said = capsys.readouterr().err
    assert "weight -3 is negative: differences of profiles are not read" in said
    assert "--diff BEFORE" in said


@pytest.mark.parametrize("option", [[], ["--diff"]])
def test_a_folder_is_an_error_that_names_a_profile_in_it(job, tmp_path, option):
    def says(folder):
        done = hprofiler("convert", *([job, *option] if option else []), folder, "-o", tmp_path / "x.html")
        assert done.returncode == 2
        return done.stderr

    run = tmp_path / "run"
    (run / "cluster").mkdir(parents=True)
    assert f"cannot read {run}: it is a folder" in says(run)
    (run / "run.json").write_text("{}")
    assert f"its profiles are in {run}/hosts" in says(run)
    for name in ("alloc-mean.pb.gz", "alloc.pb.gz", "lock.pb.gz", "cpu.pb.gz", "cpu.svg"):
        (run / "cluster" / name).write_bytes(b"")
    assert f"the profile of all its processes is {run}/cluster/cpu.pb.gz" in says(run)
    (run / "cluster/cpu.pb.gz").unlink()
    assert f"the profile of all its processes is {run}/cluster/alloc.pb.gz" in says(run)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("- - -o x.svg", "- (stdin) is given twice, but can be read only once"),
        ("- --diff - -o x.svg", "- (stdin) is given twice, but can be read only once"),
        ("- -o x.svg <&-", "cannot read stdin: it is closed"),
        ("job.folded -o - --to folded >&-", "cannot write to stdout: it is closed"),
        ("job.folded -o - --to folded >/dev/full", "cannot write to stdout: No space left on device"),
        ("job.folded -o - --to html >/dev/full", "cannot write to stdout: No space left on device"),
        ("none.folded --flamechart -o x.svg", "cannot read none.folded: No such file or directory"),
    ],
)
def test_a_stream_that_cannot_be_used_is_an_error(job, line, says):
    done = in_shell(f"convert {line}", job.parent)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"hprofiler: {says}"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


SEVERAL = """java 1 [000] 1.0: 7 page-faults:
\t1 main (/x)

java 1 [000] 2.0: 9 cpu-clock:
\t1 main (/x)
\t2 root (/x)

"""


def test_of_several_events_the_first_is_written_with_a_note():
    done = as_process("convert", "-", "-o", "-", "--to", "folded", stdin=SEVERAL)
    assert (done.returncode, done.stdout) == (0, "java;main 7\n")
    note = "hprofiler: of several events page-faults is written; choose another with --value: cpu-clock\n"
    assert done.stderr == note
    assert convert("-", "--value", "cpu-clock", stdin=SEVERAL) == ["java;root;main 9"]
    assert as_process("convert", "-", "-o", "-", "--to", "json", stdin=SEVERAL).stderr == "", "it has all"


def test_a_flame_chart_of_a_pipe_merges_no_lines():
    stdin = "a;b 1\nc 2\na;b 3\nno count\n"
    done = as_process("convert", "-", "-o", "-", "--to", "svg", "--flamechart", stdin=stdin)
    assert "1 malformed line or record was left out" in done.stderr
    assert done.returncode == 3
    frames = re.findall(r"<title>([abc]) \((\d)", done.stdout)
    assert sorted(frames) == [("a", "1"), ("a", "3"), ("b", "1"), ("b", "3"), ("c", "2")]


def test_otlp_profiles_are_read_by_their_own_library(job, tmp_path):
    proto = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
    assert exit_code(["convert", job, "-o", tmp_path / "job.otlp"]) == 0
    message = proto.ProfilesData.FromString((tmp_path / "job.otlp").read_bytes())
    tables = message.dictionary
    (profile,) = message.resource_profiles[0].scope_profiles[0].profiles
    strings = tables.string_table
    assert strings[profile.sample_type.type_strindex] == "samples"

    def name(location):
        function = tables.function_table[tables.location_table[location].lines[0].function_index]
        return strings[function.system_name_strindex]

    stacks = {
        ";".join(map(name, reversed(tables.stack_table[sample.stack_index].location_indices))): sample.values
        for sample in profile.samples
    }
    lines = (line.rpartition(" ") for line in JOB.splitlines())
    assert {stack: list(values) for stack, values in stacks.items()} == {
        stack: [int(count)] for stack, _, count in lines
    }
