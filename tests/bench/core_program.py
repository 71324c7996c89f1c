"""What a report does with the core, as a program to measure: profiles → cluster SVG, pprof, viewer data.

python -m tests.bench.core_program FOLDER PROFILE...
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hprofiler._flamegraph import Profile, ViewerData
from hprofiler.cli import memory


def main(folder: Path, profiles: list[str]) -> None:
    memory.keep()  # as every command does
    merged = Profile.open(profiles)

    def write(name: str, output: Callable[[], bytes]) -> None:
        (folder / name).write_bytes(output())

    def viewer_data() -> bytes:
        data = ViewerData()
        data.add(merged)
        return data.to_bytes()

    with ThreadPoolExecutor() as pool:
        outputs = [("cluster.pb.gz", merged.to_pprof), ("cluster.data", viewer_data)]
        outputs += [("cluster.svg", merged.to_svg)]
        for done in [pool.submit(write, name, output) for name, output in outputs]:
            done.result()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
