# Two commands do the work: `make demo` and `make test`.  Each sets itself up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check facts clean

demo: $(VENV)/.installed
	@if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then \
	  $(BIN)/migrate review samples/vector_add/case.toml; \
	else \
	  $(BIN)/migrate diff samples/vector_add/case.toml; \
	fi

test: export HYPOTHESIS_PROFILE = ci
test: $(VENV)/.installed-dev check
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

facts: $(VENV)/.installed
	$(BIN)/python -m migrate.facts build
	$(BIN)/python -m migrate.rules.pages build

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps depend on pyproject.toml alone: the install is editable, so that a change of
# the source needs no new one.  pip compiles what it copies, but not an editable install; cold
# starts would compile every module where the environment forbids writing byte code.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/python -m compileall -q migrate
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q migrate
	@touch $@ $(VENV)/.installed
