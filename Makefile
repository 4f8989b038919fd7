# Every target makes its own .venv from a bare Python 3.11 or newer when it is missing.
PYTHON ?= python3
VENV := .venv
SLOW := $(VENV)-slow
TYPES := $(VENV)-types
PYTHONS ?= python3.11 python3.12 python3.13
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
SLOW_BIN := $(SLOW)/$(SCRIPTS)
TYPES_BIN := $(TYPES)/$(SCRIPTS)
STRESS := PYTHONPATH=tests:tests/helpers $(BIN)/python -m stress
# Modules are compiled when they are imported first: of most packages few ever are.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile
DATA ?=
DEMO ?= demo
OUT ?= runs/lfw
SECONDS ?= 30
KILLS ?= 20
SEED ?= 0

.PHONY: help demo train test test-pythons coverage test-slow quality style reference docs bench fuzz hostile kill \
	mutants types release clean

help:
	@echo "make demo       draw people, compare pipelines, train, measure the errors, verify two pairs"
	@echo "make train      train on DATA=folder into OUT=run"
	@echo "make test       linters, types, import rules and the fast tests"
	@echo "make test-pythons  demo and test for each of PYTHONS, each in an environment of its own"
	@echo "make coverage   the fast tests, and which lines they ran: htmlcov/index.html"
	@echo "make test-slow  the slow tests and those on Apache Beam, in an environment of their own"
	@echo "make fuzz       fuzz the readers of untrusted files, SECONDS=30 per target"
	@echo "make hostile    feed the corpus of hostile images to every way in"
	@echo "make kill       stop every command KILLS=20 times, check what it leaves and go on"
	@echo "make mutants    which of 160 random faults, of SEED, the fast tests find; half an hour"
	@echo "make bench      measure input pipelines and the training step on DATA=folder"
	@echo "make quality    linters, types and import rules alone"
	@echo "make style      fix what the linters can fix"
	@echo "make reference  rewrite docs/reference from help, settings and docstrings"
	@echo "make docs       build the documentation into site/"
	@echo "make release    VERSION=x.y.z: test, build and check wheel and sdist into dist/, commit, tag"

# The package and what it needs; a stamp file, because a folder's time changes with its content.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "facepairs needs Python 3.11 or newer; try: make PYTHON=python3.11" >&2; exit 2; }
$(PYTHON) -m venv $(VENV)
$(BIN)/python -m pip install $(PIP_OPTIONS) -e '.[$(1)]'
endef

$(VENV)/.installed: pyproject.toml facepairs/__init__.py
	$(call install,train)
	@touch $@

# The extra train is in dev.
$(VENV)/.installed-dev: pyproject.toml facepairs/__init__.py
	$(call install,dev)
	@touch $(VENV)/.installed $@

demo: $(VENV)/.installed
	$(BIN)/facepairs demo --out $(DEMO)

train: $(VENV)/.installed
	@test -n "$(DATA)" || { echo "usage: make train DATA=folder [OUT=run]" >&2; exit 2; }
	$(BIN)/facepairs train $(DATA) --out $(OUT)

# Otherwise every process that tests start, and pytest itself, compiles our modules again.
test coverage: export PYTHONDONTWRITEBYTECODE =

test: quality
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Each in environments of its own, .venv-PYTHON; the demo's folder is made anew.
test-pythons:
	@set -e; for python in $(PYTHONS); do \
		name=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "== Python $$name"; rm -rf $(DEMO)-$$name; \
		$(MAKE) PYTHON=$$python VENV=$(VENV)-$$name DEMO=$(DEMO)-$$name demo test; \
		rm -rf $(DEMO)-$$name; \
	done

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --cov --cov-report=html --cov-report=

bench: $(VENV)/.installed
	@test -n "$(DATA)" || { echo "usage: make bench DATA=folder" >&2; exit 2; }
	$(BIN)/facepairs bench $(DATA)

# Apache Beam needs old versions of Pillow and protobuf; the other tests use what most users get.
$(SLOW)/.installed-dev: pyproject.toml facepairs/__init__.py
	$(PYTHON) -m venv $(SLOW)
	$(SLOW_BIN)/python -m pip install $(PIP_OPTIONS) -e '.[dev,beam,jax]'
	@touch $@

test-slow: $(SLOW)/.installed-dev
	$(SLOW_BIN)/python -m pytest -q -m slow
	$(SLOW_BIN)/python -m pytest -q tests/beam tests/cli/test_cache.py

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m pip install $(PIP_OPTIONS) -e '.[fuzz]'
	$(STRESS).fuzz all --seconds $(SECONDS)

hostile: $(VENV)/.installed-dev
	$(STRESS).hostile_images

kill: $(VENV)/.installed-dev
	$(STRESS).kill --out runs/kill --kills $(KILLS)

# mypy's result depends on the versions of what it reads, so these are pinned.
$(TYPES)/.installed: tests/types.txt
	$(PYTHON) -m venv $(TYPES)
	$(TYPES_BIN)/python -m pip install $(PIP_OPTIONS) -r tests/types.txt
	@touch $@

types: $(TYPES)/.installed
	$(TYPES_BIN)/mypy

mutants: $(VENV)/.installed-dev
	$(STRESS).mutants --count 160 --seed $(SEED)

# Types are checked while pip installs the rest.
quality:
	@$(MAKE) --no-print-directory -j2 $(VENV)/.installed-dev types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

style: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/.installed-dev
	$(BIN)/python scripts/release/reference.py

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install $(PIP_OPTIONS) -e '.[docs]'
	@touch $@

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release:
	@test -n "$(VERSION)" || { echo "usage: make release VERSION=x.y.z" >&2; exit 2; }
	$(MAKE) test
	$(BIN)/python -m pip install $(PIP_OPTIONS) -e '.[release]'
	$(BIN)/python scripts/release/release.py $(VERSION)

clean:
	rm -rf $(VENV) $(VENV)-* $(DEMO) $(DEMO)-3.*
