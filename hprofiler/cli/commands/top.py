"""`hprofiler top`: what hosts and the job's processes do now. Records nothing, unless a key asks for it."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_table, say
from hprofiler.cli.terminal.streams import is_terminal
from hprofiler.cli.terminal.top_methods import TopMethods
from hprofiler.cli.terminal.top_processes import process_rows, process_table
from hprofiler.cli.terminal.top_table import TopTable
from hprofiler.collect.following import Following
from hprofiler.collect.stop import Stop
from hprofiler.collect.watching import watch
from hprofiler.model import Status

_NUMBERS = ("PID", "CPU", "memory", "heap", "GC")
_LATEST = 3.0
"""A host that is later than so many seconds is shown as it was."""


def command(options: argparse.Namespace) -> int:
    selector = chosen.selector(options)
    located = chosen.target(options)
    counters = ("ipc",) if options.ipc else ()
    table = TopTable([one.name for one in located.hosts], options.ipc)
    stop = Stop()
    live = is_terminal(sys.stdout) and not options.json and options.count is None
    reach = chosen.reach(options, located)
    with _live(table, TopMethods(table.known, reach), stop) if live else _printed(table, options, stop):
        found = watch(
            located.hosts,
            selector,
            reach,
            table.add,
            table.listen,
            stop,
            counters,
            Following(located.look, most_hosts=options.max_hosts),
        )
    failed = [one for host in found for one in host.outcomes if one.status is Status.FAILED]
    for one in failed if not stop.signal else ():
        say(f"{one.where}: ", one.reason, sys.stderr)
        if one.remedy:
            say("  ", one.remedy, sys.stderr)
    if table.has_readings and not any(host.processes for host in found):
        say("", f"no process matches {selector.text!r}; hprofiler ps -j java shows what runs", sys.stderr)
    if stop.signal:
        return Exit.after(stop.signal)
    if not table.has_readings:
        return Exit.NOTHING
    return Exit.PARTIAL if failed else Exit.OK


@contextmanager
def _printed(table: TopTable, options: argparse.Namespace, stop: Stop) -> Iterator[None]:
    """Prints the table, or a line of JSON, each second until it was printed as often as wanted."""

    def print_all() -> None:
        wait: float | None = None  # at first, all hosts connect
        for _ in range(options.count or 1):
            table.wait_for_all(wait)
            if stop.level:
                return
            _print(table, options.json)
            wait = _LATEST
        stop.finish()

    with _thread(print_all):
        yield


def _print(table: TopTable, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"time": time.time(), "hosts": table.record()}), flush=True)
    else:
        print_table([table.heads, *table.rows()], right=range(1, len(table.heads) - 1))
        rows = process_rows(table.processes())
        if len(rows) > 1:
            print()
            right = [number for number, head in enumerate(rows[0]) if head in _NUMBERS]
            print_table(rows, right=right)
        sys.stdout.flush()


@contextmanager
def _live(table: TopTable, methods: TopMethods, stop: Stop) -> Iterator[None]:
    """Shows the table on the terminal until q or Ctrl-C."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console()

    def picture(*below: Text) -> Group:
        processes, height = table.processes(), console.height - 3 - len(methods.lines)
        hosts = table.table(console.width, height // 2 if processes else height)
        if not processes:
            return Group(hosts, *below)
        return Group(hosts, "", process_table(processes, height - hosts.row_count - 1), *below)

    def whole() -> Group:
        lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in methods.lines]
        return picture(*lines, Text("q or Ctrl-C ends; m samples the busiest process's methods", "dim"))

    shown = Live(get_renderable=whole, console=console, refresh_per_second=1, screen=True)
    with _keys(stop, lambda: methods.ask(table.processes())), shown:
        try:
            yield
        finally:
            methods.close()
    console.print(picture())


@contextmanager
def _keys(stop: Stop, on_m: Callable[[], None]) -> Iterator[None]:
    """The key q ends it, m calls `on_m`. Without a terminal to read from, only Ctrl-C does."""
    import termios
    import tty

    if not is_terminal(sys.stdin):
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def read() -> None:
        while (key := sys.stdin.read(1)) not in ("q", "Q", ""):
            if key in ("m", "M"):
                on_m()
        stop.finish()

    tty.setcbreak(terminal)
    threading.Thread(target=read, daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _thread(action: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    yield
    with suppress(RuntimeError):
        thread.join(_LATEST)
