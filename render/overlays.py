"""What is drawn on top of the bodies: contacts by state, forces, the hand and its hold, fixed nodes.

Here it is only decided which mark goes where; `palpo.render.marks` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import BILATERAL, NO_SCALAR, STRAIN, SceneGeometry, SceneState
from palpo.render import palette
from palpo.render.solids import Solids

Floats = NDArray[np.float64]

# Sizes as fractions of the scene's length.
POINT = 0.0075
DISC = 0.018
ARROW = 0.0034
LONGEST_ARROW = 0.28


@dataclass(frozen=True)
class Overlays:
    """Which of them are drawn; `force_scale` [m/N] None lets each picture choose a round one.

    `strain` colours the bodies by their strain where the frame has it; `rest` shows where they were at rest,
    `ghost` the tool of a recording, `nearness` discs across the normals of contacts, and how far what is held
    is from what it will touch. `anaglyph` is for red and cyan glasses, `side_by_side` has a picture for
    each eye.
    """

    grid: bool = True
    shadow: bool = True
    wireframe: bool = False
    rest: bool = False
    strain: bool = False
    contacts: bool = True
    nearness: bool = True
    forces: bool = True
    device: bool = True
    ghost: bool = True
    fixed: bool = True
    attachments: bool = True
    axes: bool = True
    labels: bool = True
    anaglyph: bool = False
    side_by_side: bool = False
    force_scale: float | None = None

    @property
    def paired(self) -> bool:
        """Whether each eye has a picture of its own."""
        return self.anaglyph or self.side_by_side

    def coloured(self, state: SceneState) -> bool:
        """Whether the bodies are coloured by the frame's scalar: strain if it is wanted, all else always."""
        return state.scalar_kind != NO_SCALAR and (self.strain or state.scalar_kind != STRAIN)


def round_number(x: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above x > 0."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * max(k for k in (1, 2, 5) if k <= x / power * (1 + 1e-9)))


def force_scale(geometry: SceneGeometry, state: SceneState) -> float:
    """Metres of arrow per newton that keep the largest force below `LONGEST_ARROW` of the scene's length."""
    forces = np.vstack([state.contact_force, state.hand_force])
    largest = float(np.nanmax(np.linalg.norm(forces, axis=1), initial=0.0))
    if not np.isfinite(largest) or largest <= 0 or geometry.length <= 0:
        return 0.1 * geometry.length
    return round_number(LONGEST_ARROW * geometry.length / largest)


def place_marks(geometry: SceneGeometry, state: SceneState, overlays: Overlays, scale: float) -> Solids:
    """Marks of one frame that show through the bodies; `scale` is the arrows' length per force [m/N]."""
    marks = Solids()
    size = geometry.length
    if overlays.attachments:
        marks.balls(state.attachment_point, 1.1 * POINT * size, palette.ATTACHMENT)
    if overlays.contacts:
        marks.balls(state.contact_point, POINT * size, contact_colours(state))
    if overlays.nearness:
        if overlays.contacts and len(state.contact_normal) == len(state.contact_point):
            marks.discs(state.contact_point, state.contact_normal, DISC * size, contact_colours(state))
        start, end = state.nearest
        apart = float(np.linalg.norm(end - start))
        if apart > 0.0:
            marks.dashes(start, end, 0.5 * ARROW * size, palette.NEAR, 5)
            marks.discs(end, (start - end) / apart, DISC * size, palette.NEAR)
    if overlays.forces:
        marks.arrows(state.contact_point, scale * state.contact_force, ARROW * size, palette.FORCE)
        marks.arrows(state.held_point, scale * state.hand_force, 1.3 * ARROW * size, palette.HAND_FORCE)
    if overlays.device:
        marks.dashes(state.device_point, state.held_point, 0.5 * ARROW * size, palette.DEVICE)
        marks.balls(state.device_point, 1.3 * POINT * size, palette.DEVICE)
        marks.balls(state.held_point, POINT * size, palette.HELD)
    return marks


def fixed_marks(geometry: SceneGeometry, state: SceneState) -> Solids:
    """A cube at each clamped vertex, hidden where a body is before it."""
    marks = Solids()
    for d in geometry.drawables:
        marks.cubes(state.vertices[d.span][d.fixed], 0.55 * POINT * geometry.length, palette.FIXED)
    return marks


def contact_colours(state: SceneState) -> Floats:
    """Colour of each contact point by its state, shape (n, 3)."""
    table = np.array([palette.CONTACT[k] for k in range(BILATERAL + 1)])
    return table[np.clip(state.contact_state, 0, BILATERAL)]


def axis_marks() -> Solids:
    """The three axes of the world, of length 1."""
    marks = Solids()
    for direction, colour in zip(np.eye(3), palette.AXES, strict=True):
        marks.arrows(np.zeros(3), direction, 0.045, colour)
    marks.balls(np.zeros(3), 0.09, palette.HELD)
    return marks
