"""Commands in containers, by way of the API server of Kubernetes."""

from hprofiler.transports.exec.transport import ExecConnector, ExecTransport

__all__ = ["ExecConnector", "ExecTransport"]
