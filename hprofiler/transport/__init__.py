"""Ways to reach a host: `local` for this machine, `ssh` for others, `exec` for containers of Kubernetes.

Importing this imports none of their libraries.
"""

from hprofiler.transport.base import Channel, Completed, NoShell, Transport
from hprofiler.transport.local import LocalTransport
from hprofiler.transport.pod_exec import Debugging, ExecTransport
from hprofiler.transport.ssh import SshConnector, SshOptions, SshTransport

__all__ = [
    "Channel",
    "Completed",
    "Debugging",
    "ExecTransport",
    "LocalTransport",
    "NoShell",
    "SshConnector",
    "SshOptions",
    "SshTransport",
    "Transport",
]
