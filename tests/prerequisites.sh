#!/bin/sh
# prerequisites.sh build|lint|test|nightly|bench: see that the tools are there. As root on a Debian-like machine what is
# missing is installed; elsewhere it is named with the package that has it.
set -eu

missing=""
wished=""
need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

wish() { # wish COMMAND PACKAGE: without it the build leaves something out, and says so
  command -v "$1" >/dev/null 2>&1 || wished="$wished $2"
}

flamegraph_pl() { # which our pictures are compared with
  [ -e /usr/share/perl5/Devel/NYTProf/flamegraph.pl ] || missing="$missing libdevel-nytprof-perl"
}

PATH="$PATH:/usr/sbin:/sbin:/usr/local/go/bin"
case "$1" in
build)
  need "${PYTHON:-python3}" python3
  need mvn maven
  need javac default-jdk-headless
  need cc "gcc libc6-dev" # without its recommendations gcc alone cannot link
  case "$(uname -m)" in # for agents/jvmti, which is built for both architectures where that is possible
  x86_64) wish aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu ;;
  aarch64) wish x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu ;;
  esac
  "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
  if ! command -v cargo >/dev/null 2>&1; then
    echo "hprofiler needs Rust 1.85 or newer and found no cargo: install the package rustup, then run: rustup default stable" >&2
    exit 1
  fi
  ;;
lint)
  need npm npm # fetches the TypeScript compiler
  ;;
test)
  need perf linux-perf
  need sshd openssh-server
  need ssh openssh-client
  need ip iproute2
  need sudo sudo
  need zsh zsh
  need fish fish
  need chromium chromium
  need chromedriver chromium-driver
  need node nodejs
  need zstd zstd
  need qemu-aarch64-static qemu-user-static
  need go golang-go
  need curl curl
  need openssl openssl
  if [ "$(id -u)" != 0 ]; then
    echo "make test needs root: its lab makes hosts in network, process and mount namespaces" >&2
    exit 1
  fi
  ;;
nightly)
  need g++ g++
  need strace strace
  need patchelf patchelf
  need npm npm
  need firefox-esr firefox-esr
  need musl-gcc "musl-tools musl"
  # what metrics are compared with; without it that test is skipped
  wish pidstat sysstat
  # Kerberos' own servers, and what the library for Python is compiled with; without them its tests are skipped
  wish krb5kdc krb5-kdc
  wish kadmin.local krb5-admin-server
  wish kinit krb5-user
  wish krb5-config libkrb5-dev
  "${PYTHON:-python3}" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null || wished="$wished python3-dev"
  # the stand-in JVM of arm64, run by qemu
  [ "$(uname -m)" != x86_64 ] || [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing="$missing libc6-dev-arm64-cross gcc-aarch64-linux-gnu"
  flamegraph_pl
  ;;
bench)
  flamegraph_pl
  ;;
*)
  echo "usage: prerequisites.sh build|lint|test|nightly|bench" >&2
  exit 2
  ;;
esac

install() { # install PACKAGE...
  echo "installing: $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

[ -z "$missing$wished" ] && exit 0
# shellcheck disable=SC2086  # lists of packages
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get update -qq || [ -z "$missing" ]
  [ -z "$missing" ] || install $missing
  for package in $wished; do
    install "$package" || echo "going on without $package" >&2
  done
elif [ -n "$missing" ]; then
  echo "hprofiler: missing; install these packages and run make again:$missing" >&2
  exit 1
fi
