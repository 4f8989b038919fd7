# Every target makes its own .venv from a bare Python 3.11 or newer when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SLOW := .venv-slow
DATA ?=
DEMO ?= demo
OUT ?= runs/lfw
SECONDS ?= 30

.PHONY: help demo train test test-slow quality style reference bench fuzz hostile clean

help:
	@echo "make demo       synthetic faces -> trained model -> honest numbers -> two verdicts"
	@echo "make train      train on DATA=folder into OUT=run"
	@echo "make test       linters, types, import rules and the fast tests"
	@echo "make test-slow  the slow tests and those on Apache Beam, in an environment of their own"
	@echo "make fuzz       fuzz what reads other people's files, SECONDS=30 a target"
	@echo "make hostile    the corpus of hostile images through every way in"
	@echo "make bench      input pipelines and training step on DATA=folder"
	@echo "make quality    linters, types and import rules alone"
	@echo "make style      mend what the linters can"
	@echo "make reference  rewrite README's reference of commands from what they say"

$(VENV)/.runs: pyproject.toml facepairs/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "facepairs needs Python 3.11 or newer; try: make PYTHON=python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.develops: $(VENV)/.runs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.runs
	$(BIN)/python scripts/demo.py $(DEMO)

train: $(VENV)/.runs
	@test -n "$(DATA)" || { echo "usage: make train DATA=folder [OUT=run]" >&2; exit 2; }
	$(BIN)/facepairs train $(DATA) --out $(OUT)

test: quality
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

bench: $(VENV)/.runs
	@test -n "$(DATA)" || { echo "usage: make bench DATA=folder" >&2; exit 2; }
	$(BIN)/facepairs bench $(DATA)

# Apache Beam holds Pillow and protobuf back: what most users get is tested without it.
$(SLOW)/.develops: pyproject.toml facepairs/__init__.py
	$(PYTHON) -m venv $(SLOW)
	$(SLOW)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,beam]'
	@touch $@

test-slow: $(SLOW)/.develops
	$(SLOW)/bin/python -m pytest -q -m slow
	$(SLOW)/bin/python -m pytest -q tests/beam tests/cli/test_cache.py tests/pipeline/records/test_record_build.py

fuzz: $(VENV)/.develops
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	$(BIN)/python scripts/fuzz.py all --seconds $(SECONDS)

hostile: $(VENV)/.develops
	$(BIN)/python scripts/hostile_images.py

quality: $(VENV)/.develops
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

style: $(VENV)/.develops
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/.runs
	$(BIN)/python scripts/cli_reference.py

clean:
	rm -rf $(VENV) $(SLOW) $(DEMO)
