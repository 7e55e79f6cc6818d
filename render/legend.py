"""What a picture's marks mean and what their scales are, in a file as in a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import CONTACT_STATES, SCALARS, SceneGeometry, SceneState
from palpo.render import palette
from palpo.render.camera import Camera
from palpo.render.ground import grid_spacing
from palpo.render.overlays import Overlays, round_number

Floats = NDArray[np.float64]

ARROW = 4.5
"""Longest arrow of a legend, in heights of the letters."""


class Entry(NamedTuple):
    """One line: a mark in its colour, and words; `length` of an arrow in heights of the letters.

    A `bar` shows the colour map instead of a colour, from `lower` to `upper`.
    """

    mark: Literal["dot", "square", "arrow", "grid", "bar"]
    words: str
    colour: palette.Colour = palette.HELD
    length: float = 1.0
    lower: float = 0.0
    upper: float = 1.0

    @property
    def lines(self) -> int:
        """Lines that it takes: a bar stands between its words and its numbers."""
        return 3 if self.mark == "bar" else 1

    @property
    def numbers(self) -> tuple[str, str, str]:
        """What stands under the left end, the middle and the right end of a bar."""
        return f"{self.lower:.3g}", f"{0.5 * (self.lower + self.upper):.3g}", f"\u2265 {self.upper:.3g}"


def legend_entries(
    geometry: SceneGeometry,
    state: SceneState,
    camera: Camera,
    overlays: Overlays,
    scale: float,
    height: int,
    em: float,
) -> list[Entry]:
    """Lines of the legend of a picture `height` pixels high, in letters of `em` pixels.

    scale: arrows' length per force [m/N], as `SceneView.draw` returned it.
    """
    entries: list[Entry] = []
    if state.strained > 1.0:
        entries.append(Entry("square", f"strained {state.strained:.2g} times its limit", palette.BAD))
    if overlays.contacts:
        for code, name in enumerate(CONTACT_STATES):
            n = int(np.count_nonzero(np.asarray(state.contact_state) == code))
            if n:
                entries.append(Entry("dot", f"{name}  ({n})", palette.CONTACT[code]))
    apart = float(np.linalg.norm(state.nearest[1] - state.nearest[0]))
    if overlays.nearness and apart > 0.0:
        entries.append(Entry("dot", f"{1e3 * apart:.1f} mm apart", palette.NEAR))
    if overlays.forces:
        pixels = height / (2 * camera.distance * np.tan(np.radians(camera.field_of_view) / 2))  # per metre
        em_per_newton = scale * pixels / em
        for words, colour, forces in (
            ("contact force", palette.FORCE, state.contact_force),
            ("force on the hand", palette.HAND_FORCE, state.hand_force[None]),
        ):
            norms = np.linalg.norm(forces, axis=1)
            if em_per_newton > 0 and (np.isfinite(norms) & (norms > 0)).any():
                newtons = round_number(ARROW / em_per_newton)
                entries.append(Entry("arrow", f"{words}, {newtons:g} N", colour, newtons * em_per_newton))
    if overlays.device and np.isfinite(state.device_point).all():
        entries.append(Entry("dot", "device", palette.DEVICE))
    if overlays.device and np.isfinite(state.held_point).all():
        entries.append(Entry("dot", "held point", palette.HELD))
    if overlays.attachments and np.isfinite(state.attachment_point).all(axis=1).any():
        entries.append(Entry("dot", "attachment", palette.ATTACHMENT))
    if overlays.fixed and any(d.fixed.size for d in geometry.drawables):
        entries.append(Entry("square", "fixed", palette.FIXED))
    if overlays.rest:
        entries.append(Entry("square", "shape at rest", palette.REST))
    if overlays.grid:
        spacing = grid_spacing(max(geometry.length, 1e-3))
        entries.append(Entry("grid", f"grid {_length(spacing)}", palette.GRID_LINE))
    if overlays.coloured(state):
        name, unit = SCALARS[state.scalar_kind]
        lower, upper = state.scalar_range
        entries.append(Entry("bar", f"{name} [{unit}]", lower=float(lower), upper=float(upper)))
    return entries


def freest(
    corners: Sequence[tuple[float, float]],
    width: float,
    height: float,
    points: Floats,
    costs: Sequence[int] | None = None,
) -> int:
    """Which of the upper left corners lets a box (width, height) hide the fewest points (n, 2).

    costs: how many points are hidden otherwise where it stands there.
    """

    def hidden(corner: tuple[float, float]) -> int:
        inside = (points > corner) & (points < np.add(corner, (width, height)))
        return int(np.count_nonzero(inside.all(axis=1)))

    more = costs or [0] * len(corners)
    # the first of equals is taken
    return min(range(len(corners)), key=lambda i: hidden(corners[i]) + more[i])


def evenly(points: Floats, cell: float) -> Floats:
    """The points (n, 2) thinned out to one a cell of this width: a fine mesh counts as a coarse one."""
    _, first = np.unique(np.floor(points / cell), axis=0, return_index=True)
    return points[first]


def crossed(start: Floats, end: Floats, points: Floats, near: float) -> int:
    """How many of the points (n, 2) lie within this distance of the line between two."""
    way = end - start
    along = np.clip((points - start) @ way / max(float(way @ way), 1e-12), 0.0, 1.0)
    return int(np.count_nonzero(np.linalg.norm(points - start - along[:, None] * way, axis=1) < near))


def _length(metres: float) -> str:
    return f"{1e3 * metres:g} mm" if metres < 1 else f"{metres:g} m"
