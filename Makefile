# Every target sets up what it needs; `make` alone tells what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-ec2 test chaos lint conformance test-oracle bench bench-oracle bench-sky docs lock clean

VENV ?= .venv
BIN := $(VENV)/bin
SHARED ?= ../shared
PYTHONS ?= /usr/bin/python3 python3.13 python3.12 python3.11 python3
MARKED := e2e or kill or lab or postgres or root
# Tests wait half of the time, for disks and for programs: three use two cores.
PROCESSES ?= 3
ARGS ?=

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed  ## .venv with everything in it; quick the second time

demo: setup  ## start the service on the local provider, run the example jobs, show them, stop it
	@$(BIN)/python docs/examples/demo.py $(ARGS)

demo-ec2: setup  ## the same through boto3 and SSH, on the cloud in a box (needs openssh-server)
	@$(BIN)/python -m tests.lab.demo $(ARGS)

test: setup  ## the whole suite: the quick tests, then the marked ones (real processes, kills, PostgreSQL, several users)
	@rc=0; \
	$(BIN)/pytest -q -n $(PROCESSES) --dist worksteal $(ARGS) || rc=$$?; \
	$(BIN)/pytest -q -m "$(MARKED)" -n $(PROCESSES) --dist loadfile --no-loadscope-reorder $(ARGS) || { last=$$?; [ $$last = 5 ] || rc=$$last; }; \
	exit $$rc

chaos: setup  ## all lives, kills and jobs that the suite takes fewer of, while everything goes wrong (half an hour)
	@SKYPURZA_TEST_JOBS=300 SKYPURZA_TEST_ROUNDS=200 SKYPURZA_TEST_CUT=30 SKYPURZA_TEST_KILLS=200 SKYPURZA_TEST_LIVES=20 \
		$(BIN)/pytest -q -m "kill or e2e" tests/lab/test_chaos.py tests/lab/test_rounds.py tests/lab/test_nodes.py \
		tests/lab/test_push.py tests/kill tests/sim $(ARGS)

lint: setup  ## ruff, formatting, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

conformance: setup  ## compare with recorded answers of Slurm (as root; ARGS goes to replay.py)
	@$(BIN)/python tests/conformance/run.py --shared "$(SHARED)" -- $(ARGS)

test-oracle: setup  ## option lines put to a real Slurm and to us, as root (ARGS: --lines N, --seed N)
	@$(BIN)/python tests/conformance/oracle.py --shared "$(SHARED)" $(ARGS)

bench: setup  ## budgets of the hot paths, as ratios within one run
	@rc=0; shopt -s nullglob; \
	for bench in tests/bench/bench_*.py; do [ "$$bench" != tests/bench/bench_oracle.py ] || continue; echo "== $$bench"; $(BIN)/python "$$bench" $(ARGS) || rc=1; done; \
	exit $$rc

bench-sky: setup  ## spz beside the real SkyPilot in one run (minutes; installs it in a folder of its own)
	@$(BIN)/python tests/bench/sky.py $(ARGS)

bench-oracle: setup  ## the commands beside a real Slurm's in one run, as root (minutes; ARGS: --jobs N)
	@SKYPURZA_SHARED="$(abspath $(SHARED))" $(BIN)/python tests/bench/bench_oracle.py $(ARGS)

docs: setup  ## the manual, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site && echo "site/index.html"

lock:  ## write requirements.lock anew from pyproject.toml
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	export PIP_CONFIG_FILE=/dev/null; unset PIP_FIND_LINKS PIP_CONSTRAINT PIP_EXTRA_INDEX_URL; \
	/usr/bin/python3 -m venv "$$work/venv"; "$$work/venv/bin/pip" install -q pip-tools; \
	"$$work/venv/bin/pip-compile" -q --no-config --extra dev --generate-hashes --allow-unsafe --strip-extras \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	    -o "$$work/requirements.lock" pyproject.toml; \
	{ echo "# Made by \`make lock\`: every package that setup installs, build and development tools included."; \
	  cat "$$work/requirements.lock"; } > requirements.lock

clean:  ## remove .venv and what the tools left
	rm -rf $(VENV) site build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/.packages: requirements.lock
	@python=; for name in $(PYTHONS); do \
	    if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; done; \
	[ -n "$$python" ] || { echo "SkyPurza needs Python 3.11 or newer; found none of: $(PYTHONS). Way out: PYTHONS=/path/to/python3 make setup" >&2; exit 1; }; \
	if ! [ -x $(BIN)/pip ]; then \
	    "$$python" -c 'import ensurepip, venv' 2>/dev/null || \
	        { echo "$$python cannot make environments. On Debian: apt-get install make python3-venv" >&2; exit 1; }; \
	    echo "Making $(VENV) with $$("$$python" --version)"; "$$python" -m venv --clear $(VENV); fi; \
	total=$$(grep -c == requirements.lock); echo "Installing $$total packages into $(VENV) (minutes the first time)"; \
	$(BIN)/pip install --disable-pip-version-check --no-input --progress-bar off --require-hashes -r requirements.lock | \
	    awk -v total=$$total '/^(Collecting|Requirement already)/ {n++; if (n % 20 == 0) {print "  " n " of " total; fflush()}}'
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.packages
	@$(BIN)/pip install --disable-pip-version-check --no-input -q --no-deps --no-build-isolation -e .
	@touch $@
