"""Writes time, scales and the legend onto a finished picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render import palette
from palpo.render.camera import Camera
from palpo.render.legend import Entry, freest, legend_entries
from palpo.render.overlays import Overlays
from palpo.render.scene_view import triad_camera, triad_corner, visible_points

Picture = NDArray[np.uint8]
Ink = tuple[int, int, int]

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
    em = pen.em
    entries = legend_entries(geometry, state, camera, overlays, scale, pen.height, em)
    if not entries:
        return
    line, gap, apart = 1.75 * em, 0.8 * em, 0.9 * em
    marks = em * max(e.length for e in entries)
    box_width = marks + apart + max(pen.length(e.words) for e in entries) + 2 * gap
    box_height = line * sum(e.lines for e in entries) + 1.1 * em
    seen = visible_points(geometry, state)
    if overlays.rest:
        seen = np.vstack([seen, *(geometry.rest[d.span] for d in geometry.drawables if not d.static)])
    points = camera.project(seen, pen.width, pen.height)
    left, top = _free_corner(pen, points, box_width, box_height)
    pen.draw.rounded_rectangle(
        (left, top, left + box_width, top + box_height), 0.6 * em, PANEL, PANEL_EDGE, max(1, int(0.05 * em))
    )
    y = top + 0.55 * em + 0.5 * line
    for entry in entries:
        if entry.mark == "bar":
            pen.text(left + gap, y, entry.words)
            _bar(pen, entry, left + gap, y + line, box_width - 2 * gap, line)
        else:
            _mark(pen, entry, left + gap, y, marks)
            pen.text(left + gap + marks + apart, y, entry.words)
        y += line * entry.lines


def _free_corner(pen: _Pen, points: NDArray[np.float64], width: float, height: float) -> tuple[float, float]:
    """Upper left corner of a box (width, height) where it hides the fewest of the `points` (n, 2)."""
    edge = 1.4 * pen.em
    bottom, right = pen.height - edge - height, pen.width - edge - width
    # The heading stands in the upper left, the axes in the lower right.
    corners = ((edge, bottom), (right, edge), (edge, 2.4 * edge))
    return corners[freest(corners, width, height, points)]


def _mark(pen: _Pen, entry: Entry, x: float, y: float, width: float) -> None:
    """Draw an entry's mark around height y in a column that starts at x and has this width."""
    draw, em, ink, c = pen.draw, pen.em, _rgb(entry.colour), x + 0.5 * width
    if entry.mark == "dot":
        r = 0.42 * em
        draw.ellipse((c - r, y - r, c + r, y + r), ink)
    elif entry.mark == "square":
        r = 0.34 * em
        draw.rectangle((c - r, y - r, c + r, y + r), ink)
    elif entry.mark == "grid":
        r, w = 0.45 * em, max(1, int(0.09 * em))
        for s in (-0.4, 0.4):
            draw.line((c + s * r, y - r, c + s * r, y + r), ink, w)
            draw.line((c - r, y + s * r, c + r, y + s * r), ink, w)
    elif entry.mark == "arrow":
        end, head, thick = x + width, 0.75 * em, 0.16 * em
        draw.rectangle((end - entry.length * em, y - thick, end - head, y + thick), ink)
        tip = ((end - head, y - 0.36 * em), (end, y), (end - head, y + 0.36 * em))
        draw.polygon(tip, ink)


def _bar(pen: _Pen, entry: Entry, x: float, y: float, width: float, line: float) -> None:
    """The colour map over its numbers, from height y downward."""
    edges = np.linspace(x, x + width, len(palette.COLOUR_MAP) + 1)
    for left, right, colour in zip(edges, edges[1:], palette.COLOUR_MAP, strict=False):
        pen.draw.rectangle((left, y - 0.42 * pen.em, right, y + 0.42 * pen.em), _rgb(colour))
    for words, share, anchor in zip(entry.numbers, (0.0, 0.5, 1.0), ("lm", "mm", "rm"), strict=True):
        pen.text(x + share * width, y + 0.85 * line, words, anchor=anchor)


def _axis_names(pen: _Pen, camera: Camera, width: int, height: int, k: int) -> None:
    x, y, side = triad_corner(width, height)
    tips = triad_camera(camera).project(1.22 * np.eye(3), side, side)
    for name, colour, (u, v) in zip("xyz", palette.AXES, tips, strict=True):
        at = (k * (x + u), k * (height - y - side + v))
        pen.text(*at, name, ink=_rgb(colour), bold=True, anchor="mm")


def _rgb(colour: Sequence[float]) -> Ink:
    r, g, b = (round(255 * c) for c in colour)
    return r, g, b
