# make paper   the paper from one command
# make test    everything that must hold, set-up included
# make bench   speed
# make test-order  everything again, three times in an order of chance
# make test-faults  the service under kill -9, power cuts, full disks and lost replicas, for long
# make mutants     small changes of kernels, estimators and policies, each of which some test must notice; for hours
# make coverage    the branches of the same that tests take without compiled code, at least 95 %
# make bench-peers  speed beside other libraries, which it installs, and how cost grows with arms and replications
# make bench-serve  speed of the service
# make bench-cluster  what a Dask cluster costs
# make screenshots  the pictures of the pages
# make docs    the documentation as a site, in site/
# make dist    the archives to publish, in dist/
# make dist-check  each extra in an empty virtual environment, for some minutes and with a network
# make setup   the virtual environment alone

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup test lint unit interpreted coverage mutants test-order browser test-faults screenshots paper bench bench-peers bench-serve bench-cluster docs dist dist-check clean

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dynabandit needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@echo "Setting up $(VENV) with all that tests need: some minutes, once, and silent"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@# uv installs in a third of pip's time; pip knows package indexes that only its own configuration names
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

test: lint unit interpreted

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY) browser
	$(BIN)/pytest -n 2 --durations=10

# Pages are tested in any Chrome or Chromium; root gets Debian's where there is none
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  command -v $$name >/dev/null && exit 0; done; \
	[ -e "/Applications/Google Chrome.app" ] || [ -e /Applications/Chromium.app ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium for the tests of pages"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "NO BROWSER: the tests of pages will be SKIPPED; install Chrome or Chromium to run them"; fi

# Three times the same tests in an order of chance, which is told; PASSES=1 for one
PASSES ?= 3
test-order: $(READY) browser
	for pass in $$(seq $(PASSES)); do $(BIN)/pytest -n 2 -p randomly || exit 1; done

# The same unit tests without any compiled code
interpreted: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 tests/core tests/estimators tests/policies tests/environments \
	  tests/simulation/test_trace.py tests/bandit/test_bandit.py tests/bandit/test_changes.py

# What was done is kept in out/mutants; mutants/run.py says how, and how to do it in part or in more processes
mutants: $(READY)
	$(BIN)/python mutants/run.py $(MUTANTS)

# The branches of kernels, estimators, policies and environments that the same tests take
coverage: $(READY)
	$(BIN)/python mutants/branches.py

# The same tests as in `unit`, with more kills, cuts, histories and replicas
test-faults: $(READY)
	DYNABANDIT_LONG_FAULTS=1 $(BIN)/pytest -n 2 tests/service --durations=10

# The pictures of the pages in docs/pictures, from the services that the tests start
screenshots: $(READY) browser
	DYNABANDIT_SCREENSHOTS=1 $(BIN)/pytest tests/service -k pictures

bench-serve: $(READY)
	$(BIN)/python benchmarks/service.py

bench-cluster: $(READY)
	$(BIN)/python benchmarks/cluster.py

paper: $(READY)
	$(BIN)/dynabandit paper

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	@echo "make bench-peers puts these beside other libraries"

# Alone on the machine, for some minutes; with WRITE=--write the tables and pictures of docs/performance.md are new
bench-peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python benchmarks/peers.py $(WRITE)
	$(BIN)/python benchmarks/scaling.py $(WRITE)

# Warnings are errors; nothing is loaded from elsewhere, neither now nor by who reads it
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation: site/index.html"

# The wheel is built from the source archive: what is not in there is in neither
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	PYTHONPATH=tests $(BIN)/python -m distribution.archives dist

# All extras, or some, with this Python or another: make dist-check EXTRAS="lab serve" PYTHON=python3.13
dist-check: dist
	PYTHONPATH=tests $(BIN)/python -m distribution.venvs --python $(PYTHON) dist $(EXTRAS)

clean:
	rm -rf $(VENV) out site build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
