"""A side-release buckle: the housing's funnel squeezes two slender arms, which spring into its side windows.

The arms stand on the floor y = 0, each its own deformable model; the housing is the rigid part ("plug") and
comes down over them.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palpo.physics.fem.material import Material
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.systems.snap.connectors import hooked_beam as beam
from palpo.physics.systems.snap.connectors.connector import GIVE, Connector, Prong, make_connector, make_prong
from palpo.physics.systems.snap.connectors.dimensions import require_between
from palpo.physics.systems.snap.connectors.lattice import extruded, skin_triangles, solid

ACETAL = Material(youngs_modulus=2.6e9, poisson_ratio=0.38, density=1410.0)
"""Polyoxymethylene, the usual material of such buckles; textbook values."""

FRICTION = 0.2
GAP = 0.5e-3
"""Between the housing and the hooks at the rest pose, along the push [m]."""


class BuckleCells(NamedTuple):
    """Cells of one arm: through its thickness, along it up to the hook, across its width; those of the hook,
    from the arm to its nose, and of its ramp."""

    thickness: int
    length: int
    width: int
    hook: int
    ramp: int


COARSE = BuckleCells(2, 9, 2, 1, 2)
FINE = BuckleCells(3, 16, 3, 2, 2)


@dataclass(frozen=True)
class Buckle:
    """Dimensions [m], ramp angle [rad]. Raises InputError where one is out of range.

    length: clamp to the hook's catching face. thickness, width: of each arm. spread: between the arms'
    outer faces. hook: height of the hook, which points outward. clearance: between parts that do not touch.
    ramp: the funnel's half angle.
    """

    length: float = 26e-3
    thickness: float = 2.8e-3
    width: float = 6e-3
    spread: float = 26e-3
    hook: float = 2.4e-3
    clearance: float = 0.3e-3
    ramp: float = math.radians(35.0)

    def __post_init__(self) -> None:
        require_between(
            "buckle",
            self,
            length=(5e-3, 0.5),
            thickness=(self.length / 20, self.length / 4),
            width=(self.thickness / 2, 4 * self.thickness),
            hook=(self.thickness / 5, self.length / 8),
            spread=(3 * self.thickness + 4 * self.hook, 2 * self.length),
            clearance=(0.02 * self.hook, 0.4 * self.hook),
            ramp=(math.radians(15.0), math.radians(55.0)),
        )

    @property
    def interference(self) -> float:
        """How far the housing squeezes each arm [m]."""
        return self.hook - self.clearance

    def insertion_force(self, material: Material = ACETAL, friction: float = FRICTION) -> float:
        """Peak of a quasi-static insertion by beam theory [N]: both noses at the end of the funnel."""
        reach = self.length + beam.Hook(self.hook, self.ramp).nose
        arm = 0.5 * self.thickness + self.hook
        return (
            2.0
            * beam.wedging(
                material, friction, self.ramp, self.interference, reach, self.thickness, self.width, arm
            ).force
        )

    def build(self, cells: BuckleCells = COARSE) -> Connector:
        """The connector: arms at negative and positive x."""
        left, right = self._arm(cells, -1.0), self._arm(cells, 1.0)
        housing, stroke = self._housing()
        stiffness = self.insertion_force() / GIVE
        return make_connector(
            (left, right), housing, ACETAL, FRICTION, (0.0, -1.0, 0.0), stroke, stiffness, self.interference
        )

    def _arm(self, cells: BuckleCells, side: float) -> Prong:
        hook = beam.Hook(self.hook, self.ramp)
        profile = beam.hooked_beam(
            self.thickness, self.length, hook.outline(cells.ramp), cells.thickness, cells.length, cells.hook
        )
        half = 0.5 * self.spread
        profile = beam.with_foot(profile, self.hook, half - self.thickness, 2.0 * self.thickness)
        u, v = profile.points[..., 0], profile.points[..., 1]
        z = self.width * (np.arange(cells.width + 1) / cells.width - 0.5)
        grid = extruded(np.stack([side * (half + u), v], axis=-1), z)
        mesh, number, body = solid(grid, np.repeat(profile.filled[:, :, None], cells.width, axis=2))
        skin = number[beam.contact_skin(profile, self.length - 2.0 * self.hook)]
        held = number[:, : profile.base + 1]
        return make_prong(mesh, held[held >= 0], skin_triangles(mesh, skin, (0.0, 0.0, 1.0)), "buckle", body)

    def _housing(self) -> tuple[SurfaceMesh, float]:
        """A box, open below, with a window in each side wall, at the rest pose; its stroke."""
        hook = beam.Hook(self.hook, self.ramp)
        throat = 0.5 * self.spread + self.clearance
        mouth = throat + 1.2 * self.hook
        outer = mouth + 0.3 * self.hook
        funnel = (mouth - throat) / math.tan(self.ramp)
        edge = 0.25 * self.hook
        sill = funnel + 0.4 * self.hook + edge
        lintel = sill + 2.0 * self.clearance + hook.length + 0.5 * self.hook
        roof = lintel + 0.4 * self.hook
        y = np.array([0.0, funnel, sill - edge, sill, lintel, roof, roof + 1.5 * self.thickness])
        wall = np.array([mouth, throat, throat, throat + edge, throat, throat, throat])
        bevel = 0.2 * self.hook
        corner = np.array([outer, outer, outer, outer, outer, outer, outer - bevel])
        x = np.stack([-corner, -wall, 0.0 * wall, wall, corner])
        inside = 0.5 * self.width + self.clearance
        z = np.array([-inside - self.thickness, -inside, 0.0, inside, inside + self.thickness])
        filled = np.zeros((4, 6, 4), dtype=bool)
        filled[:, :, [0, 3]] = True
        filled[[0, 3]] = True
        filled[[0, 3], 3, 1:3] = False
        filled[:, 5] = True
        latched = self.length - self.clearance - sill
        start = self.length + hook.length + GAP
        grid = extruded(np.stack([x, np.broadcast_to(start + y, x.shape)], axis=-1), z)
        mesh, *_ = solid(grid, filled)
        return mesh.surface("buckle").compact(), start - latched
