# Two commands: `make demo` shows what Aliquot does, `make test` checks everything.
# Both need only Python 3.11+ with pip; they set up .venv themselves. `make test-cluster` and
# `make soak` check more: what, says the README.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml

# Three workers more than there are cores: many tests wait for servers, and leave cores idle.
PYTEST := $(BIN)/pytest -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 3)')

# Many tests start Python: without compiled modules, each of them reads the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: browser demo test test-cluster soak mutation lint types layers unit bench pictures chart lock clean

demo: .venv/ready
	@$(BIN)/aliquot simulate examples/kep-9/story-1

# At once, because tests that wait for servers leave cores idle, which mypy uses.
test: lint
	@$(MAKE) --no-print-directory --jobs=3 types layers unit

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready-dev
	$(BIN)/mypy

layers: .venv/ready-dev
	$(BIN)/lint-imports

unit: .venv/ready-dev
	$(PYTEST)

# Only what runs against a real server; an error if there is none.
test-cluster: .venv/ready-dev
	$(PYTEST) --real-server tests/cluster

# The browser that tests of the page look with; they are skipped where there is none.
browser:
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core

# Every campaign at its full length.
soak: .venv/ready-dev
	ALIQUOT_SOAK=1 $(PYTEST)

# Which small mistakes in the engine does no fast test notice? Takes up to an hour.
mutation: .venv/ready-dev
	$(BIN)/python tools/mutation.py

bench: .venv/ready
	$(BIN)/aliquot bench all

# Draws the pictures of the documentation anew; those of the page need a Chromium (`make browser`).
pictures: .venv/ready-dev
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/page_pictures.py

# Writes the Helm chart anew, from what aliquot manifests prints.
chart: .venv/ready
	$(BIN)/python tools/chart.py

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .mutation_cache.json

# Pins the newest versions that pyproject.toml allows: a maintainer's tool, needs uv.
lock:
	$(LOCK) --extra build -o requirements.lock
	$(LOCK) --extra build --extra dev -o requirements-dev.lock

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Aliquot needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/ready: .venv/created requirements.lock pyproject.toml
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Two thirds of what pip would compile is the Kubernetes client, of which tests use little.
.venv/ready-dev: .venv/ready requirements-dev.lock
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.lock
	@-$(BIN)/python -m compileall -qq -j 0 -x /kubernetes/ .venv/lib
	@touch $@
