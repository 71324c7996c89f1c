"""What the bench keeps when a part of it fails."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.__main__ import measured
from tests.bench.table import Row

GOOD = Row("what", "1 s", "", None)


def test_rows_before_a_failure_are_kept_and_the_failure_is_named() -> None:
    def fails() -> Iterator[Row]:
        yield GOOD
        raise FileNotFoundError("no such tool\nmore")

    failed = Row("core-svg", "not measured: no such tool", "", False)
    assert list(measured("core-svg", fails)) == [GOOD, failed]
