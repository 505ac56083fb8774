# The commands a person, a teacher and CI use. `make venv` first; every other target sees to it.
# ARGS goes to day, bench, prove and site as it is: make prove ARGS="--desk support --size 1" is a small one.
PYTHON ?= python3
BIN := .venv/bin
NBVAL := -p no:cacheprovider -c /dev/null --rootdir notebooks --nbval --nbval-current-env \
	--nbval-sanitize-with tests/notebooks/sanitize.cfg --nbval-cell-timeout 60 --durations=0 --durations-min=1

.PHONY: venv lab demo day test lint notebooks bench prove site coverage wheelhouse constraints clean

venv: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

lab: venv
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

demo: venv
	$(BIN)/python -m desk demo

day: venv
	$(BIN)/python -m desk delivery --day $(ARGS)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/codespell

test: lint
	$(BIN)/python -m pytest

coverage: venv
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'not browser' --ignore tests/notebooks
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

notebooks: venv
	$(BIN)/python -m pytest $(NBVAL) notebooks

bench: venv
	$(BIN)/python -m bench.stack $(ARGS)

prove: venv
	$(BIN)/python -m desk.proving $(ARGS)

site: venv
	$(BIN)/python -m desk.course.site $(ARGS)

# Everything make venv installs, as files for a room without a network: see notebooks/README.md.
wheelhouse: venv
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check -c constraints.txt -w wheelhouse \
	  '.[test]' hatchling editables
	rm -f wheelhouse/laser_desk-*.whl

constraints: venv
	( echo "# Exact versions that make venv installs. Written by make constraints; names no host."; \
	  $(BIN)/pip freeze --exclude-editable ) > constraints.txt

clean:
	rm -rf .venv .desk notebooks/.desk .cache site wheelhouse
