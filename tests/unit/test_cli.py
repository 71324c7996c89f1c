"""The command line, run as users run it: help, usage errors, exit codes, convert, completion."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def hprofiler(*words, stdin=b"", **environment):
    return subprocess.run(
        [sys.executable, "-m", "hprofiler", *map(str, words)],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def folded(tmp_path):
    path = tmp_path / "a.folded"
    path.write_bytes(b"main;parse;java/util/regex/Pattern.compile_[j] 70\nmain;write_[i] 30\n")
    return path


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["ps", "-h"], ["run", "-h"], ["convert", "--help"], ["help"]]
)
def test_help_goes_to_stdout(words):
    done = hprofiler(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"usage: hprofiler" in done.stdout


def test_version():
    assert hprofiler("--version").stdout.decode().startswith("hprofiler 0.")


def test_h_with_a_value_is_the_list_of_hosts():
    done = hprofiler("-j", "java", "-h", "ho st,b")
    assert done.returncode == 2
    assert b"ho st" in done.stderr


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "usage"),
        (["-f", "99"], "-j"),
        (["slectors"], "unknown verb"),
        (["-j", "java", "-f", "0"], "frequency from 1 to 10000"),
        (["-j", "java", "-t", "soon"], "time from 0.1"),
        (["-j", "spark-exector"], "spark-executor"),
        (["-j", "java", "-H", "a", "--hosts-file", "b"], "two targets"),
        (["-j", "java", "-H", "a", "--identity", "/no/such/key"], "no such file"),
        (["-j", "java", "--async-profiler", "/etc/hostname"], "shared library"),
        (["-j", "java", "--frequ", "9"], "unrecognized"),
    ],
)
def test_bad_usage_says_what_and_exits_2(words, says, tmp_path):
    done = hprofiler(*words)
    assert done.returncode == 2
    assert says in done.stderr.decode() + done.stdout.decode()
    assert b"Traceback" not in done.stderr


def test_output_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    done = hprofiler("-j", "pid:1", "-o", tmp_path)
    assert done.returncode != 0
    assert b"no run folder" in done.stderr
    assert b"-o" in done.stderr


@pytest.mark.parametrize("extension", ["folded", "svg", "html", "pb.gz"])
def test_convert_writes_by_extension_and_merges(folded, tmp_path, extension):
    out = tmp_path / f"out.{extension}"
    done = hprofiler("convert", folded, folded, "-o", out)
    assert (done.returncode, done.stderr) == (0, b"")
    back = tmp_path / "back.folded"
    if extension in ("folded", "pb.gz"):
        assert hprofiler("convert", out, "-o", back).returncode == 0
        assert b"main;parse;java/util/regex/Pattern.compile_[j] 140" in back.read_bytes()
    else:
        assert b"Pattern.compile" in out.read_bytes() or extension == "html"


def test_convert_reads_stdin_and_gzip(folded, tmp_path):
    out = tmp_path / "out.folded"
    done = hprofiler("convert", "-", "-o", out, stdin=gzip.compress(folded.read_bytes()))
    assert done.returncode == 0
    assert out.read_bytes() == hprofiled(folded)


def hprofiled(path):
    return b"".join(sorted(path.read_bytes().splitlines(keepends=True)))


@pytest.mark.parametrize(
    "content, says",
    [(b"", "no samples"), (b"\x1f\x8bnothing", "cannot read"), (None, "cannot read")],
)
def test_convert_says_what_is_wrong_with_its_input(content, says, tmp_path):
    source = tmp_path / "in"
    if content is not None:
        source.write_bytes(content)
    done = hprofiler("convert", source, "-o", tmp_path / "out.svg")
    assert done.returncode in (2, 4)
    assert says in done.stderr.decode()
    assert not (tmp_path / "out.svg").exists()


def test_a_missing_input_is_bad_usage(folded, tmp_path):
    done = hprofiler("convert", folded, tmp_path / "nope", "-o", tmp_path / "out.svg")
    assert done.returncode == 2
    assert f"cannot read {tmp_path / 'nope'}: No such file" in done.stderr.decode()


def test_convert_makes_no_folders(folded, tmp_path):
    done = hprofiler("convert", folded, "-o", tmp_path / "new" / "out.svg")
    assert done.returncode == 2
    assert not (tmp_path / "new").exists()


def test_convert_counts_malformed_lines(folded, tmp_path):
    folded.write_bytes(folded.read_bytes() + b"no count here\n")
    done = hprofiler("convert", folded, "-o", tmp_path / "out.folded")
    assert done.returncode == 0
    assert b"1 malformed line" in done.stderr


def test_convert_knows_its_extensions(folded, tmp_path):
    done = hprofiler("convert", folded, "-o", tmp_path / "out.png")
    assert done.returncode == 2
    assert all(ending in done.stderr for ending in (b" .folded ", b" .svg ", b" .pb.gz ", b" .html"))


def test_selectors_are_listed_for_people_and_scripts():
    listed = hprofiler("selectors").stdout.decode()
    assert "spark-executor " in listed
    assert {"name", "summary"} == set(json.loads(hprofiler("selectors", "--json").stdout)[0])


def test_report_of_no_run_folder(tmp_path):
    done = hprofiler("report", tmp_path)
    assert done.returncode != 0
    assert b"no run folder" in done.stderr


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m hprofiler selectors | head -1"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == b""


def bash_completes(words, tmp_path):
    script = tmp_path / "completion"
    script.write_bytes(hprofiler("completion", "bash").stdout)
    line = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
    line += "COMP_LINE=x; _hprofiler; printf '%s\\n' \"${COMPREPLY[@]}\""
    wrapper = tmp_path / "bin" / "hprofiler"
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m hprofiler "$@"\n')
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, env={**os.environ, "PATH": path})
    assert done.stderr == b""
    return done.stdout.decode().split()


def test_bash_completes_verbs_options_and_selectors(tmp_path):
    assert bash_completes(["hprofiler", "sel"], tmp_path) == ["selectors"]
    assert "--accept-new-host-keys" in bash_completes(["hprofiler", "run", "--acc"], tmp_path)
    assert "spark-executor" in bash_completes(["hprofiler", "-j", "spark-"], tmp_path)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_their_script(shell, tmp_path):
    script = hprofiler("completion", shell).stdout
    assert b"hprofiler" in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: its completion script is not parsed here")
    assert subprocess.run([shell, "-n"], input=script).returncode == 0
