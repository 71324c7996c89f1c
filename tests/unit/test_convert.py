"""`hprofiler convert`: its options as users combine them, and what it says when it cannot."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from hprofiler._flamegraph import Profile
from tests.unit.test_cli import ROOT, hprofiler

JOB = b"main;parse;match_[j] 5\nmain;read 3\nmain 1\nidle;wait 7\n"


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.folded"
    path.write_bytes(JOB)
    return path


def convert(*words, stdin=b""):
    done = hprofiler("convert", *words, "-o", "-", "--to", "folded", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--include", "match", "--include", "wait"], ["idle;wait 7", "main;parse;match_[j] 5"]),
        (["--exclude", "idle", "--exclude", "parse"], ["main 1", "main;read 3"]),
        (["--focus", "main", "--focus", "parse"], ["main;parse;match_[j] 5"]),
        (["--focus", "parse", "--trim", "parse"], ["parse;match_[j] 5"]),
        (["--focus", "read", "--invert"], ["read;main 3"]),
        (["--prune", "1"], ["(2 smaller frames) 7", "main 1", "main;(3 smaller frames) 8"]),
        # One frame is never left out alone: the one in its place would be no smaller.
        (["--prune", "30%"], ["idle;wait 7", "main 1", "main;parse;match_[j] 5", "main;read 3"]),
        (["--value", "samples", "--include", "wait"], ["idle;wait 7"]),
    ],
)
def test_stacks_are_chosen_and_shaped(job, words, expected):
    assert convert(job, *words) == expected


def test_tiers_are_merged_at_the_end(job):
    more = b"main;parse;match_[0] 2\n"
    assert "main;parse;match_[j] 7" in convert(job, "-", "--merge-tiers", stdin=more)


def test_threads_are_groups():
    threads = b"[pool-1-thread-7 tid=71];run 1\n[pool-2-thread-9 tid=82];run 2\n"
    assert convert("-", "--threads", stdin=threads) == ["[pool-N-thread-N];run 3"]


def test_threads_of_a_stored_profile_are_groups():
    """Its threads are a label of the samples."""
    stacks = b"[pool-1-thread-7];run 1\n[pool-2-thread-9];run 2\n"
    stored = Profile.from_bytes(stacks, "folded").to_pprof(thread_label=True)
    assert convert("-", stdin=stored) == ["run 3"]
    assert convert("-", "--threads", stdin=stored) == ["[pool-N-thread-N];run 3"]


def test_threads_of_speedscope_are_groups():
    threads = [
        {
            **{"type": "sampled", "name": name, "unit": "none"},
            **{"startValue": 0, "endValue": 1, "samples": [[0]], "weights": [1]},
        }
        for name in ("pool-1-thread-7", "pool-2-thread-9")
    ]
    document = json.dumps({"shared": {"frames": [{"name": "run"}]}, "profiles": threads}).encode()
    words = ["--from", "speedscope"]
    assert convert("-", *words, "--threads", stdin=document) == ["[pool-N-thread-N];run 2"]


@pytest.mark.parametrize("format", ["folded", "pprof"])
def test_without_threads_there_are_no_groups(format):
    plain = Profile.from_bytes(JOB, "folded")
    data = plain.to_pprof() if format == "pprof" else JOB
    done = hprofiler("convert", "-", "--threads", "-o", "-", "--to", "folded", stdin=data)
    assert done.returncode == 2 and b"no stack starts with a thread frame" in done.stderr


def test_names_stay_raw_unless_asked(tmp_path):
    raw = b"J$$Lambda$4/0x0000000800c03000.run 1\nJ$$Lambda$5/0x0000000800c04000.run 2\n"
    assert len(convert("-", stdin=raw)) == 2
    assert convert("-", "--canonical", stdin=raw) == ["J$$Lambda.run 3"]


def test_in_a_mean_every_input_weighs_the_same(job):
    counts = {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in mean_of(job))}
    assert sum(counts.values()) == 88, "the mean of 16 and 160"
    assert abs(counts["main"] - 88 * (1 / 16 + 1) / 2) <= 1
    assert abs(counts["idle;wait"] - 88 * (7 / 16) / 2) <= 1


def mean_of(job):
    return convert(job, "-", "--mean", stdin=b"main 160\n")


def test_a_difference_is_of_shares_or_of_counts(job):
    after = b"main;read 6\nmain;write 26\n"
    assert convert("-", "--diff", job, stdin=after) == [
        "idle;wait 14 0",
        "main 2 0",
        "main;parse;match_[j] 10 0",
        "main;read 6 6",
        "main;write 0 26",
    ]
    assert "main;read 3 6" in convert("-", "--diff", job, "--absolute", stdin=after)


@pytest.mark.parametrize("ending", ["svg", "html", "pb.gz", "json", "speedscope.json"])
def test_a_difference_in_every_format(job, tmp_path, ending):
    out = tmp_path / f"d.{ending}"
    assert hprofiler("convert", job, "--diff", job, "-o", out).returncode == 0
    assert out.stat().st_size > 0


def test_a_page_on_stdout(job):
    done = hprofiler("convert", job, "-o", "-", "--to", "html", "--title", "a <title>")
    assert done.returncode == 0
    assert b"a &lt;title&gt;" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    text = tmp_path / "large.folded"
    text.write_bytes(b"".join(b"main;method%d 1\n" % n for n in range(100_000)))
    command = f"'{sys.executable}' -m hprofiler convert '{text}' -o - --to folded | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"main;method0 1\n", b"")


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
        (["-o", "x.svg", "--prune", "101%"], "neither a number of frames nor a percentage"),
        (["-o", "x.svg", "--focus", "a", "--focus", "("], "--focus (: not a regular expression"),
        (["-o", "x.svg", "--trim", "(?=a)"], "look-around"),
        (["-o", "x.svg", "--trim", ""], "--trim: an empty expression"),
        (["-o", "x.svg", "--include", ""], "--include: an empty expression"),
        (["-o", "x.svg", "--bgcolors", "pink"], "known are: yellow, blue, green, grey, #rrggbb"),
        (["-o", "x.svg", "--fontsize", "nan"], "it is 2 to 100 pixels"),
        (["-o", "x.svg", "--time", "5-2"], "not FROM-TO in seconds"),
        (["-o", "x.svg", "--time", "nan-"], "not FROM-TO in seconds"),
        (["-o", "x.svg", "--flamechart", "--kernel"], "--kernel does not go with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--all"], "--all does not go with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--event-filter", "e"], "--event-filter does not go with --flame"),
        (["-o", "x.svg", "--flamechart", "--from", "jfr"], "--from jfr does not go with --flamechart"),
        (["-o", "x.svg", "--flamechart", "--negate"], "--negate does not go with --flamechart"),
        (["-o", "x.folded", "--title", "t"], "--title is for pictures and pages"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_read(words, says, tmp_path):
    done = hprofiler("convert", tmp_path / "none", *words)
    assert done.returncode == 2
    assert says in done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--value", "cpu"], 2, 'no value "cpu" in this profile; there are: samples (count)'),
        (["--threads"], 2, "no stack starts with a thread frame"),
        (["--time", "1-2"], 2, "the option time is for jfr only, and this is folded"),
        (["--kernel"], 2, "the option kernel is for perf-data and perf-script only, and this is folded"),
        (["--negate"], 2, "--negate is for differences, but nothing is compared"),
        (["--include", "nowhere"], 4, "no stack has a frame that --include nowhere finds"),
        (["--focus", "main", "--focus", "wait"], 4, "no stack has a frame that --focus wait finds"),
        (["--exclude", "main", "--exclude", "i?le"], 4, "frame that --exclude main --exclude 'i?le' finds"),
        (["--from", "pprof"], 4, "pprof: "),
    ],
)
def test_what_cannot_be_done_is_said_with_the_file(job, words, code, says, tmp_path):
    done = hprofiler("convert", job, *words, "-o", tmp_path / "x.svg")
    assert done.returncode == code
    assert says in done.stderr.decode()
    assert "job.folded" in done.stderr.decode() or "--negate" in words
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("option", [[], ["--diff"]])
def test_a_folder_is_told_what_to_name_in_its_place(job, tmp_path, option):
    def says(folder):
        done = hprofiler("convert", *([job, *option] if option else []), folder, "-o", tmp_path / "x.html")
        assert done.returncode == 2
        return done.stderr.decode()

    run = tmp_path / "run"
    (run / "cluster").mkdir(parents=True)
    assert f"cannot read {run}: it is a folder" in says(run)
    (run / "run.json").write_text("{}")
    assert f"its profiles are in {run}/hosts" in says(run)
    for name in ("alloc-mean.pb.gz", "alloc.pb.gz", "cpu.pb.gz", "cpu.svg"):
        (run / "cluster" / name).write_bytes(b"")
    assert f"the profile of all its processes is {run}/cluster/cpu.pb.gz" in says(run)
    (run / "cluster/cpu.pb.gz").unlink()
    assert f"the profile of all its processes is {run}/cluster/alloc.pb.gz" in says(run)


def test_unlike_inputs_do_not_merge(job, tmp_path):
    (tmp_path / "d.folded").write_bytes(b"a 1 2\n")
    done = hprofiler("convert", job, tmp_path / "d.folded", "-o", tmp_path / "x.svg")
    assert done.returncode == 4
    assert b"d.folded: unlike values do not add up" in done.stderr and b"--value" in done.stderr


def test_a_difference_comes_back_with_both_counts(job, tmp_path):
    text = b"idle 5 0\nmain 0 2\nmain;read 3 4\n"
    (tmp_path / "d.folded").write_bytes(text)
    for ending in ("pb.gz", "speedscope.json", "hpt", "folded"):
        out = tmp_path / f"back.{ending}"
        assert hprofiler("convert", tmp_path / "d.folded", "-o", out).returncode == 0
        assert convert(out) == text.decode().splitlines()
    assert convert(out, "--value", "after") == ["main 2", "main;read 4"]
    assert hprofiler("convert", job, "--diff", job, "-o", tmp_path / "s.folded").returncode == 0
    assert convert(tmp_path / "s.folded")[0] == "idle;wait 7 7"


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
def test_a_stream_that_cannot_be_used_is_said(job, line, says):
    done = in_a_shell(line, job.parent)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0] == f"hprofiler: {says}"
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


def test_a_closed_stderr_leaves_stdout_alone(tmp_path):
    (tmp_path / "bad.folded").write_bytes(b"main 1\nno count\n")
    done = in_a_shell("bad.folded -o - --to folded 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (0, b"main 1\n")


def in_a_shell(line, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"'{sys.executable}' -m hprofiler convert {line}"
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, env=environment)


def test_what_is_no_profile_is_told_the_formats(tmp_path):
    (tmp_path / "page.txt").write_bytes(b"<svg>\n")
    done = hprofiler("convert", tmp_path / "page.txt", "-o", tmp_path / "x.svg")
    assert done.returncode == 4
    assert b"the formats that can be read are jfr, perf-data, " in done.stderr and b"--from" in done.stderr


def test_what_is_taken_for_pprof_is_told_what_it_may_be(tmp_path):
    packed = tmp_path / "cpu.folded.xz"
    packed.write_bytes(b"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F")
    done = hprofiler("convert", packed, "-o", tmp_path / "x.svg")
    assert done.returncode == 4
    assert b"pprof: damaged or truncated at byte" in done.stderr
    assert b"with --from, or unpack it: gzip and zstd are known" in done.stderr


@pytest.mark.parametrize("words", [["--to", "folded"], ["--to", "svg", "--flamechart"]])
def test_garbage_behind_compressed_data_is_a_warning(tmp_path, words):
    # A frame of one block as it is; nothing in the standard library writes zstd.
    block = (len(JOB) << 3 | 1).to_bytes(3, "little")
    zstd = b"\x28\xb5\x2f\xfd\x20" + bytes([len(JOB)]) + block + JOB
    for name, data in (("gzip", gzip.compress(JOB)), ("zstd", zstd)):
        (tmp_path / name).write_bytes(data + b"-- signature --")
        done = hprofiler("convert", tmp_path / name, "-o", "-", *words)
        warning = f"hprofiler: {name}: 15 bytes behind the compressed data are no part of it: ignored\n"
        assert (done.returncode, done.stderr.decode()) == (0, warning)
        assert b"parse" in done.stdout


def test_one_file_whose_sum_does_not_fit_is_not_told_of_the_mean(tmp_path):
    (tmp_path / "a").write_bytes(b"a %d\nb 1\n" % (2**63 - 1))
    done = hprofiler("convert", tmp_path / "a", "-o", tmp_path / "x.folded")
    assert (done.returncode, b"--mean" in done.stderr) == (4, False)
    assert b"line 2: samples (count): the sum does not fit" in done.stderr


def test_a_sum_that_does_not_fit_has_a_mean(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"%s %d\n" % (name.encode(), 2**63 - 1))
    done = hprofiler("convert", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "x.folded")
    assert (done.returncode, b"--mean" in done.stderr) == (4, True)
    mean = convert(tmp_path / "a", tmp_path / "b", "--mean")
    assert mean == [f"a {2**62}", f"b {2**62 - 1}"]


def test_what_matched_nothing_is_said_with_what_there_is(job, tmp_path):
    done = hprofiler("convert", job, job, "--include", "no where", "-o", tmp_path / "x.svg")
    assert (done.returncode, done.stderr.decode().splitlines()) == (
        4,
        [
            f"hprofiler: nothing is left of {job}, nor of 1 more: "
            "no stack has a frame that --include 'no where' finds",
            "  what there was: samples 16, most of it in wait, match, read, main",
        ],
    )
    done = hprofiler("convert", job, "--trim", "nowhere", "-o", "-", "--to", "folded")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4
    assert done.stderr == b"hprofiler: --trim nowhere finds no frame: nothing was trimmed\n"


def test_what_matches_in_one_input_is_enough(job):
    assert convert(job, "-", "--include", "wait", stdin=b"other 3\n") == ["idle;wait 7"]
    assert convert(job, "-", "--trim", "read", stdin=b"b;other 3\n")[0] == "b;other 3"
    assert convert("-", "--diff", job, "--exclude", "main", stdin=b"idle;wait 7\n") == ["idle;wait 7 7"]


def test_an_event_that_is_not_there_is_told_those_that_are(tmp_path):
    perf = b"java 1 2.5: 10 cycles:u:\n\tff f (/x)\n\njava 1 2.6: 10 faults:\n\tff f (/x)\n\n"
    done = hprofiler("convert", "-", "--event-filter", "cpu", "-o", tmp_path / "x.svg", stdin=perf)
    assert done.returncode == 2
    assert b'stdin: no event "cpu" in this recording; there are: cycles:u, faults' in done.stderr
    assert convert("-", "--event-filter", "faults", stdin=perf) == ["java;f 10"]


def test_many_inputs_are_reduced_and_merged_in_order(tmp_path):
    """Warnings stand in the order of the files, whichever was read first, and all amounts add up."""
    names = [tmp_path / f"{number:02}.folded" for number in range(30)]
    for number, name in enumerate(names):
        filler = b"".join(b"J$$Lambda$%d/0x%x;m%d 1\n" % (n, n, n) for n in range(20 * (30 - number)))
        name.write_bytes(filler + b"J$$Lambda$7/0x8.run %d\nbad\n" % (number + 1))
    done = hprofiler("convert", *names, "--canonical", "--include", "run", "-o", "-", "--to", "folded")
    assert (done.returncode, done.stdout) == (0, b"J$$Lambda.run 465\n")
    assert done.stderr == b"hprofiler: 30 malformed lines or records were left out\n"
    names[11].write_bytes(b"a 1 2\n")
    names[17].write_bytes(b"not a profile\n")
    for _ in range(3):
        done = hprofiler("convert", *names, "--canonical", "-o", tmp_path / "x.svg")
        assert done.returncode == 4
        assert f"cannot merge {names[11]}: unlike values do not add up" in done.stderr.decode()


def test_nothing_before_is_no_share_but_a_count(job, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert convert(job, "--diff", tmp_path / "empty", "--absolute")[0] == "idle;wait 0 7"
    done = hprofiler("convert", job, "--diff", tmp_path / "empty", "-o", tmp_path / "x.svg")
    assert (done.returncode, b"no samples in" in done.stderr) == (4, True)


def test_a_moved_stdin_is_read_from_where_it_stands(job):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words, says in (("--to folded", b"idle;wait 7\n"), ("--to svg --flamechart", b"wait (7 samples")):
        command = [sys.executable, "-m", "hprofiler", "convert", "-", "-o", "-", *words.split()]
        with job.open("rb", buffering=0) as file:
            file.seek(JOB.index(b"idle"))
            done = subprocess.run(command, stdin=file, capture_output=True, env=environment)
        assert done.returncode == 0 and says in done.stdout and b"main" not in done.stdout


@pytest.mark.parametrize("words", ["--to folded", "--to folded --include main", "--to svg --flamechart"])
def test_stdin_may_be_a_socket(words):
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "hprofiler", "convert", "-", "-o", "-", *words.split()]
    with ours, theirs:
        ours.sendall(JOB)
        ours.shutdown(socket.SHUT_WR)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, stdin=theirs, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"match" in done.stdout


SEVERAL = b"""java 1 [000] 1.0: 7 page-faults:
\t1 main (/x)

java 1 [000] 2.0: 9 cpu-clock:
\t1 main (/x)
\t2 root (/x)

"""


def test_which_of_several_events_is_written_is_told():
    done = hprofiler("convert", "-", "-o", "-", "--to", "folded", stdin=SEVERAL)
    assert (done.returncode, done.stdout) == (0, b"java;main 7\n")
    note = b"hprofiler: of several events page-faults is written; another with --value: cpu-clock\n"
    assert done.stderr == note
    assert convert("-", "--value", "cpu-clock", stdin=SEVERAL) == ["java;root;main 9"]
    assert hprofiler("convert", "-", "-o", "-", "--to", "json", stdin=SEVERAL).stderr == b"", "it has all"


SAMPLES = {"startValue": 0, "endValue": 4, "samples": [[0]], "weights": [4]}


def test_the_periods_of_one_event_are_no_other_event():
    def profile(name):
        value = {"name": name, "unit": "count"}
        return {"type": "sampled", "name": name, "unit": "none", "value": value, **SAMPLES}

    file = {"shared": {"frames": [{"name": "main"}]}, "profiles": [profile("samples"), profile("period")]}
    done = hprofiler("convert", "-", "-o", "-", "--to", "folded", stdin=json.dumps(file).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"main 4\n", b"")


def test_what_was_left_out_is_told_also_where_nothing_is_left(tmp_path):
    done = hprofiler("convert", "-", "-o", tmp_path / "x.svg", stdin=b"a 0\nno count\n")
    assert (done.returncode, done.stderr.decode().splitlines()) == (
        4,
        [
            "hprofiler: 1 malformed line or record was left out",
            "hprofiler: no samples in -: there is nothing to draw",
        ],
    )


def test_ctrl_c_waits_for_no_input_that_never_comes(job):
    """Of several inputs one is a pipe to which nobody writes, though somebody might."""
    os.mkfifo(job.parent / "pipe")
    command = [sys.executable, "-m", "hprofiler", "convert", "pipe", "job.folded", "job.folded"]
    with subprocess.Popen(
        [*command, "--exclude", "x", "-o", "x.svg"],
        cwd=job.parent,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as running:
        with open(job.parent / "pipe", "wb"):  # it is being read
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
        assert running.stderr.read() == b"hprofiler: interrupted\n"


def test_names_that_are_no_utf8_are_no_obstacle(job):
    odd = job.parent / os.fsdecode(b"a\xff.folded")
    odd.write_bytes(JOB)
    for words in (["convert", odd], ["diff", odd, job]):
        for output in ("x.svg", "x.html"):
            done = hprofiler(*words, "-o", job.parent / output)
            assert (done.returncode, done.stderr) == (0, b""), (words, done.stderr)
            assert "a\ufffd.folded" in (job.parent / output).read_text()
