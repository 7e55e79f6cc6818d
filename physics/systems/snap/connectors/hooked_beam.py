"""The profile that every connector shares: a cantilever with a hook on one face, near its free end.

Local axes: u across the beam, its hooked face at u = 0 and its back at u = -thickness; v along it from the
clamped end at v = 0. The plug spreads it by wedging under the hook, in the direction of -u.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.material import Material
from palpo.physics.numerics.errors import InputError

SHEAR_CORRECTION = 5.0 / 6.0
GRADING = 1.25
"""Rows end at v = length (j / rows)^GRADING: shorter where the moment is larger, so that they lock less."""

LEAD_IN_EXCESS = math.radians(8.0)
"""How much flatter the hook's ramp is than the plug's: then the hook's nose rides on the plug's flat face."""


class Hook(NamedTuple):
    """A hook of `height` [m]: chamfered edge, nose, ramp, blunt end.

    angle: of the plug's ramp [rad].
    blunt_part: height where the ramp ends over the height of the nose.
    """

    height: float
    angle: float
    blunt_part: float = 0.4

    @property
    def chamfer(self) -> float:
        """Of the catching edge [m]."""
        return 0.3 * self.height

    @property
    def nose(self) -> float:
        """From the catching face to the far edge of the nose, which the plug lifts last [m]."""
        return 0.6 * self.height

    @property
    def blunt(self) -> float:
        """Height of the hook where the ramp ends [m]."""
        return self.blunt_part * self.height

    @property
    def length(self) -> float:
        """Along the beam [m]."""
        return self.nose + (self.height - self.blunt) / math.tan(self.angle + LEAD_IN_EXCESS)

    def outline(self, ramp_cells: int) -> NDArray[np.float64]:
        """(u, v) from the catching face, v = 0, to the blunt end, v = length; shape (3 + ramp_cells, 2)."""
        h = self.height
        ramp = np.linspace([h, self.nose], [self.blunt, self.length], ramp_cells + 1)
        return np.concatenate([[[h - self.chamfer, 0.0], [h, self.chamfer]], ramp])


class Profile(NamedTuple):
    """A grid profile whose beam's hooked face is column `face`, its clamped end row `base`.

    points (n_i, n_j, 2): (u, v) [m]. filled (n_i - 1, n_j - 1).
    """

    points: NDArray[np.float64]
    filled: NDArray[np.bool_]
    face: int
    base: int


def hooked_beam(
    thickness: float,
    length: float,
    outline: NDArray[np.float64],
    columns: int,
    rows: int,
    hook_columns: int,
) -> Profile:
    """Beam of `columns` x `rows` cells up to the hook at v = length, and the hook beside its last rows.

    outline (k, 2): the hook's free edge (u, v - length); each of its points ends a row.
    """
    end = length + outline[-1, 1]
    beam = np.concatenate(
        [length * (np.arange(rows) / rows) ** GRADING, np.linspace(length, end, len(outline))]
    )
    across = thickness * (np.arange(columns + 1) / columns - 1.0)
    points = np.full((columns + 1 + hook_columns, beam.size, 2), np.nan)
    points[: columns + 1, :, 0] = across[:, None]
    points[: columns + 1, :, 1] = beam
    part = (np.arange(1, hook_columns + 1) / hook_columns)[:, None]
    points[columns + 1 :, rows:, 0] = part * outline[:, 0]
    points[columns + 1 :, rows:, 1] = (1.0 - part) * beam[rows:] + part * (length + outline[:, 1])
    filled = np.ones((columns + hook_columns, beam.size - 1), dtype=bool)
    filled[columns:, :rows] = False
    return Profile(points, filled, columns, 0)


def with_foot(profile: Profile, front: float, back: float, depth: float) -> Profile:
    """The profile on a foot of `depth` [m] that reaches from u = front to u = -thickness - back.

    All of the foot is clamped: it costs no freedom and shows what the beam stands on.
    """
    points, filled, face, base = profile
    points = np.pad(points, ((1, 0), (1, 0), (0, 0)), constant_values=np.nan)
    filled = np.pad(filled, ((1, 0), (1, 0)))
    filled[:, 0] = True
    hook_columns = points.shape[0] - 2 - face
    u = np.concatenate(
        [
            [points[1, 1, 0] - back],
            points[1 : face + 2, 1, 0],
            front * np.arange(1, hook_columns + 1) / hook_columns,
        ]
    )
    points[:, :2, 0] = u[:, None]
    points[:, :2, 1] = [-depth, 0.0]
    return Profile(points, filled, face + 1, base + 1)


def contact_skin(profile: Profile, lowest: float) -> NDArray[np.bool_]:
    """Grid points on the hooked face, from v = lowest [m] on, and of the hook; shape (n_i, n_j)."""
    skin = np.zeros(profile.points.shape[:2], dtype=bool)
    face_v = profile.points[profile.face, :, 1]
    skin[profile.face :, face_v >= lowest] = True
    return skin


def tip_stiffness(material: Material, length: float, thickness: float, width: float) -> float:
    """Timoshenko's cantilever: force over deflection at its end [N/m]."""
    area = width * thickness
    inertia = area * thickness**2 / 12.0
    _, shear = material.lame()
    bending = length**3 / (3.0 * material.youngs_modulus * inertia)
    return 1.0 / (bending + length / (SHEAR_CORRECTION * shear * area))


def drag_over_lift(ramp: float, friction: float) -> float:
    """Force along the push over force across it, s = (tan(ramp) + mu) / (1 - mu tan(ramp)), while it slides.

    Raises InputError where friction alone holds the wedge: mu tan(ramp) >= 1.
    """
    lift = 1.0 - friction * math.tan(ramp)
    if not lift > 0.0:
        raise InputError(
            f"connector: a ramp of {math.degrees(ramp):.3g} degrees locks itself at friction {friction:g}; "
            "take a smaller ramp or less friction."
        )
    return (math.tan(ramp) + friction) / lift


class Wedging(NamedTuple):
    """One cantilever that a wedge has spread, by beam theory."""

    force: float
    """Push along the wedge [N]."""
    turn: float
    """Of the beam's end, outward [rad]; below zero the drag bends it back past where it pointed."""
    bent_back: float
    """Share of what the wedge's lift bends that its drag takes back, below 1: there the beam jams."""


def wedging(
    material: Material,
    friction: float,
    ramp: float,
    interference: float,
    reach: float,
    thickness: float,
    width: float,
    arm: float,
) -> Wedging:
    """What spreads one cantilever by `interference` at `reach` from its clamp, by beam theory.

    A wedge of angle `ramp` [rad] lifts the nose by N and drags it along the beam by N s (`drag_over_lift`).
    Toward the clamp the drag acts at a distance `arm` [m] from the beam's axis, on the side of the hook, and
    its moment bends it back; toward the free end arm is negative:
    interference = N (L^3 / 3EI + L / kGA - s arm L^2 / 2EI).
    Raises InputError where the drag bends the beam back more than the wedge lifts it.
    """
    slope = drag_over_lift(ramp, friction)
    bending = material.youngs_modulus * width * thickness**3 / 12.0
    lifted = 1.0 / tip_stiffness(material, reach, thickness, width)
    turning = slope * arm * reach**2 / (2.0 * bending)
    if not lifted > turning:
        raise InputError(
            f"connector: with a ramp of {math.degrees(ramp):.3g} degrees and friction {friction:g} the "
            "prongs jam by beam theory; take a smaller ramp, less friction or longer prongs."
        )
    lift = interference / (lifted - turning)
    turn = lift * (0.5 * reach**2 - slope * arm * reach) / bending
    return Wedging(slope * lift, turn, turning / lifted)
