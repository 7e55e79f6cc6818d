"""Grooves and a viscous film, by which a surface, or a part of it, feels as it does to what slides on it.

Both change Coulomb's coefficient of a contact, at the place X [m] where it is on the body at rest and at the
speed v [m/s] at which it slipped last:

    mu = mu_0 product_s (1 + a_s cos(k_s . X_s)) + sum_s c_s |v|

over the two surfaces s, with a texture's depth 0 <= a <= 1, its wave vector k (2 pi over the pitch, across
the grooves) and the slope c of the viscous branch of a Stribeck curve [s/m]. The force stays in Coulomb's
cone, so that it is bounded by what presses, opposes the slip and never gives energy, whatever a, k and c are;
at rest there is no viscosity. Friction that varies along a surface is felt as grooves: M. Minsky et al.
(1990), Feeling and seeing: issues in force display, SIGGRAPH 24(2); Stribeck's viscous branch: B. Armstrong-
Hélouvry et al. (1994), A survey of models, analysis tools and compensation methods for the control of
machines with friction, Automatica 30(7), section 2.1.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3

EVERYWHERE, BOX, BALL = 0, 1, 2
"""Where on a body a surface is."""


class SlidingSurfaces(NamedTuple):
    """n surfaces; where several hold on one body, the last one does."""

    body: NDArray[np.int32]  # (n,) number in the topology
    where: NDArray[np.int32]  # (n,) EVERYWHERE, BOX or BALL
    lower: NDArray[np.float64]  # (n, 3) [m] of the box, or the ball's centre; scene axes at rest
    upper: NDArray[np.float64]  # (n, 3) [m] of the box, or the ball's radius thrice
    texture: NDArray[np.float64]  # (n,) a
    wave: NDArray[np.float64]  # (n, 3) k [1/m]
    viscosity: NDArray[np.float64]  # (n,) c [s/m]


def make_surfaces(n: int = 0) -> SlidingSurfaces:
    """That many surfaces of body 0 without any property."""
    return SlidingSurfaces(
        np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n),
        np.zeros((n, 3)), np.zeros(n),
    )  # fmt: skip


@inlined
def _holds(surfaces, s, at):
    """Whether surface s is at a place of its body."""
    if surfaces.where[s] == EVERYWHERE:
        return True
    low, high, square = surfaces.lower[s], surfaces.upper[s], 0.0
    for i in range(3):
        if surfaces.where[s] == BOX and not low[i] <= at[i] <= high[i]:
            return False
        square += (at[i] - low[i]) ** 2
    return surfaces.where[s] == BOX or square <= high[0] * high[0]


@kernel
def surface_at(surfaces, body, at):
    """(factor of mu, viscosity [s/m]) of a body at a place (3,) [m] at rest; (1, 0) where it has none."""
    for s in range(surfaces.body.shape[0] - 1, -1, -1):
        if surfaces.body[s] == body and _holds(surfaces, s, at):
            factor = 1.0 + surfaces.texture[s] * math.cos(dot3(surfaces.wave[s], at))
            return max(factor, 0.0), surfaces.viscosity[s]
    return 1.0, 0.0
