"""The command line: `main(argv) -> exit code`. Only this module prints errors."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from hprofiler.base.errors import Defect, HprofilerError, PicturesError, UsageError
from hprofiler.base.text import printable
from hprofiler.cli.terminal import signals, streams
from hprofiler.cli.terminal.exit_codes import Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (`terminal.exit_codes`)."""
    try:
        return _carry_out(list(sys.argv[1:] if argv is None else argv))
    except SystemExit as leaving:  # after help
        raise SystemExit(leaving.code or Exit.USAGE if _lost() else leaving.code) from None
    except BaseException as error:  # a panic of the binding is not an Exception
        if number := signals.number_of(error):
            return Exit.after(number)
        # Python itself would exit with 1, which means that a method grew.
        traceback.print_exc()
        return Exit.DEFECT


def _carry_out(words: Sequence[str]) -> int:
    from hprofiler.cli.options import audit as audited
    from hprofiler.cli.options.parser import parse

    try:
        options = parse(words)
    except UsageError as error:
        print_error(error)
        return exit_code(error)
    try:
        code, why = _commanded(options)
    except BaseException as error:
        audited.end(options, None, type(error).__name__)
        raise
    audited.end(options, code, why)
    return code


def _commanded(options: argparse.Namespace) -> tuple[int, str]:
    """The exit code of a command, and the reason."""
    try:
        signals.as_exceptions()
        from hprofiler.cli import memory

        memory.keep()
        code = int(options.command(options))
        if lost := _lost():
            return code or Exit.USAGE, lost
        return code, next((exit.name.lower() for exit in Exit if exit == code), "")
    except HprofilerError as error:
        if isinstance(error, Defect):
            traceback.print_exception(error.__cause__)
        print_error(error)
        return exit_code(error), error.reason
    except KeyboardInterrupt as interrupt:
        why = ": ".join(["interrupted", *map(str, interrupt.args)])
        print_error(HprofilerError(why))
        return Exit.after(signals.number_of(interrupt) or 0), why


def _lost() -> str:
    """Reports a failed write to stdout; returns the reason, or ""."""
    unwritten = streams.unwritten()
    if unwritten is None:
        return ""
    error = HprofilerError(f"cannot write to stdout: {unwritten.strerror}")
    print_error(error)
    return error.reason


def exit_code(error: HprofilerError) -> Exit:
    if isinstance(error, UsageError):
        return Exit.USAGE
    if isinstance(error, Defect):
        return Exit.DEFECT
    return Exit.PARTIAL if isinstance(error, PicturesError) else Exit.NOTHING


def print_error(error: HprofilerError) -> None:
    print(f"hprofiler: {_lines(error.reason)}", file=sys.stderr)
    if error.remedy:
        print(f"  {_lines(error.remedy)}", file=sys.stderr)


def _lines(told: str) -> str:
    """Lines without control characters; continuation lines are indented."""
    return "\n  ".join(map(printable, told.expandtabs().split("\n")))
