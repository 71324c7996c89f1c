"""What a run folder has beside profiles: no profile, and good for naming the folder."""

from __future__ import annotations

import pytest

from tests.unit.command import hprofiler
from tests.unit.test_provenance import run_in


def test_what_is_no_profile_is_refused_and_says_what_is(tmp_path):
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
def test_what_hprofiler_prints_of_a_run_stands_for_its_folder(tmp_path, named):
    folder = run_in(tmp_path / "run").path
    made = hprofiler("report", folder / named)
    assert (made.returncode, made.stdout, made.stderr) == (0, f"{folder / 'report.html'}\n", "")
    assert hprofiler("outliers", folder / named).stdout == hprofiler("outliers", folder).stdout
    compared = hprofiler("diff", folder / named, folder)
    assert (compared.returncode, compared.stdout) == (0, hprofiler("diff", folder, folder).stdout)
