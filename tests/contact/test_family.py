"""The family of solvers on the named set, under each of its options, and where it cannot succeed."""

import math

import numpy as np
import pytest

from palpo.physics.contact.laws import SLIP, judge
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.family import uzawa
from palpo.physics.contact.solvers.registry import find_solver, solver_names
from palpo.physics.contact.solvers.relaxation import RESIDUAL, UZAWA, Local, Outer, relax_sweeps, stiffnesses
from palpo.physics.contact.solvers.uzawa import PENETRATION
from palpo.physics.numerics.errors import InputError
from palpo.studies import dense_visits
from tests.contact.stored import CONSISTENT, NAMED, in_cones, offsets, stored

RELAXATIONS = [
    name for name in solver_names() if name.startswith(("gauss", "uzawa", "newton", "stick", "slip"))
]


@pytest.mark.parametrize("problem_name", NAMED)
@pytest.mark.parametrize("name", CONSISTENT)
def test_no_consistent_solver_fails_on_the_named_set(name, problem_name):
    problem = stored(problem_name)
    result = find_solver(name).solve(problem, Stop(1e-8, 200_000))
    assert result.converged
    assert result.reason == "converged"
    assert result.residual <= 1e-8
    assert in_cones(problem, result.r)
    u, size = offsets(problem, result.r), np.abs(problem.b).max()
    # what a natural map of 1e-8 of |r| leaves: rho times an offset, rho = 1 / mean(diag W)
    left = 2e-8 * np.linalg.norm(result.r) * problem.w.diagonal().mean()
    assert u[:, 0].min() >= -left
    assert (u[:, 0] * result.r[0::3]).max() <= left * np.linalg.norm(result.r) + 1e-12 * size


@pytest.mark.parametrize("name", solver_names())
def test_a_problem_without_a_solution_ends_honestly_with_a_force_in_the_cones(name):
    """A rigid bar between two rigid walls that come closer than it is thick: no force can part both."""
    w = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.diag([1e-3, 1e-3, 1e-3]))
    problem = ContactProblem(w, np.array([-1e-3, 2e-4, 0.0, -1e-3, 0.0, 2e-4]), np.full(2, 0.5))
    result = find_solver(name).solve(problem, Stop(1e-8, 2000))
    assert not result.converged
    assert result.reason in ("iterations", "stalled", "diverged")
    assert in_cones(problem, result.r)


@pytest.mark.parametrize("name", solver_names())
def test_a_problem_of_no_contacts_is_solved_by_no_force(name):
    result = find_solver(name).solve(ContactProblem(np.zeros((0, 0)), np.zeros(0), np.zeros(0)))
    assert result.converged
    assert result.r.shape == result.status.shape == (0,)


@pytest.mark.parametrize("name", solver_names())
def test_a_contact_that_nothing_moves_bears_nothing(name):
    """W vanishes at the second contact: no force could part it, and none is divided by it."""
    w = np.zeros((6, 6))
    w[:3, :3] = 1e-3 * np.eye(3)
    problem = ContactProblem(w, np.array([-1e-3, 1e-4, 0.0, 1e-3, 0.0, 0.0]), np.full(2, 0.5))
    result = find_solver(name).solve(problem, Stop(1e-8, 2000))
    assert in_cones(problem, result.r)
    if find_solver(name).consistent:
        np.testing.assert_allclose(result.r, [1.0, -0.1, 0.0, 0.0, 0.0, 0.0], atol=1e-7)


@pytest.mark.parametrize("name", RELAXATIONS)
def test_the_time_cap_ends_a_solve_that_would_not_end_and_says_so(name):
    problem = stored("rank_deficient_stack.npz")
    result = find_solver(name).solve(problem, Stop(0.0, 10**9, 0.0))
    assert result.reason == "time"
    assert 0 < result.iterations < 10**9
    assert in_cones(problem, result.r)


@pytest.mark.parametrize("name", RELAXATIONS)
def test_the_least_residual_met_is_what_a_solve_that_is_stopped_short_gives_back(name):
    problem = stored("rank_deficient_stack.npz")
    residuals = [find_solver(name).solve(problem, Stop(0.0, sweeps)).residual for sweeps in (10, 40, 160)]
    assert residuals == sorted(residuals, reverse=True)


def test_a_diverging_iteration_gives_back_a_finite_force_in_the_cones_and_says_so():
    """Slip first turns the friction of sticking contacts around at each visit: on this grip it grows."""
    problem = stored("padded_grip.npz")
    result = find_solver("slip-first").solve(problem, Stop(1e-8, 20000))
    assert result.reason == "diverged"
    assert not result.converged
    assert math.isfinite(result.residual)
    assert in_cones(problem, result.r)


def test_a_force_beyond_all_measure_is_a_divergence():
    """Two rigid walls closing on a bar: any common force is wrong by the very force that they ask for."""
    w = np.kron([[1.0, -1.0], [-1.0, 1.0]], 1e-3 * np.eye(3))
    problem = ContactProblem(w, np.array([-1e-3, 0.0, 0.0] * 2), np.zeros(2))
    for force, reason in ((1e6, "iterations"), (1e14, "diverged")):
        result = judge(problem, Stop(1e-8), np.array([force, 0.0, 0.0] * 2), 1, "iterations", 0.0)
        assert (result.reason, result.converged) == (reason, False)
        # roundings of a force of 1e14 N are hundredths of a newton
        assert result.residual == pytest.approx(1.0, rel=0.05)


def test_a_warm_start_outside_the_cones_is_brought_back_before_it_is_used():
    problem = stored("easy.npz")
    warm = np.tile([-1.0, 5.0, 5.0], problem.n_contacts)
    result = find_solver("gauss-seidel").solve(
        ContactProblem(problem.w, problem.b, problem.mu, warm), Stop(1e-8, 0)
    )
    assert result.iterations == 0
    assert in_cones(problem, result.r)


# the variants as printed


@pytest.mark.parametrize("reach", ["global", "local", "signorini"])
@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
def test_the_printed_star_bipotential_settles_at_a_penetration_of_its_sliding_contacts(name, reach):
    """x_n = mu |x_t| (rho_t / rho_n - 1), and 19 to 20 % of force error, at every sliding contact."""
    problem = stored(name)
    result = find_solver(f"uzawa-{reach}-bipotential-rho_alpha-printed").solve(problem, Stop(1e-8, 5000))
    assert result.reason == "stalled"
    assert result.residual > 0.1
    u, rho = offsets(problem, result.r), stiffnesses(problem, "rho_alpha")
    slip = np.hypot(u[:, 1], u[:, 2])
    r = result.r.reshape(-1, 3)
    sliding = (r[:, 0] > 1e-6 * r.max()) & (slip > 1e-6 * slip.max())
    assert sliding.sum() >= 10
    expected = problem.mu * slip * (rho[:, 1] / rho[:, 0] - 1.0)
    # the iteration rests to its roundings
    np.testing.assert_allclose(u[sliding, 0], expected[sliding], rtol=0, atol=1e-9 * slip.max())
    right = find_solver("gauss-seidel").solve(problem, Stop(1e-10)).r
    error = np.linalg.norm(result.r - right) / np.linalg.norm(right)
    assert 0.185 < error < 0.205


@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
@pytest.mark.parametrize("rho", ["rho_min", "rho_alpha"])
def test_the_printed_sign_never_converges_where_the_right_one_does(name, rho):
    problem = stored(name)
    printed = find_solver(f"uzawa-global-pseudopotential-{rho}-printed").solve(problem, Stop(1e-4, 5000))
    assert not printed.converged
    assert printed.residual > 0.1
    assert in_cones(problem, printed.r)
    assert find_solver(f"uzawa-global-pseudopotential-{rho}").solve(problem, Stop(1e-8, 100)).converged


@pytest.mark.parametrize(
    ("formulation", "sweeps"), [("pseudopotential", (64, 67)), ("bipotential", (80, 85))]
)
@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
def test_uzawa_global_with_rho_min_needs_the_sweeps_that_were_counted(name, formulation, sweeps):
    """Counted to 1e-8 by the change of force; the residual is reached within three sweeps of it."""
    result = find_solver(f"uzawa-global-{formulation}-rho_min").solve(stored(name), Stop(1e-8))
    assert sweeps[0] - 3 <= result.iterations <= sweeps[1] + 3


# options


def test_every_way_to_one_answer_ends_at_the_same_force():
    """W is regular and friction moderate, so the answer is unique."""
    problem = stored("delassus_36.npz")
    right = find_solver("newton-pseudopotential").solve(problem, Stop(1e-11)).r
    for name in CONSISTENT:
        r = find_solver(name).solve(problem, Stop(1e-10, 20000)).r
        np.testing.assert_allclose(r, right, rtol=0, atol=1e-7 * np.abs(right).max(), err_msg=name)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 2.2])
def test_a_factor_on_rho_changes_the_pace_and_not_the_answer(factor):
    problem = stored("delassus_36.npz")
    result = uzawa(problem, Stop(1e-8), factor=factor)
    right = find_solver("gauss-seidel").solve(problem, Stop(1e-10)).r
    np.testing.assert_allclose(result.r, right, rtol=0, atol=1e-6 * np.abs(right).max())


def test_half_of_rho_doubles_the_sweeps():
    """001, section 3.5: the iteration is a gradient step, so its pace is proportional to a small rho."""
    problem = stored("delassus_36.npz")
    whole, half = (uzawa(problem, Stop(1e-8), factor=factor).iterations for factor in (1.0, 0.5))
    assert half == pytest.approx(2 * whole, rel=0.2)


def test_an_imposed_rho_is_the_computed_one_when_it_has_its_value():
    problem = stored("easy.npz")
    computed = uzawa(problem, Stop(1e-8))
    imposed = uzawa(problem, Stop(1e-8), rho=1.0 / float(problem.w.diagonal().max()))
    np.testing.assert_array_equal(computed.r, imposed.r)


def test_rho_alpha_is_one_over_w_nn_and_lmin_over_lmax_squared():
    problem = stored("delassus_36.npz")
    rho = stiffnesses(problem, "rho_alpha", 1.5)
    for k in range(problem.n_contacts):
        block = problem.w[3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        low, high = np.linalg.eigvalsh(block[1:, 1:])
        np.testing.assert_allclose(rho[k], [1.5 / block[0, 0], 1.5 * low / high**2], rtol=1e-9)


def test_a_visit_from_zero_is_as_inexact_as_its_own_stop_and_a_warm_one_is_not():
    problem = stored("delassus_36.npz")
    options = {"reach": "local", "local_steps": 5000}
    coarse, fine = (
        uzawa(problem, Stop(1e-8), from_zero=True, uzawa_error=error, **options) for error in (1e-3, 1e-12)
    )
    warm = uzawa(problem, Stop(1e-8), uzawa_error=1e-3, **options)
    assert coarse.reason == "stalled"
    assert 1e-8 < coarse.residual < 1e-2
    assert fine.converged
    assert warm.converged


def test_signorini_s_stop_leaves_no_deeper_penetration_than_it_allows():
    problem, length, error = stored("easy.npz"), 0.01, 1e-4
    result = uzawa(
        problem, Stop(1e-12), reach="signorini", from_zero=True, uzawa_error=error, length=length,
        outer=("relative", 1e-9),
    )  # fmt: skip
    # neighbours that move after a contact's own visit do so by the outer stop's 1e-9
    assert offsets(problem, result.r)[:, 0].min() >= -error * length * (1 + 1e-3)
    assert not result.converged


def test_signorini_s_stop_asks_the_normal_offset_of_the_contact_s_own_block():
    """Of one contact, whose normal force moves it more along the surface than off it, nothing else moves."""
    w = np.array([[1.0, 2.0, 0.5], [2.0, 9.0, 0.0], [0.5, 0.0, 4.0]])
    problem = ContactProblem(w, np.array([-1.0, 0.1, -0.2]), np.full(1, 0.3))
    for error in (1e-1, 1e-2, 1e-4):
        stop = Stop(1e-12, 1)
        result = uzawa(problem, stop, reach="signorini", uzawa_error=error, length=1.0, local_steps=10_000)
        assert offsets(problem, result.r)[0, 0] >= -error
        # and it was not yet so a step before: each changes the force by rho times the offset
        assert offsets(problem, result.r)[0, 0] < 0.0


@pytest.mark.parametrize("outer", ["relative", "physical"])
def test_an_outer_stop_of_its_own_ends_there_and_the_residual_still_judges(outer):
    problem = stored("delassus_36.npz")
    coarse = uzawa(problem, Stop(1e-8), outer=(outer, 1e-3))
    fine = uzawa(problem, Stop(1e-8), outer=(outer, 1e-11))
    assert coarse.reason == "stalled"
    assert not coarse.converged
    assert fine.converged
    assert fine.reason == "converged"
    assert coarse.iterations < fine.iterations


def plainly(problem, rho, eps):
    """Uzawa global, bi-potential, written down anew: (sweeps to |dr| <= eps |r|, r)."""
    n, r = problem.n_contacts, np.zeros(3 * problem.n_contacts)
    for sweep in range(1, 1000):
        before = r.copy()
        for k in range(n):
            i, mu = slice(3 * k, 3 * k + 3), problem.mu[k]
            x = problem.w[i] @ r + problem.b[i]
            star = r[i] - rho * (x + mu * np.hypot(x[1], x[2]) * np.array([1.0, 0.0, 0.0]))
            t = np.hypot(star[1], star[2])
            if mu * t <= -star[0]:
                r[i] = 0.0
            elif t > mu * star[0]:
                r[i] = star - (t - mu * star[0]) / (1 + mu**2) * np.array([-mu, star[1] / t, star[2] / t])
            else:
                r[i] = star
        if np.linalg.norm(r - before) <= eps * np.linalg.norm(r):
            return sweep, r
    raise AssertionError("no convergence")


def test_the_relative_stop_of_uzawa_global_is_that_of_equation_2_72():
    problem, eps = stored("delassus_36.npz"), 1e-5
    sweeps, r = plainly(problem, 1.0 / problem.w.diagonal().max(), eps)
    ended = uzawa(problem, Stop(0.0), outer=("relative", eps))
    assert ended.iterations == sweeps
    np.testing.assert_allclose(ended.r, r, rtol=0, atol=1e-12 * np.abs(r).max())


def test_an_open_problem_meets_the_relative_stop_with_no_force():
    result = uzawa(ContactProblem(np.eye(3), np.array([1.0, 0.5, 0.0]), np.ones(1)), Stop(), outer="relative")
    assert result.iterations == 1
    assert not result.r.any()


# the grip: forces not unique, their resultant is


def test_a_box_between_two_fingers_hangs_by_its_weight_whatever_the_forces_are():
    """64 g and 2 N a finger (generate_problems.py): normal sums 2 N each, tangential sum the weight."""
    problem = stored("hyperstatic_grip.npz")
    found = {name: find_solver(name).solve(problem, Stop(1e-11, 50000)) for name in CONSISTENT}
    for name, result in found.items():
        r = result.r.reshape(2, 4, 3)
        assert result.converged, name
        np.testing.assert_allclose(r[:, :, 0].sum(axis=1), [2.0, 2.0], rtol=1e-7, err_msg=name)
        # t1 is -y on the face whose normal is +x, and +y on the other
        weight = (r[0, :, 1] * -1.0 + r[1, :, 1]).sum()
        assert weight == pytest.approx(0.064 * 9.81, rel=1e-7), name
        assert np.abs(offsets(problem, result.r)).max() <= 1e-9 * np.abs(problem.b).max() * 100, name
    spread = np.ptp([result.r for result in found.values()], axis=0).max()
    assert spread > 1e-2


# friction over a closed path: anchors that only slip moves


def path_forces(amplitude, cycles, w_t=1e-3, r_n=2.0, mu=0.5, steps=200):
    """Offsets and tangential forces of one contact whose body is moved by amplitude sin, pressed by r_n."""
    w = np.diag([1e-3, w_t, w_t])
    anchor, out = 0.0, []
    for s in np.sin(np.linspace(0.0, 2 * np.pi * cycles, steps * cycles + 1)):
        problem = ContactProblem(w, np.array([-1e-3 * r_n, amplitude * s - anchor, 0.0]), np.array([mu]))
        result = find_solver("gauss-seidel").solve(problem, Stop(1e-12))
        if result.status[0] == SLIP:
            anchor += (w @ result.r + problem.b)[1]
        out.append((amplitude * s, result.r[1]))
    return np.array(out)


def test_a_closed_tangential_loop_loses_four_mu_r_n_times_the_slip():
    """Elastic up to d = mu r_n w_t, then sliding: the loop's area is 4 mu r_n (A - d)."""
    amplitude, limit = 3e-3, 0.5 * 2.0
    d = limit * 1e-3
    x, f = path_forces(amplitude, 3).T
    last = slice(2 * 200, 3 * 200 + 1)
    area = -np.sum(0.5 * (f[last][1:] + f[last][:-1]) * np.diff(x[last]))
    # the trapezoid misses the corners, at most one step (amplitude 2 pi / 200) of the force's range at each
    # of two
    assert area == pytest.approx(4 * limit * (amplitude - d), rel=0.02)


def test_permanent_stick_does_not_drift():
    x, f = path_forces(0.9e-3, 20).T
    np.testing.assert_allclose(f, -x / 1e-3, rtol=0, atol=1e-9)


# words


def test_an_unknown_solver_is_refused_with_the_near_names():
    with pytest.raises(InputError, match="newton-bipotential"):
        find_solver("newton-bipotentiel")


def test_a_short_name_finds_the_solver_of_001_s_tables():
    assert find_solver("GB").name == "uzawa-global-bipotential-rho_min"
    assert find_solver("LS*").name == "uzawa-signorini-bipotential-rho_alpha-printed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rhoo": 1.0}, "no option rhoo; it has .*rho"),
        ({"rho": "rho_max"}, "rho = 'rho_max'.*rho_m|rho_alpha"),
        ({"rho": -1.0}, "rho = -1.0 must be positive"),
        ({"factor": 0.0}, "factor = 0.0 must be positive"),
        ({"outer": "absolute"}, "outer = 'absolute'.*residual or relative or physical"),
        ({"reach": "globall"}, "reach = 'globall'.*global"),
        ({"length": math.inf}, "length = inf must be positive"),
    ],
)
def test_an_option_that_is_none_is_refused_in_words(options, said):
    with pytest.raises(InputError, match=said):
        find_solver("GB").solve(ContactProblem(np.eye(3), np.zeros(3), np.zeros(1)), **options)


@pytest.mark.parametrize("rho", ["rho_min", "rho_alpha"])
@pytest.mark.parametrize("problem_name", ["easy.npz", "soft_on_soft.npz", "wedge_gripped.npz"])
def test_dense_visits_make_the_same_sweeps_as_those_that_hand_on_changes_only(problem_name, rho):
    problem, stop, error = stored(problem_name), Stop(1e-8, 20000), 1e-9
    dense = dense_visits.uzawa(problem, stop, rho=rho, outer_error=error)
    sparing = uzawa(problem, stop, rho=rho, outer=("relative", error))
    # the roundings of a sum over n contacts may let the stop fall a sweep apart
    assert abs(dense.iterations - sparing.iterations) <= 1
    assert np.linalg.norm(dense.r - sparing.r) <= 1e2 * error * np.linalg.norm(sparing.r)


@pytest.mark.parametrize("seed", range(5))
def test_a_visit_by_the_penetration_ends_with_the_first_step_after_which_it_is_below_its_limit(seed):
    """x_n = W_n r + x_n0 >= -eps L (3.7), whatever couples the tangents."""
    rng, limit = np.random.default_rng(seed), 1e-3
    half = rng.standard_normal((3, 3))
    w, b, mu = half @ half.T + np.eye(3), np.array([-1.0, 0.3, -0.2]), np.array([0.5])
    rho = np.full((1, 2), 0.3 / np.linalg.eigvalsh(w)[-1])

    def after(steps):
        local = Local(UZAWA, rule=PENETRATION, limit=limit, steps=steps)
        r, u, best, work = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((15, 3))
        outer = Outer(RESIDUAL, 0.0, 0.0, np.inf)
        relax_sweeps(w, b, mu, rho, local, outer, 1, r, u, best, np.inf, work)
        return r

    visits = [after(steps) for steps in range(1, 400)]
    ended = [w[0] @ r + b[0] >= -limit for r in visits]
    first = ended.index(True)
    assert first > 1
    for r in visits[first:]:
        np.testing.assert_array_equal(r, visits[first])
