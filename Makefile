# Everything a person or a build does here. `make up` and `make test` set up what they need.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
JOBS ?= auto
BIN := .venv/bin
READY := .venv/ready

.PHONY: help setup up demo demo-twice test check lint types bench guards chaos screenshots

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv from the lock file (the others do so by themselves)

$(READY): pyproject.toml uv.lock tools/setup.py
	@$(PYTHON) tools/setup.py
	@touch $@

up: $(READY) ## Start the whole service; Ctrl-C stops it
	@exec $(BIN)/python manage.py up

demo: $(READY) ## Let an agent work on forty requests, beside `make up`
	@$(BIN)/python -m demo

demo-twice: $(READY) ## See one lost answer paid twice without the service, and once with it
	@$(BIN)/python -m demo.twice

test: $(READY) ## Run the tests on a PostgreSQL of their own
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

check: lint types ## Lint, types, layers, migrations
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/lint-imports

lint: $(READY) ## Check style and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY) ## Check types
	@$(BIN)/mypy .

bench: $(READY) ## Measure beside the peers; writes benchmarks/results/latest.json
	@$(BIN)/python -m benchmarks.run

guards: $(READY) ## Take each guard away and see its test go red
	@$(BIN)/python -m tests.guards

chaos: $(READY) ## Kill everything at random while runs go on; count what the far end did
	@$(BIN)/python -m tests.chaos

screenshots: $(READY) ## Take a picture of every page; writes docs/pages/
	@$(BIN)/python -m tests.browser.screenshots
