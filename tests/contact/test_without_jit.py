"""The kernels are plain Python: the closed forms hold without the compiler, too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_closed_forms_hold_with_numba_switched_off():
    files = ["test_closed_forms.py", "test_lemke.py", "test_projections.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not stored and not slab",
         *(str(Path(__file__).parent / name) for name in files)],
        cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
