# Every target sets up what it needs, works alone and twice, and leaves no container and no engine of its own behind.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test check lint versions escape coverage conformance bench bench-faults engines image lock clean venv \
  types-mypy types-pyright

BIN := .venv/bin
# The tests start hundreds of processes: what they import is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# Seconds of coverage-guided fuzzing in `make escape`; the grammar makes ten scripts per property for each.
FUZZ_S ?= 20
export FUZZ_S
# Finds, installs or starts a container engine, runs the command, stops the engine if it was started here
# (BASCULE_KEEP_ENGINE=1 keeps it); then the guest image, which is built only when its content changed.
GUEST := .ci/with-engine .ci/with-image

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One process for each core, at most four; the tests of one file stay together, because they share fixtures, and
# the files keep their order: by number of tests the few long ones would come last, when one core has nothing left.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# A test that fails is run once more and shown as RERUN; more than three such fail the run (docs/decisions/077).
AGAIN := --reruns 1 --reruns-delay 1 -rfEsR

demo: venv ## Run a model-style script on real input, in a real container
	@$(GUEST) examples/demo

test: venv ## Run every test (sets up engine and image first)
	@.ci/with-chromium $(GUEST) $(BIN)/pytest $(PARALLEL) $(AGAIN) tests

check: lint ## Check format, lint, types, and run the unit tests; no engine needed
	@$(BIN)/pytest -q $(PARALLEL) -m "not engine" tests/unit

lint: venv ## Check format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j2 --output-sync=target types-mypy types-pyright

types-mypy:
	@$(BIN)/mypy sandbox bridge tools tests

types-pyright:
	@$(BIN)/pyright --pythonpath $(BIN)/python

versions: venv ## Run the guest's tests, the crawl and the attacks under Debian's Python 3.13 and 3.14 (root, mmdebstrap)
	@.ci/versions

escape: venv ## Run the attack corpus against each wall alone; FUZZ_S=60 sets the seconds of fuzzing
	@BASCULE_ALL_ATTACKS=1 BASCULE_GRAMMAR_EXAMPLES=$$((FUZZ_S * 10)) $(GUEST) $(BIN)/pytest tests/escape tests/property \
	  tests/integration/test_oci_rootless.py
	@$(BIN)/python -m tests.escape.fuzz_compiler $(FUZZ_S)

coverage: venv ## Measure branches; guest and wire must be at 100 %, the rest is printed
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q $(PARALLEL) -m "not engine" tests/unit tests/property
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --omit "*/bascule/guest/*,*/bascule/wire/*"
	@$(BIN)/coverage report --include "*/bascule/guest/*,*/bascule/wire/*" --fail-under 100

conformance: venv ## Run model-written scripts, all tasks of two public benchmarks, and a real small model
	@BASCULE_ALL_TASKS=1 BASCULE_LIVE_MODEL=1 BASCULE_OPENAPI_DOCUMENTS=50 BASCULE_AGENT_EXAMPLES=200 $(GUEST) $(BIN)/pytest tests/conformance \
	  tests/unit/models/test_agent_properties.py tests/integration/test_mcp_tau2.py

bench: venv ## Measure floors, peers and Bascule in turn, then tokens; tables, verdicts, JSON under artifacts/
	@$(GUEST) $(BIN)/python -m tests.bench
	@$(BIN)/python -m tests.bench.stub_tokens
	@$(BIN)/python -m tests.bench.openapi_import
	@$(GUEST) $(BIN)/python -m tests.bench.tokens
	@$(BIN)/python -m tests.bench.console_load

bench-faults: venv ## Kill hosts at 20,000 points (DEATHS=n), then guests, hosts and an engine under 1,000 runs (root)
	@$(BIN)/python -m tests.faults.random_runs $(or $(DEATHS),20000)
	@$(GUEST) $(BIN)/python -m tests.soak

engines: venv ## Run the containers' tests with engines of other kinds: remapped ids, rootless (root, docker.io)
	@BASCULE_ENGINES=1 $(GUEST) $(BIN)/pytest -q tests/integration/test_engines.py

image: venv ## Build the guest image
	@.ci/with-engine $(BIN)/bascule image build

lock: ## Write requirements.lock again from pyproject.toml (needs uv)
	@uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock

clean: ## Remove everything that make made in this folder
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis artifacts build dist .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@.ci/venv
