"""A real Kerberos realm on loopback: MIT's KDC with a database, keys and tickets in a folder of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.contract.sshd import free_port
from tests.lab import procs

REALM = "HPROFILER.TEST"
USER, PASSWORD = "etl", "as secret as a test's"
SERVICE = "HTTP/localhost"
_PROGRAMS = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing_packages() -> str:
    """What to install, separated by spaces; empty where all is there."""
    return " ".join(sorted({of for name, of in _PROGRAMS.items() if not shutil.which(name, path=_PATH)}))


class Kdc:
    """`environment` makes programs and libraries part of this realm, and of none of the machine's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.environment: dict[str, str] = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5_KTNAME": f"FILE:{folder}/keytab",
            "KRB5CCNAME": f"FILE:{folder}/tickets",
            "KRB5RCACHENAME": f"file2:{folder}/replays",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Kdc:
        self._configure()
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.run("kadmin.local", "addprinc", "-pw", PASSWORD, USER)
        self.run("kadmin.local", "addprinc", "-randkey", SERVICE)
        self.new_keys()
        with (self.folder / "kdc.out").open("wb") as out:
            self._process = subprocess.Popen(
                [self._found("krb5kdc"), "-n", "-P", str(self.folder / "pid")],
                env={**self.environment, "PATH": _PATH},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        procs.wait_for("the KDC listening", self._listens)
        return self

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(procs.PATIENCE)

    def new_keys(self) -> None:
        """Gives the service keys that no earlier ticket was made for."""
        (self.folder / "keytab").unlink(missing_ok=True)
        self.run("kadmin.local", "ktadd", "-k", str(self.folder / "keytab"), SERVICE)

    def log_in(self, *options: str) -> None:
        self.run("kinit", *options, USER, words=PASSWORD)

    def log_out(self) -> None:
        (self.folder / "tickets").unlink(missing_ok=True)

    def run(self, program: str, *arguments: str, words: str = "") -> None:
        done = subprocess.run(
            [self._found(program), *arguments],
            env={**self.environment, "PATH": _PATH},
            input=f"{words}\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=procs.PATIENCE,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"

    def _found(self, program: str) -> str:
        found = shutil.which(program, path=_PATH)
        assert found, f"there is no {program}"
        return found

    def _listens(self) -> bool:
        assert self._process and self._process.poll() is None, (self.folder / "kdc.out").read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _configure(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[logging]\n kdc = FILE:{self.folder}/kdc.log\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principals\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n }}\n"
        )
