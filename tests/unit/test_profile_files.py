"""Profiles as files: every writer by name and by extension, streams, and files that cannot be written."""

from __future__ import annotations

import io
import json

import pytest

from hprofiler import Profile
from hprofiler._flamegraph import WRITE_FORMATS

JOB = b"main;parse;match_[j] 5\nmain;read 3\n"


@pytest.fixture
def job():
    return Profile.from_bytes(JOB)


def test_every_format_is_written_by_extension(job, tmp_path):
    for name, ending in WRITE_FORMATS.items():
        path = tmp_path / f"out{ending}"
        job.write(path)
        assert path.stat().st_size > 0
        again = tmp_path / "again"
        job.write(again, name, title=path.name)
        if name == "html":
            assert b"out.html" in again.read_bytes()
        else:
            assert again.stat().st_size > 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_writing_to_bytes_and_to_files_is_the_same(job, tmp_path):
    for name, data in [
        ("folded", job.to_folded()),
        ("pprof", job.to_pprof()),
        ("svg", job.to_svg()),
        ("json", job.to_json()),
        ("speedscope", job.to_speedscope()),
    ]:
        file = io.BytesIO()
        job.write(file, name)
        assert file.getvalue() == data, name
    json.loads(job.to_json())


def test_what_cannot_be_written_is_an_os_error(job, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        job.write(tmp_path / "no" / "x.svg")
    assert str(caught.value.filename).endswith("x.svg")
    (tmp_path / "d.svg").mkdir()
    with pytest.raises(OSError):
        job.write(tmp_path / "d.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["d.svg"], "nothing half-written is left"


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.svg"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="nothing to draw"):
        Profile.from_bytes(b"").write(path)
    assert path.read_bytes() == b"old"


def test_errors_of_the_other_side_come_back(job):
    class Broken:
        def write(self, block):
            raise BrokenPipeError("gone")

    with pytest.raises(BrokenPipeError, match="gone"):
        job.write(Broken(), "folded")


def test_formats_that_nobody_knows(job, tmp_path):
    with pytest.raises(ValueError, match=r"the name does not tell the format; known are: .*svg \(\.svg\)"):
        job.write(tmp_path / "x.png")
    with pytest.raises(ValueError, match='unknown format "png"; known are: '):
        job.write(tmp_path / "x", "png")
    with pytest.raises(ValueError, match="the format must be named"):
        job.write(io.BytesIO())
    with pytest.raises(ValueError, match="the page needs a path"):
        job.write(io.BytesIO(), "html")
