"""Two small blocks for the tests of HapCo: a mobile one, held at its top, over a fixed one, held below."""

from functools import cache

import numpy as np

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block

TISSUE = Material(2e4, 0.4, 1000.0)
STIFF = Material(2e5, 0.3, 1000.0)
WEIGHTLESS = (0.0, 0.0, 0.0)
ABOVE, BELOW = (0.012, 0.02, 0.012), (0.048, 0.02, 0.036)
"""Sizes [m]: the nodes of the mobile bottom stand on nodes of the fixed top, 6 mm apart."""


def side(mesh, axis: int, sign: float) -> np.ndarray:
    """Nodes of one side of a block."""
    x = sign * mesh.nodes[:, axis]
    return np.flatnonzero(x > x.max() - 1e-9)


@cache
def meshes(kind: str = "hexes"):
    """The mobile block just touches the fixed one's top, whose centre is the origin."""
    make = {"hexes": hex_block, "tets": block}[kind]
    mobile, fixed = make(ABOVE, (2, 3, 2)), make(BELOW, (8, 4, 6))
    return (
        mobile.with_nodes(mobile.nodes + np.array([0.0, 0.5 * ABOVE[1], 0.0])),
        fixed.with_nodes(fixed.nodes - np.array([0.0, 0.5 * BELOW[1], 0.0])),
    )


def bodies(kind: str = "hexes", materials=(STIFF, TISSUE), gravity=WEIGHTLESS, body=QuasistaticBody):
    """The two, as they stand."""
    above, below = meshes(kind)
    return (
        body("above", above, materials[0], side(above, 1, 1.0), gravity),
        body("below", below, materials[1], side(below, 1, -1.0), gravity),
    )


def bottom(kind: str = "hexes") -> np.ndarray:
    """The mobile block's bottom nodes: 9."""
    return side(meshes(kind)[0], 1, -1.0)
