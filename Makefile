# PYTHON=python3.12 chooses the interpreter of .venv; ARGS goes to pytest or a demo, e.g. make test ARGS="-k reorder".
# BOCHS=1 runs AVX-512 code on an emulated CPU where this one has none; docs/proving.md says what that needs.
# HOST=skylake_sp tests as if on such a machine, whatever this one is; asmdnn/planning/machine.py has the names.
# Tests run in a process a core (JOBS); their OpenMP threads sleep while they wait, since others need the cores.
.PHONY: venv models demo demo-kernels demo-train test test-all check docs clean

python := .venv/bin/python
JOBS := auto
pytest := $(if $(HOST),ASMDNN_MACHINE=$(HOST)) OMP_WAIT_POLICY=passive $(python) -m pytest -n $(JOBS) --dist=worksteal $(if $(BOCHS),-p tests.bochs.plugin)

# Whatever the caller's environment says: every process that a test starts would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

venv:
	@sh tools/setup.sh

# Without them their tests are skipped.
models: venv
	-@$(python) -m examples.models

demo: venv
	$(python) -m tools.demo $(ARGS)

demo-kernels: venv
	$(python) -m tools.demo_kernels $(ARGS)

demo-train: venv
	$(python) -m examples.models
	$(python) -m examples.train_digits

test: models
	$(pytest) -m "not slow" $(ARGS)

test-all: models
	$(pytest) $(ARGS)

check: venv
	$(python) -m ruff check
	$(python) -m mypy

docs: venv # build/site: the pages, an API reference, a search; needs nothing of the network once mkdocs is installed
	@$(python) -c 'import mkdocs, material, mkdocstrings, mkdocs_jupyter' 2>/dev/null || $(python) -m pip install -q --constraint constraints.txt -e ".[docs]"
	$(python) -m tools.site

clean:
	rm -rf .venv build dist .hypothesis .cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
