# Each target sets up what it needs; `make run` or `make test` may be the first command.

PYTHON ?= python3
BIN := .venv/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1
ifndef ONEPASS_DATA
ifneq ($(wildcard ../shared/data/.),)
export ONEPASS_DATA := $(abspath ../shared/data)
endif
endif

# One thread per process: small matrices gain nothing from more, and times stay comparable.
run serve docs test test-long bench: export OPENBLAS_NUM_THREADS := 1
run serve docs test test-long bench: export OMP_NUM_THREADS := 1
run serve docs test test-long bench: export MKL_NUM_THREADS := 1

.PHONY: run serve docs test test-long check types format bench clean

run: .venv/stamp
	@$(BIN)/onepass run digits --out results/digits

# Decide and reward over HTTP, with a page that shows simulated visitors: http://127.0.0.1:8080 (docs/service.md, docs/page.md).
serve: .venv/serve
	@$(BIN)/onepass serve --demo --data results/service examples/service.toml

# The site: every block of code on it is run, then it is built into build/site, where a warning is an error. It needs no network to read.
docs: export ONEPASS_TEST_LONG := 1

docs: .venv/docs
	@$(BIN)/pytest -q -p no:cacheprovider README.md tests/docs/test_documents.py tests/docs/test_site.py tests/docs/test_site_examples.py \
		tests/docs/test_tutorials.py
	@rm -rf build/site
	@$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/site
	@ONEPASS_SITE=build/site $(BIN)/pytest -q -p no:cacheprovider tests/docs/test_site_search.py
	@echo "The site is build/site/index.html"

# The same tests with large numbers where they repeat something; hours.
test-long: export ONEPASS_TEST_LONG := 1

# A test that hangs is named and ended after 900 s. On an idle machine none takes a thirtieth of it; one that compiles in
# other processes, where others have the processors, takes much of it.
test: PATIENCE := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

test: .venv/stamp
test-long: .venv/long

# Processes that tests start share the bytecode of the sources, whatever the shell asks for.
test test-long: export PYTHONDONTWRITEBYTECODE :=

# Three workers on two cores: while one waits for a server or for what another compiles, the third has something to do.
test test-long:
	@$(BIN)/pytest -q -n 3 --dist loadfile $(PATIENCE)

check: .venv/stamp
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/stubtest onepass.recipes

# The public names as pyright sees them in the strict mode of packages; it brings node, 270 MB, so not part of `check`.
types: .venv/stamp
	@$(BIN)/pip install -q -c constraints.txt 'pyright[nodejs]'
	@$(BIN)/python tests/public_types.py

format: .venv/stamp
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

bench: .venv/stamp
	@$(BIN)/onepass bench

clean:
	@rm -rf .venv build dist results .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/docs: .venv/stamp
	@$(BIN)/pip install -q -c constraints.txt -e '.[docs]'
	@touch $@

.venv/long: .venv/stamp
	@$(BIN)/pip install -q -c constraints.txt -e '.[ray-serve,ray-data]'
	@touch $@

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "onepass needs Python 3.11 or newer, but '$(PYTHON)' is older or missing: name one that is, as in 'make PYTHON=python3.12'." >&2; \
		exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/stamp: .venv/made pyproject.toml constraints.txt
	@echo "Setting up .venv: installing onepass and what it needs, about a minute"
	@$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@ .venv/serve

# What a service needs is a third of it: a first look does not wait for the rest.
.venv/serve: .venv/made pyproject.toml constraints.txt
	@echo "Setting up .venv: installing onepass and what a service needs, half a minute"
	@$(BIN)/pip install -q -c constraints.txt -e '.[serve]'
	@touch $@
