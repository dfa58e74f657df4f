# make paper   the paper from one command
# make test    everything that must hold, set-up included
# make bench   speed
# make test-faults  the service under kill -9, power cuts, full disks and lost replicas, for long
# make bench-serve  speed of the service
# make setup   the virtual environment alone

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup test lint unit interpreted test-faults paper bench bench-serve clean

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dynabandit needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

test: lint unit interpreted

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/pytest -n 2 --durations=10

# The same unit tests without any compiled code
interpreted: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 tests/kernels tests/estimators tests/policies tests/environments

# The same tests as in `unit`, with more kills, cuts, histories and replicas
test-faults: $(READY)
	DYNABANDIT_LONG_FAULTS=1 $(BIN)/pytest -n 2 tests/service --durations=10

bench-serve: $(READY)
	$(BIN)/python benchmarks/serve.py

paper: $(READY)
	$(BIN)/dynabandit paper

bench: $(READY)
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
