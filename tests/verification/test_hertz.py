"""A ball on a block so large that it is a half space, met by the facets' areas: Hertz's force."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse.linalg import splu

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.round_facets import POINTS, weight_on
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.studies.reference.indentation import without_pull
from tests.verification.test_contact_physics import bonded_layer_factor

FACET, SIDE, CELLS = 0.001, 0.08, 16
"""Edge of the cells under the ball, side of a quarter of the block [m]; cells along it."""
RADIUS, YOUNG = 0.2, 1e4
ACROSS = (2.5, 3.0, 3.5, 4.0)
"""Contact radii over FACET; the side is at least twenty of them."""


def pressed(elements: str, nu: float) -> np.ndarray:
    """Forces [N] of the whole ball, over Hertz's on a layer bonded below, at each of ACROSS."""

    def length(growth: float) -> float:
        return FACET * sum(growth ** (k / (CELLS - 1)) for k in range(CELLS))

    growth = brentq(lambda g: length(g) - SIDE, 1.0, 1e4)
    cut = hex_block if ELEMENTS[elements].mesh is HexMesh else block
    mesh = cut(3 * (SIDE,), 3 * (CELLS,), (growth, 1.0 / growth, growth))
    x = mesh.nodes + 0.5 * SIDE
    body = SoftBody("block", mesh, Material(YOUNG, nu, 1e3), (), (0.0, 0.0, 0.0), elements=elements)
    held = x < 1e-9
    held[x[:, 1] < 1e-9] = True
    free = np.flatnonzero(~held.ravel())

    facets = mesh.surface().triangles
    middle = x[facets].mean(axis=1)
    widest = FACET * max(ACROSS)
    facets = facets[
        (x[facets][..., 1] > SIDE - 1e-9).all(axis=1) & (np.hypot(middle[:, 0], middle[:, 2]) < 2.0 * widest)
    ]
    corners = x[facets]
    area = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    shares = np.array([[weight_on(1, q, i) for i in range(3)] for q in range(POINTS)])
    at = (shares @ corners).reshape(-1, 3)
    rows = np.zeros((len(at), x.size))
    for k, row in enumerate(rows):
        row[3 * facets[k // POINTS] + 1] = shares[k % POINTS]
    rows = rows[:, free]
    factor = splu(
        body.rest_stiffness()[free][:, free],
        permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True},
    )  # fmt: skip
    yielding = rows @ factor.solve(np.ascontiguousarray(rows.T))
    give = np.repeat(POINTS * body.facet_yield(facets) / area, POINTS)
    yielding = 0.5 * (yielding + yielding.T) + np.diag(give)

    out = []
    for radius in FACET * np.array(ACROSS):
        depth = radius**2 / RADIUS
        gap = (at[:, 0] ** 2 + at[:, 2] ** 2) / (2.0 * RADIUS) - depth
        hertz = 4.0 / 3.0 * YOUNG / (1.0 - nu**2) * np.sqrt(RADIUS) * depth**1.5
        out.append(4.0 * without_pull(yielding, gap).sum() / hertz / bonded_layer_factor(radius / SIDE, nu))
    return np.array(out)


@pytest.mark.parametrize("nu", [0.3, 0.45, 0.49])
@pytest.mark.parametrize("elements", ["tet4-patch", "hex8"])
def test_the_force_is_hertzs_where_the_contact_is_two_and_a_half_facets_wide(elements, nu):
    """Small strains, no friction. Of the 3% a part is the block's sides, which are free."""
    assert np.abs(pressed(elements, nu) - 1.0).max() < 0.03
