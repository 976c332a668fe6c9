# Every target first makes .venv and installs what it needs; nothing is installed again until pyproject.toml changes.
#   make demo   the tour          make test   the tests           make lint   style, types, import order
#   make soak   the long tests    make bench  the benchmarks      make clean  removes all that was made
# PYTHON=/path/to/python3.12 chooses the interpreter (3.11 or later).

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)
comma := ,

# A venv whose Python is gone (the system has another one now) goes too, with the stamps in it.
$(shell test ! -d $(VENV) || test -x $(BIN)/python || rm -rf $(VENV))

.PHONY: all demo test lint soak bench clean
.DEFAULT_GOAL := all

all: $(VENV)/.installed
	@echo "kvtier is ready: $(BIN)/kvtier --help, or make demo"

demo: $(VENV)/.installed
	@$(BIN)/kvtier demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n auto $(ARGS)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -m "soak or not soak" --hypothesis-profile=soak $(ARGS)

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@python=; \
	for candidate in $(CANDIDATES); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: kvtier needs Python 3.11 or later, and none of these is: $(CANDIDATES); name one with make PYTHON=/path/to/python3.12" >&2; exit 3; \
	fi; \
	if ! $$python -c 'import venv, ensurepip' 2>/dev/null; then \
	  echo "error: $$python cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv), then run make again" >&2; exit 3; \
	fi; \
	if ! log=$$($$python -m venv --clear $(VENV) 2>&1); then \
	  rm -rf $(VENV); \
	  echo "error: $$python -m venv $(VENV) failed: $$(printf '%s' "$$log" | tail -n 1)" >&2; exit 3; \
	fi

# $(call install,WHAT): installs the checkout editable, with extras; one line says what to do where that fails.
define install
	@echo "installing $(1) into $(VENV)"
	@log=$(VENV)/install.log; \
	if ! PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_RETRIES=$${PIP_RETRIES:-2} $(BIN)/python -m pip install -q -e '$(1)' >$$log 2>&1; then \
	  if grep -qiE 'connection|temporary failure|no matching distribution|max retries|timed out|unreachable|resolution' $$log; then \
	    echo "error: pip cannot get kvtier's dependencies: check the network, or name a mirror with PIP_INDEX_URL, then run make again (pip's words: $$log)" >&2; \
	  else \
	    echo "error: pip could not install kvtier: $$(grep -iE '^ *(error|fatal)' $$log | tail -n 1) (all of pip's words: $$log)" >&2; \
	  fi; \
	  exit 3; \
	fi
	@touch $@
endef

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,.)

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(call install,.[test])
	@touch $(VENV)/.installed

$(VENV)/.installed-lint: pyproject.toml | $(BIN)/python
	$(call install,.[test$(comma)lint])
	@touch $(VENV)/.installed $(VENV)/.installed-test
