# What a person types. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARTIFACTS ?= $(CURDIR)/artifacts
CONF ?= {}
export FEEDBENCH_ARTIFACTS ?= $(ARTIFACTS)

.DEFAULT_GOAL := help
.PHONY: help benchmark test ui stack-test history-test lint perf lock proto env clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# One stamp for each lock file: the environment is made anew when the lock changes, and never otherwise.
$(VENV)/.cpu: requirements/cpu.txt pyproject.toml
	@./requirements/install.sh $(PYTHON) $(VENV) requirements/cpu.txt
	@rm -f $(VENV)/.dev && touch $@

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

lint: $(VENV)/.dev ## static checks: style and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

perf: $(VENV)/.dev ## the project's own performance; ratios, side by side in one run, where there is a rival
	@$(BIN)/python perf/inspect_perf.py
	@$(BIN)/python perf/pipeline_perf.py
	@$(BIN)/python perf/history_perf.py
	@$(BIN)/python perf/airflow_perf.py

proto: $(VENV)/.dev ## generate trace/xplane_pb2.py from xplane.proto
	@$(BIN)/python -m grpc_tools.protoc -I include --python_out=include include/feedbench/trace/xplane.proto

clean: ## remove the environment and Airflow's home; artefacts stay
	rm -rf $(VENV) airflow_home

lock: ## write the lock files anew from pyproject.toml
	@./requirements/lock.sh
