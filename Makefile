# PYTHON=python3.12 chooses the interpreter of .venv; ARGS goes to pytest or the demo, e.g. make test ARGS="-k reorder".
.PHONY: venv demo test test-all check clean

python := .venv/bin/python

venv:
	@sh tools/setup.sh

demo: venv
	$(python) tools/demo.py $(ARGS)

test: venv
	$(python) -m pytest -m "not slow" $(ARGS)

test-all: venv
	$(python) -m pytest $(ARGS)

check: venv
	$(python) -m ruff check
	$(python) -m mypy

clean:
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
