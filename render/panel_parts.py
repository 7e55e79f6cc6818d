"""The parts of the operator's panel, drawn anew in each frame from a `PanelState`.

Needs imgui-bundle; `palpo.render.panel` imports it late. Lengths are in `em`, the height of the letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from imgui_bundle import ImVec2, imgui, implot

from palpo.render import palette
from palpo.render.camera import STANDARD_VIEWS
from palpo.render.launcher import Launcher
from palpo.render.legend import Entry, freest
from palpo.render.overlays import Overlays
from palpo.render.panel_state import Floats, Knob, Light, LoopReading, PanelState, Plot, Reading
from palpo.render.panel_style import (
    ACCENT,
    FAINT,
    INK,
    LEVELS,
    LINE,
    PAPER,
    WHITE,
    Fonts,
    colour,
    ink,
    letters,
)
from palpo.render.requests import Request

WIDTH = 25.0
STRIP = 6.2
"""Width of the panel, and of what is left of it when it is folded away."""
PLOT = 7.2
"""Height of a plot."""
ANSWER = 0.5
"""Seconds for which a knob shows what was asked for, while the application has not answered yet."""
SWEEP = 2.0
"""Seconds in which a bar without a share runs along once."""
SENTENCE = 3
"""Lines kept for the sentence of the light."""
LAST_MESSAGES = 50

FIXED = (
    imgui.WindowFlags_.no_decoration
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings
    | imgui.WindowFlags_.no_bring_to_front_on_focus
)
OVERLAY_WORDS = {"rest": "shape at rest", "strain": "strain colours", "device": "device and hold"}
Box = tuple[float, float, float, float]


class _Wanted(NamedTuple):
    value: float | int
    until: float


class Parts:
    """Keeps only what is not the application's: what is folded, and a knob's value while it is turned."""

    def __init__(self, fonts: Fonts) -> None:
        self._fonts = fonts
        self._launcher = Launcher(fonts)
        self._asked: list[Request] = []
        self._wanted: dict[str, _Wanted] = {}
        self._typed, self._typing = (
            "",
            False,
        )  # the knob that takes a typed number, and whether it has the keys
        self.folded = False
        self.places: dict[str, Box] = {}
        """Left, top, right and lower edge [points] of what was drawn, by kind or key of its request."""

    @property
    def width(self) -> float:
        """Width of the panel at the window's right edge [points]."""
        return float(np.ceil((STRIP if self.folded else WIDTH) * letters()))

    def draw(self, state: PanelState) -> list[Request]:
        """Draw everything; what was asked for in this frame, in its order."""
        self._asked = []
        self.places = {}
        display = imgui.get_io().display_size
        if state.cards:
            self._launcher.draw(state.cards, state.scene, lambda name: self._ask("scene", value=name))
            self.places |= self._launcher.places
            return self._asked
        imgui.set_next_window_pos(ImVec2(display.x - self.width, 0))
        imgui.set_next_window_size(ImVec2(self.width, display.y))
        imgui.begin("panel", None, FIXED)
        _edge()
        if self.folded:
            self._strip(state)
        else:
            self._whole(state)
        imgui.end()
        if state.overlays.labels and state.legend:
            draw_legend(state.legend, display.y, state.seen)
        if state.waiting is not None:
            draw_waiting(*state.waiting, display.x - self.width, display.y)
        if state.help:
            self._help(state.keys)
        return self._asked

    def close(self) -> None:
        """Give back what is kept on the graphics side."""
        self._launcher.close()

    # ---- helpers

    def _ask(self, kind: str, key: str = "", value: object = None) -> None:
        self._asked.append(Request(kind, key, value))

    def _place(self, name: str) -> None:
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        self.places[name] = (low.x, low.y, high.x, high.y)

    def _button(self, label: str, kind: str, width: float = 0.0, value: object = None) -> None:
        if imgui.button(label, ImVec2(width, 0)):
            self._ask(kind, value=value)
        self._place(kind if value is None else f"{kind}:{value}")

    @contextmanager
    def _bold(self, size: float = 1.0) -> Iterator[None]:
        imgui.push_font(self._fonts.bold, size * imgui.get_style().font_size_base)
        yield
        imgui.pop_font()

    # ---- the two shapes of the panel

    def _strip(self, state: PanelState) -> None:
        if imgui.button("\u00ab##fold", ImVec2(-1, 0)):
            self.folded = False
        self._place("fold")
        imgui.set_item_tooltip("Show the panel")
        self._emergency(state, 3.6, "FORCE\nOFF", "FORCE\nIS OFF")
        with self._bold(1.15):
            _text(_number(state.force, "N"))
        _force_bar(state.force, state.force_limit)
        _text(f"of {_number(state.force_limit, 'N')}", FAINT)
        for words, rgb in _flags(state):
            _chip(words, rgb)
        imgui.dummy(ImVec2(0, 0.3 * imgui.get_font_size()))
        light = _light(state)
        _dot(LEVELS[light.level])
        if light.word:
            imgui.set_item_tooltip(
                _plain(f"{light.word}: {light.sentence}" if light.sentence else light.word)
            )

    def _whole(self, state: PanelState) -> None:
        em = imgui.get_font_size()
        # what is clicked in haste stands first, where no words above can push it away
        self._heading(state)
        self._emergency(state, 2.3, "FORCE OFF", "FORCE IS OFF")
        self._force(state)
        self._transport(state)
        self._status(state)
        imgui.dummy(ImVec2(0, 0.1 * em))
        footer = imgui.get_frame_height_with_spacing() + 0.4 * em
        imgui.begin_child("sections", ImVec2(0, -footer))
        self._sections(state)
        imgui.end_child()
        imgui.separator()
        third = (imgui.get_content_region_avail().x - 2 * imgui.get_style().item_spacing.x) / 3
        self._button("Scenes (l)", "scenes", third)
        imgui.same_line()
        self._button("Keys (h)", "help", third)
        imgui.same_line()
        self._button("Quit (q)", "quit", third)

    def _sections(self, state: PanelState) -> None:
        opened = imgui.TreeNodeFlags_.default_open
        if (state.loops or state.readings) and imgui.collapsing_header("State", opened):
            if state.loops:
                _loops(state.loops)
            for title, readings in state.readings.items():
                _readings(title, readings)
        if state.plots and imgui.collapsing_header("History", opened):
            for number, plot in enumerate(state.plots):
                self._plot(number, plot)
        if state.knobs and imgui.collapsing_header("Parameters", opened):
            self._knobs(state.knobs)
        shown = imgui.collapsing_header("View", opened)
        self._place("View")
        if shown:
            self._view(state.overlays)
        if state.messages and imgui.collapsing_header("Messages", opened):
            for words in state.messages[-LAST_MESSAGES:]:
                imgui.push_text_wrap_pos(0)
                _text(words)
                imgui.pop_text_wrap_pos()

    # ---- what never scrolls away

    def _heading(self, state: PanelState) -> None:
        em = imgui.get_font_size()
        fold = 1.9 * em
        imgui.set_next_item_width(-fold - imgui.get_style().item_spacing.x)
        with self._bold():
            opened = imgui.begin_combo("##scene", state.scene or "no scene")
        self._place("scene")
        if opened:
            for name in state.scenes:
                if imgui.selectable(name, name == state.scene)[0] and name != state.scene:
                    self._ask("scene", value=name)
                self._place(f"scene:{name}")
            imgui.end_combo()
        imgui.same_line()
        if imgui.button("\u00bb##fold", ImVec2(fold, 0)):
            self.folded = True
        self._place("fold")
        imgui.set_item_tooltip("Fold the panel away; FORCE OFF stays")

    def _status(self, state: PanelState) -> None:
        _text(state.device or "no device", FAINT)
        _right(f"{state.elapsed:.1f} s" if np.isfinite(state.elapsed) else "", FAINT)
        if state.light is None:
            self._lamp(_light(state), "")
        else:
            # as high whatever it says: nothing below may move away under the pointer
            lines = SENTENCE * imgui.get_text_line_height() + imgui.get_text_line_height_with_spacing()
            imgui.begin_child("light", ImVec2(0, lines), window_flags=imgui.WindowFlags_.no_scrollbar)
            self._lamp(state.light, state.status)
            imgui.end_child()
            imgui.set_item_tooltip(_plain(": ".join(filter(None, state.light[:2]))))
        for number, (words, rgb) in enumerate(_flags(state)):
            if number:
                imgui.same_line()
            _chip(words, rgb)
        if state.recording_path:
            _text(_shortened(state.recording_path, imgui.get_content_region_avail().x), FAINT)
            imgui.set_item_tooltip(_plain(state.recording_path))

    def _lamp(self, light: Light, beside: str) -> None:
        if light.word:
            _dot(LEVELS[light.level])
            imgui.same_line()
            if light.sentence:
                with self._bold():
                    _text(light.word, LEVELS[light.level])
                _right(beside, FAINT)
            else:
                _wrapped(light.word, LEVELS[light.level])
        if light.sentence:
            _wrapped(light.sentence, FAINT)

    def _emergency(self, state: PanelState, height: float, on: str, off: str) -> None:
        red = palette.EMERGENCY
        dark = tuple(0.62 * c for c in red)
        face = dark if state.emergency else red
        imgui.push_style_color(imgui.Col_.button, colour(face))
        imgui.push_style_color(imgui.Col_.button_hovered, colour(tuple(0.88 * c for c in face)))
        imgui.push_style_color(imgui.Col_.button_active, colour(dark))
        imgui.push_style_color(imgui.Col_.text, colour(WHITE))
        with self._bold(1.2):
            label = f"{off if state.emergency else on}##emergency"
            if imgui.button(label, ImVec2(-1, height * imgui.get_font_size() / 1.2)):
                self._ask("emergency")
        imgui.pop_style_color(4)
        self._place("emergency")

    def _force(self, state: PanelState) -> None:
        _text("force on the hand", FAINT)
        limit = f"of {_number(state.force_limit, 'N')}"
        with self._bold(1.25):
            words = _number(state.force, "N")
            gap = imgui.calc_text_size(words).x
        _right(limit, FAINT)
        imgui.same_line()
        edge = imgui.get_content_region_max_x() if hasattr(imgui, "get_content_region_max_x") else self.width
        left = edge - imgui.calc_text_size(limit).x - gap - 1.6 * imgui.get_font_size()
        imgui.set_cursor_pos_x(left)
        imgui.set_cursor_pos_y(imgui.get_cursor_pos_y() - 0.12 * imgui.get_font_size())
        with self._bold(1.25):
            _text(words)
        _force_bar(state.force, state.force_limit)

    def _transport(self, state: PanelState) -> None:
        gap = imgui.get_style().item_spacing.x
        width = (imgui.get_content_region_avail().x - 4 * gap) / 5
        self._button("Go on" if state.paused else "Pause", "pause", width)
        imgui.same_line()
        imgui.begin_disabled(not state.paused)
        self._button("Step", "step", width)
        imgui.end_disabled()
        imgui.same_line()
        self._button("Reset", "reset", width)
        imgui.same_line()
        if state.recording:
            imgui.push_style_color(imgui.Col_.text, colour(palette.BAD))
        self._button("Stop rec" if state.recording else "Record", "record", width)
        if state.recording:
            imgui.pop_style_color()
        imgui.same_line()
        self._button("Picture", "screenshot", width)

    # ---- sections

    def _plot(self, number: int, plot: Plot) -> None:
        seconds, curves = _curves(plot)
        _text(f"{plot.title} [{plot.unit}]" if plot.unit else plot.title, INK)
        for k, (name, values) in enumerate(curves.items()):
            imgui.same_line(0, 0.8 * imgui.get_font_size())
            last = f" {values[-1]:.3g}" if len(values) and np.isfinite(values[-1]) else ""
            _text(name + last, palette.SERIES[k % len(palette.SERIES)])
        flags = implot.Flags_.canvas_only | implot.Flags_.no_inputs
        if not implot.begin_plot(f"##plot{number}", ImVec2(-1, PLOT * imgui.get_font_size()), flags):
            return
        x, y = _extent(seconds, curves, plot.limit)
        implot.setup_axes("", "", 0, 0)
        implot.setup_axes_limits(*x, *y, implot.Cond_.always)
        implot.setup_axis_format(implot.ImAxis_.x1, "%g s")
        implot.setup_axis_format(implot.ImAxis_.y1, "%g")
        for k, (name, values) in enumerate(curves.items()):
            good = np.isfinite(seconds) & np.isfinite(values)
            spec = implot.Spec(line_color=colour(palette.SERIES[k % len(palette.SERIES)]), line_weight=1.8)
            if good.any():
                implot.plot_line(f"##{name}", seconds[good], values[good], spec=spec)
        if plot.limit is not None and np.isfinite(plot.limit):
            _dashes(x, plot.limit)
        implot.end_plot()
        self._place(f"plot:{plot.title}")

    def _knobs(self, groups: Mapping[str, tuple[Knob, ...]]) -> None:
        for title, knobs in groups.items():
            imgui.separator_text(title)
            for knob in knobs:
                imgui.push_id(knob.key)
                self._knob(knob)
                imgui.pop_id()

    def _knob(self, knob: Knob) -> None:
        column = 0.40 * WIDTH * imgui.get_font_size()
        imgui.align_text_to_frame_padding()
        _text(_shortened(knob.label, column - imgui.get_font_size()))
        if knob.help:
            imgui.set_item_tooltip(_plain(knob.help))
        imgui.same_line(column)
        imgui.set_next_item_width(-1)
        if isinstance(knob.value, bool):
            changed, ticked = imgui.checkbox("##knob", knob.value)
            if changed:
                self._ask("set", knob.key, ticked)
        elif isinstance(knob.value, str):
            self._choice(knob, knob.value)
        elif np.isfinite([knob.value, knob.lower, knob.upper]).all() and knob.lower < knob.upper:
            self._slider(knob, knob.value)
        else:
            _text("no number", FAINT)
        self._place(knob.key)

    def _choice(self, knob: Knob, value: str) -> None:
        if not imgui.begin_combo("##knob", value):
            return
        for name in knob.choices or ():
            if imgui.selectable(name, name == value)[0] and name != value:
                self._ask("set", knob.key, name)
            self._place(f"{knob.key}:{name}")
        imgui.end_combo()

    def _slider(self, knob: Knob, value: float | int) -> None:
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
        form = _plain(f"{words} {knob.unit}".rstrip())
        changed, at = imgui.slider_float("##knob", at, low, high, form, imgui.SliderFlags_.no_input)
        if imgui.is_item_clicked() and imgui.get_io().key_ctrl:
            self._typed = knob.key
        elif changed or imgui.is_item_deactivated_after_edit():
            moved = float(f"{10.0**at:.3g}") if log else round(at, _decimals(knob))
            self._set(knob, moved if changed else shown)
        elif imgui.is_item_active() and wanted is not None:
            self._wanted[knob.key] = _Wanted(wanted.value, imgui.get_time() + ANSWER)
        imgui.set_item_tooltip(_plain(f"{knob.help}\nctrl + click to type".lstrip()))

    def _type(self, knob: Knob, shown: float | int) -> None:
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

    def _set(self, knob: Knob, value: float) -> None:
        value = min(max(value, knob.lower), knob.upper)
        wanted = round(value) if isinstance(knob.value, int) else float(value)
        self._wanted[knob.key] = _Wanted(wanted, imgui.get_time() + ANSWER)
        self._ask("set", knob.key, wanted)

    def _view(self, overlays: Overlays) -> None:
        names = [f.name for f in fields(Overlays) if isinstance(getattr(overlays, f.name), bool)]
        if imgui.begin_table("overlays", 2):
            for name in names:
                imgui.table_next_column()
                changed, shown = imgui.checkbox(OVERLAY_WORDS.get(name, name), getattr(overlays, name))
                self._place(f"overlay:{name}")
                if changed:
                    self._ask("overlay", name, shown)
            imgui.end_table()
        gap, columns = imgui.get_style().item_spacing.x, 4
        width = (imgui.get_content_region_avail().x - (columns - 1) * gap) / columns
        for number, name in enumerate(STANDARD_VIEWS):
            if number % columns:
                imgui.same_line()
            self._button(name, "view", width, name)
        imgui.same_line()
        self._button("fit", "fit", width)

    def _help(self, keys: tuple[tuple[str, str], ...]) -> None:
        display, em = imgui.get_io().display_size, imgui.get_font_size()
        middle = ImVec2(0.5 * (display.x - self.width), 0.5 * display.y)
        imgui.set_next_window_pos(middle, imgui.Cond_.appearing, ImVec2(0.5, 0.5))
        imgui.set_next_window_size_constraints(
            ImVec2(12 * em, 4 * em), ImVec2(0.9 * display.x, 0.9 * display.y)
        )
        flags = imgui.WindowFlags_.always_auto_resize | imgui.WindowFlags_.no_saved_settings
        flags |= imgui.WindowFlags_.no_collapse
        _, opened = imgui.begin("Keys and pointer", True, flags)
        if imgui.begin_table("keys", 2, imgui.TableFlags_.sizing_fixed_fit):
            for key, words in keys:
                imgui.table_next_column()
                with self._bold():
                    _text(key, ACCENT)
                imgui.table_next_column()
                _text(words)
            imgui.end_table()
        imgui.end()
        if not opened:
            self._ask("help")


def _loops(loops: tuple[LoopReading, ...]) -> None:
    flags = imgui.TableFlags_.sizing_stretch_prop | imgui.TableFlags_.borders_inner_h
    if not imgui.begin_table("loops", 4, flags):
        return
    for title in ("loop", "rate [Hz]", "late p99 [ms]", "missed"):
        imgui.table_next_column()
        _text(title, FAINT)
    for loop in loops:
        imgui.table_next_column()
        _text(loop.name)
        imgui.table_next_column()
        _text(_number(loop.rate_hz, "", 4), LEVELS[_level(loop)])
        imgui.same_line(0, 0)
        _text(f" / {_number(loop.target_hz, '', 4)}", FAINT)
        imgui.table_next_column()
        _text(_number(loop.late_p99_ms, ""))
        imgui.table_next_column()
        _text(str(loop.missed) if loop.missed >= 0 else "-", LEVELS["warn"] if loop.missed > 0 else INK)
    imgui.end_table()
    for loop in loops:
        if loop.note:
            imgui.push_text_wrap_pos(0)
            _text(f"{loop.name}: {loop.note}", FAINT)
            imgui.pop_text_wrap_pos()


def _level(loop: LoopReading) -> str:
    """How well a loop keeps its rate: well within a tenth, badly below a half."""
    share = loop.rate_hz / loop.target_hz if loop.target_hz > 0 else np.nan
    if not np.isfinite(share):
        return "plain"
    return "good" if share >= 0.9 else "warn" if share >= 0.5 else "bad"


def _readings(title: str, readings: tuple[Reading, ...]) -> None:
    imgui.separator_text(title)
    if not imgui.begin_table(f"##{title}", 2, imgui.TableFlags_.sizing_stretch_same):
        return
    for reading in readings:
        imgui.table_next_column()
        _text(reading.label, FAINT)
        imgui.table_next_column()
        _text(reading.text, LEVELS[reading.level])
    imgui.end_table()


def draw_waiting(words: str, share: float, width: float, height: float) -> None:
    """Words and a bar on the lower part of a scene [points]; a bar that only moves where `share` is NaN."""
    drawing, em = imgui.get_background_draw_list(), imgui.get_font_size()
    size = min(max(imgui.calc_text_size(words).x, 18.0 * em), width - 2.0 * em)
    left, top = 0.5 * (width - size), height - 6.5 * em
    drawing.add_rect_filled(
        ImVec2(left - em, top - 0.6 * em), ImVec2(left + size + em, top + 3.0 * em), ink(WHITE, 0.9), 0.5 * em
    )
    _write(drawing, left, top + 0.5 * em, words)
    now = imgui.get_time() / SWEEP % 1.0
    begin, end = (0.0, share) if share == share else (max(0.0, 1.25 * now - 0.25), min(1.0, 1.25 * now))
    y, thick = top + 2.0 * em, 0.25 * em
    for a, b, rgb in ((0.0, 1.0, LINE), (begin, end, ACCENT)):
        corners = ImVec2(left + a * size, y - thick), ImVec2(left + b * size, y + thick)
        drawing.add_rect_filled(*corners, ink(rgb), thick)


def draw_legend(entries: tuple[Entry, ...], height: float, seen: Floats) -> None:
    """The legend in that left corner of a window `height` points high where it hides less of what is seen.

    It stands behind all else of imgui. seen: shares of the window's height, (n, 2), right and down.
    """
    drawing, em = imgui.get_background_draw_list(), imgui.get_font_size()
    line, gap, apart, edge = 1.55 * em, 0.8 * em, 0.8 * em, 1.0 * em
    marks = em * max(entry.length for entry in entries)
    width = marks + apart + max(imgui.calc_text_size(entry.words).x for entry in entries) + 2 * gap
    box = line * sum(entry.lines for entry in entries) + 0.8 * em
    places = ((edge, height - edge - box), (edge, edge))
    left, top = places[freest(places, width, box, height * seen)]
    corners = (ImVec2(left, top), ImVec2(left + width, top + box))
    drawing.add_rect_filled(*corners, ink(WHITE, 0.84), 0.4 * em)
    drawing.add_rect(*corners, ink(LINE), 0.4 * em)
    x, y = left + gap, top + 0.4 * em + 0.5 * line
    for entry in entries:
        if entry.mark == "bar":
            _write(drawing, x, y, entry.words)
            _bar(drawing, entry, x, y + line, width - 2 * gap)
            for words, share in zip(entry.numbers, (0.0, 0.5, 1.0), strict=True):
                shift = share * (width - 2 * gap - imgui.calc_text_size(words).x)
                _write(drawing, x + shift, y + 1.9 * line, words)
        else:
            _mark(drawing, entry, x, y, marks)
            _write(drawing, x + marks + apart, y, entry.words)
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


def _write(drawing: imgui.ImDrawList, x: float, y: float, words: str) -> None:
    drawing.add_text(ImVec2(x, y - 0.5 * imgui.get_font_size()), ink(INK), words)


def _edge() -> None:
    """A line along the panel's left side."""
    p, h = imgui.get_window_pos(), imgui.get_window_height()
    imgui.get_window_draw_list().add_line(ImVec2(p.x, p.y), ImVec2(p.x, p.y + h), ink(LINE), 1.0)


def _text(words: str, rgb: palette.Colour = INK) -> None:
    imgui.push_style_color(imgui.Col_.text, colour(rgb))
    imgui.text_unformatted(words)
    imgui.pop_style_color()


def _right(words: str, rgb: palette.Colour) -> None:
    """Words at the right end of the present line."""
    imgui.same_line()
    room = imgui.get_content_region_avail().x - imgui.calc_text_size(words).x
    imgui.set_cursor_pos_x(imgui.get_cursor_pos_x() + max(room, 0.0))
    _text(words, rgb)


def _dot(rgb: palette.Colour) -> None:
    em, p = imgui.get_font_size(), imgui.get_cursor_screen_pos()
    imgui.get_window_draw_list().add_circle_filled(
        ImVec2(p.x + 0.4 * em, p.y + 0.5 * em), 0.33 * em, ink(rgb)
    )
    imgui.dummy(ImVec2(0.8 * em, em))


def _chip(words: str, rgb: palette.Colour) -> None:
    """A word on a coloured ground."""
    em, p, size = imgui.get_font_size(), imgui.get_cursor_screen_pos(), imgui.calc_text_size(words)
    drawing, end = imgui.get_window_draw_list(), ImVec2(p.x + size.x + 0.8 * em, p.y + size.y + 0.2 * em)
    drawing.add_rect_filled(p, end, ink(rgb), 0.3 * em)
    drawing.add_text(ImVec2(p.x + 0.4 * em, p.y + 0.1 * em), ink(WHITE), words)
    imgui.dummy(ImVec2(end.x - p.x, end.y - p.y))


def _wrapped(words: str, rgb: palette.Colour) -> None:
    imgui.push_text_wrap_pos(0)
    _text(words, rgb)
    imgui.pop_text_wrap_pos()


def _light(state: PanelState) -> Light:
    """Before and after the loops run, the status is the light."""
    return state.light or Light(state.status, "", state.status_level)


def _flags(state: PanelState) -> list[tuple[str, palette.Colour]]:
    flags = (
        (state.paused, "PAUSED", palette.WARN),
        (state.frozen, "FROZEN", palette.WARN),
        (state.recording, "REC", palette.BAD),
    )
    return [(words, rgb) for on, words, rgb in flags if on]


def _force_bar(force: float, limit: float) -> None:
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


def _curves(plot: Plot) -> tuple[Floats, dict[str, Floats]]:
    """Times and curves of one length: the newest of each."""
    seconds = np.asarray(plot.seconds, float).ravel()
    curves = {name: np.asarray(values, float).ravel() for name, values in plot.series.items()}
    n = min([len(seconds), *(len(values) for values in curves.values())])
    return seconds[len(seconds) - n :], {name: v[len(v) - n :] for name, v in curves.items()}


def _extent(
    seconds: Floats, curves: Mapping[str, Floats], limit: float | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes: zero is in view, and the limit once a curve comes to a third of it."""
    times = seconds[np.isfinite(seconds)]
    values = np.concatenate([np.zeros(1), *curves.values()])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if limit is not None and np.isfinite(limit) and max(-low, high) > limit / 3:
        low, high = (-limit if -low > limit / 3 else low), max(high, limit)
    margin = 0.08 * (high - low) or 1.0
    x = (float(times.min()), float(times.max())) if len(times) else (0.0, 1.0)
    return (x if x[0] < x[1] else (x[0] - 1.0, x[1])), (low - margin if low < 0 else low, high + margin)


def _dashes(x: tuple[float, float], limit: float) -> None:
    """Both signs of a limit; the axes show what they show."""
    at = np.linspace(*x, 60)
    spec = implot.Spec(line_color=colour(palette.BAD, 0.8), flags=implot.LineFlags_.segments)
    for sign in (-1.0, 1.0):
        implot.plot_line("##limit", at, np.full(len(at), sign * limit), spec=spec)


def _decimals(knob: Knob) -> int:
    """Those that tell a hundredth of the knob's way apart; none of an integer."""
    if isinstance(knob.value, int):
        return 0
    return int(np.clip(2 - np.floor(np.log10(max(knob.upper - knob.lower, 1e-12))), 0, 9))


def _number(value: float, unit: str, digits: int = 3) -> str:
    words = f"{value:.{digits}g}" if np.isfinite(value) else "-"
    if unit == "N" and np.isfinite(value):
        words = f"{value:.2f}"
    return f"{words} {unit}".rstrip()


def _plain(words: str) -> str:
    """As a format of C, which would take a percent sign for its own."""
    return words.replace("%", "%%")


def _shortened(words: str, width: float) -> str:
    """The end of the words with dots before it, where they are wider than `width`."""
    if imgui.calc_text_size(words).x <= width:
        return words
    while words and imgui.calc_text_size(f"\u2026{words}").x > width:
        words = words[1:]
    return f"\u2026{words}"
