"""Fetches and builds what the lab runs, so that no test waits for it; what is there already is left alone.

python -m tests.lab.software
"""

from __future__ import annotations

import os
import sys

from tests.lab.cache import Unavailable
from tests.lab.k8s import software as k8s
from tests.lab.spark import logs
from tests.lab.yarn import software as yarn


def main() -> None:
    os.nice(10)  # tests run beside it
    for make in (yarn.software, yarn.pyspark, logs.spark_3, k8s.software):
        try:
            make()
        except Unavailable as problem:  # a test that needs it is skipped
            print(problem, file=sys.stderr)


if __name__ == "__main__":
    main()
