"""Writes time, scales and the legend onto a finished picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from physics.exchange.snapshot import CONTACT_STATES, SceneGeometry, SceneState
from render import palette
from render.camera import Camera
from render.ground import grid_spacing
from render.overlays import Overlays, round_number
from render.scene_view import triad_camera, triad_corner, visible_points

Picture = NDArray[np.uint8]
Ink = tuple[int, int, int]
Mark = Callable[[float, float, float], None]  # draws in a column that starts at x around y, of some width

INK = (38, 50, 66)
FAINT = (98, 110, 126)
PANEL = (255, 255, 255, 205)
PANEL_EDGE = (205, 212, 222, 255)
TEXT = 0.021  # height of the letters, in heights of the picture
SMOOTHING = 2  # the legend is drawn this much larger and shrunk


def annotate(
    image: Picture,
    geometry: SceneGeometry,
    state: SceneState,
    camera: Camera,
    overlays: Overlays,
    scale: float,
    title: str = "",
) -> Picture:
    """The picture (h, w, 3) with its legend; `scale` [m/N] is that of the force arrows."""
    height, width = image.shape[:2]
    k = SMOOTHING
    sheet = Image.new("RGBA", (k * width, k * height), (255, 255, 255, 0))
    pen = _Pen(sheet, k * TEXT * height)
    _heading(pen, state, title)
    _legend(pen, geometry, state, camera, overlays, scale)
    if overlays.axes:
        _axis_names(pen, camera, width, height, k)
    small = sheet.resize((width, height), Image.Resampling.BOX)
    base = Image.fromarray(image).convert("RGBA")
    return np.array(Image.alpha_composite(base, small).convert("RGB"))


class _Pen:
    """Text and shapes in units of the letters' height `em`."""

    def __init__(self, sheet: Image.Image, em: float) -> None:
        self.draw = ImageDraw.Draw(sheet)
        self.em = em
        self.width, self.height = sheet.size
        fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        self.plain = ImageFont.truetype(str(fonts / "DejaVuSans.ttf"), em)
        self.bold = ImageFont.truetype(str(fonts / "DejaVuSans-Bold.ttf"), em)

    def text(
        self, x: float, y: float, words: str, ink: Ink = INK, bold: bool = False, anchor: str = "lm"
    ) -> None:
        self.draw.text((x, y), words, fill=ink, font=self.bold if bold else self.plain, anchor=anchor)

    def length(self, words: str, bold: bool = False) -> float:
        return float((self.bold if bold else self.plain).getlength(words))


def _heading(pen: _Pen, state: SceneState, title: str) -> None:
    em = pen.em
    x = 1.4 * em
    if title:
        pen.text(x, 1.9 * em, title, bold=True)
        x += pen.length(title, bold=True) + 1.0 * em
    pen.text(x, 1.9 * em, f"t = {state.time:.3f} s", ink=FAINT if title else INK)


def _legend(
    pen: _Pen, geometry: SceneGeometry, state: SceneState, camera: Camera, overlays: Overlays, scale: float
) -> None:
    entries = _entries(geometry, state, camera, overlays, scale, pen)
    if not entries:
        return
    em = pen.em
    line, gap = 1.75 * em, 0.8 * em
    marks = max(width for width, _, _ in entries)
    box_width = marks + max(pen.length(words) for _, words, _ in entries) + 2 * gap + 0.9 * em
    box_height = line * len(entries) + 1.1 * em
    points = camera.project(visible_points(geometry, state), pen.width, pen.height)
    left, top = _free_corner(pen, points, box_width, box_height)
    pen.draw.rounded_rectangle(
        (left, top, left + box_width, top + box_height), 0.6 * em, PANEL, PANEL_EDGE, max(1, int(0.05 * em))
    )
    for i, (_, words, mark) in enumerate(entries):
        y = top + 0.55 * em + line * (i + 0.5)
        mark(left + gap, y, marks)
        pen.text(left + gap + marks + 0.9 * em, y, words)


def _free_corner(pen: _Pen, points: NDArray[np.float64], width: float, height: float) -> tuple[float, float]:
    """Upper left corner of a box (width, height) where it hides the fewest of the `points` (n, 2)."""
    edge = 1.4 * pen.em
    bottom, right = pen.height - edge - height, pen.width - edge - width
    # The heading stands in the upper left, the axes in the lower right; the first of equals is taken.
    corners = ((edge, bottom), (right, edge), (edge, 2.4 * edge))

    def hidden(corner: tuple[float, float]) -> int:
        return int(
            np.count_nonzero(((points > corner) & (points < np.add(corner, (width, height)))).all(axis=1))
        )

    return min(corners, key=hidden)


def _entries(
    geometry: SceneGeometry, state: SceneState, camera: Camera, overlays: Overlays, scale: float, pen: _Pen
) -> list[tuple[float, str, Mark]]:
    """Rows of the legend: width of the mark, words, and what draws the mark."""
    em = pen.em
    rows: list[tuple[float, str, Mark]] = []
    if overlays.contacts:
        for code, name in enumerate(CONTACT_STATES):
            n = int(np.count_nonzero(np.asarray(state.contact_state) == code))
            if n:
                rows.append((em, f"{name}  ({n})", _dot(pen, palette.CONTACT[code])))
    pixels = pen.height / (2 * camera.distance * np.tan(np.radians(camera.field_of_view) / 2))  # per metre
    if overlays.forces:
        for words, colour, forces in (
            ("contact force", palette.FORCE, state.contact_force),
            ("force on the hand", palette.HAND_FORCE, state.hand_force[None]),
        ):
            norms = np.linalg.norm(forces, axis=1)
            norms = norms[np.isfinite(norms) & (norms > 0)]
            if len(norms) and scale > 0:
                newtons = round_number(4.5 * em / (scale * pixels))
                rows.append(_arrow_row(pen, words, colour, newtons, newtons * scale * pixels))
    if overlays.device and np.isfinite(state.device_point).all():
        rows.append((em, "device", _dot(pen, palette.DEVICE)))
    if overlays.device and np.isfinite(state.held_point).all():
        rows.append((em, "held point", _dot(pen, palette.HELD)))
    if overlays.attachments and np.isfinite(state.attachment_point).all(axis=1).any():
        rows.append((em, "attachment", _dot(pen, palette.ATTACHMENT)))
    if overlays.fixed and any(d.fixed.size for d in geometry.drawables):
        rows.append((em, "fixed", _square(pen, palette.FIXED)))
    if overlays.grid:
        rows.append((em, f"grid {_length(grid_spacing(max(geometry.length, 1e-3)))}", _hash(pen)))
    return rows


def _arrow_row(
    pen: _Pen, words: str, colour: palette.Colour, newtons: float, width: float
) -> tuple[float, str, Mark]:
    def mark(x: float, y: float, column: float) -> None:
        end, head, thick = x + column, 0.75 * pen.em, 0.16 * pen.em
        start = end - width
        pen.draw.rectangle((start, y - thick, end - head, y + thick), _rgb(colour))
        tip = ((end - head, y - 0.36 * pen.em), (end, y), (end - head, y + 0.36 * pen.em))
        pen.draw.polygon(tip, _rgb(colour))

    return width, f"{words}, {newtons:g} N", mark


def _dot(pen: _Pen, colour: palette.Colour) -> Mark:
    def mark(x: float, y: float, width: float) -> None:
        c, r = x + 0.5 * width, 0.42 * pen.em
        pen.draw.ellipse((c - r, y - r, c + r, y + r), _rgb(colour))

    return mark


def _square(pen: _Pen, colour: palette.Colour) -> Mark:
    def mark(x: float, y: float, width: float) -> None:
        c, r = x + 0.5 * width, 0.34 * pen.em
        pen.draw.rectangle((c - r, y - r, c + r, y + r), _rgb(colour))

    return mark


def _hash(pen: _Pen) -> Mark:
    def mark(x: float, y: float, width: float) -> None:
        c, r, w = x + 0.5 * width, 0.45 * pen.em, max(1, int(0.09 * pen.em))
        for s in (-0.4, 0.4):
            pen.draw.line((c + s * r, y - r, c + s * r, y + r), _rgb(palette.GRID_LINE), w)
            pen.draw.line((c - r, y + s * r, c + r, y + s * r), _rgb(palette.GRID_LINE), w)

    return mark


def _axis_names(pen: _Pen, camera: Camera, width: int, height: int, k: int) -> None:
    x, y, side = triad_corner(width, height)
    tips = triad_camera(camera).project(1.22 * np.eye(3), side, side)
    for name, colour, (u, v) in zip("xyz", palette.AXES, tips, strict=True):
        at = (k * (x + u), k * (height - y - side + v))
        pen.text(*at, name, ink=_rgb(colour), bold=True, anchor="mm")


def _rgb(colour: palette.Colour) -> Ink:
    r, g, b = (round(255 * c) for c in colour)
    return r, g, b


def _length(metres: float) -> str:
    return f"{1e3 * metres:g} mm" if metres < 1 else f"{metres:g} m"
