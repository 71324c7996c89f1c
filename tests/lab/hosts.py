"""The lab: several machines on one kernel, to profile over real ssh.

Each host has its own network, pid, mount, UTS and IPC namespaces, a copy-on-write root, /tmp, /data
and sshd. Everything is inside the lab's folder and the namespaces; killing a host's PID 1 makes the kernel
remove the rest.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tests.lab import cache, keys, procs

WRITABLE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/root", "/home", "/data")
"""The folders in which the product could leave files: those of users, and world-writable ones."""
TOOLS = ("unshare", "nsenter", "setpriv", "pivot_root", "ip", "sshd", "ssh-keygen")
BOOT_SECONDS = 30
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(Exception):
    """A host did not start, or a request to it failed."""


@dataclass(frozen=True)
class Plan:
    """The specification of a host. `network` is "own", or the name of the host whose network it shares."""

    name: str
    address: str
    port: int = 22
    network: str = "own"


def default_plans(count: int = 3) -> list[Plan]:
    """The coordinator's machine, which has the bridge, and host1…hostN."""
    hosts = [Plan(f"host{n}", f"10.77.0.{10 + n}") for n in range(1, count + 1)]
    return [Plan("coord", "10.77.0.10"), *hosts]


def why_not() -> str:
    """Why a lab is not available here; empty if it is."""
    if os.geteuid() != 0:
        return "the lab needs root (namespaces, mounts)"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=SEARCH_PATH)]
    return f"the lab needs {', '.join(missing)} (openssh-server, util-linux, iproute2)" if missing else ""


def require() -> None:
    """Raises Unavailable where a lab is not available."""
    if reason := why_not():
        raise cache.Unavailable(reason)


class Host:
    """A running machine of the lab."""

    def __init__(self, plan: Plan, init: procs.Identity) -> None:
        self.plan = plan
        self.name = plan.name
        self.init = init
        self.namespace = procs.namespace_of(init.pid)

    def command(self, argv: Sequence[str], user: str = "root") -> list[str]:
        """The command that runs `argv` inside, as `user`, with a login's environment."""
        home = "/root" if user == "root" else f"/home/{user}"
        become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        clean = ["env", "-i", f"HOME={home}", f"USER={user}", f"PATH={SEARCH_PATH}", "LANG=C.UTF-8"]
        enter = f"nsenter -t {self.init.pid} -n -p -m -u -i -r -w".split()
        return [*enter, *clean, *become, *argv]

    def run(self, argv: Sequence[str], user: str = "root", check: bool = True, timeout: float = 60) -> str:
        """Run to the end inside; returns its stdout."""
        command = self.command(argv, user)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        if check and done.returncode:
            raise LabError(f"{self.name}: {' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def start(self, argv: Sequence[str], user: str = "root", **options: Any) -> subprocess.Popen[str]:
        """Start inside; `options` are Popen's."""
        return subprocess.Popen(self.command(argv, user), text=True, **options)

    def processes(self) -> list[procs.Seen]:
        """Everything that runs on this host."""
        return list(procs.inside(self.namespace))

    def path(self, inner: str) -> Path:
        """The path outside of a path on this host."""
        return Path(f"/proc/{self.init.pid}/root") / inner.lstrip("/")

    def temporary_files(self) -> set[str]:
        """Every path, as on the host, below the folders in which files could be left."""
        found: set[str] = set()
        for folder in WRITABLE_FOLDERS:
            base = str(self.path(folder))
            device = os.stat(base).st_dev
            for parent, folders, files in os.walk(base):
                found.update(f"{folder}{parent[len(base) :]}/{name}" for name in folders + files)
                # skip mounts from this machine, which change independently
                folders[:] = [name for name in folders if _device(f"{parent}/{name}") == device]
        return found


class Lab:
    """The hosts of one folder. `tied` hosts always end with the process that started them.

    They see the folders of `show` at the same paths, read-only; `shared` is `/shared`, writable for all.
    """

    def __init__(
        self,
        folder: Path,
        plans: Sequence[Plan],
        tied: bool = False,
        show: Sequence[Path] = (),
        shared: Path | None = None,
    ) -> None:
        self.folder = folder
        self.plans = list(plans)
        self.tied = tied
        self.show = [cache.folder("jdks"), cache.folder("burners"), *show]
        self.shared = shared
        if shared:
            shared.mkdir(parents=True, exist_ok=True)
            shared.chmod(0o1777)
        self.hosts: dict[str, Host] = {}
        self._launchers: list[subprocess.Popen[bytes]] = []
        if (folder / "state.json").exists():
            self._load()

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    @property
    def coord(self) -> Host:
        """The machine with the coordinator's network, which is the first plan."""
        return self.hosts[self.plans[0].name]

    def up(self) -> Lab:
        """Start every host and wait until its sshd listens; all or nothing."""
        if self.hosts:
            raise LabError(f"already up: {', '.join(self.hosts)}")
        self._write_keys()
        try:
            first, rest = self.plans[0], self.plans[1:]
            self._boot([first])
            self._boot(rest)
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> None:
        """Kill every host's PID 1, and with it all its processes; ignores hosts that are gone."""
        for host in reversed(list(self.hosts.values())):
            host.init.kill()
        for launcher in self._launchers:
            launcher.kill()
            launcher.wait()
        self.hosts.clear()
        self._launchers.clear()
        (self.folder / "state.json").unlink(missing_ok=True)

    def coordinator(self, argv: Sequence[str], uid: int = 0) -> list[str]:
        """The command that runs `argv` of this machine in the coordinator's network and names, as `uid`."""
        network = ["nsenter", "-t", str(self.coord.init.pid), "-n", "unshare", "--mount"]
        names = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(self.keys / "hosts")]
        become = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
        return [*network, *names, *become, *argv]

    def curl(self, url: str, *options: str) -> str:
        """The answer to a request from the coordinator's network; empty if there is none."""
        command = self.coordinator(["curl", "-sSL", "-m", "30", *options, url])
        return subprocess.run(command, capture_output=True, text=True).stdout

    def home(self, uid: int = 0) -> Path:
        """A new home for a user at the coordinator, who can log in to every host as any of its users."""
        return keys.make_home(self.folder / f"home-{uid}", self.keys, uid)

    def plug(self, name: str, connected: bool) -> None:
        """Connect or disconnect the host's network at the coordinator's end."""
        self._ip(self.coord, "link", "set", f"v-{name}", "up" if connected else "down")

    def _write_keys(self) -> None:
        self.keys.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        entries = [(plan.name, plan.address, plan.port) for plan in self.plans]
        keys.make_key(self.keys / "id")
        public = [keys.make_key(self._hostkey(plan)).with_suffix(".pub") for plan in self.plans]
        known = [keys.known_hosts_line(entry, key) for entry, key in zip(entries, public, strict=False)]
        (self.keys / "known_hosts").write_text("".join(known))
        (self.keys / "config").write_text(keys.client_config(entries))
        names = "".join(f"{plan.address} {plan.name}\n" for plan in self.plans)
        (self.keys / "hosts").write_text(f"127.0.0.1 localhost\n{names}")

    def _hostkey(self, plan: Plan) -> Path:
        folder = self.folder / plan.name
        (folder / "root").mkdir(parents=True, exist_ok=True)
        return folder / "hostkey"

    def _boot(self, plans: Sequence[Plan]) -> None:
        starting = [(plan, self._launch(plan)) for plan in plans]
        for plan, launcher in starting:
            self._expect(plan, launcher, "network")
            host = Host(plan, self._init_of(launcher))
            self.hosts[plan.name] = host
            self._save()
            self._wire(host)
            _pipe(launcher.stdin).write(b"\n")
            _pipe(launcher.stdin).close()
        for plan, launcher in starting:
            self._expect(plan, launcher, "ready")
            _pipe(launcher.stdout).close()

    def _launch(self, plan: Plan) -> subprocess.Popen[bytes]:
        tie = "setpriv --pdeathsig KILL" if self.tied else ""
        if plan.network == "own":
            network, namespaces = "", "--net"
        else:
            network, namespaces = f"nsenter -t {self.hosts[plan.network].init.pid} -n", ""
        unshare = (
            f"unshare {namespaces} --pid --fork --kill-child --mount --propagation private --uts --ipc bash"
        )
        init = Path(__file__).with_name("host_init.sh")
        with (self.folder / plan.name / "log").open("wb") as log:
            launcher = subprocess.Popen(
                [*f"{network} {tie} {unshare}".split(), str(init)],
                env=self._environment(plan),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._launchers.append(launcher)
        return launcher

    def _environment(self, plan: Plan) -> dict[str, str]:
        return {
            "PATH": SEARCH_PATH,
            "LAB_NAME": plan.name,
            "LAB_ADDRESS": plan.address,
            "LAB_PORT": str(plan.port),
            "LAB_FOLDER": str(self.folder / plan.name),
            "LAB_KEYS": str(self.keys),
            "LAB_HIDE": str(cache.CHECKOUT),
            "LAB_SHOW": ":".join(str(path) for path in self.show),
            "LAB_SHARED": str(self.shared or ""),
        }

    def _expect(self, plan: Plan, launcher: subprocess.Popen[bytes], word: str) -> None:
        """Read the next word from PID 1."""
        pipe, end = _pipe(launcher.stdout).fileno(), time.monotonic() + BOOT_SECONDS
        said = b""
        while not said.endswith(b"\n") and select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            chunk = os.read(pipe, 1)
            if not chunk:
                break
            said += chunk
        if said.decode().strip() != word:
            log = (self.folder / plan.name / "log").read_text()[-2000:]
            raise LabError(f"{plan.name} did not say {word!r} but {said.decode()!r}:\n{log}")

    def _init_of(self, launcher: subprocess.Popen[bytes]) -> procs.Identity:
        init = next(map(procs.Identity.of, procs.children(launcher.pid)), None)
        if init is None:
            raise LabError("a host ended while it started")
        return init

    def _wire(self, host: Host) -> None:
        """Give a host its address. The first has the bridge, the others connect to it by a veth pair."""
        if host.plan.network != "own":
            return
        if host is self.coord:
            self._ip(host, "link", "add", "br0", "type", "bridge")
            device = "br0"
        else:
            end = f"v-{host.name}"
            peer = ["peer", "name", "eth0", "netns", str(host.init.pid)]
            self._ip(self.coord, "link", "add", end, "type", "veth", *peer)
            self._ip(self.coord, "link", "set", end, "master", "br0", "up")
            device = "eth0"
        self._ip(host, "addr", "add", f"{host.plan.address}/24", "dev", device)
        self._ip(host, "link", "set", device, "up")

    def _ip(self, host: Host, *arguments: str) -> None:
        subprocess.run(["nsenter", "-t", str(host.init.pid), "-n", "ip", *arguments], check=True)

    def _save(self) -> None:
        state = [{"plan": asdict(host.plan), "init": asdict(host.init)} for host in self.hosts.values()]
        (self.folder / "state.json").write_text(json.dumps(state, indent=1))

    def _load(self) -> None:
        for entry in json.loads((self.folder / "state.json").read_text()):
            init = procs.Identity(**entry["init"])
            if init.alive():
                plan = Plan(**entry["plan"])
                self.hosts[plan.name] = Host(plan, init)


def _device(path: str) -> int:
    try:
        return os.lstat(path).st_dev
    except OSError:
        return -1  # it is gone


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
