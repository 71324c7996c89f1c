# Targets are for people and CI alike: CI calls nothing but these.
# What is slow to make (Rust objects, JDKs of the lab, async-profiler's jar) is kept in $(CACHE), outside the checkout.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hprofiler
export CARGO_TARGET_DIR ?= $(CACHE)/target
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock setup.py pyproject.toml agents/async-profiler.json \
  $(shell find flamegraph agents/host .cargo -name '*.rs' -o -name '*.toml' -o -name '*.yaml' -o -path '*flamegraph/src*' -name '*.js' 2>/dev/null) \
  $(wildcard agents/jvmti/*.c agents/jvmti/*.h agents/jvmti/*/*.h agents/jvmti/build.sh)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-unit test-viewer test-host test-all test-jdks test-faults test-lab test-peers \
  test-chaos test-fuzz test-loops test-wheel lint picture bench dist lab-up lab-down lab-yarn lab-yarn-down lab-k8s lab-k8s-down lab-software clean prerequisites lint-prerequisites \
  test-prerequisites nightly-prerequisites bench-prerequisites

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

prerequisites:
	@sh tests/prerequisites.sh build

lint-prerequisites:
	@sh tests/prerequisites.sh lint

test-prerequisites:
	@sh tests/prerequisites.sh test

nightly-prerequisites: test-prerequisites
	@sh tests/prerequisites.sh nightly

bench-prerequisites: test-prerequisites
	@sh tests/prerequisites.sh bench

$(VENV)/.made: pyproject.toml | prerequisites
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tests/requirements.py)
	@touch $@

$(VENV)/.built: $(VENV)/.made $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Only what the demo needs, built quickly: not the agent of another architecture, nor what tests and lint use.
$(VENV)/.demo: $(SOURCES) | prerequisites
	$(PYTHON) -m venv $(VENV)
	HPROFILER_DEV_BUILD=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# The viewer's modules as one file, which reports are written into.
hprofiler/_data/viewer/page.html: $(VENV)/.made $(wildcard flamegraph/viewer/* flamegraph/viewer/*/*)
	@$(BIN)/python flamegraph/viewer/build.py $@

build: $(VENV)/.built hprofiler/_data/viewer/page.html ## virtual environment, Rust binding, agents for both architectures, async-profiler

demo: $(if $(wildcard $(VENV)/.built),build,$(VENV)/.demo) ## profile a small sample JVM job on this machine
	@$(BIN)/hprofiler demo

# These folders never look at the whole machine, so two of them run at a time. The others observe processes and files of the
# whole machine and run alone. CONTRIBUTING.md explains the marker `nightly`.
PYTEST := $(BIN)/python -m pytest
UNIT := tests/unit tests/golden tests/fuzz tests/exact tests/jvmti
HOST := tests/contract tests/engines tests/lab

test: build test-prerequisites ## what CI runs beside lint, about 15 minutes; needs root for the lab's namespaces
	$(MAKE) --jobs 2 --output-sync=target lab-software test-viewer test-unit test-rust
	$(MAKE) test-host

lab-software: build test-prerequisites # on a fresh machine it takes minutes: Kubernetes is compiled
	@$(BIN)/python -m tests.lab.software

test-rust: build
	env -u MAKEFLAGS -u MFLAGS cargo test --locked --quiet --workspace --exclude flamegraph-binding

test-unit: build test-prerequisites
	$(PYTEST) -m "not nightly" $(UNIT)

test-viewer: build test-prerequisites
	$(PYTEST) -m "not nightly" tests/viewer

test-host: build test-prerequisites
	$(PYTEST) -m "not nightly" $(HOST)

test-all: ## everything, before a release: test, then the nightly tests in parts of at most an hour each
	$(MAKE) test
	$(MAKE) test-jdks
	$(MAKE) test-faults
	$(MAKE) test-lab
	$(MAKE) test-peers
	$(MAKE) test-chaos
	$(MAKE) test-loops
	$(MAKE) test-fuzz
	$(MAKE) test-wheel

test-jdks: build nightly-prerequisites ## nightly: both engines on JDK 8 to 25
	$(PYTEST) -m nightly tests/engines tests/jvmti

test-faults: build nightly-prerequisites $(VENV)/.kerberos ## nightly: the agent and the transports under faults, races and attacks
	$(PYTEST) -m nightly tests/contract

test-lab: build nightly-prerequisites ## nightly: hosts, YARN and Kubernetes, all that goes wrong there
	$(PYTEST) -m nightly tests/lab

test-peers: build nightly-prerequisites ## nightly: results beside those of other tools and browsers
	$(PYTEST) -m nightly tests/unit tests/golden tests/fuzz tests/exact tests/viewer

# Compiled against the system's Kerberos: where that cannot be done its tests are skipped.
$(VENV)/.kerberos: $(VENV)/.made | nightly-prerequisites
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tests/requirements.py kerberos) \
	  && touch $@ || echo "going on without requests-gssapi" >&2

# The agent by itself has fewer features of the library, and so more code that nobody uses.
# Types of the fuzz targets are checked without libFuzzer, which would be compiled but for the path.
lint: build lint-prerequisites ## ruff, mypy --strict, clippy, rustfmt, the viewer's types, the fuzz targets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --all --check
	cargo clippy --locked --quiet --workspace --all-targets -- --deny warnings
	cargo clippy --locked --quiet -p hprofiler-agent --all-targets -- --deny warnings
	for crate in flamegraph agents; do CUSTOM_LIBFUZZER_PATH=/dev/null CARGO_TARGET_DIR=$(CACHE)/target-fuzz \
	  cargo check --quiet --manifest-path $$crate/fuzz/Cargo.toml || exit 1; done
	tests/viewer/typecheck.sh

picture: build test-prerequisites ## retake docs/images/*.png: the demo's report, in Chromium
	$(BIN)/python -m tests.report_picture

bench: build bench-prerequisites ## measure what README promises; writes build/bench.md
	$(BIN)/python -m tests.bench

FUZZ_SECONDS ?= 60
test-fuzz: build nightly-prerequisites ## nightly: fuzz whatever reads foreign bytes, FUZZ_SECONDS of CPU time each (60)
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

CHAOS_RUNS ?= 200
CHAOS_SEED ?= 1
test-chaos: build nightly-prerequisites ## nightly: every fault once, then CHAOS_RUNS runs (200) with random ones
	$(BIN)/python -m tests.lab.chaos --each
	$(BIN)/python -m tests.lab.chaos --interrupts --seed $(CHAOS_SEED)
	$(BIN)/python -m tests.lab.chaos --runs $(CHAOS_RUNS) --seed $(CHAOS_SEED)

CHAOS_LOOPS ?= 500
test-loops: build nightly-prerequisites ## nightly: record one JVM CHAOS_LOOPS times (500) with each engine; it must hold no more than before
	$(BIN)/python -m tests.lab.chaos.loops --loops $(CHAOS_LOOPS)

# Zig links against glibc 2.17. auditwheel names a wheel for the oldest glibc that it runs on.
$(VENV)/.dist: $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tests/requirements.py dist)
	@touch $@

dist: $(VENV)/.dist ## wheels for x86-64 and arm64 with glibc 2.17 or later, into dist/
	@rm -rf build/wheels dist
	@export PATH="$(CURDIR)/$(BIN):$$PATH" CARGO=cargo-zigbuild; set -e; for arch in x86_64 aarch64; do \
	  rustup target add $$arch-unknown-linux-gnu; \
	  CARGO_BUILD_TARGET=$$arch-unknown-linux-gnu.2.17 python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation --config-settings=--build-option=--plat-name=linux_$$arch --wheel-dir build/wheels .; \
	  auditwheel repair --wheel-dir dist build/wheels/*_$$arch.whl; \
	  ls -l dist/*manylinux2014_$$arch*.whl; \
	done

test-wheel: dist ## nightly: the wheel in an empty environment profiles a job
	$(PYTEST) -m nightly tests/wheel

lab-up: build test-prerequisites ## bring the lab's hosts up and leave them up
	$(BIN)/python -m tests.lab hosts up

lab-down: ## take the lab's hosts down
	$(BIN)/python -m tests.lab hosts down

lab-yarn: build test-prerequisites ## bring up a YARN cluster on lab hosts, for people to play with
	$(BIN)/python -m tests.lab yarn up

lab-yarn-down: ## take it down
	$(BIN)/python -m tests.lab yarn down

lab-k8s: build test-prerequisites ## bring up a Kubernetes cluster on lab hosts; the first time builds it, some minutes
	$(BIN)/python -m tests.lab k8s up

lab-k8s-down: ## take it down
	$(BIN)/python -m tests.lab k8s down

clean: ## remove what was built in this checkout (the cache outside stays)
	rm -rf $(VENV) build dist target hprofiler/_data hprofiler/_flamegraph*.so *.egg-info
