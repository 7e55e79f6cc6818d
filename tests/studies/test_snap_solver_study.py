"""The study of contact solvers on two-sided squeezes: its problems and its verdict."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.studies.registry import run_study
from palpo.studies.snap_solver import METHODS
from palpo.studies.squeezes import SQUEEZES, squeeze_problem
from tests.contact.stored import stored


@pytest.mark.parametrize("case", SQUEEZES, ids=[case.name for case in SQUEEZES])
def test_a_squeeze_is_the_stored_one_and_has_the_freedoms_of_its_bodies(case):
    problem = squeeze_problem(case)
    kept = stored(("" if case.modes is None else "hard/") + case.name + ".npz")
    # through inverses of matrices of condition 1e6
    np.testing.assert_allclose(problem.w, kept.w, rtol=0, atol=1e-9 * np.abs(kept.w).max())
    np.testing.assert_allclose(problem.b, kept.b, rtol=0, atol=1e-9 * np.abs(kept.b).max())
    values = np.linalg.eigvalsh(problem.w)
    assert values[0] >= -1e-12 * values[-1]
    freedoms = len(problem.b) if case.modes is None else 6 + 2 * case.modes
    assert (values > 1e-12 * values[-1]).sum() == freedoms


def test_the_study_solves_the_squeezes_and_says_which_of_its_claims_hold(tmp_path: Path):
    claims = run_study("snap-solver", tmp_path, quick=True, console=Console(quiet=True))
    verdict = {claim.name: claim for claim in claims}
    assert len(json.loads((tmp_path / "claims.json").read_text())["claims"]) == len(verdict) == len(claims)
    assert (tmp_path / "residuals.png").stat().st_size > 20000
    # those that no machine and no draw can change
    for name in ("largest residual of", "sweeps of projected", "sweeps of block"):
        assert all(claim.holds for claim in claims if claim.name.startswith(name))
    with (tmp_path / "residuals.csv").open() as file:
        rows = list(csv.DictReader(file))
    for case in SQUEEZES:
        for method in METHODS:
            own = [float(r["residual"]) for r in rows if (r["case"], r["method"]) == (case.name, method.name)]
            assert own
            assert own[-1] < own[0]
