"""SSH with paramiko, which is imported when the first host is looked up."""

from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.route import SshOptions
from hprofiler.transport.ssh.transport import SshTransport

__all__ = ["SshConnector", "SshOptions", "SshTransport"]
