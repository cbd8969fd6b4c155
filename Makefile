# Every target makes its own environment in .venv; only Python 3.11+, pip and make are needed.
PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
# Options of make bench, make streams, make beyond and make serving; make bench BENCH=--help tells them.
BENCH ?= --out docs/bench
STREAMS ?= --out docs/streams
BEYOND ?= --out docs/beyond
SERVING ?=
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
QUIETLY := $(BIN)/python -c 'import subprocess, sys; p = subprocess.run(sys.argv[1:], capture_output=True, text=True); p.returncode and print(p.stdout, p.stderr); sys.exit(p.returncode)'
# Where this is set, each of the many processes that tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test lint warm lowest coverage docs bench streams beyond serving clean

help:  ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "cbrank needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Making an environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.user: pyproject.toml | $(VENV)/.pip
	@echo "Installing cbrank into $(VENV) ..."
	@$(PIP) install --no-compile --editable '.[report,datasets]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/.pip
	@echo "Installing cbrank and its peers into $(VENV) ..."
	@$(PIP) install --no-compile --editable '.[report,river,serve]' --group bench
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.pip
	@echo "Installing cbrank and what its checks need into $(VENV) (some minutes the first time) ..."
	@$(PIP) install --no-compile --editable '.[all]' --group dev
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user  ## Run the paper's study on the embedded data sets and write report.html
	@echo "Running the study on the embedded data sets (one or two minutes) ..."
	@env -u CBRANK_DATA $(BIN)/cbrank reproduce --quick --fresh --out demo \
		--datasets glass,german,svmguide3,diabetes,vehicle,segment
	@cp demo/report.html report.html
	@echo "Open report.html; tables and figures are in demo/."

lint: $(VENV)/.dev  ## Check style, types, layers and documentation
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(QUIETLY) $(BIN)/lint-imports --no-cache
	@$(QUIETLY) $(BIN)/validate-pyproject pyproject.toml
	@$(QUIETLY) $(BIN)/repo-review .
	@$(BIN)/python docs/check_docstrings.py

warm: $(VENV)/.dev
	@$(QUIETLY) $(BIN)/cbrank warmup --jobs 2

test: $(VENV)/.dev  ## Run every check
	@$(MAKE) --no-print-directory --jobs 2 warm lint
	@$(BIN)/python -m pytest --quiet -r fE --numprocesses 2 --dist worksteal

$(LOWEST)/.test: pyproject.toml
	@echo "Installing cbrank and the lowest versions that it promises to work with into $(LOWEST) ..."
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip -qq --disable-pip-version-check install uv
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--editable '.[all]' --group test
	@touch $@

# Warnings are no errors here: the lowest versions warn of what the latest do not.
lowest: $(LOWEST)/.test  ## Run the fast tests with the lowest promised version of every library
	@$(LOWEST)/bin/python tests/tools/lowest.py
	@NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/kernels $(LOWEST)/bin/python -m pytest --quiet -r fE -m "not slow" \
		-o filterwarnings=default --numprocesses 2 --dist worksteal tests src README.md

coverage: $(VENV)/.dev  ## Say which lines the tests leave out, but for kernels (their compiled code is unseen) and slow tests
	@$(BIN)/python -m pytest --quiet -r fE -m "not slow" --numprocesses 2 --dist worksteal --cov --cov-report term

docs: $(VENV)/.dev  ## Build the documentation into docs/_build
	@echo "Running the examples and building the documentation (one or two minutes) ..."
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build
	@$(BIN)/python docs/check_links.py docs/_build
	@echo "Open docs/_build/index.html"

bench: $(VENV)/.bench  ## Measure speed and AUC beside scikit-learn, River, Vowpal Wabbit and LightGBM (30 minutes)
	@$(BIN)/python -m benchmarks $(BENCH)

streams: $(VENV)/.bench  ## Rank real streams row by row beside River, scikit-learn and Vowpal Wabbit (15 minutes)
	@$(BIN)/python -m benchmarks.streams $(STREAMS)

beyond: $(VENV)/.bench  ## Set curves beside LightGBM, EBM and others (an hour, and some hours for EBM)
	@$(BIN)/python -m benchmarks.beyond $(BEYOND)

serving: $(VENV)/.bench  ## Set the server beside one that only echoes (10 minutes)
	@$(BIN)/python -m benchmarks.serving $(SERVING)

clean:  ## Remove everything that was made
	@rm -rf $(VENV) $(LOWEST) demo report.html docs/_build docs/_rankers.md docs/api/generated docs/gallery build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
