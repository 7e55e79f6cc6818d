"""The panel's numbers: rates of the loops, readings by group, the share of the force."""

from __future__ import annotations

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render import palette
from palpo.render.panel_state import LoopReading, Reading
from palpo.render.panel_style import ACCENT, FAINT, INK, LEVELS, LINE, PAPER, ink
from palpo.render.panel_words import number, text


def draw_loops(loops: tuple[LoopReading, ...]) -> None:
    """A table of the loops beside their targets."""
    flags = imgui.TableFlags_.sizing_stretch_prop | imgui.TableFlags_.borders_inner_h
    if not imgui.begin_table("loops", 4, flags):
        return
    for title in ("loop", "rate [Hz]", "late p99 [ms]", "missed"):
        imgui.table_next_column()
        text(title, FAINT)
    for loop in loops:
        imgui.table_next_column()
        text(loop.name)
        imgui.table_next_column()
        text(number(loop.rate_hz, "", 4), LEVELS[_level(loop)])
        imgui.same_line(0, 0)
        text(f" / {number(loop.target_hz, '', 4)}", FAINT)
        imgui.table_next_column()
        text(number(loop.late_p99_ms, ""))
        imgui.table_next_column()
        text(str(loop.missed) if loop.missed >= 0 else "-", LEVELS["warn"] if loop.missed > 0 else INK)
    imgui.end_table()
    for loop in loops:
        if loop.note:
            imgui.push_text_wrap_pos(0)
            text(f"{loop.name}: {loop.note}", FAINT)
            imgui.pop_text_wrap_pos()


def _level(loop: LoopReading) -> str:
    """How well a loop keeps its rate: well within a tenth. What is trouble, the light says."""
    share = loop.rate_hz / loop.target_hz if loop.target_hz > 0 else np.nan
    if not np.isfinite(share):
        return "plain"
    return "good" if share >= 0.9 else "warn"


def draw_readings(title: str, readings: tuple[Reading, ...]) -> None:
    """A group of readings under its name."""
    imgui.separator_text(title)
    if not imgui.begin_table(f"##{title}", 2, imgui.TableFlags_.sizing_stretch_same):
        return
    for reading in readings:
        imgui.table_next_column()
        text(reading.label, FAINT)
        imgui.table_next_column()
        text(reading.text, LEVELS[reading.level])
    imgui.end_table()


def draw_force_bar(force: float, limit: float) -> None:
    """The force's share of the device's maximum: a warning from four fifths on."""
    em, p, width = imgui.get_font_size(), imgui.get_cursor_screen_pos(), imgui.get_content_region_avail().x
    share = force / limit if limit > 0 else np.nan
    share = min(max(share, 0.0), 1.0) if np.isfinite(share) else 0.0
    rgb = ACCENT if share < 0.8 else palette.WARN if share < 1.0 else palette.BAD
    drawing, high = imgui.get_window_draw_list(), 0.55 * em
    drawing.add_rect_filled(p, ImVec2(p.x + width, p.y + high), ink(LINE, 0.6), 0.2 * em)
    if share > 0.0:
        drawing.add_rect_filled(p, ImVec2(p.x + share * width, p.y + high), ink(rgb), 0.2 * em)
    drawing.add_line(ImVec2(p.x + 0.8 * width, p.y), ImVec2(p.x + 0.8 * width, p.y + high), ink(PAPER), 1.0)
    imgui.dummy(ImVec2(width, high))
