"""The rows of contacts on a rigid body of the slow step, by its centre and its turn."""

import numpy as np

from palpo.physics.compliance.full import _wrenches
from palpo.physics.contract.stages import make_batch


def test_a_row_moves_by_the_velocity_of_its_point_along_its_axis():
    """a . (v + w x r), for rows whose blocks come in any order."""
    rng, n = np.random.default_rng(2), 4
    batch = make_batch(n)
    batch.count[0], batch.block[:] = n, [2, 0, 3, 1]
    batch.arm[:], batch.axes[:] = rng.standard_normal((n, 3)), rng.standard_normal((n, 3, 3))
    out, v, w = np.full((3 * n, 6), np.nan), rng.standard_normal(3), rng.standard_normal(3)
    _wrenches(batch, out)
    for k, block in enumerate(batch.block):
        expected = batch.axes[k] @ (v + np.cross(w, batch.arm[k]))
        np.testing.assert_allclose(
            out[3 * block : 3 * block + 3] @ np.concatenate([v, w]), expected, rtol=1e-12
        )
