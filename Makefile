# Every target works in a fresh clone: the virtual environment in .venv is made on the first call, and
# reinstalled when pyproject.toml changes. Another interpreter: make demo PYTHON=/path/to/python3.12

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MINIMUM := .venv-minimum
# Two processes for two cores; three take longer, as each compiles its kernels. A file stays in one of them, so its fixtures
# are made once; tests/conftest.py has Spark start once, and slow files begin first, not those with the most tests.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# pyright fails below 100 %; what comes of classes without types, such as scikit-learn's, cannot be told.
COMPLETE := import json, sys; score = json.load(sys.stdin)["typeCompleteness"]["completenessScore"]; \
  print(f"types of the public names: {score:.1%} complete"); sys.exit(score < 0.95)

# A stamp file in .venv for each set of packages; one set may contain others.
EXTRA_core  :=
EXTRA_test  := [test]
EXTRA_dev   := [dev]
EXTRA_bench := [bench]
EXTRA_docs  := [docs]
HOLDS_test  := core
HOLDS_dev   := core test
HOLDS_bench := core
HOLDS_docs  := core

# The caller's Python settings would make .venv's interpreter import packages from elsewhere, or keep no bytecode: then
# every process compiles all modules again, and pytest rewrites all asserts again.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-cores test-extras test-minimum faults fuzz mutants check bench docs clean
.DELETE_ON_ERROR:
# Two pips in one environment damage it.
.NOTPARALLEL:

help:
	@echo "make demo          run the demonstration, and write demo/report.html"
	@echo "make test          run the tests (ARGS='-k ranking' passes options to pytest)"
	@echo "make test-cores    run some numeric tests as on two kinds of processors"
	@echo "make test-extras   run those that need torch, Triton, Cornac, Chromium, axe-core, MkDocs, implicit, LightFM, Surprise,"
	@echo "                   LensKit, FAISS or build, which you install yourself (.ci/run says which versions)"
	@echo "make test-minimum  run most tests with the lowest version of every dependency, in $(MINIMUM)"
	@echo "make faults        kill each command 50 times, and count what is torn or left behind (ARGS='--each 5 train')"
	@echo "make fuzz          try changed files for MINUTES=30, and print the counts (SEED=0)"
	@echo "make mutants       break COUNT=40 lines of formulas one by one, and list those that no test notices (SEED=0)"
	@echo "make check         style, types and layers"
	@echo "make bench         measure against other libraries"
	@echo "make docs          build the documentation in site/, with the tutorials run (their code is tested by make test)"
	@echo "make clean         remove .venv, caches and what the commands wrote"

demo: $(VENV)/.installed-core
	@mkdir -p demo
	$(BIN)/openloop demo --report demo/report.html

test: $(VENV)/.installed-test
	$(PYTEST) $(ARGS)

# Tests of what this Makefile does not install; in CI (CI=true) none of them may skip.
test-extras: $(VENV)/.installed-test
	$(PYTEST) -m extra $(ARGS)

# Sums round otherwise on another processor. OpenBLAS takes the name of one, and does not look whether this one knows its
# instructions: it would be stopped by the first that it does not know. So these are the two newest that it can execute.
CPU_FLAGS  = $(shell grep -m 1 '^flags' /proc/cpuinfo 2>/dev/null)
lacks      = $(filter-out $(CPU_FLAGS),$(1))
X86_TYPES  = $(if $(call lacks,avx512f avx512cd avx512bw avx512dq avx512vl),,SkylakeX) $(if $(call lacks,avx2 fma),,Haswell) Nehalem
CORE_TYPES = $(if $(filter x86_64,$(shell uname -m)),$(wordlist 1,2,$(X86_TYPES)),ARMV8)
# Of linear algebra and descents; not those that start processes, which take longest.
ROUNDED := tests/learners/test_mf.py tests/learners/test_baselines.py tests/learners/test_covariate_ridge.py \
  tests/learners/test_exposing.py tests/learners/test_pure_svd.py tests/learners/solvers/test_als.py \
  tests/learners/solvers/test_lbfgs.py tests/learners/solvers/test_projected.py tests/propensity/solvers/test_newton.py \
  tests/propensity/solvers/test_calibration.py
test-cores: $(VENV)/.installed-test
	@for core in $(CORE_TYPES); do echo "OPENBLAS_CORETYPE=$$core"; \
	  OPENBLAS_CORETYPE=$$core $(BIN)/python -m pytest -q -k "not loaded and not process" $(ARGS) $(ROUNDED) || exit; done

# Not in CI. Without Spark, whose own package is larger than all others together.
LOWEST := tests/audits tests/blocks tests/cli tests/comparison tests/core tests/data tests/estimators tests/impressions \
  tests/kernels tests/metrics tests/moments tests/propensity tests/reporting tests/selection tests/support \
  tests/test_evaluation.py
test-minimum: $(MINIMUM)/.installed
	$(MINIMUM)/bin/python -m pytest -n 2 --dist loadfile -q -m "not spark and not extra" -k "not spark" $(or $(ARGS),$(LOWEST))

$(MINIMUM)/.installed: pyproject.toml bench/minimum.py | $(BIN)/python
	@$(BIN)/python -m venv --clear $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install -q --disable-pip-version-check --no-compile -e . $$($(MINIMUM)/bin/python bench/minimum.py)
	@touch $@

# Takes about ten minutes; `make test` has a share of it.
faults: $(VENV)/.installed-test
	$(BIN)/python -W ignore -m tests.faults $(ARGS)

# Changed files of every format against every reader and command; failures are kept in fuzz-failures.
MINUTES ?= 30
SEED    ?= 0
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

# Breaks are made in a copy of the tree in .mutants, where results are kept; ARGS='--again FILE' makes those of a file again.
COUNT   ?= 40
mutants: $(VENV)/.installed-test
	$(BIN)/python -m tests.mutants --seed $(SEED) --count $(COUNT) $(ARGS)

# Both runs of pyright take most of the time, and one core each.
check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	@$(BIN)/pyright & checked=$$!; PYTHONPATH=src $(BIN)/pyright --pythonpath $(BIN)/python --verifytypes openloop \
	  --ignoreexternal --outputjson | $(BIN)/python -c '$(COMPLETE)'; complete=$$?; wait $$checked && exit $$complete

bench: $(VENV)/.installed-bench
	$(BIN)/python -m bench

# A tutorial has a part on Spark, which runs with OPENLOOP_TUTORIAL=full, the extra spark and Java.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "Open site/index.html in a browser."

clean:
	rm -rf $(VENV) $(MINIMUM) demo dist build site .mutants bench/.envs bench/results.json .pytest_cache .ruff_cache .import_linter_cache .hypothesis \
	  spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "Installing openloop$(EXTRA_$*) into $(VENV); the first time takes a few minutes."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -e ".$(EXTRA_$*)"
	@touch $(foreach set,$* $(HOLDS_$*),$(VENV)/.installed-$(set))

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "openloop needs Python 3.11 or newer, and '$(PYTHON)' was not found." >&2; \
	  echo "Install Python, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "openloop needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1)." >&2; \
	  echo "Install a newer one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: its venv or ensurepip module is missing." >&2; \
	  echo "Install it (Debian and Ubuntu: apt install python3-venv), or name another Python:" >&2; \
	  echo "make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
