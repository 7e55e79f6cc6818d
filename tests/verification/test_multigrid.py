"""Multigrid in place of a factor: it solves the same systems, in a number of steps that no mesh changes."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.fem.multigrid.hierarchy import coarsened
from palpo.physics.fem.multigrid.kernels import Preconditioner, cycle
from palpo.physics.fem.multigrid.solver import LANES, MultigridFactor
from palpo.physics.mesh import generate
from palpo.physics.mesh.liver import liver
from palpo.physics.numerics.errors import InputError

ALPHA, BETA = 2.0, 8e-3
STEPS = (1e-3, 1e-2, 1e-1)
STILL = (0.0, 0.0, 0.0)


def soft_liver(solver: str, spacing: float, poisson: float = 0.45, fixed: bool = True) -> SoftBody:
    mesh = liver(0.15, spacing)
    below = np.flatnonzero(mesh.nodes[:, 1] < -0.02) if fixed else ()
    return SoftBody("liver", mesh, Material(5e3, poisson, 1060.0, ALPHA, BETA), below, STILL, solver=solver)


def bent(body: SoftBody) -> SoftBody:
    """The body turned and bent, so that elements have rotations of their own."""
    x = body.x
    angle = 0.6 + 4.0 * x[:, 0]
    turned = np.column_stack(
        [
            np.cos(angle) * x[:, 0] - np.sin(angle) * x[:, 1],
            np.sin(angle) * x[:, 0] + np.cos(angle) * x[:, 1],
            x[:, 2],
        ]
    )
    free = body.free
    body.x[free] = turned[free]
    body.linearise()
    return body


def matrix(body: SoftBody, h: float) -> sp.csc_matrix:
    return sp.csc_matrix((1.0 + ALPHA * h) * body.M + h * (BETA + h) * body.K)


def loads(body: SoftBody, k: int) -> np.ndarray:
    return np.random.default_rng(k).normal(size=(body.n_dof, k))


def steps_to(system: MultigridFactor, b: np.ndarray, tolerance: float) -> int:
    return system.approach(b, tolerance, 200)[1]


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("fixed", [True, False])
def test_the_solution_is_that_of_a_factor(h: float, fixed: bool) -> None:
    body = bent(soft_liver("multigrid", 0.0125, fixed=fixed))
    b = loads(body, 3)
    exact = sla.splu(matrix(body, h)).solve(b)
    # the residual is below 1e-9; the error is that times the root of the condition number, some hundreds
    got = body.factor(h).solve_many(b)
    assert steps_to(body.factor(h), b, 1e-6) <= 30
    assert np.linalg.norm(got - exact) < 1e-6 * np.linalg.norm(exact)
    residual = matrix(body, h) @ got - b
    assert (np.linalg.norm(residual, axis=0) < 1e-8 * np.linalg.norm(b, axis=0)).all()


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("poisson", [0.3, 0.45])
def test_steps_do_not_grow_as_the_mesh_is_refined(h: float, poisson: float) -> None:
    counts = []
    for spacing in (0.0125, 0.00625):
        body = soft_liver("multigrid", spacing, poisson)
        counts.append(steps_to(body.factor(h), loads(body, 4), 1e-6))
    # eight times the tetrahedra; a method without coarse levels would need twice the steps
    assert counts[1] <= 1.3 * counts[0] + 1
    assert max(counts) <= 30


@pytest.mark.parametrize("h", STEPS)
def test_the_preconditioner_is_symmetric_and_between_zero_and_the_inverse(h: float) -> None:
    body = bent(soft_liver("multigrid", 0.0125))
    system = body.factor(h)
    rows = system.hierarchy.rows
    n = int(rows.level[-1])
    applied = np.zeros((body.n_dof, body.n_dof))
    for first in range(0, body.n_dof, LANES):
        b, x = np.zeros((2, 3 * n, LANES), np.float32)
        count = min(LANES, body.n_dof - first)
        b[first + np.arange(count), np.arange(count)] = 1.0
        cycle((0,) * LANES, rows, Preconditioner(system._data, system._inverse, system._coarsest), b, x)
        applied[:, first : first + count] = x[: body.n_dof, :count]
    # single precision: 1e-7 an operation
    assert np.abs(applied - applied.T).max() < 1e-5 * np.abs(applied).max()
    root = np.linalg.cholesky(matrix(body, h).toarray())
    values = np.linalg.eigvalsh(root.T @ (0.5 * (applied + applied.T)) @ root)
    # a symmetric cycle of sweeps that each lessen the energy: 0 < B A <= 1
    assert values.min() > 0.02
    assert values.max() < 1.0 + 1e-3


def test_single_and_double_precision_agree_to_the_tolerance() -> None:
    body = bent(soft_liver("multigrid", 0.0125))
    b = loads(body, LANES)
    system = body.factor(1e-2)
    double, *_ = system.approach(b, 1e-4, 100)
    single, *_ = system.approach(b.astype(np.float32), 1e-4, 100)
    a = matrix(body, 1e-2)
    norm = np.linalg.norm(b, axis=0)
    for got in (double, single):
        assert (np.linalg.norm(a @ got - b, axis=0) < 1.1e-4 * norm).all()
    assert np.linalg.norm(single - double) < 1e-2 * np.linalg.norm(double)


def test_columns_solved_together_are_those_solved_alone() -> None:
    body = soft_liver("multigrid", 0.0125)
    system, b = body.factor(1e-3), loads(body, LANES + 3)
    together = system.solve_many(b)
    for k in (0, LANES - 1, LANES, LANES + 2):
        alone = system.solve(b[:, k])
        assert np.linalg.norm(alone - together[:, k]) < 1e-6 * np.linalg.norm(alone)


def test_who_begins_at_the_solution_makes_no_step() -> None:
    body = soft_liver("multigrid", 0.0125)
    system, b = body.factor(1e-2), loads(body, 2).astype(np.float32)
    solved, *_ = system.approach(b, 1e-4, 100)
    again, steps, _ = system.approach(b, 2e-4, 100, solved)
    assert steps == 0
    assert (again == solved).all()


def test_a_compliance_is_that_of_a_factor() -> None:
    body = bent(soft_liver("multigrid", 0.0125))
    b = np.zeros((body.n_dof, 12))
    b[37 * np.arange(12), np.arange(12)] = 1.0
    b[:, 5] = 0.0
    exact = b.T @ sla.splu(matrix(body, 1e-3)).solve(b)
    system = body.factor(1e-3)
    for _ in range(2):  # the second call begins where the first ended
        half = system.half_solve_many(b)
        assert np.abs(half.T @ half - exact).max() < 1e-4 * np.abs(exact).max()


def test_coarse_levels_keep_constants_and_energies() -> None:
    """P of a constant is that constant, and v^T (P^T K P) v = (P v)^T K (P v), from level to level."""
    body = bent(soft_liver("multigrid", 0.0125, fixed=False))
    levels = body.hierarchy
    body.factor(1e-3)
    rows, rng = levels.rows, np.random.default_rng(2)
    sizes = np.diff(rows.level)
    assert len(sizes) >= 3
    for level in range(len(sizes) - 1):
        first, below = rows.level[level], rows.level[level + 1]
        weight = rows.weight[first:below].astype(float)
        assert np.allclose(weight.sum(axis=1), 1.0, atol=1e-6)
        own = np.repeat(np.arange(sizes[level]), 4)
        interpolation = sp.csr_matrix(
            (weight.ravel(), (own, rows.parent[first:below].ravel() - below)),
            shape=tuple(sizes[level : level + 2]),
        )
        wide = sp.kron(interpolation, sp.eye(3))
        fine, coarse = (_stiffness(levels, k) for k in (level, level + 1))
        v = rng.normal(size=coarse.shape[0])
        energy = v @ (coarse @ v)
        # weights stand in single precision
        assert abs(energy - (wide @ v) @ (fine @ (wide @ v))) < 1e-5 * energy
        drift = coarse @ np.tile([1.0, 2.0, 3.0], sizes[level + 1])
        assert np.abs(drift).max() < 1e-5 * np.abs(coarse.data).max()
    mass = levels.mass[levels.entry[-2] :].sum()
    assert np.isclose(mass, body.mass)


def _stiffness(levels, level: int) -> sp.csr_matrix:
    rows, first = levels.rows, levels.rows.level[level]
    entry = slice(levels.entry[level], levels.entry[level + 1])
    start = rows.start[first : levels.rows.level[level + 1] + 1] - levels.entry[level]
    blocks = levels.stiffness[entry].reshape(-1, 3, 3)
    return sp.bsr_matrix((blocks, rows.node[entry] - first, start)).tocsr()


def test_interpolation_is_exact_for_linear_fields() -> None:
    """Where no corner was dropped."""
    x = np.random.default_rng(3).uniform(size=(4000, 3))
    coarse = coarsened(x, 0.2)
    whole = (coarse.weight > 0.0).sum(axis=1) == 4
    assert whole.mean() > 0.9
    back = (coarse.weight[:, :, None] * coarse.places[coarse.parent]).sum(axis=1)
    inner = whole & ((x > 0.2) & (x < 0.8)).all(axis=1)
    assert np.abs(back - x)[inner].max() < 1e-12


@pytest.mark.parametrize("fixed", [True, False])
def test_a_large_body_moves_as_one_with_factors(fixed: bool) -> None:
    h, bodies = 1e-3, [soft_liver(solver, 0.0125, fixed=fixed) for solver in ("direct", "multigrid")]
    top = np.argsort(-bodies[0].mesh.nodes[:, 1])[:5]
    forces = np.zeros((40, 5, 3))
    forces[:, :, 1] = -0.05
    for body in bodies:
        for step in range(20):
            body.linearise()
            factor = body.factor(h)
            load = np.zeros((len(body.x), 3))
            load[top] = forces[step]
            v = body.free_velocity(factor, h) + body.correction_velocity(factor, h, load[body.free].ravel())
            body.advance(v, h)
        body.linearise()
        body.substeps(body.factor(h), h, forces[20:], top.astype(np.int32))
    direct, large = bodies
    moved = np.abs(direct.x - direct.mesh.nodes).max()
    assert moved > 1e-4
    # a substep lacks a twentieth of its change of velocity for one step, that is 1e-3 of what 40 steps move
    assert np.abs(large.x - direct.x).max() < 2e-3 * moved


def test_bad_bodies_are_refused() -> None:
    mesh = generate.block((0.1, 0.1, 0.1), (4, 4, 4))
    with pytest.raises(InputError, match="solved by multigrid"):
        SoftBody("block", mesh, Material(5e3, 0.3, 1000.0), last=[3], solver="multigrid")
    body = SoftBody("block", mesh, Material(5e3, 0.3, 1000.0), solver="multigrid")
    body.warped_blocks[5] = np.nan
    with pytest.raises(FloatingPointError):
        body.factor(1e-3)
