# The two commands to know: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BASE ?= HEAD
SECONDS ?= 60
CASES ?= 10000
PAGES := $(patsubst %,tests/test_%.py,docs recipes public_names site paper_page extend) \
	tests/test_tables.py::test_the_page_on_tables_runs \
	tests/test_stream.py::test_every_block_of_the_page_runs
NATIVE := CMakeLists.txt $(wildcard native/*)

.PHONY: help demo test setup lint types layers pytest fuzz properties format docs peers bench bench-full bench-compare clean sanitize soak figures dist warnings
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## Make .venv with the package, its kernels and the tools

demo: $(READY) ## Run the main job on data the package makes, and say where the result is
	@$(BIN)/robustbn demo

test: lint types layers pytest ## Run every check

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports --no-cache

pytest: $(READY)
	$(BIN)/pytest -n auto --dist loadgroup

fuzz: $(READY) ## Change files, models, checkpoints and arguments for SECONDS (60): none does harm
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
	$(BIN)/pip install -q -c constraints.txt --group docs
	$(BIN)/pytest -n auto $(PAGES) -k "not checkers and not house_rules"
	$(BIN)/sphinx-build -q -j auto -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

figures: $(READY) ## Draw the figures of the pages again
	$(BIN)/python -W ignore docs/draw_figures.py
	$(BIN)/python -W ignore docs/take_screenshot.py

peers: $(READY) ## Install the libraries that the benchmarks compare with
	$(BIN)/pip install -q -c constraints.txt --group peers

bench: peers ## Check every claim, quickly (20 minutes); page in docs/proof.md
	$(BIN)/python -m benchmarks real
	$(BIN)/python -m benchmarks proof

bench-full: peers ## The same with more networks, tables, rows and seeds (hours)
	$(BIN)/python -m benchmarks real misfit holes --full
	$(BIN)/python -m benchmarks proof --full

bench-compare: $(READY) ## Fail if the working tree is slower than BASE, a git reference
	$(BIN)/python -m benchmarks compare --base $(BASE)

dist: $(READY) ## Build sdist and wheels, try them in fresh environments of PYTHONS (3.11 to 3.14)
	$(BIN)/pip install -q -c constraints.txt --group release
	$(BIN)/python scripts/dist.py $(PYTHONS)

clean: ## Remove everything that was made
	rm -rf $(VENV) build dist docs/_build docs/generated robustbn-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Not compiled: of all that is installed, a small part is ever imported, and is compiled then.
$(READY): pyproject.toml constraints.txt $(NATIVE)
	@scripts/make_venv.sh $(PYTHON) $(VENV)
	$(BIN)/pip install -q -c constraints.txt -U pip
	$(BIN)/pip install -q -c constraints.txt --group dev
	$(BIN)/pip install -q -c constraints.txt --no-build-isolation -e .
	@touch $@
