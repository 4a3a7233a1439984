# Each target sets up what it needs in .venv; nothing has to be installed by hand.

PYTHON ?= python3
VENV ?= .venv
CORES := $(shell nproc 2>/dev/null || echo 2)
BIN := $(VENV)/bin
# Files are compiled when they are first imported: of most packages few ever are. A build that goes
# by make is parallel as one by ninja is.
PIP := CMAKE_BUILD_PARALLEL_LEVEL=$(CORES) sh .ci/progress $(VENV)/install.log $(BIN)/python -m pip \
	--disable-pip-version-check --no-input install --progress-bar off --no-compile --constraint constraints.txt
DEPENDENCIES := pyproject.toml constraints.txt
KERNELS := kernels/CMakeLists.txt $(wildcard kernels/common/* kernels/ffi/* kernels/upmem/* \
	kernels/upmem/*/* kernels/replay_server/CMakeLists.txt \
	$(addprefix kernels/replay_server/,client/* core/* datagram/* dpdk/* net/* protocol/* \
	server/* transport/* bindings/*))
# A file's tests share a worker, and what they compile. More than eight workers want much memory.
WORKERS ?= $(shell [ $(CORES) -lt 8 ] && echo $(CORES) || echo 8)
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile \
	--max-worker-restart 0
QUICK_RESULTS := runs/benchmarks

.DEFAULT_GOAL := help
.PHONY: help install demo notebooks hooks test docs site lint types check test-shuffled test-slow test-long native \
	check-notebooks test-newest test-families wheels bench bench-gpu rivals accept programs clean

help: ## List the targets (at once)
	@echo "make TARGET, on two cores about:"
	@awk -F ':.*## ' '/^##@ /{print "\n" substr($$0, 5)} \
		/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use it

$(BIN)/python:
	sh .ci/make-venv "$(PYTHON)" "$(VENV)"

$(VENV)/.base: $(BIN)/python $(DEPENDENCIES) $(KERNELS)
	@echo "installing accel_rl and what it needs, and building its native parts: 2 minutes the first time"
	@$(PIP) --editable '.[upmem]'
	@touch $@

# The requirement is met by what .base has installed, so nothing is built again.
$(VENV)/.test: $(VENV)/.base
	@echo "installing what the tests need"
	@$(PIP) 'accel-rl[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	@echo "installing tools, JupyterLab and the benchmarks' rivals: minutes the first time"
	@$(PIP) 'accel-rl[dev,notebook,benchmark]'
	@# Its metrics alone, which a test compares with: the rest needs arch, which needs pandas 2.
	@$(PIP) --no-deps rliable
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	@echo "installing what builds the site"
	@$(PIP) 'accel-rl[docs]'
	@touch $@

install: $(VENV)/.base ## Install the library and its command in .venv (minutes)

demo: $(VENV)/.base ## Run the main job: SwiftRL's experiment, to runs/demo (a minute or two)
	$(BIN)/accel-rl demo

# Jupyter refuses to be root's without being told, and in a container everybody is.
notebooks: $(VENV)/.dev ## Open JupyterLab in notebooks/, with all that they import (a minute)
	$(BIN)/python -m jupyterlab --ServerApp.root_dir=notebooks \
		$(if $(filter 0,$(shell id -u)),--allow-root)

##@ Change it

hooks: $(VENV)/.dev ## Have Git check each commit: style, types of what changed (seconds)
	$(BIN)/python -m pre_commit install

# Compilation takes most of the time, and half without optimisation and MLIR's fusion emitters; the
# long tests compile what users run.
QUICKLY := XLA_FLAGS="$$XLA_FLAGS --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
test: $(VENV)/.test ## Run the tests (6 minutes)
	$(QUICKLY) $(PYTEST)

docs: site ## Check the documentation's links and examples, and build its site (minutes)
	$(BIN)/python -m pytest -m "long or not long" tests/test_docs.py tests/test_reference.py

# Warnings are errors: a link without a target, a public name without a place in the reference.
site: $(VENV)/.docs ## Build the documentation's site, to build/docs (a minute)
	$(BIN)/python -m sphinx -b html -c docs -n -W --keep-going -q . build/docs

# What pre-commit checks beside the two above, and types below.
HOOKS := SKIP=ruff-check,ruff-format,mypy $(BIN)/python -m pre_commit run --all-files
lint: $(VENV)/.dev ## Check style and what a commit must not hold (seconds)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(if $(wildcard .git),$(HOOKS))

types: $(VENV)/.dev ## Check types (a minute)
	$(BIN)/mypy

##@ Trust it

check: ## Run everything that CI runs after its bare stage (45 minutes)
	@sh .ci/stages "lint types site" test-shuffled native \
		"check-notebooks test-newest test-families" test-long

# Any order must do: a new one each day, that of an earlier day with SEED=. All tests have run on the
# bare machine: here an eighth of the files do by turns, and all with tests that were skipped there.
SEED ?= $(shell date +%j)
OPTIONAL := grep -rlE 'optional import|importorskip|require_dpdk' tests --include='test_*.py'
TURN := find tests -name 'test_*.py' | sort | awk "NR % 8 == $(SEED) % 8"
test-shuffled: $(VENV)/.dev
	$(QUICKLY) $(PYTEST) --random-order --random-order-seed=$(SEED) $$({ $(OPTIONAL); $(TURN); } | sort -u)

test-slow: $(VENV)/.test ## Run what repeats other tests on more of the same (hours)
	$(PYTEST) -m slow

test-long: $(VENV)/.dev ## Run the long tests: who learns, what is killed, fuzzed, shipped (minutes)
	@# Ten minutes of clients that come and go, beside the tests: they leave a core time enough.
	@mkdir -p runs
	@$(BIN)/python tests/remote/soak.py 600 --pause 0.2 >runs/soak.log 2>&1 & soak=$$!; \
		trap 'kill $$soak' INT TERM; \
		$(PYTEST) --no-loadscope-reorder -m "long and not slow"; status=$$?; \
		wait $$soak && echo "the soak held: runs/soak.log" || { cat runs/soak.log; exit 1; }; exit $$status

native: $(VENV)/.dev ## Test the native kernels under sanitizers, and run clang-tidy (minutes)
	sh .ci/native $(BIN)

check-notebooks: $(VENV)/.dev ## Execute the notebooks with small settings (minutes)
	$(BIN)/python notebooks/execute.py

test-newest: ## Run a short test on Python 3.12 and its jax, where there is one (minutes)
	sh .ci/test-newest

test-families: $(VENV)/.test ## Test the environments of Atari, Box2D, brax, Craftax, Jumanji and MuJoCo (minutes)
	sh .ci/test-families $(BIN)/python

wheels: $(VENV)/.dev ## Build wheels for each Python that is found, and try each without a compiler (minutes)
	sh .ci/wheels

bench: $(VENV)/.dev ## Run all benchmarks quickly beside their rivals, to runs/benchmarks (an hour)
	$(BIN)/python benchmarks/accept.py --quick --out $(QUICK_RESULTS) $(INTERPRETERS)

bench-gpu: $(VENV)/.dev ## Prove and measure on the accelerator that JAX finds, to runs/accelerator (9 minutes)
	$(BIN)/python benchmarks/accelerator.py

rivals: $(BIN)/python ## Make environments of rivals that do not go with ours, in build (gigabytes)
	$(BIN)/python benchmarks/rivals.py

# Interpreters of environments with rivals, in place of those that `make rivals` made.
RIVALS ?=
RAY ?=
REVERB ?=
INTERPRETERS = $(if $(RIVALS),--rivals "$(RIVALS)") $(if $(RAY),--ray "$(RAY)") \
	$(if $(REVERB),--reverb "$(REVERB)")

accept: $(VENV)/.dev ## Run all benchmarks in full, to benchmarks/results and docs/benchmarks.md (hours)
	$(BIN)/python benchmarks/accept.py $(INTERPRETERS)

# Checkouts of published suites: make programs PRIM=../prim-benchmarks SIMPLEPIM=../SimplePIM
programs: $(VENV)/.dev ## Build and run published UPMEM programs, where PRIM=, SIMPLEPIM= say (minutes)
	$(BIN)/python benchmarks/published_programs.py $(if $(PRIM),--prim "$(PRIM)") \
		$(if $(SIMPLEPIM),--simplepim "$(SIMPLEPIM)")

clean: ## Remove the environment, caches and runs (at once)
	rm -rf .venv .venv-newest .jax_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis runs build
