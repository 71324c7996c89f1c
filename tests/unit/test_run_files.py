"""Files of a run folder as inputs: those that are not profiles are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder, replacing
from tests.unit.command import hprofiler
from tests.viewer.made_run import MadeHost, make_run


def run_in(path: Path) -> RunFolder:
    folder = make_run(path, [MadeHost("n1", {11: "main;work 40\n"}), MadeHost("n2", {13: "main;work 2\n"})])
    make_report(folder.path)
    return folder


def test_files_that_are_not_profiles_are_refused(tmp_path):
    folder = run_in(tmp_path / "run").path
    out = tmp_path / "out.svg"
    for name, what in (
        ("run.json", "the run.json of a run: give the folder, or a profile in it such as cluster/cpu.pb.gz"),
        ("report.html", "a page that hprofiler wrote (HTML): give the profile that it was made of"),
    ):
        copy = tmp_path / "copy.txt"
        copy.write_bytes((folder / name).read_bytes())
        for words in (["convert", copy, "-o", out], ["diff", copy, folder]):
            done = hprofiler(*words)
            assert (done.returncode, out.exists()) == (4, False)
            assert done.stderr == (
                f"hprofiler: cannot read: {copy}: not a profile that can be read, but {what}\n"
            )


def test_a_run_of_one_event_is_converted_as_a_profile(tmp_path):
    folder = run_in(tmp_path / "run").path
    for name in (folder, folder / "cluster/cpu.pb.gz"):
        done = hprofiler("convert", name, "-o", "-", "--to", "folded")
        assert (done.returncode, done.stdout) == (0, "main;work 42\n")


def test_an_error_of_the_system_names_the_file_once(tmp_path):
    folder = run_in(tmp_path / "run").path
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("run.json")  # like a file that may not be read, also for root
    done = hprofiler("outliers", folder)
    assert done.returncode != 0 and done.stderr.count("run.json") == 1


@pytest.mark.parametrize("named", ["report.html", "run.json", "cluster", "hosts"])
def test_files_of_a_run_name_its_folder(tmp_path, named):
    folder = run_in(tmp_path / "run").path
    made = hprofiler("report", folder / named)
    assert (made.returncode, made.stdout, made.stderr) == (0, f"{folder / 'report.html'}\n", "")
    assert hprofiler("outliers", folder / named).stdout == hprofiler("outliers", folder).stdout
    compared = hprofiler("diff", folder / named, folder)
    assert (compared.returncode, compared.stdout) == (0, hprofiler("diff", folder, folder).stdout)


def test_a_pipe_or_device_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(pipe) as file:
            file.write(b"page")
        assert os.read(reader, 9) == b"page" and pipe.is_fifo()
    finally:
        os.close(reader)
