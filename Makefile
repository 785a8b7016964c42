# make demo: install, ask the model that comes with the package, train one, measure it, check its answers, list missing facts
# make explore: ask the demo's model in the browser, and see why (PORT=8000)
# make test: install and run all tests
# make sbom: list what the package runs with, as CycloneDX JSON, build/sbom.cdx.json
# make docs: build the documentation, docs/_build/html/index.html

PYTHON := $(shell command -v python3.11 || command -v python3)
CONSTRAINTS := constraints.txt
BIN := .venv/bin
DEMO := runs/demo
PORT := 8000

.DEFAULT_GOAL := help
.PHONY: help demo explore test docs sbom use install postgresql chromium style types kernels

help:
	@sed -n 's/^# make/make/p' Makefile

# To use the package, and to test it. Again only when the package's needs or the pinned versions changed.
use: .venv/installed-serve
install: .venv/installed-test

.venv/installed-%: pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install python3" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[$*]'
	@touch $@

demo: use
	@rm -rf $(DEMO)
	@BIN=$(BIN) RUN=$(DEMO) sh examples/demo.sh

# Before the demo was run, the model that comes with the package is asked.
explore: use
	@$(BIN)/dpmpn serve $$(test -e $(DEMO)/best.json && echo $(DEMO) || echo demo) --port $(PORT)

# One test reads facts from a PostgreSQL that it starts itself.
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y postgresql >/dev/null; } || \
	echo "PostgreSQL is not installed: the tests that start one will be skipped"

# Some tests open the page of an explanation in a browser.
chromium:
	@command -v chromium >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y chromium >/dev/null; } || \
	echo "Chromium is not installed: the tests that open a page in it will be skipped"

# A process of tests for each core; each has a stretch of the files, and one that is done takes from another's end.
test: install postgresql chromium
	@$(MAKE) --no-print-directory -j3 style types kernels
	$(BIN)/python -m pytest -n auto --dist worksteal

style: install
	$(BIN)/ruff check -q .
	$(BIN)/ruff format -q --check .

types: install
	$(BIN)/mypy --no-error-summary

# Compiled once, they are not compiled again by each process of the tests.
kernels: install
	$(BIN)/python tests/warm_kernels.py

# A warning, such as a link that leads nowhere, is an error.
docs: install
	$(BIN)/python -m sphinx -W --keep-going -E -q -b html -c docs -d docs/_build/doctrees . docs/_build/html
	@echo "docs/_build/html/index.html"

sbom: install
	@mkdir -p build
	$(BIN)/python .ci/sbom.py build/sbom.cdx.json
	@echo "build/sbom.cdx.json"
