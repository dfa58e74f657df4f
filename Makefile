# make setup          create .venv with all development dependencies
# make paper          run the paper's experiments, draw its figures and check its claims
# make test           run all linters and tests
# make golden         compare all decisions with the recorded golden results (slow)
# make sweep          try every parameter of everything over its whole range in compiled code
# make cuda-code      compile all policies for a GPU, without one
# make same-decisions BASE=<commit>  compare all that every policy does with an earlier commit, bit by bit
# make coverage       measure branch coverage of the algorithms without compiled code; at least 95 %
# make mutants        mutation testing of the algorithms; takes hours
# make test-steady    run the tests again and again in random order while the machine is busy
# make test-faults    run the fault tests of the service (kill -9, power cuts, full disks, lost replicas) for longer
# make client         generate the synchronous client from the asynchronous one
# make bench          measure the simulator
# make bench-peers    compare with other libraries, which it installs; measure how cost and memory scale
# make bench-serve    measure the decision service
# make bench-cluster  measure the overhead of a Dask cluster
# make screenshots    update the screenshots of the web pages in docs/pictures
# make docs           build the documentation site in site/
# make docs-serve     serve the documentation site while you edit it
# make dist           build the source archive and the wheel in dist/
# make dist-check     install each extra into an empty virtual environment and try it; needs a package index

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that may not write compiled modules compile their imports at every start, which takes seconds
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/.ready

.PHONY: setup test lint unit compiled interpreted coverage mutants test-steady browser golden sweep cuda-code same-decisions test-faults screenshots paper client bench bench-peers bench-serve bench-cluster docs docs-serve dist dist-check clean

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dynabandit needs Python 3.11 or newer; choose an interpreter with: make PYTHON=python3.12"; exit 1; }
	@echo "Installing all development dependencies into $(VENV). This takes one or two minutes, without output."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@# uv is three times as fast as pip; pip also reads package indexes from its own configuration
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

# Tests of single functions, small examples of the documentation, and tests of the service that use many policies: compiling them
# would take longer than running them. The other tests compile the functions of every policy once, and whole simulations
# of one policy of each shape (tests/tools/ready.py)
INTERPRETED := tests/estimators tests/policies tests/stats/test_settling_age.py tests/test_checks_of_parts.py tests/environments tests/simulation/test_traces.py src \
  tests/simulation/test_context.py tests/simulation/test_delayed_rewards.py tests/bandit/test_contexts.py \
  tests/bandit/test_ranking.py tests/bandit/test_block_decisions.py tests/bandit/test_arm_tree.py tests/service/domain \
  tests/service/stores tests/service/http/test_openapi.py tests/service/http/test_personalizer.py \
  tests/service/test_local_decider.py tests/service/test_operations.py tests/golden/test_paths.py \
  docs/baselines-forgetting.md docs/baselines-ucb.md docs/delayed-rewards.md docs/rested-arms.md

# Three jobs keep two cores busy to the end: the linters and the interpreted tests, one process each, come first, and
# three processes with compiled tests take what they leave. The output of the former is shown when they are finished
test:
	@$(MAKE) --no-print-directory --jobs 2 setup browser
	@mkdir -p out
	$(MAKE) --jobs 3 compiled quiet-lint quiet-interpreted

quiet-%:
	@$(MAKE) $* > out/$*.log 2>&1; status=$$?; cat out/$*.log; exit $$status

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY) browser
	$(MAKE) compiled

NICE ?= nice -n 5
compiled:  # without prerequisites: make would start it only after the other job
	$(NICE) $(BIN)/pytest -n 3 --dist worksteal --durations=10 tests README.md docs $(INTERPRETED:%=--ignore=%)

# The tests of web pages need Chrome or Chromium; as root on Debian it is installed if it is missing
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  command -v $$name >/dev/null && exit 0; done; \
	[ -e "/Applications/Google Chrome.app" ] || [ -e /Applications/Chromium.app ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium for the tests of web pages"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "No browser found: the tests of web pages will be SKIPPED. Install Chrome or Chromium to run them."; fi

# The tests in random order, PASSES times, with two busy processes per core and pauses; FORM=one-core: on one core
PASSES ?= 3
FORM ?= busy
test-steady: $(READY) browser
	$(BIN)/python scripts/steady_tests.py --passes $(PASSES) --form $(FORM) $(SEED:%=--seed %)

# The unit tests of the algorithms without compiled code
interpreted: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest --durations=10 $(INTERPRETED) \
	  tests/offline/test_replay_oracle.py tests/bandit tests/golden/test_saved_bandits.py

# All golden decisions (see CONTRIBUTING.md): compiled, interpreted and on the CUDA simulator; the tables of the paper
golden: $(READY)
	$(BIN)/python tests/golden/check.py
	$(BIN)/python tests/golden/check.py paper
	NUMBA_DISABLE_JIT=1 $(BIN)/python tests/golden/check.py
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python tests/tools/cudasim.py tests/golden/check.py

# Every value of every parameter of all policies, environments, reward laws, delays and estimators in compiled code, in
# processes with a time limit: a loop without end is found, and named. `make test` does a part of it
sweep: $(READY)
	DYNABANDIT_SWEEP=1 $(BIN)/pytest -n auto --dist worksteal --durations=10 tests/simulation/test_compiled_sweep.py

# All policies compiled for a GPU, up to the code of LLVM; needs no GPU. `make test` does a part of it
cuda-code: $(READY)
	DYNABANDIT_CUDA_CODE=1 $(BIN)/pytest -n auto --dist worksteal --durations=10 tests/simulation/test_cuda_code.py

# Choices, scores, states and saved bandits of every policy as they were at the commit BASE; options, given as
# SAME="--only ucb --mode interpreted", are in scripts/compare_policies.py
same-decisions: $(READY)
	@[ "$(BASE)" ] || { echo "name the commit to compare with: make same-decisions BASE=main"; exit 1; }
	$(BIN)/python scripts/compare_policies.py $(BASE) $(SAME)

# Finished mutants are kept in out/mutants; mutants/run.py documents the options, given as MUTANTS="--jobs 16"
mutants: $(READY)
	$(BIN)/python mutants/run.py $(MUTANTS)

# Branch coverage of core, choosing, estimators, policies and environments by the tests of `interpreted`
coverage: $(READY)
	$(BIN)/python mutants/branch_coverage.py

# The tests of tests/service with more kills, power cuts, histories and replicas
client: $(READY)
	$(BIN)/python scripts/make_sync_client.py

test-faults: $(READY)
	DYNABANDIT_LONG_FAULTS=1 $(BIN)/pytest -n 2 tests/service --durations=10

# Screenshots are taken by tests, from the services that they start
screenshots: $(READY) browser
	DYNABANDIT_SCREENSHOTS=1 $(BIN)/pytest tests/service -k pictures

# SHORT=--short takes one minute instead of five; both need an otherwise idle machine
bench-serve: $(READY)
	$(BIN)/python benchmarks/service_capacity.py $(SHORT)
	$(if $(SHORT),,$(BIN)/python benchmarks/decision_service.py)
	$(if $(SHORT),,$(BIN)/python benchmarks/local_decisions.py)
	$(if $(SHORT),,$(BIN)/python benchmarks/many_arms.py)
	$(if $(SHORT),,$(BIN)/python benchmarks/impatient_callers.py)

bench-cluster: $(READY)
	$(BIN)/python benchmarks/cluster.py

paper: $(READY)
	$(BIN)/dynabandit paper

bench: $(READY)
	$(BIN)/python benchmarks/speed.py
	@echo "make bench-peers compares these numbers with other libraries"

# Takes some minutes and needs an otherwise idle machine; WRITE=--write updates docs/performance.md
bench-peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python benchmarks/peers.py $(WRITE)
	$(BIN)/python benchmarks/contextual_peers.py speed $(WRITE)
	$(BIN)/python benchmarks/scaling.py $(WRITE)
	$(BIN)/python benchmarks/memory.py $(WRITE)

# Fails on any warning, and if a notebook prints something new; the site loads nothing from other hosts
docs: $(READY)
	$(BIN)/python docs/notebooks/execute.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Documentation: site/index.html"

docs-serve: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# The wheel is built from the source archive, so a file missing there is missing in both
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/twine check --strict dist/*
	PYTHONPATH=tests $(BIN)/python -m distribution.archives dist

# Selected extras with another Python: make dist-check EXTRAS="lab serve" PYTHON=python3.13
dist-check: dist
	PYTHONPATH=tests $(BIN)/python -m distribution.venvs --python $(PYTHON) dist $(EXTRAS)

clean:
	rm -rf $(VENV) out site build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
