# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint format docs system clean

demo: system $(VENV)/.installed-demo
	$(BIN)/palpo run wire --duration 8 --report out/demo

# Those that drive loops, windows and whole studies want the machine to themselves.
ALONE := tests/realtime tests/scenes
TOGETHER := $(filter-out $(ALONE) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

test: PURPOSE = tests
test: system $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal $(TOGETHER)
	$(BIN)/python -m pytest $(ALONE)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-dev
	$(BIN)/python -m config.reference docs/scenes.md

system:
	@sh scripts/system-libs.sh $(PURPOSE)

$(VENV)/.installed-%: EXTRAS = window$(if $(filter dev,$*),$(COMMA)touch$(COMMA)dev)
COMMA := ,

$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11; call make PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find app config haptics physics render tests -name __pycache__ -prune -exec rm -rf {} +
