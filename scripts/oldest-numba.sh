#!/bin/sh
# The oldest Numba that is declared, in an environment of its own that is removed afterwards: the names of Numba that are used
# beyond its documentation, the cache of compiled code, and a scene whose tick is the engine's, run and repeated bit for bit.
set -eu
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^    "numba>=\([0-9.]*\),.*/\1/p' pyproject.toml)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
python="$room/venv/bin/python"
sed -E -e "s/^numba==.*/numba==$oldest/" -e '/^(llvmlite|numpy)==/d' constraints.txt > "$room/constraints.txt"
"${1:-python3}" -m venv "$room/venv"
"$python" -m pip install --quiet --disable-pip-version-check -c "$room/constraints.txt" -e . hypothesis pytest || {
    echo "Numba $oldest, the oldest that pyproject.toml declares, is not tested: pip could not install it" >&2
    exit 1
}
"$python" -c "import numba, sys; print('with Numba', numba.__version__); sys.exit(numba.__version__ != '$oldest')"
"$python" -m pytest -q tests/architecture/test_numba_range.py tests/architecture/test_kernels.py \
    tests/robustness/test_caches.py tests/library/test_outside_system.py
