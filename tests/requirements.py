"""Prints requirements from pyproject.toml, one a line: a development environment's, or the named lists.

Python 3.10 has no TOML reader, and the environment that could bring one is not made yet; the lists are
plain enough to be found by their shape. `kerberos` stands for what the tests of Kerberos need besides: it
has to be compiled, so it is installed separately and may be missing.
"""

import re
import sys
from pathlib import Path

text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
if sys.argv[1:] == ["kerberos"]:
    print(*re.findall(r'"(requests-gssapi[^"]*)"', text))
    sys.exit()
for name in sys.argv[1:] or ("dependencies", "dev"):
    listed = re.search(rf"^{name} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed, f"pyproject.toml has no list called {name}"
    for requirement in re.findall(r'"([^"]+)"', listed.group(1)):
        print(requirement)
