"""Commands in containers, by way of the API server of Kubernetes."""

from hprofiler.transport.exec.transport import Debugging, ExecConnector, ExecTransport

__all__ = ["Debugging", "ExecConnector", "ExecTransport"]
