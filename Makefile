# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test studies lint format docs pictures system clean

demo: system $(VENV)/.installed-demo
	$(BIN)/palpo demo

# Three tiers: laws and units on all cores; what drives loops, devices and windows in real time and wants the machine
# to itself; whole studies and benches in their quick form, which `make studies` runs for a release. What could notice
# another kind of processor is run again as two of them.
ALONE := tests/realtime
STUDIES := tests/studies
TOGETHER := $(filter-out $(ALONE) $(STUDIES) tests/__pycache__ tests/libhd,$(patsubst %/,%,$(wildcard tests/*/)))
PORTABLE = $(shell grep -rl mark.portable $(TOGETHER) --include='*.py')
ALL_CORES := -n auto --dist worksteal

test: PURPOSE = tests
test: system $(VENV)/.installed-dev
	$(BIN)/palpo compile
	$(BIN)/python -m pytest $(ALL_CORES) $(TOGETHER)
	$(BIN)/python -m pytest $(ALONE)
	OPENBLAS_CORETYPE=Haswell $(BIN)/python -m pytest $(ALL_CORES) -m portable $(PORTABLE)
	OPENBLAS_CORETYPE=Prescott $(BIN)/python -m pytest $(ALL_CORES) -m portable $(PORTABLE)

studies: PURPOSE = tests
studies: system $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(ALL_CORES) $(STUDIES)

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

pictures: system $(VENV)/.installed-demo
	$(BIN)/python -m app.gallery docs/pictures

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
