# Everything runs in .venv, which the first target that needs it makes. `make help` lists the targets.

PYTHON ?= python3
ARGS ?=                                  # overrides for the stages, e.g. make sweep ARGS="trial.runs=10"
METHODS ?=                               # narrows the sweep, e.g. METHODS="eta2=0.5,2.0"
ROOT ?= .
export ARGS METHODS
# make cannot name a target with a space in it; the folder of the project itself may have some
ifneq ($(words $(ROOT)),1)
$(error ROOT must be the path of a folder without spaces, got '$(ROOT)')
endif

VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
OUT := $(ROOT)/outputs
STAMPS := $(OUT)/.stamps
DATA := $(STAMPS)/data
SWEEP := $(STAMPS)/sweep
REPORT := $(OUT)/report/index.html
SETTINGS := $(STAMPS)/settings

CONF := $(shell find conf -name '*.yaml')
CORE := $(shell find src pipelines -name '*.py' -not -path '*/report/*' -not -name report.py -not -name ui.py)
DRAWING := $(shell find src/robust_sgld/report pipelines/report.py -type f -not -path '*/__pycache__/*')

.DEFAULT_GOAL := help
.PHONY: help setup data train tune sweep report reproduce smoke ui sync rerun bench test chaos lint types format check audit lock clean FORCE

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-10s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with the pinned versions

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
# on all cores, which pip does not; some packages carry templates that are no Python and fail
	@$(RUN) -m compileall -q -j 0 $(VENV)/lib > $(VENV)/compile.log 2>&1 || true
# a first trial, which leaves the compiled kernels in their cache
	@$(RUN) -c "import robust_sgld as rs; problem = rs.SigmoidRegression(); \
	  [rs.run_trial(s, rs.paper_dataset(), runs=1, n_iter=2) for s in (rs.SGLD(problem), rs.RobustSGLD(problem, rs.DRO()))]"
	@touch $@

# The overrides are a dependency too: other ARGS, another run.
$(SETTINGS): FORCE
	@mkdir -p $(STAMPS)
	@printf '%s\n' "$$ARGS $$METHODS" | cmp -s - $@ || printf '%s\n' "$$ARGS $$METHODS" > $@

data: $(DATA) ## make the data set
$(DATA): $(CONF) src/robust_sgld/data.py $(SETTINGS) | $(READY)
	$(RUN) -m pipelines.data 'root=$(ROOT)' $(ARGS)
	@touch $@

train: $(DATA) ## one trial: make train ARGS="sampler=sgld"
	$(RUN) -m pipelines.train 'root=$(ROOT)' $(ARGS)

tune: $(DATA) ## choose eta2 and delta by held-out losses: make tune ARGS="tune.trials=30"
	$(RUN) -m pipelines.tune root=$(ROOT) $(ARGS)

sweep: $(SWEEP) ## the paper's six η2 and vanilla SGLD, 100 runs each
# Without its database nothing is done, whatever the stamp says; trials that are complete are skipped.
$(SWEEP): $(DATA) $(CONF) $(CORE) $(SETTINGS) $(if $(wildcard $(ROOT)/mlruns/mlflow.db),,FORCE) | $(READY)
	$(RUN) -m pipelines.train 'root=$(ROOT)' +experiment=table2 $(METHODS) $(ARGS)
	@touch $@

report: $(REPORT) ## tables, figures and outputs/report/index.html
$(REPORT): $(SWEEP) $(DRAWING) | $(READY)
	$(RUN) -m pipelines.report 'root=$(ROOT)' $(ARGS)

reproduce: $(REPORT) ## data, sweep and report: the paper's Table 2 and Figures 1 and 2
	@echo "The report is $(REPORT)"

smoke: ## the same chain on tiny trials of three methods, under outputs/smoke
	@$(MAKE) --no-print-directory reproduce ROOT=outputs/smoke ARGS=trial=smoke METHODS=eta2=0.5,2.0

ui: $(READY) ## compare the trials in MLflow, on 127.0.0.1
	$(RUN) -m pipelines.ui 'root=$(ROOT)' $(ARGS)

sync: $(READY) ## deliver finished trials that a tracking server did not take
	$(RUN) -m pipelines.sync 'root=$(ROOT)' $(ARGS)

rerun: $(READY) ## run a recorded trial again: make rerun ID=<MLflow run id>
	$(RUN) -m pipelines.rerun 'run_id=$(ID)' 'root=$(ROOT)' $(ARGS)

bench: $(READY) ## speed and memory, as ratios, to outputs/bench.json
	$(RUN) -m benchmarks

test: $(READY) ## all tests
	$(RUN) -m pytest -n auto --maxprocesses 4 --dist loadfile

chaos: $(READY) ## kill, fill, freeze: 50 kills and other faults on real trials, and what is left of them
	$(RUN) -m tests.chaos

lint: $(READY) ## ruff: rules and format
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(READY) ## mypy
	$(RUN) -m mypy

format: $(READY) ## let ruff mend what it can
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

check: lint types test ## lint, types and tests, as CI runs them

audit: $(READY) ## check the pinned versions against the public advisories
	$(RUN) -m pip install --quiet pip-audit
	$(RUN) -m pip_audit --requirement constraints.txt --no-deps --disable-pip

lock: $(READY) ## pin the versions of today into constraints.txt
	$(RUN) -m pip install --quiet pip-tools
	$(RUN) -m piptools compile --quiet --upgrade --all-extras --strip-extras --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file $(VENV)/constraints.txt pyproject.toml
	@{ head -n 1 constraints.txt; sed -e '/^#/d' -e '/^$$/d' -e 's/+cpu//' $(VENV)/constraints.txt; } > $(VENV)/locked
	@mv $(VENV)/locked constraints.txt

clean: ## remove outputs, caches and .venv; the tracking store in mlruns/ stays
	rm -rf outputs $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
