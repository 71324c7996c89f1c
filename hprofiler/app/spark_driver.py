"""The driver of a Spark application, where it is on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_DGRAM, gethostname, socket

from hprofiler.base.text import short_host
from hprofiler.spark.application import Application

_LISTENS = "0A"


def is_own(host: str) -> bool:
    """Whether it is this machine's name, or an address of it that others know, too."""
    try:
        address = ip_address(host)
    except ValueError:
        return short_host(host) == short_host(gethostname())
    if address.is_loopback or address.is_unspecified:
        return False
    with socket(AF_INET if address.version == 4 else AF_INET6, SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def driver_process(application: Application) -> int:
    """The driver's PID: of the process that listens at the port of its block manager. 0 if it has ended, is
    elsewhere, or cannot be seen."""
    driver = application.executors.get("driver")
    host = application.driver
    if driver is None or not driver.port or not (is_own(host) or _is_loopback(host)):
        return 0
    sockets = {f"socket:[{inode}]" for inode in _listeners(driver.port)}
    return next((pid for pid in _processes() if sockets.intersection(_files(pid))), 0) if sockets else 0


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _listeners(port: int) -> Iterator[str]:
    """The inodes of sockets that listen at a port."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for _, local, _, state, *others in map(str.split, lines):
            if state == _LISTENS and local.endswith(f":{port:04X}"):
                yield others[5]


def _processes() -> Iterator[int]:
    return (int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal())


def _files(pid: int) -> Iterator[str]:
    """What the open files of a process are; none if it has ended, or is another user's."""
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink())
