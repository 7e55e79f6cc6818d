# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test oldest studies fuzz lint format docs site pictures dist wheel release system clean

demo: system $(VENV)/.installed-demo
	$(BIN)/palpo demo

# Three tiers: laws and units on all cores; what drives loops, devices and windows in real time and wants the machine
# to itself; whole studies and benches in their quick form, which `make studies` runs. What could notice another
# kind of processor is run again as two of them.
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

# The oldest Numba that is declared, in an environment that is made for it; `make test` runs the newest.
oldest: system $(VENV)/.installed-dev
	scripts/oldest-numba.sh $(PYTHON)

studies: PURPOSE = tests
studies: system $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(ALL_CORES) $(STUDIES)

# Mutated scenes, states, recordings, trajectories, meshes and problems, at ten times the depth of the tests.
fuzz: PURPOSE = tests
fuzz: system $(VENV)/.installed-dev
	PALPO_FUZZ=10 $(BIN)/python -m pytest $(ALL_CORES) tests/robustness/test_fuzz.py

# Installing makes links in palpo/, which give mypy, import-linter and editors the tree of packages that setup.py declares.
ROOMS := app benchmarks config haptics physics render studies

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-dev
	$(BIN)/python -m palpo.config.reference docs

# The site: every warning, a dead link among them, is an error.
site: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -q -n -W --keep-going -b html docs out/site

pictures: system $(VENV)/.installed-demo
	$(BIN)/python -m palpo.app.report.gallery docs/pictures

# A source archive and a wheel in dist/, built without a warning, judged, and tried in an empty environment.
dist: $(VENV)/.installed-release
	$(BIN)/python scripts/release.py dist

# A wheel with machine code, for this Python on Linux: what it brings need not be compiled where it is installed.
wheel: $(VENV)/.installed-release
	$(BIN)/python scripts/release.py wheel

# make release VERSION=0.2.0: everything that a release must pass, then the version, the changelog's heading, a commit and a tag.
release: $(VENV)/.installed-release
	$(BIN)/python scripts/release.py check "$(VERSION)"
	$(MAKE) lint test studies site
	$(BIN)/python scripts/release.py write "$(VERSION)"
	$(MAKE) dist wheel || { git checkout -- .; exit 1; }
	git commit --all --message "Release $(VERSION)"
	git tag --annotate "v$(VERSION)" --message "Palpo $(VERSION)"
	@echo "Palpo $(VERSION) is in dist/. To publish it: git push --follow-tags, then $(BIN)/twine upload dist/*"

system:
	@sh scripts/system-libs.sh $(PURPOSE)

$(VENV)/.installed-%: EXTRAS = window$(if $(filter dev release,$*),$(COMMA)touch$(COMMA)dev)$(if $(filter release,$*),$(COMMA)release)
COMMA := ,

$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11; call make PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	for room in $(ROOMS); do ln -sfn ../$$room palpo/$$room; done
	@touch $@

clean:
	rm -rf $(VENV) out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build
	find $(ROOMS) tests -name __pycache__ -prune -exec rm -rf {} +
