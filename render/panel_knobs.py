"""The panel's controls for what may be changed while a scene runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from imgui_bundle import imgui

from palpo.render.panel_asking import Asking
from palpo.render.panel_state import Setting
from palpo.render.panel_style import FAINT
from palpo.render.panel_words import plain, shortened, text

ANSWER = 0.5
"""Seconds for which a knob shows what was asked for, while the application has not answered yet."""
COLUMN = 10.0
"""Width of the labels [em]."""


class _Wanted(NamedTuple):
    value: float | int
    until: float


class Knobs:
    """Keeps a knob's value while it is turned, until the application has taken it over."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._wanted: dict[str, _Wanted] = {}
        # the knob that takes a typed number, and whether it has the keys
        self._typed, self._typing = "", False

    def draw(self, groups: Mapping[str, tuple[Setting, ...]]) -> None:
        """All knobs, under the names of their groups."""
        for title, knobs in groups.items():
            if title:
                imgui.separator_text(title)
            for knob in knobs:
                imgui.push_id(knob.key)
                self._knob(knob)
                imgui.pop_id()

    def _knob(self, knob: Setting) -> None:
        column = COLUMN * imgui.get_font_size()
        imgui.align_text_to_frame_padding()
        text(shortened(knob.label, column - imgui.get_font_size()))
        if knob.help:
            imgui.set_item_tooltip(plain(knob.help))
        imgui.same_line(column)
        imgui.set_next_item_width(-1)
        if isinstance(knob.value, bool):
            changed, ticked = imgui.checkbox("##knob", knob.value)
            if changed:
                self._asking.ask("set", knob.key, ticked)
        elif isinstance(knob.value, str):
            self._choice(knob, knob.value)
        elif np.isfinite([knob.value, knob.lower, knob.upper]).all() and knob.lower < knob.upper:
            self._slider(knob, knob.value)
        else:
            text("no number", FAINT)
        self._asking.place(knob.key)

    def _choice(self, knob: Setting, value: str) -> None:
        if not imgui.begin_combo("##knob", value):
            return
        for name in knob.choices or ():
            if imgui.selectable(name, name == value)[0] and name != value:
                self._asking.ask("set", knob.key, name)
            self._asking.place(f"{knob.key}:{name}")
        imgui.end_combo()

    def _slider(self, knob: Setting, value: float | int) -> None:
        """Asks while it is dragged, when it is let go, and when a typed number is done: not at each digit."""
        wanted = self._wanted.get(knob.key)
        if wanted is not None and (wanted.until < imgui.get_time() or wanted.value == value):
            del self._wanted[knob.key]
            wanted = None
        shown = value if wanted is None else wanted.value
        if self._typed == knob.key:
            self._type(knob, shown)
            return
        log = knob.log and knob.lower > 0
        low, high, at = (np.log10([knob.lower, knob.upper, max(shown, knob.lower)]) if log
                         else (knob.lower, knob.upper, shown))  # fmt: skip
        words = f"{shown:.3g}" if log else f"{shown:.{_decimals(knob)}f}"
        form = plain(f"{words} {knob.unit}".rstrip())
        changed, at = imgui.slider_float("##knob", at, low, high, form, imgui.SliderFlags_.no_input)
        if imgui.is_item_clicked() and imgui.get_io().key_ctrl:
            self._typed = knob.key
        elif changed or imgui.is_item_deactivated_after_edit():
            moved = float(f"{10.0**at:.3g}") if log else round(at, _decimals(knob))
            self._set(knob, moved if changed else shown)
        elif imgui.is_item_active() and wanted is not None:
            self._wanted[knob.key] = _Wanted(wanted.value, imgui.get_time() + ANSWER)
        imgui.set_item_tooltip(plain(f"{knob.help}\nctrl + click to type".lstrip()))

    def _type(self, knob: Setting, shown: float | int) -> None:
        """A field for a number, until return takes it or something else is clicked."""
        if not self._typing:
            imgui.set_keyboard_focus_here()
        flags = imgui.InputTextFlags_.enter_returns_true | imgui.InputTextFlags_.auto_select_all
        entered, number = imgui.input_double("##knob", float(shown), 0.0, 0.0, "%.6g", flags)
        if entered and np.isfinite(number):
            self._set(knob, number)
        self._typing = imgui.is_item_active() or not self._typing
        if entered or not self._typing:
            self._typed, self._typing = "", False

    def _set(self, knob: Setting, value: float) -> None:
        value = min(max(value, knob.lower), knob.upper)
        wanted = round(value) if isinstance(knob.value, int) else float(value)
        self._wanted[knob.key] = _Wanted(wanted, imgui.get_time() + ANSWER)
        self._asking.ask("set", knob.key, wanted)


def _decimals(knob: Setting) -> int:
    """Those that tell a hundredth of the knob's way apart; none of an integer."""
    if isinstance(knob.value, int):
        return 0
    return int(np.clip(2 - np.floor(np.log10(max(knob.upper - knob.lower, 1e-12))), 0, 9))
