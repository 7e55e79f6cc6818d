"""A leak-stop cap: a ring whose lip stretches over the bead of a rigid stopper and closes behind it.

The cap stands on the floor y = 0, its wall a shell of revolution about y with the lip inward at its rim: one
deformable model all round, since the hoop is what resists. The stopper ("plug") comes down along y.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from palpo.physics.fem.material import Material
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors import hooked_beam as beam
from palpo.physics.systems.snap.connectors.connector import GIVE, Connector, Prong, make_connector, make_prong
from palpo.physics.systems.snap.connectors.dimensions import require_between
from palpo.physics.systems.snap.connectors.lattice import revolved, skin_triangles, solid

PLASTIC = Material(youngs_modulus=100e6, poisson_ratio=0.1, density=920.0)
"""E and nu of 002, section V-D; the density of polyethylene."""

FRICTION = 0.163
"""As for the two-prong connector: 002 gives none for the cap."""

GAP = 0.5e-3
"""Between the stopper and the lip at the rest pose, along the push [m]."""


class CapCells(NamedTuple):
    """Cells through the wall, along it up to the lip, around it (even), of the lip's ramp and height."""

    thickness: int
    length: int
    around: int
    ramp: int
    lip: int


COARSE = CapCells(1, 4, 24, 1, 1)
FINE = CapCells(2, 6, 48, 6, 3)
STOPPER_CELLS = 96
"""Around the stopper; a multiple of the cells around either cap."""


@dataclass(frozen=True)
class Cap:
    """Dimensions [m], ramp angle [rad]. Raises InputError where one is out of range.

    radius: of the wall's inner face. length: clamp to the lip's catching face. thickness: of the wall. lip:
    its height. interference: of the stopper's bead with the lip. ramp: the bead's angle.
    """

    radius: float = 14e-3
    length: float = 8e-3
    thickness: float = 1.0e-3
    lip: float = 1.0e-3
    interference: float = 0.3e-3
    ramp: float = math.radians(35.0)

    def __post_init__(self) -> None:
        require_between(
            "cap",
            self,
            radius=(3e-3, 0.2),
            length=(self.radius / 5, 2 * self.radius),
            thickness=(self.radius / 30, self.radius / 4),
            lip=(self.radius / 50, self.radius / 5),
            interference=(0.1 * self.lip, 0.5 * self.lip),
            ramp=(math.radians(15.0), math.radians(55.0)),
        )

    def insertion_force(self, material: Material = PLASTIC, friction: float = FRICTION) -> float:
        """Peak of a quasi-static insertion by shell theory [N].

        A ring load Q per length at the free edge of a long cylinder widens it by 2 Q b R^2 / (E t),
        b^4 = 3 (1 - nu^2) / (R t)^2; its drag s Q, s = (tan(ramp) + mu) / (1 - mu tan(ramp)), acts at the
        lip's edge and turns it back by the share s b arm (Timoshenko and Woinowsky-Krieger, Theory of plates
        and shells). The lip itself is a ring that resists with E A / R^2. Raises InputError where the drag
        outweighs the load.
        """
        e, nu = material.youngs_modulus, material.poisson_ratio
        hook = beam.Hook(self.lip, self.ramp)
        mean = self.radius + 0.5 * self.thickness
        b = (3.0 * (1.0 - nu**2)) ** 0.25 / math.sqrt(mean * self.thickness)
        slope = beam.drag_over_lift(self.ramp, friction)
        back = slope * b * (0.5 * self.thickness + self.lip)
        if not 0.0 < back < 1.0:
            raise InputError(
                f"cap: with a ramp of {math.degrees(self.ramp):.3g} degrees and friction {friction:g} the "
                "lip jams by shell theory; take a smaller ramp, less friction or a lower lip."
            )
        shell = e * self.thickness / (2.0 * b * mean**2 * (1.0 - back))
        ring = e * 0.8 * self.lip * hook.length / self.radius**2
        return slope * 2.0 * math.pi * mean * (shell + ring) * self.interference

    def build(self, cells: CapCells = COARSE) -> Connector:
        """The connector, of one deformable part."""
        stopper, stroke = self._stopper()
        stiffness = self.insertion_force() / GIVE
        prongs = (self._ring(cells),)
        down = (0.0, -1.0, 0.0)
        return make_connector(prongs, stopper, PLASTIC, FRICTION, down, stroke, stiffness, self.interference)

    def _ring(self, cells: CapCells) -> Prong:
        if cells.around < 8 or STOPPER_CELLS % cells.around:
            raise InputError(
                f"cap: {cells.around} cells around, expected a divisor of {STOPPER_CELLS} from 8 on."
            )
        hook = beam.Hook(self.lip, self.ramp)
        profile = beam.hooked_beam(
            self.thickness, self.length, hook.outline(cells.ramp), cells.thickness, cells.length, cells.lip
        )
        profile = beam.with_foot(profile, 0.7 * self.radius, self.thickness, self.thickness)
        r, y = self.radius - profile.points[..., :1], profile.points[..., 1:]
        # a hole's corners stand out, as those of a round stick: by its faces it would be narrower than it is,
        # by a fifth of the interference with 32 of them
        stands_out = 1.0 / np.cos(np.pi / cells.around)
        r = stands_out * r
        angle = 2.0 * np.pi * np.arange(cells.around) / cells.around
        grid = np.stack([r * np.cos(angle), y + 0.0 * angle, -r * np.sin(angle)], axis=-1)
        mesh, number, body = solid(
            grid, np.repeat(profile.filled[:, :, None], cells.around, axis=2), wrapped=True
        )
        skin = number[beam.contact_skin(profile, self.length - self.lip)]
        held = number[:, : profile.base + 1]
        made = make_prong(mesh, held[held >= 0], skin_triangles(mesh, skin), "cap", body)
        return replace(made, sectors=cells.around, stands_out=stands_out)

    def _stopper(self) -> tuple[SurfaceMesh, float]:
        """The stopper with bead, neck and knob, at the rest pose, and the stroke that latches it."""
        hook = beam.Hook(self.lip, self.ramp)
        opening = self.radius - self.lip
        bead = opening + self.interference
        neck = opening - 0.4 * self.lip
        tip = 0.85 * neck
        taper = (bead - tip) / math.tan(self.ramp)
        shoulder = taper + 0.5 * self.lip
        rim = shoulder + 0.2 * self.lip
        free = rim + hook.length + 0.6 * self.lip
        knob = self.radius + self.thickness
        round_ = 0.25 * self.lip
        outline = np.array(
            [
                [0.0, 0.0],
                [tip - round_, 0.0],
                [tip, round_],
                [bead, taper + round_],
                [bead, shoulder + round_],
                [bead - 0.2 * self.lip, rim + round_],
                [neck, rim + round_ + 0.05 * self.lip],
                [neck, free],
                [knob - round_, free],
                [knob, free + round_],
                [knob, free + 1.2 * self.lip],
                [knob - round_, free + 1.2 * self.lip + round_],
                [0.4 * knob, free + 1.6 * self.lip + round_],
                [0.35 * knob, free + 5.0 * self.lip],
                [0.3 * knob, free + 5.3 * self.lip],
                [0.0, free + 5.3 * self.lip],
            ]
        )
        start = self.length + hook.length + GAP
        latched = self.length - 0.1 * self.lip - rim - round_
        outline[:, 1] += start
        return revolved(outline, STOPPER_CELLS), start - latched
