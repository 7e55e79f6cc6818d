"""Newton's method between sweeps: what it is for."""

import ctypes

import numpy as np
import pytest

from palpo.physics.contact.solvers.semi_smooth_newton import make_semi_smooth
from palpo.physics.engine.contract import DONE, make_problem
from palpo.physics.engine.relaxing import anderson_unit
from palpo.physics.engine.solve import make_solver, open_step
from palpo.physics.engine.stepping import newton_unit
from palpo.physics.exchange.handle import Handle

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
TOLERANCE, MOST = 1e-8, 2000


def solved(unit, w, b):
    """(sweeps, residual) of a solver from no force."""
    n = b.size // 3
    problem, solver = make_problem(n), make_solver(n, TOLERANCE, MOST)
    solver = solver._replace(bordered=solver.bordered._replace(way=make_semi_smooth(n)))
    problem.rows[:], problem.w[:], problem.b[:], problem.mu[:] = (0, 3 * n), w.ravel(), b, 0.3
    open_step(solver)
    solver.told["tolerance"] = TOLERANCE
    one, other = Handle(problem), Handle(solver)
    assert CALL(unit.address)(one.address, other.address) == DONE
    r = problem.r.reshape(n, 3)
    assert (np.hypot(r[:, 1], r[:, 2]) <= 0.3 * r[:, 0] * (1.0 + 1e-12)).all()
    return int(solver.told["sweeps"][0]), float(solver.told["residual"][0])


@pytest.mark.parametrize("seed", range(3))
def test_steps_end_what_sweeps_crawl_on(seed):
    """Nine points of a stiff body on one facet share its nine freedoms, and so all but share their forces:
    W = G G^T, and a hundred-thousandth of its own on the diagonal."""
    rng = np.random.default_rng(seed)
    g = np.kron(rng.dirichlet((1.0, 1.0, 1.0), 9), np.eye(3))
    w = g @ g.T + 1e-5 * np.eye(27)
    b = (np.array([-1.0, 4.0, 1.0]) + 0.05 * rng.standard_normal((9, 3))).ravel()
    sweeps, _ = solved(anderson_unit, w, b)
    fewer, residual = solved(newton_unit, w, b)
    assert residual <= TOLERANCE and fewer < 0.25 * sweeps
