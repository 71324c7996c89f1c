#!/bin/sh
# build.sh LIBRARY ARCHITECTURE FILE: build perfmap or threadnames for x86_64 or aarch64 into FILE.
# Exits with 3, and says why, where no compiler or no JDK for it is at hand.
set -eu

library=$1
architecture=$2
case "$3" in /*) file=$3 ;; *) file=$PWD/$3 ;; esac
room=$(cd "$(dirname "$0")" && pwd)

unable() {
  echo "hprofiler build: no library $library on $architecture: $1" >&2
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

case "$library" in
perfmap) sources="out.c names.c code.c perfmap.c" ;;
threadnames) sources="threadnames.c" ;;
*) unable "only perfmap and threadnames are known" ;;
esac

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
cd "$room"
# shellcheck disable=SC2086  # lists of options and files
"$compiler" -std=c11 -O2 -Wall -Wextra -Werror $options \
  -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector -fno-tree-loop-distribute-patterns \
  -fno-asynchronous-unwind-tables -fno-common \
  -I freestanding -isystem "$headers" -isystem "$headers/linux" \
  -shared -nostdlib -Wl,-z,defs,-z,now,-z,relro,-z,noexecstack,--hash-style=both,--build-id=none,-s \
  -o "$file" sys.c $sources
