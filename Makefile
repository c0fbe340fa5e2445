# Every target works in a fresh clone: the virtual environment in .venv is made on the first call, and
# reinstalled when pyproject.toml changes. Another interpreter: make demo PYTHON=/path/to/python3.12

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two processes for two cores. A file stays in one of them, so its fixtures are made and its kernels compiled
# once; tests/conftest.py has Spark start once, and slow files begin first, not those with the most tests.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# A stamp file in .venv for each set of packages; one set may contain others.
EXTRA_core  :=
EXTRA_test  := [test]
EXTRA_dev   := [dev]
EXTRA_bench := [bench]
HOLDS_test  := core
HOLDS_dev   := core test
HOLDS_bench := core

# The caller's Python settings would make .venv's interpreter import packages from elsewhere, or keep no bytecode: then
# every process compiles all modules again, and pytest rewrites all asserts again.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-extras fuzz check bench docs clean
.DELETE_ON_ERROR:
# Two pips in one environment damage it.
.NOTPARALLEL:

help:
	@echo "make demo          run the demonstration, and write demo/report.html"
	@echo "make test          run the tests (ARGS='-k ranking' passes options to pytest)"
	@echo "make test-extras   run those that need torch, Triton, Cornac or Chromium, which you install yourself"
	@echo "make fuzz          try changed files for MINUTES=30, and print the counts (SEED=0)"
	@echo "make check         style, types and layers"
	@echo "make bench         measure against other libraries"
	@echo "make docs          run every Python block of README.md and docs/"
	@echo "make clean         remove .venv, caches and what the commands wrote"

demo: $(VENV)/.installed-core
	@mkdir -p demo
	$(BIN)/openloop demo --report demo/report.html

test: $(VENV)/.installed-test
	$(PYTEST) $(ARGS)

# Tests of what this Makefile does not install; in CI (CI=true) none of them may skip.
test-extras: $(VENV)/.installed-test
	$(PYTEST) -m extra $(ARGS)

# Changed files of every format against every reader and command; failures are kept in fuzz-failures.
MINUTES ?= 30
SEED    ?= 0
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.installed-bench
	$(BIN)/python -m bench

docs: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q tests/test_docs.py
	@echo "The guide is plain Markdown: start at README.md, then docs/."

clean:
	rm -rf $(VENV) demo dist build bench/.envs bench/results.json .pytest_cache .ruff_cache .import_linter_cache .hypothesis \
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
