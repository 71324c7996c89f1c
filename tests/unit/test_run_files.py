"""Files of a run folder as inputs: a picture says how much of the run it shows; others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.unit.command import hprofiler
from tests.unit.test_report_words import subtitle
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite


def run_in(path: Path, interrupted: bool = False) -> RunFolder:
    """Five processes on three hosts: one failed, one has no sample, and one host failed."""
    hosts = [
        MadeHost("n1", {11: "main;work 40\n", 12: "main;work 20\n"}),
        MadeHost("n2", {13: "main;work 2\n", 14: ""}).fails("failed", "no room", pid=15),
        MadeHost("n3").fails("failed", "no answer"),
    ]
    folder = make_run(path, hosts)
    rewrite(folder, {**content_of(folder), "interrupted": interrupted})
    make_report(folder.path)
    return folder


def told(tmp_path: Path, *words: object) -> str:
    out = tmp_path / "out.svg"
    done = hprofiler("convert", *words, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    return subtitle(out.read_text())


@pytest.mark.parametrize(
    ("files", "covered"),
    [
        (["cluster/cpu.pb.gz"], "4 of 5 processes on 2 of 3 hosts, interrupted · 300 Hz for 60 s"),
        (["cluster/cpu-mean.folded"], "4 of 5 processes on 2 of 3 hosts, interrupted · 300 Hz for 60 s"),
        (["hosts/n1/cpu.pb.gz"], "n1: 2 of 2 processes, interrupted · 300 Hz for 60 s"),
        (["hosts/n2/cpu.pb.gz"], "n2: 2 of 3 processes, interrupted · 300 Hz for 60 s"),
        # Together they are the whole run.
        (
            ["hosts/n1/cpu.pb.gz", "hosts/n2/cpu.pb.gz"],
            "4 of 5 processes on 2 of 3 hosts, interrupted · 300 Hz for 60 s",
        ),
        (
            ["hosts/n1/11/cpu.pb.gz", "hosts/n2/13/cpu.pb.gz"],
            "2 of 5 processes on 2 of 3 hosts, interrupted · 300 Hz for 60 s",
        ),
        (["hosts/n1/11/cpu.pb.gz"], "1 of 5 processes on 1 of 3 hosts, interrupted · 300 Hz for 60 s"),
    ],
)
def test_pictures_of_files_of_a_run_have_its_coverage(tmp_path, files, covered):
    folder = run_in(tmp_path / "run", interrupted=True)
    assert told(tmp_path, *(folder.path / file for file in files)) == covered


def test_other_files_in_a_run_folder_have_no_coverage(tmp_path):
    other = run_in(tmp_path / "run").path / "cluster/other.folded"
    other.write_text("main;x 1\n")
    assert told(tmp_path, other) == ""


DAMAGED: dict[str, str] = {
    "brackets": "[" * 200_000,
    "none": "",
    "another format": '{"format": 1}',
    "not one of ours": '{"name": "a"}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=list(DAMAGED))
def test_the_picture_of_a_damaged_run_is_drawn_with_a_warning(tmp_path, text):
    folder = run_in(tmp_path / "run")
    (folder.path / "run.json").write_text(text)
    done = hprofiler("convert", folder.path / "cluster/cpu.pb.gz", "-o", tmp_path / "out.svg")
    assert done.returncode == 0
    assert done.stderr.startswith("hprofiler: the picture does not say of how much it is: ")
    assert subtitle((tmp_path / "out.svg").read_text()) == ""


def test_names_of_a_hostile_run_are_text_in_the_picture(tmp_path):
    folder = run_in(tmp_path / "run")
    name, record = "</text><script>\x1b", content_of(folder)
    record["hosts"][0]["name"] = name
    record["sampling"]["events"] += ["../../etc"]
    rewrite(folder, record)
    (folder.path / "hosts/n1").rename(folder.host_dir(name))
    said = told(tmp_path, folder.host_dir(name) / "cpu.pb.gz")
    assert said == "</text><script>\ufffd: 2 of 2 processes · 300 Hz for 60 s"
    assert "<script>\ufffd" not in (tmp_path / "out.svg").read_text()


def test_files_that_are_not_profiles_are_refused(tmp_path):
    folder = run_in(tmp_path / "run").path
    out = tmp_path / "out.svg"
    for name, what in (("run.json", "the run.json of a run"), ("report.html", "a page")):
        done = hprofiler("convert", folder / name, "-o", out)
        assert (done.returncode, done.stderr) == (
            2,
            f"hprofiler: cannot read {folder / name}: it is {what}, not a profile\n"
            f"  the profile of all its processes is {folder / 'cluster/cpu.pb.gz'}\n",
        )
        copy = tmp_path / "copy.txt"
        copy.write_bytes((folder / name).read_bytes())
        for words in (["convert", copy, "-o", out], ["diff", copy, folder]):
            done = hprofiler(*words)
            assert (done.returncode, out.exists()) == (2, False)
            assert "not a profile" in done.stderr and "name the profile it was made from" in done.stderr


@pytest.mark.parametrize("named", ["report.html", "run.json", "cluster", "hosts"])
def test_files_of_a_run_name_its_folder(tmp_path, named):
    folder = run_in(tmp_path / "run").path
    made = hprofiler("report", folder / named)
    assert (made.returncode, made.stdout, made.stderr) == (0, f"{folder / 'report.html'}\n", "")
    assert hprofiler("outliers", folder / named).stdout == hprofiler("outliers", folder).stdout
    compared = hprofiler("diff", folder / named, folder)
    assert (compared.returncode, compared.stdout) == (0, hprofiler("diff", folder, folder).stdout)
