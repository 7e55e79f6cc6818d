"""The essentials of the operator's panel as viser's controls: scene, light, force, what to press, a timeline.

It answers as `palpo.render.panel.Panel` does: it shows a `PanelState` and returns what is asked for.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from palpo.render import palette
from palpo.render.controls import PLAIN, Modifiers
from palpo.render.legend import Entry
from palpo.render.panel_state import Level, PanelState
from palpo.render.requests import Request

if TYPE_CHECKING:
    from palpo.app.web.window import PageWindow

COLOURS: dict[Level, palette.Colour] = {
    "plain": palette.REST,
    "good": palette.GOOD,
    "warn": palette.WARN,
    "bad": palette.BAD,
}
MODES: dict[str, Modifiers] = {
    "move": PLAIN,
    "in depth": frozenset({"shift"}),
    "turn": frozenset({"ctrl"}),
}
"""What a drag does to the tool, where there are no keys to hold."""
SPEEDS = ("0.1", "0.25", "0.5", "1", "2")
LAST = 1e9
"""Place among the controls of what is looked at least."""
ASKED = 64
"""Requests that wait, at most."""


class PagePanel:
    """The controls of all pages of a window, which are one set."""

    em, below = 16.0, 0.0

    def __init__(self, window: PageWindow) -> None:
        self._window, self._asked = window, deque[Request](maxlen=ASKED)
        self._gui = gui = window.server.viser.gui
        gui.set_panel_label("Palpo")
        self._head = gui.add_html("")
        self._pause = self._button("Pause", Request("pause"), "player-pause")
        self._reset = self._button("Reset", Request("reset"), "refresh")
        self._record = self._button("Record", Request("record"), "player-record")
        self._press = self._button("Press the tool's button", Request("press"), "hand-click")
        self._mode = gui.add_button_group("Drag", tuple(MODES))
        self._mode.on_click(self._choose_mode)
        self._now: Any = None
        self._speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1")
        self._speed.on_update(lambda event: self._choose(event, "speed", self._speed.value, SPEEDS))
        self._scene: Any = None
        self._said = gui.add_html("")
        with gui.add_folder("What is shown", expand_by_default=False, order=LAST):
            self._foot = gui.add_html("")
            self._shadow = gui.add_checkbox("Shadows", True, hint="slow where no graphics card draws")
            self._strain = gui.add_checkbox("Colours of strain", False)
            for name, control in (("shadow", self._shadow), ("strain", self._strain)):
                control.on_update(partial(self._overlay, name))

    def draw(self, state: PanelState) -> list[Request]:
        """Show the state; what was asked for since the last time."""
        live = state.timeline is None and state.device != ""
        _set(self._head, content=_head(state))
        _set(
            self._pause,
            label="Go on" if _stands(state) else "Pause",
            visible=live or state.timeline is not None,
        )
        for control in (self._reset, self._record, self._press, self._mode):
            _set(control, visible=live)
        _set(self._record, label="Stop recording" if state.recording else "Record")
        self._draw_timeline(state)
        if state.scenes and self._scene is None:
            self._scene = self._gui.add_dropdown(
                "Scene", ("", *state.scenes), initial_value=state.scene if state.scene in state.scenes else ""
            )
            offered = state.scenes
            self._scene.on_update(lambda event: self._choose(event, "scene", self._scene.value, offered))
        _set(self._said, content=_said(state))
        _set(self._foot, content=_foot(state))
        asked = list(self._asked)
        self._asked.clear()
        return asked

    def _draw_timeline(self, state: PanelState) -> None:
        line = state.timeline
        _set(self._speed, visible=line is not None)
        if line is None:
            return
        if self._now is None:
            longest = max(line.duration, 1e-3)
            self._now = self._gui.add_slider("Time [s]", 0.0, longest, 1e-3 * longest, 0.0)
            self._now.on_update(lambda event: self._ask(event, Request("seek", value=float(self._now.value))))
        _set(self._now, value=min(max(line.now, 0.0), line.duration))

    def _button(self, label: str, request: Request, icon: Any) -> Any:
        button = self._gui.add_button(label, icon=icon, visible=False)
        button.on_click(lambda event: self._asked.append(request))
        return button

    def _ask(self, event: Any, request: Request) -> None:
        """What somebody chose on a page, and was not set here."""
        if event.client_id is not None:
            self._asked.append(request)

    def _choose(self, event: Any, kind: str, value: str, offered: Sequence[str]) -> None:
        """One of those that are offered: a page could say another."""
        if value in offered:
            self._ask(event, Request(kind, value=value))

    def _overlay(self, name: str, event: Any) -> None:
        self._ask(event, Request("overlay", name, bool(event.target.value)))

    def _choose_mode(self, event: Any) -> None:
        self._window.mode = MODES.get(self._mode.value, PLAIN)


def _set(control: Any, **news: object) -> None:
    """Change what is another than before, so that nothing else is sent."""
    for name, value in news.items():
        if getattr(control, name) != value:
            setattr(control, name, value)


def _stands(state: PanelState) -> bool:
    return state.paused if state.timeline is None else not state.timeline.playing


def _css(colour: palette.Colour) -> str:
    return "rgb({},{},{})".format(*(round(255 * part) for part in colour))


def _dot(colour: palette.Colour) -> str:
    return (
        '<span style="display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.5em;'
        f'background:{_css(colour)}"></span>'
    )


def _head(state: PanelState) -> str:
    """Scene, status, light and force."""
    lines = [f'<b style="font-size:1.15em">{escape(state.scene)}</b>']
    if state.light is None or state.waiting is not None:
        words = state.waiting.words if state.waiting is not None else state.status
        lines.append(_dot(COLOURS[state.status_level]) + escape(words))
    else:
        lines.append(_dot(COLOURS[state.light.level]) + f"<b>{escape(state.light.word)}</b>")
        lines.append(f'<span style="opacity:.7">{escape(state.light.sentence)}</span>')
    if math.isfinite(state.force):
        lines.append(f"force <b>{state.force:.2f} N</b> at {state.elapsed:.1f} s")
    if state.force_limit > 0.0 and math.isfinite(state.force):
        share = 100 * min(state.force / state.force_limit, 1.0)
        lines.append(
            '<div style="height:.45em;border-radius:.2em;background:#d9dfe7"><div style="height:100%;'
            f'border-radius:.2em;background:{_css(palette.HAND_FORCE)};width:{share:.0f}%"></div></div>'
        )
    return _box(lines)


def _said(state: PanelState) -> str:
    """How to begin, for somebody who has not, and what was said."""
    lines = [] if state.hint is None else [escape(line) for line in state.hint.lines[-2:]]
    return _box(
        [*lines, *(f'<span style="opacity:.7">{escape(words)}</span>' for words in state.messages[-1:])]
    )


def _foot(state: PanelState) -> str:
    """What the scene is, and what the colours mean."""
    lines = []
    if state.hint is not None:
        lines = [f"<b>{escape(state.hint.title)}</b>", escape(" ".join(state.hint.lines[:-2]))]
    return _box(
        [*lines, *(_entry(entry) for entry in state.legend if entry.mark in ("dot", "square", "bar"))]
    )


def _entry(entry: Entry) -> str:
    """A line of the legend."""
    if entry.mark != "bar":
        return _dot(entry.colour) + escape(entry.words)
    colours = ",".join(_css((r, g, b)) for r, g, b in palette.COLOUR_MAP[::4].tolist())
    numbers = "".join(f"<span>{escape(number)}</span>" for number in entry.numbers)
    return (
        f'{escape(entry.words)}<div style="height:.6em;background:linear-gradient(to right,{colours})"></div>'
        f'<div style="display:flex;justify-content:space-between">{numbers}</div>'
    )


def _box(lines: list[str]) -> str:
    rows = "".join(f'<div style="margin-bottom:.35em">{line}</div>' for line in lines)
    return f'<div style="padding:.2em .8em;font-size:.85em;line-height:1.35">{rows}</div>'
