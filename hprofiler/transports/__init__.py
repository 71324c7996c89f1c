"""Ways to reach a host: `local` for this machine, `ssh` for others, `exec` for containers of Kubernetes.

Importing this imports none of their libraries.
"""

from hprofiler.transports.base import Channel, Completed, NoShell, Transport
from hprofiler.transports.exec import Debugging, ExecConnector, ExecTransport
from hprofiler.transports.local import LocalTransport
from hprofiler.transports.ssh import SshConnector, SshOptions, SshTransport

__all__ = [
    "Channel",
    "Completed",
    "Debugging",
    "ExecConnector",
    "ExecTransport",
    "LocalTransport",
    "NoShell",
    "SshConnector",
    "SshOptions",
    "SshTransport",
    "Transport",
]
