"""The two-prong connector of 002 (Fig. 2 to 4, 6): a wedge spreads two hooked prongs, which close behind it.

Seen along z, the prongs stand on the floor y = 0 at both sides of x = 0, hooks inward; the plug comes down.
The paper gives no drawing with dimensions: these make a quasi-static insertion with its material and friction
peak near its 48 N.
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
from palpo.physics.systems.snap.connectors.lattice import bevelled, extruded, skin_triangles, solid

ABS = Material(youngs_modulus=164.76e6, poisson_ratio=0.35, density=1040.0)
"""Printed ABS as identified in 002, section V-C; its density is the usual one of ABS."""

FRICTION = 0.163
"""002, section V-C."""

GAP = 0.5e-3
"""Between the plug and the prongs at the rest pose, along the push [m]."""


class TwoProngCells(NamedTuple):
    """Cells of one prong: through its thickness, along it up to the hook, across its width; of the hook, from
    the prong to its nose, and of its ramp."""

    thickness: int
    length: int
    width: int
    hook: int
    ramp: int


COARSE = TwoProngCells(2, 8, 2, 1, 1)
FINE = TwoProngCells(3, 11, 2, 1, 3)


@dataclass(frozen=True)
class TwoProng:
    """Dimensions [m], ramp angle [rad]. Raises InputError where one is out of range.

    length: clamp to the hook's catching face. thickness, width: of each prong. opening: between the prongs.
    hook: height of the hook. clearance: between parts that do not touch. ramp: the wedge's half angle.
    """

    length: float = 32e-3
    thickness: float = 6.5e-3
    width: float = 12e-3
    opening: float = 20e-3
    hook: float = 3.3e-3
    clearance: float = 0.3e-3
    ramp: float = math.radians(45.0)

    def __post_init__(self) -> None:
        require_between(
            "two-prong",
            self,
            length=(5e-3, 0.5),
            thickness=(self.length / 20, self.length / 2),
            width=(self.thickness / 4, 4 * self.thickness),
            hook=(self.thickness / 10, self.length / 5),
            opening=(4 * self.hook, 2 * self.length),
            clearance=(0.02 * self.hook, 0.4 * self.hook),
            ramp=(math.radians(15.0), math.radians(55.0)),
        )

    @property
    def interference(self) -> float:
        """How far the plug spreads each prong [m]."""
        return self.hook - self.clearance

    def insertion_force(self, material: Material = ABS, friction: float = FRICTION) -> float:
        """Peak of a quasi-static insertion by beam theory [N]."""
        return 2.0 * self.wedging(material, friction).force

    def wedging(self, material: Material = ABS, friction: float = FRICTION) -> beam.Wedging:
        """One prong by beam theory, its nose at the end of the wedge."""
        reach = self.length + beam.Hook(self.hook, self.ramp).nose
        arm = 0.5 * self.thickness + self.hook
        return beam.wedging(
            material, friction, self.ramp, self.interference, reach, self.thickness, self.width, arm
        )

    def build(self, cells: TwoProngCells = COARSE) -> Connector:
        """The connector; prongs at negative and positive x."""
        left, right = self._prong(cells, -1.0), self._prong(cells, 1.0)
        plug, stroke = self._plug()
        force = self.insertion_force()
        return make_connector(
            (left, right), plug, ABS, FRICTION, (0.0, -1.0, 0.0), stroke, force / GIVE, self.interference
        )

    def _prong(self, cells: TwoProngCells, side: float) -> Prong:
        hook = beam.Hook(self.hook, self.ramp)
        profile = beam.hooked_beam(
            self.thickness, self.length, hook.outline(cells.ramp), cells.thickness, cells.length, cells.hook
        )
        half = 0.5 * self.opening
        profile = beam.with_foot(profile, half, 0.5 * self.thickness, 0.7 * self.thickness)
        u, v = profile.points[..., 0], profile.points[..., 1]
        z = self.width * (np.arange(cells.width + 1) / cells.width - 0.5)
        grid = extruded(np.stack([side * (half - u), v], axis=-1), z)
        mesh, number, body = solid(grid, np.repeat(profile.filled[:, :, None], cells.width, axis=2))
        skin = number[beam.contact_skin(profile, self.length - 2.0 * self.hook)]
        held = number[:, : profile.base + 1]
        return make_prong(
            mesh, held[held >= 0], skin_triangles(mesh, skin, (0.0, 0.0, 1.0)), "two-prong", body
        )

    def _plug(self) -> tuple[SurfaceMesh, float]:
        """The wedge with neck, flange and handle, at the rest pose, and the stroke that latches it."""
        half = 0.5 * self.opening
        shoulder, neck = half - self.clearance, half - self.hook - self.clearance
        tip, chamfer = 0.6 * neck, 0.25 * self.hook
        flange = half + 0.8 * self.thickness
        wedge = (shoulder - tip) / math.tan(self.ramp)
        top = wedge + 0.4 * self.hook + chamfer
        beams = beam.Hook(self.hook, self.ramp).length + self.clearance
        # Height above the tip, and the half widths of neck, shoulder and flange there.
        rows = np.array(
            [
                [0.0, tip * neck / shoulder, tip, flange],
                [0.5 * wedge, 0.5 * (tip / shoulder + 1.0) * neck, 0.5 * (tip + shoulder), flange],
                [wedge, neck, shoulder, flange],
                [top - chamfer, neck, shoulder, flange],
                [top, neck, shoulder - chamfer, flange],
                [top + 0.5 * beams, neck, shoulder, flange],
                [top + beams + 0.3 * self.hook, neck, shoulder, flange],
                [top + beams + 0.3 * self.hook + 0.4 * self.thickness, neck, shoulder, flange],
                [top + beams + 2.0 * self.thickness, neck, shoulder, flange],
            ]
        )
        x = np.concatenate([-rows[:, :0:-1], 0.0 * rows[:, :1], rows[:, 1:]], axis=1).T
        filled = np.zeros((6, 8), dtype=bool)
        filled[2:4] = True
        filled[1:5, :4] = True
        filled[:, 6] = True
        latched = self.length - self.clearance - top
        start = self.length + beam.Hook(self.hook, self.ramp).length + GAP
        points = np.stack([x, np.broadcast_to(start + rows[:, 0], x.shape)], axis=-1)
        bevel = 0.1 * self.hook
        plug = bevelled(points, filled, self.width + 6.0 * bevel, bevel, 2)
        return plug, start - latched
