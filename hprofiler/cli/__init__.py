"""The command line: `main(argv) -> exit code`. The one place that prints errors."""

from __future__ import annotations

import os
import sys
from typing import Optional, Sequence

from hprofiler.cli.exits import Exit
from hprofiler.errors import HprofilerError, PicturesError, UsageError


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command; returns its exit code (`cli.exits`)."""
    from hprofiler.cli.parser import parse

    options = parse(list(sys.argv[1:] if argv is None else argv))
    try:
        return int(options.command(options))
    except HprofilerError as error:
        print_error(error)
        return exit_code(error)
    except KeyboardInterrupt as interrupt:
        print(": ".join(["hprofiler: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`| head`); a second flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def exit_code(error: HprofilerError) -> Exit:
    if isinstance(error, UsageError):
        return Exit.USAGE
    return Exit.PARTIAL if isinstance(error, PicturesError) else Exit.NOTHING


def print_error(error: HprofilerError) -> None:
    print(f"hprofiler: {error.reason}", file=sys.stderr)
    if error.remedy:
        print(f"  {error.remedy}", file=sys.stderr)
