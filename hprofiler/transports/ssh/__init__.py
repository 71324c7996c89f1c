"""SSH by way of paramiko, which is imported when the first host is looked up and not before."""

from hprofiler.transports.ssh.connector import SshConnector
from hprofiler.transports.ssh.options import SshOptions
from hprofiler.transports.ssh.transport import SshTransport

__all__ = ["SshConnector", "SshOptions", "SshTransport"]
