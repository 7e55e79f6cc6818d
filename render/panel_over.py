"""What stands over the scene, behind the panel: the legend, and what has to be waited for, how to begin."""

from __future__ import annotations

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render import palette
from palpo.render.legend import Entry, crossed, freest
from palpo.render.panel_state import Floats, Hint
from palpo.render.panel_style import ACCENT, INK, LINE, WHITE, Fonts, ink
from palpo.render.panel_words import write

SWEEP = 2.0
"""Seconds in which a bar without a share runs along once."""
RING, SWELL = 1.3, 0.35
"""Radius of the ring around the place of a hint, and how far it swells and shrinks [em]."""
CROSSED = 12
"""Points that are seen, which the line of a hint may lead across."""


def draw_waiting(words: str, share: float, width: float, height: float) -> None:
    """Words and a bar on the lower part of a scene [points]; a bar that only moves where `share` is NaN."""
    drawing, em = imgui.get_background_draw_list(), imgui.get_font_size()
    size = min(max(imgui.calc_text_size(words).x, 18.0 * em), width - 2.0 * em)
    left, top = 0.5 * (width - size), height - 6.5 * em
    drawing.add_rect_filled(
        ImVec2(left - em, top - 0.6 * em), ImVec2(left + size + em, top + 3.0 * em), ink(WHITE, 0.9), 0.5 * em
    )
    write(drawing, left, top + 0.5 * em, words)
    now = imgui.get_time() / SWEEP % 1.0
    begin, end = (0.0, share) if share == share else (max(0.0, 1.25 * now - 0.25), min(1.0, 1.25 * now))
    y, thick = top + 2.0 * em, 0.25 * em
    for a, b, rgb in ((0.0, 1.0, LINE), (begin, end, ACCENT)):
        corners = ImVec2(left + a * size, y - thick), ImVec2(left + b * size, y + thick)
        drawing.add_rect_filled(*corners, ink(rgb), thick)


def draw_hint(hint: Hint, width: float, height: float, seen: Floats, fonts: Fonts) -> None:
    """The hint's words in a scene [points], and a ring around the place that they are about.

    Below, above or to the right, where they and the line to the ring hide least of what is seen: shares of
    the window's height, (n, 2). A line across much of it is left out.
    """
    drawing, em = imgui.get_background_draw_list(), imgui.get_font_size()
    title = 1.15 * em
    sizes = [imgui.calc_text_size(line).x for line in hint.lines]
    wide = max([1.2 * imgui.calc_text_size(hint.title).x, *sizes])
    high = 1.8 * em + 1.5 * em * len(hint.lines)
    edge, pad = 1.6 * em, 0.8 * em
    box = wide + 3.0 * pad, high + 2.0 * pad
    middle, points = max(0.5 * (width - box[0]), pad), height * seen
    places = (
        (middle, height - edge - box[1]),
        (middle, edge),
        (max(width - edge - box[0], pad), 0.5 * (height - box[1])),
    )
    at = None if hint.at is None else height * np.array(hint.at)
    leads = [None if at is None else _lead(at, place, box, em) for place in places]
    ways = [0 if lead is None else crossed(*lead, points, em) for lead in leads]
    # words must not stand on the very place that they are about
    near = 2.0 * RING * em
    covers = [lead is not None and bool(np.linalg.norm(lead[1] - lead[0]) < near) for lead in leads]
    costs = [min(way, CROSSED) + len(points) * over for way, over in zip(ways, covers, strict=True)]
    chosen = freest(places, *box, points, costs)
    (x, y), lead = places[chosen], leads[chosen]
    low, end = ImVec2(x, y), ImVec2(x + box[0], y + box[1])
    left, top = x + 1.5 * pad, y + pad
    if at is not None and lead is not None:
        radius = (RING + SWELL * np.sin(2.0 * np.pi * imgui.get_time() / SWEEP)) * em
        start, away = lead[0], lead[1] - lead[0]
        far = float(np.linalg.norm(away))
        if far > radius and ways[chosen] <= CROSSED:
            tip = start + away * (1.0 - radius / far)
            drawing.add_line(ImVec2(*start), ImVec2(*tip), ink(palette.HINT, 0.8), 0.12 * em)
        drawing.add_circle(ImVec2(*at), radius, ink(palette.HINT), 40, 0.16 * em)
    drawing.add_rect_filled(low, end, ink(WHITE, 0.93), 0.5 * em)
    drawing.add_rect(low, end, ink(palette.HINT), 0.5 * em)
    drawing.add_text(fonts.bold, title, ImVec2(left, top), ink(INK), hint.title)
    for k, line in enumerate(hint.lines):
        write(drawing, left, top + 2.4 * em + 1.5 * em * k, line)


def _lead(
    at: Floats, place: tuple[float, float], box: tuple[float, float], em: float
) -> tuple[Floats, Floats]:
    """From the nearest point of a box's edge to a point [points]."""
    low, high = np.array(place), np.add(place, box)
    return np.clip(at, (low[0] + em, low[1]), (high[0] - em, high[1])), at


def draw_legend(
    entries: tuple[Entry, ...], width: float, height: float, seen: Floats, below: float = 0.0
) -> None:
    """The legend in that corner of a scene [points] where it hides least of what is seen; the axes have one.

    It stands behind all else of imgui. seen: shares of the window's height, (n, 2), right and down. below:
    height of what covers the window's lower edge [points].
    """
    drawing, em = imgui.get_background_draw_list(), imgui.get_font_size()
    line, gap, apart, edge = 1.55 * em, 0.8 * em, 0.8 * em, 1.0 * em
    marks = em * max(entry.length for entry in entries)
    wide = marks + apart + max(imgui.calc_text_size(entry.words).x for entry in entries) + 2 * gap
    box = line * sum(entry.lines for entry in entries) + 0.8 * em
    places = ((edge, height - below - edge - box), (edge, edge), (width - edge - wide, edge))
    left, top = places[freest(places, wide, box, height * seen)]
    corners = (ImVec2(left, top), ImVec2(left + wide, top + box))
    drawing.add_rect_filled(*corners, ink(WHITE, 0.84), 0.4 * em)
    drawing.add_rect(*corners, ink(LINE), 0.4 * em)
    x, y = left + gap, top + 0.4 * em + 0.5 * line
    for entry in entries:
        if entry.mark == "bar":
            write(drawing, x, y, entry.words)
            _bar(drawing, entry, x, y + line, wide - 2 * gap)
            for words, share in zip(entry.numbers, (0.0, 0.5, 1.0), strict=True):
                shift = share * (wide - 2 * gap - imgui.calc_text_size(words).x)
                write(drawing, x + shift, y + 1.9 * line, words)
        else:
            _mark(drawing, entry, x, y, marks)
            write(drawing, x + marks + apart, y, entry.words)
        y += line * entry.lines


def _mark(drawing: imgui.ImDrawList, entry: Entry, x: float, y: float, width: float) -> None:
    em, tint, c = imgui.get_font_size(), ink(entry.colour), x + 0.5 * width
    if entry.mark == "dot":
        drawing.add_circle_filled(ImVec2(c, y), 0.40 * em, tint)
    elif entry.mark == "square":
        r = 0.34 * em
        drawing.add_rect_filled(ImVec2(c - r, y - r), ImVec2(c + r, y + r), tint)
    elif entry.mark == "grid":
        r = 0.45 * em
        for s in (-0.4 * r, 0.4 * r):
            drawing.add_line(ImVec2(c + s, y - r), ImVec2(c + s, y + r), tint, 0.09 * em)
            drawing.add_line(ImVec2(c - r, y + s), ImVec2(c + r, y + s), tint, 0.09 * em)
    elif entry.mark == "arrow":
        end, head, thick = x + width, 0.75 * em, 0.13 * em
        start = end - entry.length * em
        drawing.add_rect_filled(ImVec2(start, y - thick), ImVec2(end - head, y + thick), tint)
        upper, lower = ImVec2(end - head, y - 0.36 * em), ImVec2(end - head, y + 0.36 * em)
        drawing.add_triangle_filled(upper, ImVec2(end, y), lower, tint)


def _bar(drawing: imgui.ImDrawList, entry: Entry, x: float, y: float, width: float) -> None:
    em, n = imgui.get_font_size(), len(palette.COLOUR_MAP) - 1
    for k in range(n):
        left, right = (ink(palette.COLOUR_MAP[k + i]) for i in (0, 1))
        low = ImVec2(x + width * k / n, y - 0.42 * em)
        high = ImVec2(x + width * (k + 1) / n, y + 0.42 * em)
        drawing.add_rect_filled_multi_color(low, high, left, right, right, left)
