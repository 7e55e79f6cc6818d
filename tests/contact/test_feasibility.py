"""Problems that no forces solve are named, by a certificate that the test checks; feasible ones are not."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.app.cli.main import main
from palpo.physics.contact.feasibility import check_certificate, find_infeasible, giving_way
from palpo.physics.contact.problem import ContactProblem, SparseProblem
from palpo.physics.contact.solving import solve
from palpo.physics.contact.wedging import check_wedge, find_wedge

pytestmark = pytest.mark.filterwarnings("error")


def vise(gap=-1e-3, mu=0.5, mass=2.0):
    """A block between two rigid jaws: one force cancels the other whatever it is, and 2 gap stays."""
    j = np.zeros((6, 3))
    j[0, 0], j[3, 0] = 1.0, -1.0
    j[1, 1] = j[2, 2] = j[4, 1] = j[5, 2] = 1.0
    b = np.array([gap, 1e-4, 0.0, gap, 1e-4, 0.0])
    return ContactProblem(j @ j.T / mass, b, np.full(2, mu))


def unmoved():
    return ContactProblem(np.zeros((6, 6)), np.array([-1e-3, 0, 0, 1e-3, 0, 0]), np.full(2, 0.5))


def of_low_rank(seed, contacts=7, rank=3):
    """Normals of rank 3: those that press one way and those that press the other meet in p >= 0."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * contacts, rank))
    half[::3] = np.abs(half[::3]) * np.where(np.arange(contacts) % 2, 1.0, -1.0)[:, None]
    half[9] = -half[0]
    b = rng.normal(size=3 * contacts)
    b[::3] = -np.abs(b[::3])
    return ContactProblem(half @ half.T, b, np.full(contacts, 0.4))


def stack(ratio, bodies=8, h=1e-3):
    """Bodies on each other, light and heavy in turn, three contacts under each: forces are not unique."""
    inverse = np.where(np.arange(bodies) % 2, 1.0 / ratio, 1.0)
    j = np.zeros((9 * bodies, 6 * bodies))
    axes = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for k in range(bodies):
        for c, angle in enumerate(2.0 * np.pi * np.arange(3) / 3.0):
            for body, sign, side in ((k, 1.0, -0.1), (k - 1, -1.0, 0.1)):
                if body >= 0:
                    arm = np.array([0.1 * np.cos(angle), side, 0.1 * np.sin(angle)])
                    rows = slice(9 * k + 3 * c, 9 * k + 3 * c + 3)
                    j[rows, 6 * body : 6 * body + 6] = sign * np.hstack([axes, np.cross(arm, axes)])
    m = np.repeat(inverse, 6) * np.tile([1.0, 1.0, 1.0, 250.0, 250.0, 250.0], bodies)
    v = np.zeros(6 * bodies)
    v[1::6] = -9.81 * h
    w = j * m @ j.T
    return ContactProblem(0.5 * (w + w.T), j @ v, np.full(3 * bodies, 0.6))


INFEASIBLE = {"vise": vise, "unmoved": unmoved, **{f"rank {k}": lambda k=k: of_low_rank(k) for k in range(4)}}


@pytest.mark.parametrize("name", INFEASIBLE)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_certificate_is_normal_forces_that_nothing_answers_and_that_the_offsets_defeat(name, kind):
    problem = INFEASIBLE[name]()
    if kind == "sparse":
        problem = SparseProblem(sp.csr_array(problem.w), problem.b, problem.mu)
    found = find_infeasible(problem)
    assert found is not None
    p = np.zeros_like(problem.b)
    p[::3] = found.certificate
    assert (p >= 0.0).all() and p.max() == 1.0
    # W p = 0 to the roundings of so many terms: then p . u_n = p . b_n for every force
    terms = abs(problem.w) @ p
    assert (np.abs(problem.w @ p) <= 1e-12 * terms.max()).all()
    assert p @ problem.b < -1e-6 * np.abs(p) @ np.abs(problem.b)
    assert check_certificate(problem, found.certificate) == (found.answer, found.depth)


@pytest.mark.parametrize("name", INFEASIBLE)
def test_the_least_violation_is_enough_and_no_less_is(name):
    problem = INFEASIBLE[name]()
    eased, found = giving_way(problem)
    s = found.violation
    assert (s >= 0.0).all()
    assert find_infeasible(eased) is None
    tighter = problem.b.copy()
    tighter[::3] += 0.99 * s
    left = find_infeasible(ContactProblem(problem.w, tighter, problem.mu))
    np.testing.assert_allclose(left.violation, 0.01 * s, rtol=1e-6, atol=1e-9 * s.max())


def test_a_vise_gives_by_its_overlap_in_equal_shares():
    problem = vise()
    result = solve((problem.w, problem.b, problem.mu), least_violation=True)
    np.testing.assert_allclose(result.infeasible.violation, [1e-3, 1e-3], rtol=1e-9)
    assert result.converged


@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e6, 1e8])
def test_stacks_of_any_ratio_of_masses_are_not_accused(ratio):
    assert np.linalg.matrix_rank(stack(1.0).w) < 72  # W is singular, and yet there is a solution
    assert find_infeasible(stack(ratio)) is None
    assert find_wedge(stack(ratio)) is None


@pytest.mark.parametrize("name", ["portfolio", "gauss-seidel", "interior-point", "admm", "homotopy"])
@pytest.mark.parametrize("case", ["vise", "unmoved", "rank 0"])
def test_no_solver_lets_a_warning_through_and_the_result_says_why(name, case):
    problem = INFEASIBLE[case]()
    result = solve(problem, name, max_iterations=300)
    assert result.reason == "infeasible" and np.isfinite(result.r).all()


@pytest.mark.parametrize("name", ["homotopy", "lifting", "lemke-8", "portfolio"])
@pytest.mark.parametrize("size", [1.0, 1e150])
def test_numbers_that_overflow_on_the_way_warn_nobody(name, size):
    """A vise without friction, and a stack whose offsets have no squares: each gave a RuntimeWarning."""
    for problem in (vise(mu=0.0), stack(1e8)):
        result = solve(replace(problem, b=size * problem.b), name, max_iterations=100)
        assert result.reason != "converged" or result.residual <= 1e-8


def test_palpo_solve_says_that_contacts_are_wedged_and_gives_the_forces(tmp_path, capsys):
    problem, file = random_of_low_rank(2), tmp_path / "low.npz"
    np.savez(file, W=problem.w, q=problem.b, mu=problem.mu)
    told, out = tmp_path / "told.json", tmp_path / "out.npz"
    assert main(["solve", str(file), "--max-iterations", "200", "--json", str(told), "--out", str(out)]) == 1
    assert "it may have no solution" in " ".join(capsys.readouterr().out.split())
    assert json.loads(told.read_text())["wedge"]["depth"] < 0.0
    assert check_wedge(problem, np.load(out)["wedge"])[0] <= 1e-12


def test_palpo_solve_says_it_and_gives_the_certificate(tmp_path, capsys):
    problem, file = vise(), tmp_path / "vise.npz"
    np.savez(file, W=problem.w, q=problem.b, mu=problem.mu)
    told, out = tmp_path / "told.json", tmp_path / "out.npz"
    assert main(["solve", str(file), "--json", str(told), "--out", str(out)]) == 1
    assert "no forces solve it" in " ".join(capsys.readouterr().out.split())
    summary = json.loads(told.read_text())
    assert summary["solvers"][0]["reason"] == "infeasible"
    assert sorted(summary["infeasible"]["contacts"]) == [0, 1]
    np.testing.assert_allclose(np.load(out)["certificate"], [1.0, 1.0])
    assert main(["solve", str(file), "--least-violation", "--json", str(told)]) == 0
    assert json.loads(told.read_text())["solvers"][0]["converged"]


def random_of_low_rank(seed):
    """5 to 12 contacts and 2 to 15 ways to move: most normals can part, and friction may not let them."""
    rng, n = np.random.default_rng(seed), 5 + seed % 8
    half = rng.normal(size=(3 * n, 2 + seed % 14))
    return ContactProblem(half @ half.T, rng.normal(size=3 * n), np.full(n, rng.uniform(0.1, 1.0)))


def wedged(depth=1e-3, lean=0.3, mu=0.5):
    """A block between two jaws whose normals lean to each other by less than the friction angle.

    The jaws close by `depth` each: forces along the line between them cancel.
    """
    c, s = np.cos(lean), np.sin(lean)
    turn = np.array([-s, -c, 0.0, s, -c, 0.0])  # about z, the contacts at -x and x
    j = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1], [-c, s, 0], [-s, -c, 0], [0, 0, 1]])
    j = np.column_stack([j, turn])
    b = np.array([-depth * c, depth * s, 0.0, -depth * c, -depth * s, 0.0])
    return ContactProblem(j @ j.T, b, np.full(2, mu))


def test_jaws_that_lean_by_less_than_the_friction_angle_wedge_a_block_and_by_more_do_not():
    """Forces along the line between them, cos on the normals: W s = 0, s . b = -2 depth over cos."""
    found = find_wedge(wedged())
    assert found is not None
    assert found.depth == pytest.approx(-2e-3 / np.cos(0.3), rel=1e-5)
    np.testing.assert_allclose(found.certificate[1::3], [-np.tan(0.3), np.tan(0.3)], rtol=1e-5)
    assert find_wedge(wedged(lean=np.arctan(0.5) + 0.01)) is None
    assert find_wedge(wedged(depth=-1e-3)) is None


@pytest.mark.parametrize("seed", range(40))
def test_every_random_problem_of_low_rank_is_solved_or_named_with_what_the_test_checks(seed):
    problem = random_of_low_rank(seed)
    result = solve(problem, max_iterations=1000)
    if result.converged:
        return
    if result.reason == "infeasible":
        assert check_certificate(problem, result.infeasible.certificate)[0] <= 1e-12
        return
    s = result.wedge.certificate
    assert (np.hypot(s[1::3], s[2::3]) <= problem.mu * s[::3]).all()
    assert (np.abs(problem.w @ s) <= 1e-12 * (abs(problem.w) @ abs(s)).max()).all()
    assert s @ problem.b < 0.0
    assert check_wedge(problem, s) == (result.wedge.answer, result.wedge.depth)


@pytest.mark.parametrize("seed", [3, 4, 17])
def test_what_solves_a_problem_that_may_have_no_solution_slides_as_far_as_it_must(seed):
    problem = random_of_low_rank(seed)
    found, result = find_wedge(problem), solve(problem, max_iterations=1000)
    assert result.converged
    u = (problem.w @ result.r + problem.b).reshape(-1, 3)
    slid = problem.mu * found.certificate[::3] @ np.hypot(u[:, 1], u[:, 2])
    assert slid >= -found.depth * (1.0 - 1e-5)
