"""Points that are displaced by themselves: their products with a basis, and what they are good for."""

import numpy as np
import pytest

from palpo.physics.bodies.soft_points import rigid_motions
from palpo.physics.fem.assembly import multiply
from palpo.physics.reduction.point_freedoms import LEAST_POINTS, RigidPart, append_freedoms, stiffness_of
from palpo.physics.reduction.rational_krylov import SLOW
from palpo.physics.reduction.soft_reduction import MOST, TAIL
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, proceed, straight


@pytest.mark.parametrize("floating", [True, False])
def test_products_with_appended_freedoms_are_those_of_the_columns_written_out(floating):
    rng = np.random.default_rng(0)
    n, k = 20, 7
    mass = np.repeat(rng.uniform(1.0, 2.0, n), 3)
    stiffness = rng.standard_normal((3 * n, 3 * n))
    stiffness += stiffness.T
    rigid = rigid_motions(rng.standard_normal((n, 3)))[:, : 6 if floating else 0]
    heavy = mass[:, None] * rigid
    share = np.linalg.solve(rigid.T @ heavy, heavy.T)
    # one node in all directions, two others along one each
    nodes = np.array([4, 4, 4, 13, 0])
    axes = np.vstack([np.linalg.qr(rng.standard_normal((3, 3)))[0], rng.standard_normal((2, 3))])
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    unit = np.zeros((n, 3, len(nodes)))
    unit[nodes, :, np.arange(len(nodes))] = axes
    basis, unit = rng.standard_normal((3 * n, k)), unit.reshape(3 * n, -1)
    basis -= rigid @ (share @ basis)
    unit -= rigid @ (share @ unit)
    whole = np.hstack([basis, unit])
    own = np.zeros((n, 3, len(nodes)))
    own[nodes, :, np.arange(len(nodes))] = axes
    own = own.reshape(3 * n, -1).T @ stiffness @ own.reshape(3 * n, -1)
    part = RigidPart(rigid, share, stiffness @ rigid)
    grams = basis.T @ (mass[:, None] * basis), basis.T @ stiffness @ basis
    got = append_freedoms(basis, *grams, stiffness @ basis, nodes, axes, mass, own, part)
    expected = whole, whole.T @ (mass[:, None] * whole), whole.T @ stiffness @ whole
    for found, exact in zip(got, expected, strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-12 * np.abs(exact).max())
    for found in got[1:]:
        np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())


def test_the_stiffness_between_single_freedoms_is_that_of_their_columns():
    rng = np.random.default_rng(1)
    run = lock_step(BALL_ON_BLOCK)
    body = run.scene.members[0].body
    run.close()
    body.x[body.free] += 1e-3 * rng.standard_normal((body.free.size, 3))
    blocks, nodes = body.tangent_blocks(), np.array([9, 2, 2, 3, 40, 10])
    axes = rng.standard_normal((len(nodes), 3))
    unit = np.zeros((body.n_dof // 3, 3, len(nodes)))
    unit[nodes, :, np.arange(len(nodes))] = axes
    unit = unit.reshape(body.n_dof, -1)
    pulled = np.empty_like(unit)
    multiply(body.neighbours, blocks, unit, pulled, 0, unit.shape[1])
    exact, found = unit.T @ pulled, stiffness_of(body.neighbours, blocks, nodes, axes)
    np.testing.assert_allclose(found, exact, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize(("likely", "limit"), [(LEAST_POINTS, 0.01), (4, 0.02)], ids=["as it is", "fewer"])
def test_the_force_hardly_errs_more_where_few_of_the_bearing_points_have_columns(likely, limit, monkeypatch):
    """A ball pressed and dragged over half of a block; 8 columns serve two points, 96 all that it may meet.

    Without freedoms of single points it errs by 6% of the peak with 8 columns. What two rates may cost is 1%;
    with so few, a point that is new to the contact meets the old cliff for a period.
    """
    monkeypatch.setattr("palpo.physics.reduction.soft_reduction.LEAST_POINTS", likely)
    exact, *rest = (_dragged_force(columns)[0] for columns in (0, 8, 24, 96))
    assert max(_error(force, exact) for force in rest) < limit


def test_a_model_grows_with_the_points_that_bear_to_no_more_than_twice_what_is_asked(monkeypatch):
    """Up to 18 points bear where columns for 8 are asked: 16 have them, the others move along their load."""
    monkeypatch.setattr("palpo.physics.reduction.soft_reduction.LEAST_POINTS", 8)
    large = (
        "bodies.block.geometry.divisions=[15, 1, 15]",
        "bodies.ball.geometry.radius=0.03",
        "bodies.ball.placement.position=[0.003, 0.0308, -0.002]",
    )
    exact, (force, modes, bearing) = _dragged_force(0, *large)[0], _dragged_force(24, *large)
    assert bearing.max() > 12
    assert modes.max() == SLOW + TAIL + MOST * 3 * 8
    assert _error(force, exact) < 0.015


def _dragged_force(columns, *keys):
    """Force on a ball led into the block and across; modes and bearing points of each slow period."""
    kind = "krylov" if columns else "monolithic"
    run = lock_step(
        BALL_ON_BLOCK, *keys, f"interface.max_columns={columns or 8}", "rates.low_hz=50", kind=kind
    )
    start = run.high.port.position.copy()
    pressed, end = start - [0.0, 0.004, 0.0], start - [-0.012, 0.004, -0.006]
    path, forces, counts = np.vstack([straight(start, pressed, 150), straight(pressed, end, 250)]), [], []
    for part in np.split(path, len(path) // run.scene.numbers.ratio):
        forces.append(proceed(run, part)["force"])
        if columns:
            reduction = run.low.reductions[0]
            counts.append((reduction.modes, len(reduction.points.bearing)))
    run.close()
    return np.vstack(forces), *np.array(counts).reshape(-1, 2).T


def _error(force, exact):
    """RMS over the peak."""
    return np.sqrt(((force - exact) ** 2).sum(axis=1).mean()) / np.linalg.norm(exact, axis=1).max()
