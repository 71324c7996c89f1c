"""`hprofiler` and `python -m hprofiler`: an interrupt while the first modules are read ends it quietly."""

import os
import sys


def main() -> int:
    """Run one command as a program of its own; returns its exit code."""
    try:
        from hprofiler.cli import main
        from hprofiler.cli.terminal import signals, streams

        signals.at_once()
        streams.prepare()
    except KeyboardInterrupt:
        os._exit(130)
    return main()


if __name__ == "__main__":
    sys.exit(main())
