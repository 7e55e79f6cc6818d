"""A LAN plug with its latch (8P8C, at its real size), and the jack.

Here the latch deforms, as the flexible part does throughout 002, so it takes the socket's role: the plug
stands on its cable end with its nose up, held fast, and its latch is the one prong, rooted at the nose and
pointing down. The jack is the rigid part ("plug" in a Connector) and comes down over the nose; its lip
presses the latch toward the body until the catch is past and springs out behind the lip. All of the plug but
the latch is clamped, and shown. At 50 MPa the latch is stouter than a real one, which is of polycarbonate.
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

PLASTIC = Material(youngs_modulus=50e6, poisson_ratio=0.35, density=1040.0)
"""E and nu of 002, section V-D; the density of its other connector."""

FRICTION = 0.163
"""As for the two-prong connector: 002 gives none for the LAN plug."""

GAP = 0.5e-3
"""Between the jack and the nose of the plug at the rest pose, along the push [m]."""

BODY_WIDTH, BODY_HEIGHT, NOSE = 11.7e-3, 6.6e-3, 2.5e-3
"""Of the plug without its latch; from the latch's root to the front of the plug [m]."""

SLOPE = 0.08
"""By which the latch stands off from the body, across over along [-]."""


class LanCells(NamedTuple):
    """Cells of the latch: through its thickness, from root to hook, across its lever, across each of the
    flanks that the latch is wider by, along the lever; of the hook, from the latch to its nose, and of its
    ramp."""

    thickness: int
    length: int
    middle: int
    flank: int
    lever: int
    hook: int
    ramp: int


COARSE = LanCells(2, 5, 2, 1, 2, 1, 1)
FINE = LanCells(3, 9, 2, 1, 3, 1, 2)


@dataclass(frozen=True)
class Lan:
    """Dimensions [m], ramp angle [rad]. Raises InputError where one is out of range.

    length: the latch's root to its catch. lever: beyond it. thickness, width, lever_width: of the latch.
    lift: of its root above the body. hook: height of the catch. interference: of the catch with the lip.
    clearance: between parts that do not touch. ramp: of the lip's entry.
    """

    length: float = 10e-3
    lever: float = 6e-3
    thickness: float = 2.4e-3
    width: float = 6.2e-3
    lever_width: float = 3.2e-3
    lift: float = 1.0e-3
    hook: float = 1.5e-3
    interference: float = 1.0e-3
    clearance: float = 0.2e-3
    ramp: float = math.radians(40.0)

    def __post_init__(self) -> None:
        require_between(
            "lan",
            self,
            length=(4e-3, 40e-3),
            lever=(self.length / 10, 2 * self.length),
            thickness=(self.length / 20, self.length / 3),
            width=(2e-3, 0.9 * BODY_WIDTH),
            lever_width=(0.2 * self.width, 0.9 * self.width),
            hook=(self.length / 20, self.length / 5),
            interference=(0.1 * self.hook, 0.7 * self.hook),
            lift=(max(0.2e-3, self.interference - SLOPE * self.length), self.length),
            clearance=(0.02 * self.hook, 0.3 * self.hook),
            ramp=(math.radians(15.0), math.radians(55.0)),
        )

    @property
    def _catch(self) -> beam.Hook:
        return beam.Hook(self.hook, self.ramp, blunt_part=0.2)

    def insertion_force(self, material: Material = PLASTIC, friction: float = FRICTION) -> float:
        """Peak of a quasi-static insertion by beam theory [N]; the lip drags toward the latch's free end."""
        reach = self.length - self._catch.chamfer
        arm = -(0.5 * self.thickness + self.hook)
        return beam.wedging(
            material, friction, self.ramp, self.interference, reach, self.thickness, self.width, arm
        ).force

    def build(self, cells: LanCells = COARSE) -> Connector:
        """The connector, of one deformable part."""
        jack, stroke = self._jack()
        stiffness = self.insertion_force() / GIVE
        prongs = (self._latch(cells),)
        down = (0.0, -1.0, 0.0)
        return make_connector(prongs, jack, PLASTIC, FRICTION, down, stroke, stiffness, self.interference)

    def _latch(self, cells: LanCells) -> Prong:
        """x across, away from the body, whose latch side is x = 0; the root at y = 0, the nose above it."""
        hook = self._catch
        # The lip comes from the root, so the ramp faces the root and the catch the free end.
        outline = np.flipud(hook.outline(cells.ramp))
        outline[:, 1] = hook.length - outline[:, 1]
        root = self.length - hook.length
        latch = beam.hooked_beam(self.thickness, root, outline, cells.thickness, cells.length, cells.hook)
        n_i, n_j = latch.points.shape[:2]

        # Rows: nose, root, those of the latch and of the lever, cable end. Columns: body, lift, latch, hook.
        beyond = self.length + self.lever * np.arange(1, cells.lever + 1) / cells.lever
        v = np.concatenate([[-NOSE], latch.points[0, :, 1], beyond, [self.length + self.lever + NOSE]])
        points = np.full((3 + n_i, v.size, 2), np.nan)
        points[:3, :, 0] = np.array([-BODY_HEIGHT, -0.5 * BODY_HEIGHT, 0.0])[:, None]
        points[:, :, 1] = v
        points[3:, 1 : n_j + 1] = latch.points
        across = latch.points[: cells.thickness + 1, :1, 0]
        points[3 : 4 + cells.thickness, [0, *range(n_j + 1, v.size)], 0] = across
        points[3:, :, 0] += self.lift + self.thickness + SLOPE * np.maximum(points[3:, :, 1], 0.0)

        half, lever = 0.5 * self.width, 0.5 * self.lever_width
        flank = np.linspace(lever, half, cells.flank + 1)
        middle = np.linspace(-lever, lever, cells.middle + 1)
        z = np.concatenate([[-0.5 * BODY_WIDTH], -flank[:0:-1], middle, flank[1:], [0.5 * BODY_WIDTH]])
        filled = np.zeros((2 + n_i, v.size - 1, z.size - 1), dtype=bool)
        filled[:2] = True
        filled[2 : 3 + cells.thickness, 0, 1:-1] = True
        filled[3:, 1:n_j, 1:-1] = latch.filled[:, :, None]
        filled[3 : 3 + cells.thickness, n_j : n_j + cells.lever, 1 + cells.flank : -1 - cells.flank] = True

        mesh, number, body = solid(extruded(points * [1.0, -1.0], z), filled)
        skin = np.zeros(number.shape, dtype=bool)
        skin[3 + cells.thickness :, 2 : n_j + 1] = True
        skin[3:, n_j] = True  # the catching face, across the whole thickness
        held = np.zeros(number.shape, dtype=bool)
        held[:3] = True
        held[:, :2] = True
        held &= number >= 0
        triangles = skin_triangles(mesh, number[skin & ~held], (0.0, 0.0, 1.0))
        return make_prong(mesh, number[held], triangles, "lan", body)

    def _jack(self) -> tuple[SurfaceMesh, float]:
        """A box open below, its lip beside the latch, at the rest pose, and the stroke that latches it."""
        hook, gap = self._catch, self.clearance
        crest = self.lift + self.thickness + self.hook + SLOPE * (self.length - hook.chamfer)
        lip = crest - self.interference
        mouth = lip + 1.3 * self.interference
        recess = lip + 2.0 * self.hook
        entry = (mouth - lip) / math.tan(self.ramp)
        edge = 0.2 * self.hook
        plate = entry + 0.3 * self.hook + edge
        roof = plate + gap + self.length + NOSE + 4.0 * gap
        wall = 1.5e-3
        y = np.array([0.0, entry, plate - edge, plate, roof, roof + wall])
        inner = np.array([mouth, lip, lip, lip + edge, lip, lip])
        same = np.ones_like(y)
        x = np.stack(
            [
                -(BODY_HEIGHT + gap + wall) * same,
                -(BODY_HEIGHT + gap) * same,
                gap * same,
                inner,
                recess * same,
                (recess + wall) * same,
            ]
        )
        half, slot = 0.5 * BODY_WIDTH + gap, 0.5 * self.width + gap
        z = np.array([-half - wall, -half, -slot, 0.0, slot, half, half + wall])
        filled = np.ones((5, 5, 6), dtype=bool)
        filled[1, :4, 1:5] = False
        filled[2, :4, 2:4] = False
        filled[3, 3, 2:4] = False
        latched = -self.length - gap - plate
        start = NOSE + GAP
        mesh, *_ = solid(extruded(np.stack([x, np.broadcast_to(start + y, x.shape)], axis=-1), z), filled)
        return mesh.surface("lan").compact(), start - latched
