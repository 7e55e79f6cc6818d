"""The jumping toy (thesis 000, table 4.1): a figure on a cup, and a spring down to the base."""

from typing import NamedTuple

import numpy as np

from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.generate import sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh

HEAD_RADIUS = 0.034
"""Of the figure [m]."""

COIL_RADIUS, WIRE_RADIUS, TURNS = 0.027, 0.0008, 5
"""Of the spring [m], and its number of turns."""


class Toy(NamedTuple):
    """The parts at rest; the cup stands between figure and base, its rim at y = gap."""

    figure: SurfaceMesh  # its foot on the stem's end
    spring: BeamLine  # from the base, y = 0, to the figure's foot, around the cup


def toy(cup_height: float, gap: float) -> Toy:
    """Figure and spring around a cup of this height over all [m], `gap` [m] above the base."""
    foot = gap + cup_height
    turn = np.linspace(0.0, 1.0, 16 * TURNS + 1)
    angle = 2.0 * np.pi * TURNS * turn
    coil = np.stack([COIL_RADIUS * np.cos(angle), foot * turn, COIL_RADIUS * np.sin(angle)], axis=1)
    return Toy(_figure(foot), BeamLine(coil, WIRE_RADIUS))


def _figure(foot: float) -> SurfaceMesh:
    """A head with two horns, cut flat at y = foot [m], as wide there as the spring that pushes on it."""
    ball = sphere_surface(1.0, 3)
    radius = np.full(len(ball.vertices), HEAD_RADIUS)
    for horn in ((0.53, 0.85, 0.0), (-0.53, 0.85, 0.0)):
        radius += 0.5 * HEAD_RADIUS * np.exp(40.0 * (ball.vertices @ horn - 1.0))
    vertices = ball.vertices * radius[:, None]
    below = 0.6 * HEAD_RADIUS
    vertices[:, 1] = foot + below + np.maximum(vertices[:, 1], -below)
    return ball.with_vertices(vertices)
