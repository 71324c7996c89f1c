"""What a run folder has beside profiles: no profile, and good for naming the folder."""

from __future__ import annotations

import pytest

from tests.unit.test_cli import hprofiler
from tests.unit.test_provenance import run_in


def test_what_is_no_profile_is_refused_and_says_what_is(tmp_path):
    folder = run_in(tmp_path / "run").path
    out = tmp_path / "out.svg"
    for name, what in (("run.json", "the run.json of a run"), ("report.html", "a page")):
        done = hprofiler("convert", folder / name, "-o", out)
        assert (done.returncode, done.stderr.decode()) == (
            2,
            f"hprofiler: cannot read {folder / name}: it is {what}, not a profile\n"
            f"  the profile of all its processes is {folder / 'cluster/cpu.pb.gz'}\n",
        )
        copy = tmp_path / "copy.txt"
        copy.write_bytes((folder / name).read_bytes())
        for words in (["convert", copy, "-o", out], ["diff", copy, folder]):
            done = hprofiler(*words)
            assert (done.returncode, out.exists()) == (2, False)
            assert b"not a profile" in done.stderr and b"name the profile it was made from" in done.stderr


@pytest.mark.parametrize("named", ["report.html", "run.json", "cluster", "hosts"])
def test_what_hprofiler_prints_of_a_run_stands_for_its_folder(tmp_path, named):
    folder = run_in(tmp_path / "run").path
    made = hprofiler("report", folder / named)
    assert (made.returncode, made.stdout.decode(), made.stderr) == (0, f"{folder / 'report.html'}\n", b"")
    assert hprofiler("outliers", folder / named).stdout == hprofiler("outliers", folder).stdout
    compared = hprofiler("diff", folder / named, folder)
    assert (compared.returncode, compared.stdout) == (0, hprofiler("diff", folder, folder).stdout)


def test_what_is_deeper_in_a_run_folder_is_not_taken_for_all_of_it(tmp_path):
    folder = run_in(tmp_path / "run").path
    for deeper in ("hosts/n1", "hosts/n1/11", "cluster/cpu.svg"):
        done = hprofiler("report", folder / deeper)
        assert (done.returncode, done.stderr.decode()) == (
            2,
            f"hprofiler: {folder / deeper} is not a run folder: it has no run.json\n"
            f"  it is in a run folder: name {folder}\n",
        )
    assert hprofiler("report", folder / "no/such").stderr.decode().count("\n") == 1
