"""`-h host1,user@host2:2222,node[01-12]`: hosts named on the command line."""

from __future__ import annotations

from hprofiler.base.errors import UsageError
from hprofiler.model import Target
from hprofiler.resolve.host_names import HostEntry, named_hosts, parse_entries
from hprofiler.resolve.options import Located, Resolver, TargetOptions


def _resolve(options: TargetOptions) -> Located:
    text = (options.hosts or "").strip()
    entries: list[HostEntry] = parse_entries(text, "-h")
    if not entries:
        raise UsageError("-h has no host", "write -h host1,host2")
    return Located(Target("hosts", text), named_hosts(entries, "-h"))


RESOLVER = Resolver("-h", lambda options: options.hosts is not None, _resolve)
