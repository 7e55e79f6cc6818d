"""The parts of the operator's panel, drawn anew in each frame from a `PanelState`.

Needs imgui-bundle; `palpo.render.panel` imports it late. Lengths are in `em`, the height of the letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from imgui_bundle import ImVec2, imgui

from palpo.render import palette
from palpo.render.camera import STANDARD_VIEWS
from palpo.render.launcher import Launcher
from palpo.render.overlays import Overlays
from palpo.render.panel_asking import Asking, Box
from palpo.render.panel_knobs import Knobs
from palpo.render.panel_over import draw_hint, draw_legend, draw_waiting
from palpo.render.panel_plots import draw_plot
from palpo.render.panel_readings import draw_force_bar, draw_loops, draw_readings
from palpo.render.panel_state import Light, PanelState
from palpo.render.panel_style import ACCENT, FAINT, INK, LEVELS, LINE, WHITE, Fonts, colour, ink, letters
from palpo.render.panel_timeline import HIGH as TIMELINE
from palpo.render.panel_timeline import draw_timeline
from palpo.render.panel_words import chip, dot, number, plain, right, shortened, text, wrapped
from palpo.render.requests import Request

WIDTH = 25.0
STRIP = 6.2
"""Width of the panel, and of what is left of it when it is folded away."""
SENTENCE = 3
"""Lines kept for the sentence of the light."""
LAST_MESSAGES = 50

FIXED = (
    imgui.WindowFlags_.no_decoration
    | imgui.WindowFlags_.no_move
    | imgui.WindowFlags_.no_saved_settings
    | imgui.WindowFlags_.no_bring_to_front_on_focus
)
OVERLAY_WORDS = {
    "rest": "shape at rest",
    "nearness": "discs, distance",
    "strain": "strain colours",
    "device": "device and hold",
    "side_by_side": "side by side",
}


class Parts:
    """Keeps only what is not the application's: what is folded or open, a knob's value while it is turned."""

    def __init__(self, fonts: Fonts) -> None:
        self._asking = Asking(fonts)
        self._launcher = Launcher(fonts)
        self._knobs = Knobs(self._asking)
        self.folded = self.detailed = False

    @property
    def places(self) -> dict[str, Box]:
        """Left, top, right and lower edge [points] of what was drawn, by kind or key of its request."""
        return self._asking.places

    @property
    def below(self) -> float:
        """Height of a timeline [points]."""
        return TIMELINE * letters()

    @property
    def width(self) -> float:
        """Width of the panel at the window's right edge [points]."""
        return float(np.ceil((STRIP if self.folded else WIDTH) * letters()))

    def draw(self, state: PanelState) -> list[Request]:
        """Draw everything; what was asked for in this frame, in its order."""
        asking = self._asking
        asking.begin()
        display = imgui.get_io().display_size
        if state.cards:
            self._launcher.draw(state.cards, state.scene, lambda name: asking.ask("scene", value=name))
            asking.places |= self._launcher.places
            return asking.requests
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
            below = self.below if state.timeline else 0.0
            draw_legend(state.legend, display.x - self.width, display.y, state.seen, below)
        if state.hint is not None and state.waiting is None:
            draw_hint(state.hint, display.x - self.width, display.y, state.seen, asking.fonts)
        if state.timeline is not None:
            draw_timeline(state.timeline, display.x - self.width, display.y, asking)
        if state.waiting is not None:
            draw_waiting(*state.waiting, display.x - self.width, display.y)
        if state.help:
            self._help(state.keys)
        return asking.requests

    def close(self) -> None:
        """Give back what is kept on the graphics side."""
        self._launcher.close()

    # ---- the two shapes of the panel

    def _strip(self, state: PanelState) -> None:
        if imgui.button("\u00ab##fold", ImVec2(-1, 0)):
            self.folded = False
        self._asking.place("fold")
        imgui.set_item_tooltip("Show the panel")
        if state.timeline is None:
            self._emergency(state, 3.6, "FORCE\nOFF", "FORCE\nIS OFF")
        with self._asking.bold(1.15):
            text(number(state.force, "N"))
        draw_force_bar(state.force, state.force_limit)
        text(f"of {number(state.force_limit, 'N')}", FAINT)
        for words, rgb in _flags(state):
            chip(words, rgb)
        imgui.dummy(ImVec2(0, 0.3 * imgui.get_font_size()))
        light = _light(state)
        dot(LEVELS[light.level])
        if light.word:
            imgui.set_item_tooltip(plain(f"{light.word}: {light.sentence}" if light.sentence else light.word))

    def _whole(self, state: PanelState) -> None:
        em = imgui.get_font_size()
        # what is clicked in haste stands first, where no words above can push it away
        self._heading(state)
        if state.timeline is None:
            self._emergency(state, 2.3, "FORCE OFF", "FORCE IS OFF")
            self._force(state)
            self._transport(state)
        else:
            text(f"force of the scene on the hand: {number(state.force, 'N')}")
            self._asking.button("Picture", "screenshot", -1.0)
        self._status(state)
        imgui.dummy(ImVec2(0, 0.1 * em))
        footer = imgui.get_frame_height_with_spacing() + 0.4 * em
        imgui.begin_child("sections", ImVec2(0, -footer))
        few = tuple(knob for knobs in state.knobs.values() for knob in knobs if knob.matters)
        if few and not self.detailed:
            self._knobs.draw({"": few})
        label = "Less" if self.detailed else "More: loops, curves, all parameters, view"
        if imgui.button(f"{label}##details", ImVec2(-1, 0)):
            self.detailed = not self.detailed
        self._asking.place("details")
        if self.detailed:
            self._sections(state)
        else:
            self._say(state.messages[-1:])
        imgui.end_child()
        imgui.separator()
        third = (imgui.get_content_region_avail().x - 2 * imgui.get_style().item_spacing.x) / 3
        if state.timeline is None:
            self._asking.button("Scenes (l)", "scenes", third)
            imgui.same_line()
        self._asking.button("Keys (h)", "help", third)
        imgui.same_line()
        self._asking.button("Quit (q)", "quit", third)

    def _sections(self, state: PanelState) -> None:
        opened = imgui.TreeNodeFlags_.default_open
        if (state.loops or state.readings) and imgui.collapsing_header("State", opened):
            if state.loops:
                draw_loops(state.loops)
            for title, readings in state.readings.items():
                draw_readings(title, readings)
        if state.plots and imgui.collapsing_header("History", opened):
            for k, plot in enumerate(state.plots):
                draw_plot(k, plot, self._asking)
        if state.knobs and imgui.collapsing_header("Parameters", opened):
            self._knobs.draw(state.knobs)
        shown = imgui.collapsing_header("View", opened)
        self._asking.place("View")
        if shown:
            self._view(state.overlays)
        if state.messages and imgui.collapsing_header("Messages", opened):
            self._say(state.messages[-LAST_MESSAGES:])

    @staticmethod
    def _say(messages: Sequence[str]) -> None:
        for words in messages:
            wrapped(words, INK)

    # ---- what never scrolls away

    def _heading(self, state: PanelState) -> None:
        em = imgui.get_font_size()
        fold = 1.9 * em
        imgui.set_next_item_width(-fold - imgui.get_style().item_spacing.x)
        with self._asking.bold():
            opened = imgui.begin_combo("##scene", state.scene or "no scene")
        self._asking.place("scene")
        if opened:
            for name in state.scenes:
                if imgui.selectable(name, name == state.scene)[0] and name != state.scene:
                    self._asking.ask("scene", value=name)
                self._asking.place(f"scene:{name}")
            imgui.end_combo()
        imgui.same_line()
        if imgui.button("\u00bb##fold", ImVec2(fold, 0)):
            self.folded = True
        self._asking.place("fold")
        imgui.set_item_tooltip("Hide the panel; FORCE OFF stays visible")

    def _status(self, state: PanelState) -> None:
        text(state.device or "no device", FAINT)
        right(f"{state.elapsed:.1f} s" if np.isfinite(state.elapsed) else "", FAINT)
        if state.light is None:
            self._lamp(_light(state), "")
        else:
            # as high whatever it says: nothing below may move away under the pointer
            lines = SENTENCE * imgui.get_text_line_height() + imgui.get_text_line_height_with_spacing()
            imgui.begin_child("light", ImVec2(0, lines), window_flags=imgui.WindowFlags_.no_scrollbar)
            self._lamp(state.light, state.status)
            imgui.end_child()
            imgui.set_item_tooltip(plain(": ".join(filter(None, state.light[:2]))))
        for k, (words, rgb) in enumerate(_flags(state)):
            if k:
                imgui.same_line()
            chip(words, rgb)
        if state.recording_path:
            text(shortened(state.recording_path, imgui.get_content_region_avail().x), FAINT)
            imgui.set_item_tooltip(plain(state.recording_path))

    def _lamp(self, light: Light, beside: str) -> None:
        if light.word:
            dot(LEVELS[light.level])
            imgui.same_line()
            if light.sentence:
                with self._asking.bold():
                    text(light.word, LEVELS[light.level])
                right(beside, FAINT)
            else:
                wrapped(light.word, LEVELS[light.level])
        if light.sentence:
            wrapped(light.sentence, FAINT)

    def _emergency(self, state: PanelState, height: float, on: str, off: str) -> None:
        red = palette.EMERGENCY
        dark = tuple(0.62 * c for c in red)
        face = dark if state.emergency else red
        imgui.push_style_color(imgui.Col_.button, colour(face))
        imgui.push_style_color(imgui.Col_.button_hovered, colour(tuple(0.88 * c for c in face)))
        imgui.push_style_color(imgui.Col_.button_active, colour(dark))
        imgui.push_style_color(imgui.Col_.text, colour(WHITE))
        with self._asking.bold(1.2):
            label = f"{off if state.emergency else on}##emergency"
            if imgui.button(label, ImVec2(-1, height * imgui.get_font_size() / 1.2)):
                self._asking.ask("emergency")
        imgui.pop_style_color(4)
        self._asking.place("emergency")

    def _force(self, state: PanelState) -> None:
        text("force on the hand", FAINT)
        limit = f"of {number(state.force_limit, 'N')}"
        with self._asking.bold(1.25):
            words = number(state.force, "N")
            gap = imgui.calc_text_size(words).x
        right(limit, FAINT)
        imgui.same_line()
        edge = imgui.get_content_region_max_x() if hasattr(imgui, "get_content_region_max_x") else self.width
        left = edge - imgui.calc_text_size(limit).x - gap - 1.6 * imgui.get_font_size()
        imgui.set_cursor_pos_x(left)
        imgui.set_cursor_pos_y(imgui.get_cursor_pos_y() - 0.12 * imgui.get_font_size())
        with self._asking.bold(1.25):
            text(words)
        draw_force_bar(state.force, state.force_limit)

    def _transport(self, state: PanelState) -> None:
        self._row(state, ("pause", "reset", "keep", "undo", "record"))
        if not self.detailed:
            return
        self._row(state, ("step", "screenshot", "save", "mute"))
        if state.handed:
            self._row(state, ("align", "mirror"))

    def _row(self, state: PanelState, kinds: Sequence[str]) -> None:
        """Buttons side by side."""
        gap = imgui.get_style().item_spacing.x
        width = (imgui.get_content_region_avail().x - (len(kinds) - 1) * gap) / len(kinds)
        for k, kind in enumerate(kinds):
            label, tip = _words_of(kind, state)
            if k:
                imgui.same_line()
            imgui.begin_disabled((kind == "step" and not state.paused) or (kind == "undo" and not state.kept))
            stops = kind == "record" and state.recording
            if stops:
                imgui.push_style_color(imgui.Col_.text, colour(ACCENT))
            self._asking.button(label, kind, width)
            if stops:
                imgui.pop_style_color()
            imgui.end_disabled()
            if tip:
                imgui.set_item_tooltip(tip)

    def _view(self, overlays: Overlays) -> None:
        names = [f.name for f in fields(Overlays) if isinstance(getattr(overlays, f.name), bool)]
        if imgui.begin_table("overlays", 2):
            for name in names:
                imgui.table_next_column()
                changed, shown = imgui.checkbox(OVERLAY_WORDS.get(name, name), getattr(overlays, name))
                self._asking.place(f"overlay:{name}")
                if changed:
                    self._asking.ask("overlay", name, shown)
            imgui.end_table()
        gap, columns = imgui.get_style().item_spacing.x, 4
        width = (imgui.get_content_region_avail().x - (columns - 1) * gap) / columns
        for k, name in enumerate(STANDARD_VIEWS):
            if k % columns:
                imgui.same_line()
            self._asking.button(name, "view", width, name)
        imgui.same_line()
        self._asking.button("fit", "fit", width)

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
                with self._asking.bold():
                    text(key, ACCENT)
                imgui.table_next_column()
                text(words)
            imgui.end_table()
        imgui.end()
        if not opened:
            self._asking.ask("help")


def _words_of(kind: str, state: PanelState) -> tuple[str, str]:
    """What stands on a button, and what it says to a pointer that rests."""
    match kind:
        case "pause":
            return ("Go on" if state.paused else "Pause"), ""
        case "keep":
            return "Keep", "Keep the present state, to return to it later (k)"
        case "undo":
            return (f"Undo to {state.kept}" if state.kept else "Undo"), "Go back to the kept state (z)"
        case "record":
            return ("Stop rec" if state.recording else "Record"), ""
        case "screenshot":
            return "Picture", ""
        case "save":
            return "Save scene", "Save the scene with its present values as a TOML file (e)"
        case "mute":
            tip = "Vibrations and sounds at contact, slip and click, on or off (m)"
            return ("Unmute" if state.muted else "Mute"), tip
        case "align":
            return "Align tool", "From how the device is held now the tool is as it was at rest (i)"
        case "mirror":
            other = "Left" if state.handed == "right" else "Right"
            return f"{other} hand", "Mirror how the tool sits on the device (j)"
        case _:
            return kind.capitalize(), ""


def _edge() -> None:
    """A line along the panel's left side."""
    p, h = imgui.get_window_pos(), imgui.get_window_height()
    imgui.get_window_draw_list().add_line(ImVec2(p.x, p.y), ImVec2(p.x, p.y + h), ink(LINE), 1.0)


def _light(state: PanelState) -> Light:
    """Before and after the loops run, the status is the light."""
    return state.light or Light(state.status, "", state.status_level)


def _flags(state: PanelState) -> list[tuple[str, palette.Colour]]:
    flags = (
        (state.paused, "PAUSED", palette.WARN),
        (state.frozen, "FROZEN", palette.WARN),
        (state.recording, "REC", ACCENT),
    )
    return [(words, rgb) for on, words, rgb in flags if on]
