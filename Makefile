# Every target needs only Python 3.11 or later; `make test` also uses Chromium where there is one.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: venv lab demo day test notebooks bench prove site constraints lint clean

venv: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

lab: venv
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

demo: venv
	$(BIN)/python -m desk demo

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest

constraints: venv
	( echo "# Exact versions that make venv installs. Written by make constraints; names no host."; $(BIN)/pip freeze --exclude-editable ) > constraints.txt

clean:
	rm -rf .venv .desk notebooks/.desk .cache site
