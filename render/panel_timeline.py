"""The timeline under a recorded run: its force over time, and the moment that is shown, to be dragged."""

from __future__ import annotations

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render.panel_asking import Asking
from palpo.render.panel_state import Timeline
from palpo.render.panel_style import ACCENT, FAINT, INK, LINE, WHITE, ink
from palpo.render.panel_words import number, text

HIGH, CURVE = 6.4, 2.6
"""Height of the whole and of its curve [em]."""
SPEEDS = (0.1, 0.25, 1.0)
FLAGS = (
    imgui.WindowFlags_.no_decoration
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings
    | imgui.WindowFlags_.no_bring_to_front_on_focus
)


def draw_timeline(line: Timeline, width: float, height: float, asking: Asking) -> None:
    """Along the lower edge of a scene (width, height) [points]."""
    em = imgui.get_font_size()
    imgui.set_next_window_pos(ImVec2(0, height - HIGH * em))
    imgui.set_next_window_size(ImVec2(width, HIGH * em))
    imgui.begin("timeline", None, FLAGS)
    _buttons(line, asking)
    _curve(line, asking)
    imgui.end()


def _buttons(line: Timeline, asking: Asking) -> None:
    em = imgui.get_font_size()
    asking.button("Stop" if line.playing else "Play", "pause", 4.5 * em)
    imgui.same_line()
    asking.button("\u00ab##back", "back")
    imgui.set_item_tooltip("Previous picture")
    imgui.same_line()
    asking.button("\u00bb##step", "step")
    imgui.set_item_tooltip("Next picture")
    for speed in SPEEDS:
        imgui.same_line()
        if imgui.radio_button(f"{speed:g}x", speed == line.speed):
            asking.ask("speed", value=speed)
        asking.place(f"speed:{speed:g}")
    imgui.same_line(0, 1.5 * em)
    text(f"{line.now:.3f} of {line.duration:.2f} s")
    imgui.same_line(0, 1.5 * em)
    text(f"largest force {number(float(np.max(line.force, initial=0.0)), 'N')}", FAINT)


def _curve(line: Timeline, asking: Asking) -> None:
    """The force's curve; a press or a drag asks for the moment under the pointer."""
    em, p = imgui.get_font_size(), imgui.get_cursor_screen_pos()
    wide, high = imgui.get_content_region_avail().x, CURVE * em
    imgui.invisible_button("seek", ImVec2(wide, high))
    asking.place("seek")
    if imgui.is_item_active() and line.duration > 0.0:
        share = min(max((imgui.get_io().mouse_pos.x - p.x) / wide, 0.0), 1.0)
        asking.ask("seek", value=share * line.duration)
    drawing = imgui.get_window_draw_list()
    drawing.add_rect_filled(p, ImVec2(p.x + wide, p.y + high), ink(WHITE), 0.3 * em)
    drawing.add_rect(p, ImVec2(p.x + wide, p.y + high), ink(LINE), 0.3 * em)
    most = float(np.max(line.force, initial=0.0))
    if most > 0.0 and line.duration > 0.0:
        x = p.x + wide * np.clip(line.seconds / line.duration, 0.0, 1.0)
        y = p.y + high - 0.92 * high * line.force / most
        for left, top, right in zip(x[:-1], y[:-1], x[1:], strict=True):
            drawing.add_rect_filled(
                ImVec2(left, top), ImVec2(max(right, left + 1.0), p.y + high), ink(ACCENT, 0.35)
            )
    at = p.x + wide * (line.now / line.duration if line.duration > 0.0 else 0.0)
    drawing.add_line(ImVec2(at, p.y), ImVec2(at, p.y + high), ink(INK), 0.14 * em)
    drawing.add_triangle_filled(
        ImVec2(at - 0.4 * em, p.y), ImVec2(at + 0.4 * em, p.y), ImVec2(at, p.y + 0.6 * em), ink(INK)
    )
