#!/bin/sh
# build.sh ARCHITECTURE FILE: build the agent for x86_64 or aarch64 into FILE.
# Exits with 3, and says why, where no compiler or no JDK for it is at hand.
set -eu

architecture=$1
file=$2
room=$(cd "$(dirname "$0")" && pwd)

unable() {
  echo "hprofiler build: no map of compiled code on $architecture: $1" >&2
  exit 3
}

case "$architecture" in
x86_64) options="" ;;
aarch64) options="-mno-outline-atomics" ;; # else atomics are calls into libgcc
*) unable "only x86_64 and aarch64 are known" ;;
esac

compiler=${CC:-cc}
[ "$(uname -m)" = "$architecture" ] || compiler=$architecture-linux-gnu-gcc
command -v "$compiler" >/dev/null 2>&1 || unable "no $compiler (Debian's package gcc-$(echo "$architecture" | tr _ -)-linux-gnu)"

java_home() {
  if [ -n "${JAVA_HOME:-}" ] && [ -e "$JAVA_HOME/include/jvmti.h" ]; then
    echo "$JAVA_HOME"
  elif javac=$(command -v javac); then
    dirname "$(dirname "$(readlink -f "$javac")")"
  fi
}
headers=$(java_home)/include
[ -e "$headers/jvmticmlr.h" ] || unable "no JDK with header files, neither by JAVA_HOME nor by javac"

# No C library: its functions are not there, and neither is what the compiler would have it set up (stack
# protector, thread-local storage). -fno-tree-loop-distribute-patterns keeps memcpy from calling itself.
# shellcheck disable=SC2086  # a list of options
"$compiler" -std=c11 -O2 -Wall -Wextra -Werror $options \
  -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector -fno-tree-loop-distribute-patterns \
  -fno-asynchronous-unwind-tables -fno-common \
  -I "$room/freestanding" -isystem "$headers" -isystem "$headers/linux" \
  -shared -nostdlib -Wl,-z,defs,-z,now,-z,relro,-z,noexecstack,--hash-style=both,--build-id=none,-s \
  -o "$file" "$room/sys.c" "$room/out.c" "$room/names.c" "$room/code.c" "$room/perfmap.c"
