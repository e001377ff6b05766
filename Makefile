# make demo   set up and run the main job on the carried heart-failure data; writes demo.html
# make test   set up and run the tests
# make slow   the tests that make test leaves out
# make other  the tests of numbers and of docs pages, rounded as another processor does
# make lint   ruff and mypy
# make bench  speed ratios with their floors
# make docs   the docs site, into docs/_build/html
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Each worker begins with half of the tests, file by file, so that what a file fits is fitted once.
PYTEST := -m pytest -n 2 --dist worksteal
NUMERIC := $(addprefix tests/,baselines deployed experiments fitting promises scoring search stages) $(wildcard tests/test_*.py)

.PHONY: demo test slow other lint bench docs clean

.venv/run.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[cli]'
	@touch $@

.venv/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	@touch $@ .venv/run.stamp

# Two workers on two cores: threads of BLAS and OpenMP would only wait for each other.
test slow other: export OMP_NUM_THREADS := 1
test slow other: export OPENBLAS_NUM_THREADS := 1

demo: .venv/run.stamp
	@$(BIN)/emsco demo --report demo.html

test: .venv/dev.stamp
	$(BIN)/python $(PYTEST) -m "not slow"

slow: .venv/dev.stamp
	$(BIN)/python $(PYTEST) -m slow

other: .venv/dev.stamp
	$(BIN)/python -m tests.other_processor $(PYTEST) -m "page or not slow" -k "not conventions" $(NUMERIC)

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

docs: .venv/dev.stamp
	$(BIN)/python -m sphinx -W --keep-going -E -b html docs docs/_build/html

clean:
	rm -rf .venv docs/_build docs/generated
