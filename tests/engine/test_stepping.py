"""Newton's method between sweeps: what it is for."""

import ctypes

import numpy as np
import pytest

from palpo.physics.contact.solvers.semi_smooth_newton import make_semi_smooth
from palpo.physics.contract.stages import DONE, make_problem
from palpo.physics.engine.relaxing import anderson_unit
from palpo.physics.engine.solve import make_solver, open_step
from palpo.physics.engine.stepping import FIRST, newton_unit
from palpo.physics.exchange.handle import Handle

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


def solved(unit, w, b, tolerance):
    """(sweeps, residual) of a solver from no force."""
    n = b.size // 3
    problem, solver = make_problem(n), make_solver(n, tolerance, 5000)
    solver = solver._replace(bordered=solver.bordered._replace(way=make_semi_smooth(n)))
    problem.rows[:], problem.w[:], problem.b[:], problem.mu[:] = (0, 3 * n), w.ravel(), b, 0.3
    open_step(solver)
    solver.told["tolerance"] = tolerance
    one, other = Handle(problem), Handle(solver)
    assert CALL(unit.address)(one.address, other.address) == DONE
    r = problem.r.reshape(n, 3)
    assert (np.hypot(r[:, 1], r[:, 2]) <= 0.3 * r[:, 0] * (1.0 + 1e-12)).all()
    return int(solver.told["sweeps"][0]), float(solver.told["residual"][0])


@pytest.mark.parametrize("seed", range(4))
def test_near_the_solution_eight_more_digits_cost_no_sweep(seed):
    """Newton's error is squared by each step once the statuses are right; sweeps gain a share each time."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((36, 40))
    w, b = a @ a.T / 40.0, (rng.standard_normal((12, 3)) * (1.0, 0.3, 0.3) - (0.5, 0.0, 0.0)).ravel()
    swept, _ = solved(anderson_unit, w, b, 1e-12)
    few, residual = solved(newton_unit, w, b, 1e-12)
    assert residual <= 1e-12 and few == FIRST < swept
