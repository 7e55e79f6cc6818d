"""The launcher: a card for each scene, with its picture and a sentence, to begin with a click.

Needs imgui-bundle; `palpo.render.panel_parts` imports it late. Lengths in `em`, the height of the letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render import gl, palette
from palpo.render.panel_state import Card
from palpo.render.panel_style import ACCENT, FAINT, FRAME, HOVERED, INK, LINE, WHITE, Fonts, colour, ink

NARROWEST, WORDS = 15.0, 6.2
"""Width of a card at least, and the height below its picture."""
ASPECT = 1.5
"""Width over height of a card's picture."""
FLAGS = (
    imgui.WindowFlags_.no_decoration.value - imgui.WindowFlags_.no_scrollbar.value
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings
)
HEADING = "What do you want to touch?"


class Launcher:
    """Draws the cards and keeps their pictures on the graphics side."""

    def __init__(self, fonts: Fonts) -> None:
        self._fonts = fonts
        self._textures: dict[str, int] = {}
        self.places: dict[str, tuple[float, float, float, float]] = {}
        """Left, top, right and lower edge of each card [points], by "card:NAME"."""

    def draw(self, cards: Sequence[Card], shown: str, ask: Callable[[str], None]) -> None:
        """Fill the window with cards, grouped as they come; `ask` is called with the name of a clicked one.

        shown: name of the scene that is open, if any.
        """
        display, em = imgui.get_io().display_size, imgui.get_font_size()
        self.places = {}
        imgui.set_next_window_pos(ImVec2(0, 0))
        imgui.set_next_window_size(display)
        imgui.begin("launcher", None, FLAGS)
        imgui.dummy(ImVec2(0, 0.4 * em))
        self._heading(HEADING, 1.6, INK)
        room, gap = imgui.get_content_region_avail().x, 0.9 * em
        across = max(1, int((room + gap) // (NARROWEST * em + gap)))
        width = (room + gap) / across - gap
        for group, members in groupby(cards, key=lambda card: card.group):
            imgui.dummy(ImVec2(0, 0.3 * em))
            self._heading(group, 1.1, FAINT)
            for number, card in enumerate(members):
                if number % across:
                    imgui.same_line(0, gap)
                if self._card(card, width, card.name == shown):
                    ask(card.name)
                low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
                self.places[f"card:{card.name}"] = (low.x, low.y, high.x, high.y)
        imgui.end()

    def close(self) -> None:
        """Give the pictures back; their context is current."""
        if self._textures:
            gl.glDeleteTextures(list(self._textures.values()))
            self._textures = {}

    def _heading(self, words: str, size: float, rgb: palette.Colour) -> None:
        imgui.push_font(self._fonts.bold, size * imgui.get_style().font_size_base)
        imgui.text_colored(colour(rgb), words)
        imgui.pop_font()

    def _card(self, card: Card, width: float, shown: bool) -> bool:
        """Draw one; whether it was clicked."""
        em, p = imgui.get_font_size(), imgui.get_cursor_screen_pos()
        picture = width / ASPECT
        clicked = imgui.invisible_button(f"card:{card.name}", ImVec2(width, picture + WORDS * em))
        hovered = imgui.is_item_hovered()
        drawing, end = imgui.get_window_draw_list(), imgui.get_item_rect_max()
        drawing.add_rect_filled(p, end, ink(HOVERED if hovered else WHITE), 0.4 * em)
        low, high = p, ImVec2(end.x, p.y + picture)
        if card.picture is None:
            drawing.add_rect_filled(low, high, ink(FRAME), 0.4 * em)
        else:
            texture = imgui.ImTextureRef(self._texture(card))
            drawing.add_image(texture, low, high)
        rim = ACCENT if hovered else palette.GOOD if shown else LINE
        drawing.add_rect(p, end, ink(rim), 0.4 * em, thickness=2.0 if hovered or shown else 1.0)
        left, top, inside = p.x + 0.6 * em, p.y + picture + 0.5 * em, width - 1.2 * em
        drawing.add_text(self._fonts.bold, em, ImVec2(left, top), ink(INK), card.title)
        drawing.add_text(
            self._fonts.plain,
            0.93 * em,
            ImVec2(left, top + 1.35 * em),
            ink(FAINT),
            card.words,
            wrap_width=inside,
        )
        return bool(clicked)

    def _texture(self, card: Card) -> int:
        """The picture's name in OpenGL, made when it is first asked for."""
        if card.name not in self._textures:
            assert card.picture is not None
            pixels = np.ascontiguousarray(card.picture)
            texture = int(gl.glGenTextures(1))
            gl.glBindTexture(gl.GL_TEXTURE_2D, texture)
            gl.glPixelStorei(gl.GL_UNPACK_ALIGNMENT, 1)
            for side in (gl.GL_TEXTURE_MIN_FILTER, gl.GL_TEXTURE_MAG_FILTER):
                gl.glTexParameteri(gl.GL_TEXTURE_2D, side, gl.GL_LINEAR)
            height, width, _ = pixels.shape
            gl.glTexImage2D(
                gl.GL_TEXTURE_2D, 0, gl.GL_RGB, width, height, 0, gl.GL_RGB, gl.GL_UNSIGNED_BYTE, pixels
            )
            gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
            self._textures[card.name] = texture
        return self._textures[card.name]
