"""`palpo solve` for those who know Siconos and FCLIB: profiles, errors, options, guesses and solutions."""

import csv
import json

import h5py
import numpy as np
import pytest

from palpo.app.cli.main import main
from palpo.app.cli.profile import performance
from palpo.physics.contact.errors import quoted_errors
from palpo.physics.contact.io import read_guess, read_problem, write_fclib, write_solution
from palpo.physics.contact.problem import ContactProblem, SparseProblem
from palpo.physics.contact.solving import solve
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import OWN, stored

EASY = OWN / "easy.npz"


def test_the_profile_of_two_solvers_is_that_of_their_times():
    """By hand: a is the fastest on p and solves q alone; b takes three times as long on p and fails on q."""
    rows = [
        {"problem": "p", "solver": "a", "converged": True, "time_ms": 2.0},
        {"problem": "p", "solver": "b", "converged": True, "time_ms": 6.0},
        {"problem": "q", "solver": "a", "converged": True, "time_ms": 5.0},
        {"problem": "q", "solver": "b", "converged": False, "time_ms": 1.0},
    ]
    ratios = performance(rows)
    np.testing.assert_allclose(ratios["a"], [1.0, 1.0])
    np.testing.assert_allclose(ratios["b"], [3.0, np.inf])


def test_a_folder_is_profiled_into_a_table_a_curve_and_a_picture(tmp_path, capsys):
    folder, out = tmp_path / "problems", tmp_path / "out"
    folder.mkdir()
    for name in ("easy", "wedge_loose"):
        (folder / f"{name}.npz").write_bytes((OWN / f"{name}.npz").read_bytes())
    asked = ["--solver", "portfolio", "--solver", "gauss-seidel"]
    assert main(["solve", str(folder), "--profile", "--out", str(out), *asked]) == 0
    rows = list(csv.DictReader((out / "solves.csv").open()))
    own = [row for row in rows if row["solver"] in ("portfolio", "gauss-seidel")]
    assert len(own) == 4
    assert all(row["converged"] == "True" and float(row["natural_map"]) <= 1e-8 for row in own)
    curve = list(csv.DictReader((out / "profile.csv").open()))
    shares = [float(line["portfolio"]) for line in curve]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert (out / "profile.png").read_bytes().startswith(b"\x89PNG")
    assert "portfolio" in capsys.readouterr().out


def test_a_profile_without_a_problem_or_of_a_file_is_refused(tmp_path, capsys):
    assert main(["solve", str(tmp_path), "--profile"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert main(["solve", str(EASY), "--profile"]) == 2
    assert "folder" in capsys.readouterr().err


def test_options_reach_the_solver_and_those_that_there_are_not_are_named(capsys):
    assert main(["solve", str(EASY), "--solver", "anderson", "--set", "differences=4"]) == 0
    assert main(["solve", str(EASY), "--solver", "anderson", "--set", "diferences=4"]) == 2
    assert "differences" in capsys.readouterr().err
    assert main(["solve", str(EASY), "--solver", "anderson", "--set", "differences"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_a_solution_written_for_fclib_is_a_guess_that_needs_no_iteration(tmp_path):
    held, out, told = read_problem(EASY), tmp_path / "s.hdf5", tmp_path / "t.json"
    write_fclib(out, held, "easy")
    assert main(["solve", str(EASY), "--tol", "1e-10", "--out", str(out)]) == 0
    with h5py.File(out) as file:
        r, u = file["solution/r"][()], file["solution/u"][()]
    np.testing.assert_allclose(u, held.w @ r + held.b, rtol=0, atol=1e-15)
    assert main(["solve", str(out), "--guess", str(out), "--json", str(told)]) == 0
    (row,) = json.loads(told.read_text())["solvers"]
    assert row["iterations"] == 0
    assert row["errors"]["natural_map"] == pytest.approx(row["residual"], rel=1e-6, abs=1e-14)


def test_the_archive_holds_velocities_statuses_and_a_history_that_falls(tmp_path):
    out = tmp_path / "s.npz"
    assert main(["solve", str(EASY), "--solver", "interior-point", "--out", str(out)]) == 0
    found, held = np.load(out), read_problem(EASY)
    r = found["interior-point"]
    np.testing.assert_allclose(found["interior-point/u"], held.w @ r + held.b, atol=1e-15)
    assert found["interior-point/status"].shape == (held.n_contacts,)
    history = found["interior-point/history"]
    assert (np.diff(history[:, 1]) <= 0.0).all()
    assert history[-1, 1] <= 1e-8


@pytest.mark.parametrize("content", [None, b"nothing", "short"])
def test_a_guess_that_does_not_fit_is_one_sentence(tmp_path, content):
    path = tmp_path / "g.h5"
    if content == "short":
        write_solution(path, np.zeros(3), np.zeros(3))
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)) as caught:
        read_guess(path, 25)
    assert "\n" not in str(caught.value)


def test_the_errors_of_a_contact_by_hand():
    """W = 2 I, b = (-2, 0, 0): r = (1, 0, 0) solves it; half of it leaves u_n = -1, v = u, rho = 1/2."""
    problem = ContactProblem(2.0 * np.eye(3), np.array([-2.0, 0.0, 0.0]), np.array([0.5]))
    right = quoted_errors(problem, np.array([1.0, 0.0, 0.0]))
    assert max(right.natural_map, right.unit_map, right.primal, right.dual, right.complementarity) == 0.0
    half = quoted_errors(problem, np.array([0.5, 0.0, 0.0]))
    assert half.natural_map == pytest.approx(1.0)  # |1/2 - (1/2 + 1/2)| over 1/2
    assert half.unit_map == pytest.approx(0.5)  # |1/2 - (1/2 + 1)| over 2
    assert half.dual == pytest.approx(0.5)  # 1 outside K*, over 2
    assert half.complementarity == pytest.approx(0.5)  # 1/2 over 1/2 times 2
    outside = quoted_errors(problem, np.array([0.0, 0.0, 1.0]))
    # K's nearest point to (0, 1) is along (1, 1/2): (0.4, 0.2), at a distance of 2 / sqrt(5)
    assert outside.primal == pytest.approx(2.0 / np.sqrt(5.0))


def test_the_entry_for_python_takes_matrices_and_says_what_is_wrong_with_them():
    held = stored("easy.npz")
    one = solve((held.w, held.b, held.mu))
    assert one.converged
    np.testing.assert_array_equal(solve(held).r, one.r)
    assert solve(held, "anderson", guess=one.r, differences=4).iterations == 0
    import scipy.sparse as sp

    kept = solve((sp.csr_array(held.w), held.b, held.mu), max_iterations=50_000)
    assert kept.converged
    assert isinstance(SparseProblem(sp.csr_array(held.w), held.b, held.mu), SparseProblem)
    skew, negative, nan = held.w.copy(), held.mu - 1.0, held.b.copy()
    skew[0, 4] += 1.0
    nan[3] = np.nan
    for wrong in (
        (skew, held.b, held.mu), (held.w, held.b, negative), (held.w, nan, held.mu),
        (held.w[:3], held.b, held.mu), (-held.w, held.b, held.mu), (held.w, held.b[:-1], held.mu),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            solve(wrong)
        assert "\n" not in str(caught.value)
    empty = solve((np.zeros((0, 0)), np.zeros(0), np.zeros(0)))
    assert empty.converged and empty.r.shape == (0,)
