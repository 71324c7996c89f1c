"""`--host-map`: SSH names of the cluster's hosts."""

from __future__ import annotations

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home
from hprofiler.resolve.host_names import MAX_HOSTS, HostEntry, is_host, parse_entry

MAX_FILE_BYTES = 1024 * 1024
_NOTATION = "write --host-map cluster-name=ssh-name,…, or a file with one such pair per line"


def parse_host_map(text: str) -> dict[str, HostEntry]:
    """The map of `a=b,c=[user@]d[:port]`, or of a file with one pair per line (`#` starts a comment).

    Host names ignore case; the map has lower case.
    """
    if "=" in text:
        pairs = [("--host-map", word) for word in text.split(",") if word.strip()]
    else:
        pairs = _lines(text)
    mapped: dict[str, HostEntry] = {}
    for where, pair in pairs:
        name, equals, entry = (word.strip() for word in pair.partition("="))
        if not equals or not is_host(name):
            raise UsageError(f"{where}: {pair.strip()[:200]!r} is not a pair of hosts", _NOTATION)
        mapped[name.lower()] = parse_entry(entry, where)
    if not mapped or len(mapped) > MAX_HOSTS:
        raise UsageError(f"--host-map holds {len(mapped)} pairs, not 1 to {MAX_HOSTS}", _NOTATION)
    return mapped


def _lines(name: str) -> list[tuple[str, str]]:
    try:
        with at_home(name).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UsageError(f"{name}: larger than {MAX_FILE_BYTES // 1024} KiB: not a list of hosts")
        lines = content.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"--host-map {name}: cannot be read: {error.strerror}", _NOTATION) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is not UTF-8 text", _NOTATION) from error
    bare = [(f"{name}:{number}", line.split("#", 1)[0]) for number, line in enumerate(lines, 1)]
    return [(where, line) for where, line in bare if line.strip()]
