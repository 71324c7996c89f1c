"""One target of the coordinator under libFuzzer: `python -m tests.fuzz.guided TARGET CORPUS OPTION…`."""

from __future__ import annotations

import sys

import atheris

_READERS = ["hprofiler", "yaml", "shlex", "lightkube.config", "paramiko.config"]


def main() -> None:
    target = sys.argv.pop(1)
    with atheris.instrument_imports(include=_READERS):
        from tests.fuzz import coordinator

    atheris.Setup(sys.argv, lambda data: coordinator.run(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
