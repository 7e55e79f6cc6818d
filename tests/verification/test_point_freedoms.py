"""Points that are displaced by themselves: their products with a basis, and what they are good for."""

import numpy as np
import pytest

from palpo.physics.fem.block_product import multiply
from palpo.physics.reduction.point_freedoms import RigidPart, append_freedoms, stiffness_of
from palpo.physics.reduction.rational_krylov import rigid_motions
from palpo.physics.systems.tet_reduction import LEAST_POINTS
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
    freedoms = np.array([7, 3, 41, 5])
    basis, unit = rng.standard_normal((3 * n, k)), np.eye(3 * n)[:, freedoms]
    basis -= rigid @ (share @ basis)
    unit -= rigid @ (share @ unit)
    whole = np.hstack([basis, unit])
    own = stiffness[np.ix_(freedoms, freedoms)]
    part = RigidPart(rigid, share, stiffness @ rigid)
    grams = basis.T @ (mass[:, None] * basis), basis.T @ stiffness @ basis
    got = append_freedoms(basis, *grams, stiffness @ basis, freedoms, mass, own, part)
    expected = whole, whole.T @ (mass[:, None] * whole), whole.T @ stiffness @ whole
    for found, exact in zip(got, expected, strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-12 * np.abs(exact).max())
    for found in got[1:]:
        np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())


def test_the_stiffness_between_chosen_nodes_is_the_matrix_s_own():
    run = lock_step(BALL_ON_BLOCK)
    body = run.scene.members[0].body
    run.close()
    body.x[body.free] += 1e-3 * np.random.default_rng(1).standard_normal((body.free.size, 3))
    blocks, nodes = body.tangent_blocks(), np.array([9, 2, 3, 40, 10])
    freedoms = (3 * nodes[:, None] + np.arange(3)).reshape(-1)
    whole = np.empty((body.n_dof, body.n_dof))
    multiply(body.neighbours, blocks, np.eye(body.n_dof), whole)
    np.testing.assert_array_equal(
        stiffness_of(body.neighbours, blocks, nodes), whole[np.ix_(freedoms, freedoms)]
    )


@pytest.mark.parametrize(
    ("likely", "limit"), [(LEAST_POINTS, 0.01), (0, 0.02)], ids=["the likeliest too", "bearing alone"]
)
def test_the_force_hardly_errs_more_where_few_of_the_bearing_points_have_columns(likely, limit, monkeypatch):
    """A ball pressed and dragged over half of a block; 8 columns serve two points, 96 all that it may meet.

    Without freedoms of single points it errs by 6% of the peak with 8 columns. What two rates may cost is 1%;
    where only points move that bore in the last frame, a new one meets the old cliff for a period.
    """
    monkeypatch.setattr("palpo.physics.systems.tet_reduction.LEAST_POINTS", likely)
    forces = {}
    for columns in (0, 8, 24, 96):
        kind = "krylov" if columns else "monolithic"
        run = lock_step(BALL_ON_BLOCK, f"interface.max_columns={columns or 8}", "rates.low_hz=50", kind=kind)
        start = run.high.port.position.copy()
        pressed, end = start - [0.0, 0.004, 0.0], start - [-0.012, 0.004, -0.006]
        path = [straight(start, pressed, 150), straight(pressed, end, 250)]
        forces[columns] = proceed(run, np.vstack(path))["force"]
        run.close()
    exact = forces.pop(0)
    peak = np.linalg.norm(exact, axis=1).max()
    errors = [np.sqrt(((force - exact) ** 2).sum(axis=1).mean()) / peak for force in forces.values()]
    assert max(errors) < limit
