"""Words and small signs of the panel, at the place where imgui is writing, or in a list of drawings."""

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render import palette
from palpo.render.panel_style import INK, WHITE, colour, ink


def text(words: str, rgb: palette.Colour = INK) -> None:
    """Words as they are; a percent sign is one."""
    imgui.push_style_color(imgui.Col_.text, colour(rgb))
    imgui.text_unformatted(words)
    imgui.pop_style_color()


def right(words: str, rgb: palette.Colour) -> None:
    """Words at the right end of the present line."""
    imgui.same_line()
    room = imgui.get_content_region_avail().x - imgui.calc_text_size(words).x
    imgui.set_cursor_pos_x(imgui.get_cursor_pos_x() + max(room, 0.0))
    text(words, rgb)


def dot(rgb: palette.Colour) -> None:
    """A lamp."""
    em, p = imgui.get_font_size(), imgui.get_cursor_screen_pos()
    imgui.get_window_draw_list().add_circle_filled(
        ImVec2(p.x + 0.4 * em, p.y + 0.5 * em), 0.33 * em, ink(rgb)
    )
    imgui.dummy(ImVec2(0.8 * em, em))


def chip(words: str, rgb: palette.Colour) -> None:
    """A word on a coloured ground."""
    em, p, size = imgui.get_font_size(), imgui.get_cursor_screen_pos(), imgui.calc_text_size(words)
    drawing, end = imgui.get_window_draw_list(), ImVec2(p.x + size.x + 0.8 * em, p.y + size.y + 0.2 * em)
    drawing.add_rect_filled(p, end, ink(rgb), 0.3 * em)
    drawing.add_text(ImVec2(p.x + 0.4 * em, p.y + 0.1 * em), ink(WHITE), words)
    imgui.dummy(ImVec2(end.x - p.x, end.y - p.y))


def wrapped(words: str, rgb: palette.Colour) -> None:
    """Words on as many lines as they take."""
    imgui.push_text_wrap_pos(0)
    text(words, rgb)
    imgui.pop_text_wrap_pos()


def write(drawing: imgui.ImDrawList, x: float, y: float, words: str) -> None:
    """Words from (x, y) on [points], the middle of their height."""
    drawing.add_text(ImVec2(x, y - 0.5 * imgui.get_font_size()), ink(INK), words)


def number(value: float, unit: str, digits: int = 3) -> str:
    """A number with its unit; a dash for one that is not finite."""
    words = f"{value:.{digits}g}" if np.isfinite(value) else "-"
    if unit == "N" and np.isfinite(value):
        words = f"{value:.2f}"
    return f"{words} {unit}".rstrip()


def plain(words: str) -> str:
    """As a format of C, which would take a percent sign for its own."""
    return words.replace("%", "%%")


def shortened(words: str, width: float) -> str:
    """The end of the words with dots before it, where they are wider than `width`."""
    if imgui.calc_text_size(words).x <= width:
        return words
    while words and imgui.calc_text_size(f"\u2026{words}").x > width:
        words = words[1:]
    return f"\u2026{words}"
