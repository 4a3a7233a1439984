# Each target sets up what it needs in .venv; nothing has to be installed by hand.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
DEPENDENCIES := pyproject.toml constraints.txt
KERNELS := kernels/CMakeLists.txt $(wildcard kernels/common/* kernels/ffi/* kernels/upmem/* \
	kernels/upmem/*/* kernels/replay_server/CMakeLists.txt \
	$(addprefix kernels/replay_server/,client/* core/* datagram/* dpdk/* net/* protocol/* \
	server/* transport/* bindings/*))
PYTEST := $(BIN)/python -m pytest --numprocesses 2
QUICK_RESULTS := runs/benchmarks

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-long check lint types native notebooks test-newest bench accept docs clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	sh .ci/make-venv "$(PYTHON)" "$(VENV)"

$(VENV)/.base: $(BIN)/python $(DEPENDENCIES) $(KERNELS)
	$(PIP) --editable '.[upmem]'
	touch $@

# The requirement is met by what .base has installed, so nothing is built again.
$(VENV)/.test: $(VENV)/.base
	$(PIP) 'accel-rl[test]'
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) 'accel-rl[dev,notebook,benchmark]'
	touch $@

install: $(VENV)/.base ## Install the library and its command in .venv

demo: $(VENV)/.base ## Run the main job: SwiftRL's experiment, to runs/demo
	$(BIN)/accel-rl demo

test: $(VENV)/.test ## Run the tests
	$(PYTEST)

test-slow: $(VENV)/.test ## Run the long tests, all of them
	$(PYTEST) -m slow

# Who learns, what is killed or fuzzed. The others repeat what short ones do, on more sizes or cases.
LONG := $(addprefix tests/,agents remote train/test_resume.py train/test_restarts.py \
	pim/test_learning.py pim_emu/test_fuzz.py)

test-long: $(VENV)/.test
	$(PYTEST) -m slow $(LONG)

check: test test-long lint types native notebooks test-newest ## Run everything that CI runs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

native: $(VENV)/.dev ## Test the native kernels by themselves, under sanitizers
	sh .ci/native $(BIN)

notebooks: $(VENV)/.dev ## Execute the notebooks with small settings
	$(BIN)/python notebooks/execute.py

test-newest: ## Run a short test on Python 3.12 and its jax, where that interpreter exists
	sh .ci/test-newest

bench: $(VENV)/.dev ## Run the quick benchmarks against their rivals
	mkdir -p $(QUICK_RESULTS)
	$(BIN)/python benchmarks/tabular.py --quick --json $(QUICK_RESULTS)/tabular.json
	$(BIN)/python benchmarks/emulator.py --quick --json $(QUICK_RESULTS)/emulator.json
	$(BIN)/python benchmarks/dpu_kernels.py --quick --json $(QUICK_RESULTS)/dpu_kernels.json
	$(BIN)/python benchmarks/replay.py --quick --json $(QUICK_RESULTS)/replay.json
	$(BIN)/python benchmarks/replay_core.py --quick --json $(QUICK_RESULTS)/replay_core.json
	$(BIN)/python benchmarks/amper_study.py --quick --json $(QUICK_RESULTS)/amper_study.json
	$(BIN)/python benchmarks/compose.py --quick --json $(QUICK_RESULTS)/compose.json

# Interpreters of environments with rivals that do not go with ours, where there are any.
RIVALS ?=
RAY ?=
REVERB ?=

accept: $(VENV)/.dev ## Run all benchmarks in full, to benchmarks/results; hours
	$(BIN)/python benchmarks/accept.py $(if $(RIVALS),--rivals "$(RIVALS)") $(if $(RAY),--ray "$(RAY)") \
		$(if $(REVERB),--reverb "$(REVERB)")

docs: $(VENV)/.test ## Check the documentation: links, and code examples by running them
	$(BIN)/python -m pytest tests/test_docs.py

clean: ## Remove the environment, caches and runs
	rm -rf .venv .venv-newest .jax_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis runs build
