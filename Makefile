# What a contributor runs. Every target works inside an activated virtual environment (or with PYTHON=path/to/python).
PYTHON ?= python

.PHONY: install test quick lint types floors format tables check

install:  ## the package in place, with all that its tests and checks need
	$(PYTHON) -m pip install -e ".[dev]"

test:  ## all tests
	$(PYTHON) -m pytest -n auto

quick:  ## the tests that need no data and train nothing
	$(PYTHON) -m pytest -n auto -m "not slow and not data and not oracle"

lint:  ## style, and the formatting that `make format` gives
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m pyright

floors:  ## a module imports only from the floors below it
	$(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()"

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

tables:  ## those of docs/mechanisms.md, below its last heading
	sed -i '/^## All mechanisms$$/q' docs/mechanisms.md && $(PYTHON) -m sortformer mechanisms --markdown >> docs/mechanisms.md

check: lint types floors test
