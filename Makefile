# PYTHON=python3.12 chooses the interpreter of .venv; ARGS goes to pytest or the demo, e.g. make test ARGS="-k reorder".
# HOST=skylake_sp tests as if on such a machine, whatever this one is; asmdnn/planning/machine.py has the names.
.PHONY: venv demo test test-all check clean

python := .venv/bin/python
pytest := $(if $(HOST),ASMDNN_MACHINE=$(HOST)) $(python) -m pytest

venv:
	@sh tools/setup.sh

demo: venv
	$(python) tools/demo.py $(ARGS)

test: venv
	$(pytest) -m "not slow" $(ARGS)

test-all: venv
	$(pytest) $(ARGS)

check: venv
	$(python) -m ruff check
	$(python) -m mypy

clean:
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
