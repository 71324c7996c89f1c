"""Our speedscope files conform to the published schema, and read back equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from hprofiler._flamegraph import Profile
from tests.exact import peers

pytestmark = pytest.mark.nightly

TEXTS = {
    "plain": b"main;a.B.c_[j];read_[k] 3\nmain;a.B.c_[0] 4\n",
    "before and after": b"main;a 3 0\nmain;b 4 9\n",
    "odd names": '"quoted";back\\slash;tab\there;\u00e9\u4e2d 7\n 2\n'.encode(),
    "nothing": b"",
}


@pytest.fixture(scope="session")
def schema() -> Draft7Validator:
    found = peers.speedscope_schema()
    Draft7Validator.check_schema(found)
    return Draft7Validator(found)


def written(profile: Profile, path: Path) -> dict[str, Any]:
    profile.write(str(path), "speedscope")
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


@pytest.mark.parametrize("name", TEXTS)
def test_files_are_valid_and_come_back(schema: Draft7Validator, tmp_path: Path, name: str) -> None:
    profile = Profile.from_bytes(TEXTS[name], "folded").with_labels({"host": "h 1"})
    path = tmp_path / "x.speedscope.json"
    content = written(profile, path)
    assert [error.message for error in schema.iter_errors(content)] == []
    assert len(content["profiles"]) == len(profile.values), "one profile for each value"
    back = Profile.read(str(path))
    assert (back.values, back.labels) == (profile.values, {"host": "h 1"})
    for value in range(len(profile.values)):
        assert back.to_folded(value=value) == profile.to_folded(value=value)
