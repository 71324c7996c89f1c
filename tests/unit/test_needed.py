"""What cannot be had skips its tests, and fails them in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needed import HAVE_ALL, lacking

CI = Path(__file__).resolve().parents[2] / ".ci" / "run"


def test_what_is_lacking_skips_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HAVE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^there is no Firefox$"):
        lacking("there is no Firefox")


def test_in_ci_it_fails_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HAVE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match=f"there is no Firefox, and {HAVE_ALL} is set"):
        lacking("there is no Firefox")
    assert f"{HAVE_ALL}=1 make test" in CI.read_text()
