"""A process that maps the files it is told, to be executed, in as many copies of itself as it is told.

Words behind `--` only make its command line longer.
"""

import mmap
import os
import signal
import sys

USER, COPIES = int(sys.argv[1]), int(sys.argv[2])
FILES = sys.argv[3 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[3:]

maps = []
for path in FILES:
    with open(path, "rb") as file:
        prot = mmap.PROT_READ | mmap.PROT_EXEC
        maps.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=prot))
if os.geteuid() != USER:
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
children = []
for _ in range(COPIES):
    child = os.fork()
    if not child:
        signal.pause()
    children.append(child)
print("ready", flush=True)
try:
    input()
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
