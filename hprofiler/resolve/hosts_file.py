"""`--hosts-file F`: one host (or range) per line; `#` starts a comment; `-` is stdin."""

from __future__ import annotations

import sys

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home
from hprofiler.model import Target
from hprofiler.resolve.host_names import HostEntry, named_hosts, parse_entries
from hprofiler.resolve.options import Located, Resolver, TargetOptions

MAX_FILE_BYTES = 1024 * 1024


def _resolve(options: TargetOptions) -> Located:
    path = options.hosts_file or ""
    shown = "standard input" if path == "-" else path
    entries: list[HostEntry] = []
    for number, line in enumerate(_read(path, shown).splitlines(), 1):
        bare = line.split("#", 1)[0].strip()
        if bare:
            entries += parse_entries(bare, f"{shown}:{number}")
    if not entries:
        raise UsageError(f"{shown}: names no host", "write one host per line")
    return Located(Target("hosts", path), named_hosts(entries, shown))


def _read(path: str, shown: str) -> str:
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with at_home(path).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--hosts-file {shown}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: larger than {MAX_FILE_BYTES // 1024} KiB: not a list of hosts")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown}:{line}: is not UTF-8 text", "write one host per line") from error


RESOLVER = Resolver("--hosts-file", lambda options: options.hosts_file is not None, _resolve)
