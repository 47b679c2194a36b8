# Everything from a fresh clone: `make demo` and `make test` need Python with its headers, and a C compiler. The rest comes from PyPI
# into a virtual environment of our own, one for each CPython version.
#
#   make demo | test | lint | sanitize | bench | wheel | clean        PYTHON=python3.12 chooses the interpreter
#   make test TESTS="tests/cli -k argv" JOBS=2                        which tests, on how many processes

PYTHON ?= python3
TESTS ?= tests
JOBS ?= 1

TAG := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ifeq ($(TAG),)
$(error PYTHON=$(PYTHON) does not run; name an interpreter: make PYTHON=/path/to/python3.12)
endif

VENV := .venv-$(TAG)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
XDIST := $(if $(filter-out 1,$(JOBS)),-n $(JOBS))

C_FILES := $(wildcard csrc/*.c csrc/*.h)
SOURCES := $(shell find src csrc -type f \( -name '*.py' -o -name '*.pyi' -o -name 'py.typed' -o -name '*.[ch]' -o -name '*.def' \))

.PHONY: demo test lint sanitize bench wheel clean
.DELETE_ON_ERROR:

# ---- building: stamps make the second call quick -------------------------------------------------------------

$(VENV)/.created:
	@echo "== virtual environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.build-tools: $(VENV)/.created pyproject.toml
	@echo "== what tierup builds with and runs on"
	$(PIP) install $$($(BIN)/python tools/requirements.py build run)
	touch $@

$(VENV)/.installed: $(VENV)/.build-tools $(SOURCES) CMakeLists.txt pyproject.toml README.md LICENSE
	@echo "== tierup, built for CPython $(TAG)"
	$(PIP) install --no-build-isolation --no-deps --force-reinstall .
	touch $@

$(VENV)/.test-tools: $(VENV)/.build-tools
	@echo "== what the tests need"
	$(PIP) install $$($(BIN)/python tools/requirements.py test lab)
	touch $@

$(VENV)/.lint-tools: $(VENV)/.build-tools
	@echo "== what the checks need"
	$(PIP) install $$($(BIN)/python tools/requirements.py lint)
	touch $@

$(VENV)/.bench-tools: $(VENV)/.build-tools
	@echo "== what the benchmarks compare with"
	$(PIP) install $$($(BIN)/python tools/requirements.py bench)
	touch $@

# ---- using ---------------------------------------------------------------------------------------------------

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed $(VENV)/.test-tools
	$(BIN)/python -m pytest $(XDIST) $(TESTS)

lint: $(VENV)/.lint-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)

sanitize: $(VENV)/.test-tools
	tools/sanitize.sh $(BIN)/python $(TESTS)

bench: $(VENV)/.installed $(VENV)/.bench-tools
	$(BIN)/python benchmarks/dispatch.py
	$(BIN)/python benchmarks/chains.py
	$(BIN)/python benchmarks/latency.py
	$(BIN)/python benchmarks/startup.py

wheel: $(VENV)/.build-tools
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .

clean:
	rm -rf build dist .venv-* src/tierup/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
