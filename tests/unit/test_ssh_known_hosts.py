"""known_hosts: verdicts, in the forms that ssh writes."""

from __future__ import annotations

import base64
import subprocess

import pytest

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict

KEY = b"\x00\x00\x00\x0bssh-ed25519" + b"a" * 36
OTHER = b"\x00\x00\x00\x0bssh-ed25519" + b"b" * 36


def line(names: str, key: bytes = KEY, marker: str = "") -> str:
    return f"{marker}{names} ssh-ed25519 {base64.b64encode(key).decode()} comment\n"


@pytest.mark.parametrize(
    ("text", "name", "verdict"),
    [
        ("", "h", Verdict.UNKNOWN),
        (line("h"), "h", Verdict.KNOWN),
        (line("h", OTHER), "h", Verdict.CHANGED),
        (line("h", OTHER) + line("h"), "h", Verdict.KNOWN),
        (line("g,h,i"), "h", Verdict.KNOWN),
        (line("*.example"), "a.example", Verdict.KNOWN),
        (line("*.example,!b.example"), "b.example", Verdict.UNKNOWN),
        (line("[h]:2222"), "[h]:2222", Verdict.KNOWN),
        (line("h"), "[h]:2222", Verdict.KNOWN),
        (line("h", OTHER), "[h]:2222", Verdict.UNKNOWN),
        (line("[h]:2222", OTHER) + line("h"), "[h]:2222", Verdict.CHANGED),
        (line("h") + line("*", KEY, "@revoked "), "h", Verdict.REVOKED),
        (line("h", KEY, "@cert-authority "), "h", Verdict.UNKNOWN),
        ("# comment\nh ssh-ed25519 !!!\nbroken\n" + line("h"), "h", Verdict.KNOWN),
        ("|1|nonsense ssh-ed25519 AAAA\n", "h", Verdict.UNKNOWN),
    ],
)
def test_verdicts(tmp_path, text, name, verdict):
    file = tmp_path / "known_hosts"
    file.write_text(text)
    assert KnownHosts().check([tmp_path / "none", file], name, KEY)[0] is verdict


def test_names_hashed_by_ssh_keygen_are_found(tmp_path):
    file = tmp_path / "known_hosts"
    file.write_text(line("[far.example]:2200"))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "far.example" not in file.read_text()
    assert KnownHosts().check([file], "[far.example]:2200", KEY)[0] is Verdict.KNOWN
    assert KnownHosts().check([file], "[far.example]:2201", KEY)[0] is Verdict.UNKNOWN


def test_added_keys_are_known_at_once_and_readable_by_ssh_keygen(tmp_path):
    file = tmp_path / "new" / "known_hosts"
    known = KnownHosts()
    known.add(file, "[h]:22022", "ssh-ed25519", KEY)
    known.add(file, "[h]:22022", "ssh-ed25519", KEY)
    assert known.check([file], "[h]:22022", KEY)[0] is Verdict.KNOWN
    assert len(file.read_text().splitlines()) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    found = subprocess.run(["ssh-keygen", "-F", "[h]:22022", "-f", str(file)], capture_output=True, text=True)
    assert "ssh-ed25519" in found.stdout


def test_unreadable_known_hosts_are_errors(tmp_path):
    (tmp_path / "file").write_text("")
    missing = [tmp_path / "none", tmp_path / "file/in/a/file"]
    assert KnownHosts().check(missing, "h", KEY)[0] is Verdict.UNKNOWN
    with pytest.raises(HostError, match=f"cannot read the known host keys in {tmp_path}"):
        KnownHosts().check([tmp_path], "h", KEY)
    with pytest.raises(HostError, match="Is a directory"):
        KnownHosts().kinds([tmp_path], "h")


def test_revoked_keys_are_found_in_a_text_file(tmp_path):
    file, other = tmp_path / "revoked", tmp_path / "other"
    file.write_text("# lost in May\n\n" + line("ssh-ed25519", KEY).partition(" ")[2])
    other.write_text(line("ssh-ed25519", OTHER).partition(" ")[2])
    known = KnownHosts()
    assert known.revoked([other, file], KEY) == file
    assert known.revoked([other], KEY) is None and known.revoked([], KEY) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "No such file"),
        (b"ssh-ed25519 !!!\n", ":1 is not a public key"),
        (b"# one\nssh-ed25519\n", ":2 is not a public key"),
        (b"\x00\xff", ":1 is not a public key"),
    ],
)
def test_unreadable_revoked_keys_are_errors(tmp_path, data, said):
    file = tmp_path / "revoked"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(HostError, match=said) as caught:
        KnownHosts().revoked([file], KEY)
    assert "RevokedHostKeys" in caught.value.remedy
