"""Prints the requirements of a development environment, one a line, from pyproject.toml alone.

Python 3.9 and 3.10 have no TOML reader, and the environment that could bring one is not made yet;
the lists are plain enough to be found by their shape. With the word `kerberos`: what the tests of
Kerberos need besides, which has to be compiled; hence it is installed apart, and may be missing.
"""

import re
import sys
from pathlib import Path

text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
if sys.argv[1:] == ["kerberos"]:
    print(*re.findall(r'"(requests-gssapi[^"]*)"', text))
    sys.exit()
for name in ("dependencies", "dev"):
    listed = re.search(rf"^{name} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed, f"pyproject.toml has no list called {name}"
    for requirement in re.findall(r'"([^"]+)"', listed.group(1)):
        print(requirement)
