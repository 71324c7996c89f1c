"""Ways to reach a host: `local` for this machine, `ssh` for others. Importing this imports no paramiko."""

from hprofiler.transports.base import Channel, Completed, Transport
from hprofiler.transports.local import LocalTransport
from hprofiler.transports.ssh import SshConnector, SshOptions, SshTransport

__all__ = [
    "Channel",
    "Completed",
    "LocalTransport",
    "SshConnector",
    "SshOptions",
    "SshTransport",
    "Transport",
]
