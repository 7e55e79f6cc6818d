"""How the panel looks: imgui's and ImPlot's styles in the colours of the pictures, for any pixel density."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import imgui_bundle
from imgui_bundle import ImVec4, imgui, implot

from palpo.render import palette

FONTS = Path(imgui_bundle.__file__).parent / "assets" / "fonts" / "Roboto"
TEXT = 15.0
"""Height of the letters [points]."""

INK = palette.from_hex("#26324a")
FAINT = palette.from_hex("#6b7789")
PAPER = palette.from_hex("#f7f8fa")
FRAME = palette.from_hex("#e3e8ef")
HOVERED = palette.from_hex("#d3dcea")
ACTIVE = palette.from_hex("#bccbe2")
LINE = palette.from_hex("#ccd3de")
ACCENT = palette.HAND_FORCE
WHITE = (1.0, 1.0, 1.0)

LEVELS = {"plain": INK, "good": palette.GOOD, "warn": palette.WARN, "bad": palette.BAD}


class Fonts(NamedTuple):
    plain: imgui.ImFont
    bold: imgui.ImFont


def colour(rgb: Sequence[float], opacity: float = 1.0) -> ImVec4:
    """A colour as imgui takes it."""
    r, g, b = rgb
    return ImVec4(r, g, b, opacity)


def ink(rgb: Sequence[float], opacity: float = 1.0) -> int:
    """A colour as imgui's lists of drawings take it."""
    return int(imgui.color_convert_float4_to_u32(colour(rgb, opacity)))


def load_fonts() -> Fonts:
    """The letters; of any size, since imgui draws them when they are needed."""
    atlas = imgui.get_io().fonts
    names = ("Roboto-Regular.ttf", "Roboto-Bold.ttf")
    return Fonts(*(atlas.add_font_from_file_ttf(str(FONTS / name), TEXT) for name in names))


def letters() -> float:
    """Height of the letters [points of the pointer's coordinates], also between two frames."""
    style = imgui.get_style()
    return float(style.font_size_base * style.font_scale_dpi)


def apply(scale: float) -> None:
    """Set all sizes and colours; `scale` in pixels per point."""
    style = imgui.get_style()
    style.font_size_base = TEXT
    style.font_scale_dpi = scale
    for name, size in {
        "window_padding": (12, 10), "frame_padding": (7, 3.5), "item_spacing": (6, 5), "cell_padding": (4, 2),
        "item_inner_spacing": (6, 4), "separator_text_padding": (12, 0),
    }.items():  # fmt: skip
        setattr(style, name, imgui.ImVec2(size[0] * scale, size[1] * scale))
    for name, length in {
        "window_border_size": 0, "frame_rounding": 4, "grab_rounding": 4, "popup_rounding": 5,
        "window_rounding": 0, "child_rounding": 4, "scrollbar_size": 11, "grab_min_size": 11,
        "separator_text_border_size": 1, "indent_spacing": 12,
    }.items():  # fmt: skip
        setattr(style, name, length * scale)
    imgui.style_colors_light()
    c = imgui.Col_
    for which, rgb, opacity in (
        (c.text, INK, 1), (c.text_disabled, FAINT, 1), (c.window_bg, PAPER, 1), (c.child_bg, PAPER, 0),
        (c.popup_bg, WHITE, 1), (c.border, LINE, 1), (c.separator, LINE, 1), (c.frame_bg, FRAME, 1),
        (c.frame_bg_hovered, HOVERED, 1), (c.frame_bg_active, ACTIVE, 1), (c.button, FRAME, 1),
        (c.button_hovered, HOVERED, 1), (c.button_active, ACTIVE, 1), (c.header, FRAME, 1),
        (c.header_hovered, HOVERED, 1), (c.header_active, ACTIVE, 1), (c.slider_grab, ACCENT, 0.45),
        (c.slider_grab_active, ACCENT, 0.6), (c.check_mark, ACCENT, 1), (c.scrollbar_bg, PAPER, 0),
        (c.scrollbar_grab, LINE, 1), (c.title_bg_active, FRAME, 1), (c.title_bg, FRAME, 1),
        (c.table_border_light, LINE, 1), (c.text_selected_bg, ACCENT, 0.25),
    ):  # fmt: skip
        style.set_color_(which, colour(rgb, opacity))
    _apply_plots(scale)


def _apply_plots(scale: float) -> None:
    implot.style_colors_light()
    style, c = implot.get_style(), implot.Col_
    style.plot_padding = imgui.ImVec2(9 * scale, 4 * scale)
    style.label_padding = imgui.ImVec2(4 * scale, 3 * scale)
    style.plot_border_size = 1.0
    for which, rgb, opacity in (
        (c.frame_bg, PAPER, 0), (c.plot_bg, WHITE, 1), (c.plot_border, LINE, 1), (c.axis_text, FAINT, 1),
        (c.axis_grid, LINE, 0.7), (c.axis_tick, LINE, 1),
    ):  # fmt: skip
        style.set_color_(which, colour(rgb, opacity))
