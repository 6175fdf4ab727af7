# Everything starts here: make demo, make test.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PYTHON

BIN := .venv/bin
PYTEST_ARGS ?=
BENCH_ARGS ?=

.PHONY: help setup demo test soak bench lock clean

help: ## Say what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | \
		while IFS=$$'\t' read -r target text; do printf '  make %-7s %s\n' "$$target" "$$text"; done

setup: ## Install what is missing; does nothing when all is there (PYTHON=... chooses a Python)
	@bash scripts/setup.sh

demo: setup ## Grade the example submissions
	@bash scripts/demo.sh

test: setup ## Run the project's tests, then the hidden tests on the solution
	@bash scripts/setup-tests.sh
	@bash scripts/test.sh $(PYTEST_ARGS)
	$(BIN)/python -m pytest tests/hidden/qkv $(PYTEST_ARGS)

soak: setup ## Grade 500 submissions, a third of them attacks, and kill what grades them (SOAK_SIZE, SOAK_KILLS, SOAK_SEED)
	@bash scripts/soak.sh -s $(PYTEST_ARGS)

bench: setup ## Measure how fast grading is, beside other graders; writes docs/benchmarks.md (half an hour)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

lock: ## Pin the newest allowed versions again (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock
	uv pip compile benchmarks/requirements-peers.in --constraint requirements.lock --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--quiet --output-file benchmarks/requirements-peers.txt

clean: ## Remove the environment and everything that was built
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
