# Targets are for people and CI alike: CI calls nothing but these.
# What is slow to make (Rust objects, JDKs of the lab, async-profiler's jar) is kept in $(CACHE), outside the checkout.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hprofiler
export CARGO_TARGET_DIR ?= $(CACHE)/target
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock setup.py pyproject.toml agents/async-profiler.json \
  $(shell find flamegraph agents/host .cargo -name '*.rs' -o -name '*.toml' -o -path '*flamegraph/src*' -name '*.js' 2>/dev/null) \
  $(wildcard agents/perfmap/*.c agents/perfmap/*.h agents/perfmap/*/*.h agents/perfmap/build.sh)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-unit test-viewer test-machine lint bench fuzz chaos dist lab-up lab-down lab-yarn lab-yarn-down lab-k8s lab-k8s-down clean prerequisites test-prerequisites

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

prerequisites:
	@sh tests/prerequisites.sh build

test-prerequisites:
	@sh tests/prerequisites.sh test

$(VENV)/.made: pyproject.toml | prerequisites
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tests/requirements.py)
	@touch $@

$(VENV)/.built: $(VENV)/.made $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# The viewer's modules as one file, which reports are written into.
hprofiler/_data/viewer/page.html: $(VENV)/.made $(wildcard flamegraph/viewer/* flamegraph/viewer/*/*)
	@$(BIN)/python flamegraph/viewer/build.py $@

build: $(VENV)/.built hprofiler/_data/viewer/page.html ## virtual environment, Rust binding, agents for both architectures, async-profiler

demo: build ## profile a small sample JVM job on this machine
	@$(BIN)/hprofiler demo

# Rooms that never look at this machine: two of them at a time. The others measure it, and have it for themselves.
BESIDE := tests/unit tests/golden tests/fuzz

test: build test-prerequisites ## all tests: unit, golden, contract, engines, viewer, lab (needs root for the lab's namespaces)
	$(MAKE) --jobs 2 --output-sync=target test-viewer test-unit test-rust
	$(MAKE) test-machine

test-rust: build
	cargo test --locked --quiet --workspace --exclude flamegraph-binding

# Compiled against the system's Kerberos: where that cannot be done its tests are skipped.
$(VENV)/.kerberos: $(VENV)/.made | test-prerequisites
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python tests/requirements.py kerberos) \
	  && touch $@ || echo "going on without requests-gssapi" >&2

test-unit: build test-prerequisites
	$(BIN)/python -m pytest $(BESIDE)

test-viewer: build test-prerequisites
	$(BIN)/python -m pytest tests/viewer

test-machine: build test-prerequisites $(VENV)/.kerberos
	$(BIN)/python -m pytest $(addprefix --ignore=,$(BESIDE) tests/viewer)

# The agent by itself has fewer features of the library, and so more code that nobody uses.
# Types of the fuzz targets are checked without libFuzzer, which would be compiled but for the path.
lint: build ## ruff, mypy --strict, clippy, rustfmt, the viewer's types, the fuzz targets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --all --check
	cargo clippy --locked --quiet --workspace --all-targets -- --deny warnings
	cargo clippy --locked --quiet -p hprofiler-agent --all-targets -- --deny warnings
	for crate in flamegraph agents; do CUSTOM_LIBFUZZER_PATH=/dev/null CARGO_TARGET_DIR=$(CACHE)/target-fuzz \
	  cargo check --quiet --manifest-path $$crate/fuzz/Cargo.toml || exit 1; done
	tests/viewer/typecheck.sh

bench: build test-prerequisites ## measure what README promises; writes build/bench.md
	$(BIN)/python -m tests.bench

FUZZ_SECONDS ?= 60
fuzz: build ## fuzz whatever reads foreign bytes, FUZZ_SECONDS of CPU time each (60)
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

CHAOS_RUNS ?= 200
CHAOS_SEED ?= 1
CHAOS_LOOPS ?= 1000
CHAOS_LOOPS_OF_OTHERS ?= 100
chaos: test-prerequisites build ## runs in which something breaks: every fault once, then CHAOS_RUNS (200) at random; needs root; writes build/chaos.md
	HPROFILER_CHAOS=1 $(BIN)/python -m pytest $(wildcard tests/lab/test_lab_chaos*.py)
	$(BIN)/python -m tests.lab.chaos --each --report build/chaos-each.md
	$(BIN)/python -m tests.lab.chaos --interrupts --seed $(CHAOS_SEED) --report build/chaos-interrupts.md
	$(BIN)/python -m tests.lab.chaos --runs $(CHAOS_RUNS) --seed $(CHAOS_SEED) --report build/chaos.md
	HPROFILER_CHAOS=1 $(BIN)/python -m pytest tests/contract/test_slow_hosts.py \
	  tests/contract/test_hostile_hosts.py tests/contract/test_agent_clean_hangs.py
	$(BIN)/python -m tests.lab.chaos.loops --loops $(CHAOS_LOOPS) --report build/chaos-loops.md
	$(BIN)/python -m tests.lab.chaos.loops --loops $(CHAOS_LOOPS_OF_OTHERS) --jdk 8 --jdk 11 --jdk 21 --jdk 25

dist: $(VENV)/.made ## the wheel, into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls -l dist

lab-up: build test-prerequisites ## bring the lab's hosts up and leave them up
	$(BIN)/python -m tests.lab.hosts up

lab-down: ## take the lab's hosts down
	$(BIN)/python -m tests.lab.hosts down

lab-yarn: build test-prerequisites ## bring up a YARN cluster on lab hosts, for people to play with
	$(BIN)/python -m tests.lab.yarn.cluster up

lab-yarn-down: ## take it down
	$(BIN)/python -m tests.lab.yarn.cluster down

lab-k8s: build test-prerequisites ## bring up a Kubernetes cluster on lab hosts; the first time builds it, some minutes
	$(BIN)/python -m tests.lab.k8s up

lab-k8s-down: ## take it down
	$(BIN)/python -m tests.lab.k8s down

clean: ## remove what was built in this checkout (the cache outside stays)
	rm -rf $(VENV) build dist target hprofiler/_data hprofiler/_flamegraph*.so *.egg-info
