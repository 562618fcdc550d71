# What a person types. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARTIFACTS ?= $(CURDIR)/artifacts
HOME_DIR := $(CURDIR)/airflow_home
CONF ?= {}
export FEEDBENCH_ARTIFACTS ?= $(ARTIFACTS)

.DEFAULT_GOAL := help
.PHONY: help benchmark test ui stack-test history-test lint perf lock proto env clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# One stamp for each lock file: the environment is made anew when the lock changes, and never otherwise.
$(VENV)/.cpu: requirements/cpu.txt pyproject.toml
	@./requirements/install.sh $(PYTHON) $(VENV) requirements/cpu.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	@./requirements/install.sh $(PYTHON) $(VENV) requirements/dev.txt
	@touch $@ $(VENV)/.cpu

benchmark: $(VENV)/.cpu ## run the whole DAG once; CONF='{"source": "..."}' passes params
	@$(BIN)/python ops/once.py '$(CONF)'

test: $(VENV)/.dev ## the tests that need nothing but Python packages
	@$(BIN)/pytest -m "not stack and not browser"

ui: $(VENV)/.cpu ## Airflow's UI for one person, on this machine alone; Ctrl-C stops it
	@$(BIN)/python ops/ui.py

stack-test: $(VENV)/.dev ## docker-compose.yaml's services run natively, checked in a browser and through faults
	@$(BIN)/pytest -m "stack or browser"

history-test: $(VENV)/.dev ## false alarms and detections of the nightly judgement, counted on 2,000 series
	@$(BIN)/python perf/history_simulation.py

env: ## write .env for docker-compose.yaml, with random secrets
	@$(PYTHON) ops/env.py

lint: $(VENV)/.dev ## static checks: style, layers, documents
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

lock: ## write the lock files anew from pyproject.toml
	@./requirements/lock.sh
