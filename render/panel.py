"""The operator's panel over a scene: imgui and ImPlot in a window of glfw.

    panel = Panel()                       # before anything imports glfw
    window = Window(..., layer=panel)
    requests = panel.draw(state)          # between the layer's begin and end

It shows a `PanelState` and returns what the operator asks for; it decides nothing and keeps nothing.
"""

from __future__ import annotations

import ctypes
import importlib
import time
from typing import Any, NamedTuple

import numpy as np

from palpo.render.gl import RenderUnavailable
from palpo.render.panel_state import PanelState
from palpo.render.requests import Request

SENTENCE = "the panel needs imgui-bundle, which is not available here ({}); install the extra palpo[window]."
PERIOD = 0.1
"""Seconds after which a panel that nobody touches is drawn anew: nobody reads numbers faster."""
SETTLED = 0.5
"""Seconds after an event for which it is drawn in every frame."""
VERTEX_FLOATS = 5
"""Words in a vertex of imgui: place, place in the atlas, colour."""
NOWHERE = -1e30
"""Where the pointer is for imgui when it is not over the window."""


class _Kept(NamedTuple):
    """Lists of drawings in pixels already, in the place of imgui's own."""

    cmd_lists: list[Any]

    def scale_clip_rects(self, scale: Any) -> None:
        """Nothing: imgui's were scaled when they were drawn first."""


def _leftmost(drawn: Any) -> float:
    """The smallest x [points] of what a list draws; imgui's vertices begin with their x."""
    vertices = drawn.vtx_buffer
    if not vertices.size():
        return np.inf
    block = (ctypes.c_float * (VERTEX_FLOATS * vertices.size())).from_address(vertices.data_address())
    return float(np.frombuffer(block, np.float32)[::VERTEX_FLOATS].min())


class Panel:
    """A layer of `Window`. Raises RenderUnavailable, in one sentence, where there is no panel library."""

    def __init__(self) -> None:
        try:
            # first of all: it brings the glfw library that it was built for
            self._imgui: Any = importlib.import_module("imgui_bundle").imgui
            self._implot: Any = importlib.import_module("imgui_bundle").implot
            self._style: Any = importlib.import_module("palpo.render.panel_style")
            self._module: Any = importlib.import_module("palpo.render.panel_parts")
        except (ImportError, OSError, AttributeError) as error:
            raise RenderUnavailable(SENTENCE.format(str(error).strip().rstrip("."))) from error
        self._renderer: Any = None
        self._scale = 1.0
        self._drawn = self._heard = -1e30
        self._help = False

    @staticmethod
    def missing() -> str:
        """The sentence that says why there can be no panel; empty if there can."""
        try:
            Panel()
        except RenderUnavailable as why:
            return str(why)
        return ""

    @property
    def places(self) -> dict[str, tuple[float, float, float, float]]:
        """Left, top, right and lower edge [points] of what was drawn, by kind or key of its request."""
        return dict(self._parts.places)

    @property
    def covered(self) -> int:
        """Pixels of the picture's width, at its right, that the panel covers."""
        return round(self._parts.width * self._imgui.get_io().display_framebuffer_scale.x)

    @property
    def below(self) -> float:
        """Height of a timeline, in shares of the window's height."""
        return float(self._parts.below / max(self._imgui.get_io().display_size.y, 1.0))

    @property
    def em(self) -> float:
        """Height of the letters [pixels of the picture], for `legend_entries`."""
        return float(self._style.letters() * self._imgui.get_io().display_framebuffer_scale.y)

    def attach(self, window: Any) -> None:
        """Begin in glfw's window, whose context is current; its callbacks go on being called, after imgui."""
        self._make_context()
        backend = importlib.import_module("imgui_bundle.python_backends.glfw_backend")
        self._renderer = backend.GlfwRenderer(window, attach_callbacks=False)
        self._chain(backend.glfw, window)
        self._dress(self._density())

    @property
    def due(self) -> bool:
        """While somebody is at it in every frame, else from time to time."""
        now = time.perf_counter()
        touched = self.wants_pointer() or self.wants_keys() or now - self._heard < SETTLED
        return touched or now - self._drawn >= PERIOD

    def begin(self) -> None:
        """Take over the events since the last time, and begin anew."""
        self._drawn = time.perf_counter()
        self._enter()
        self._renderer.process_inputs()
        if self._density() != self._scale:
            self._dress(self._density())
        self._imgui.new_frame()

    def draw(self, state: PanelState) -> list[Request]:
        """Show the state; what the operator asked for since the last frame. Between `begin` and `end`."""
        self._help = state.help
        requests: list[Request] = self._parts.draw(state)
        return requests

    def wants_pointer(self) -> bool:
        """Whether the pointer is over the panel, or drags something of it."""
        return bool(self._imgui.get_io().want_capture_mouse)

    def wants_keys(self) -> bool:
        """Whether a number is being typed."""
        return bool(self._imgui.get_io().want_text_input)

    def end(self, width: int, height: int) -> None:
        """Draw into the bound framebuffer, which is the whole window."""
        self._enter()
        self._imgui.render()
        self._renderer.render(self._imgui.get_draw_data())

    def again(self, width: int, height: int) -> None:
        """Draw what lies over the scene as `end` left it: the legend, a list that is open."""
        self._enter()
        # the panel's own edge is smoothed into the scene by half a point
        left = self._imgui.get_io().display_size.x - self._parts.width - 1.0
        over = [drawn for drawn in self._imgui.get_draw_data().cmd_lists if _leftmost(drawn) < left]
        if over:
            self._renderer.render(_Kept(over))

    def detach(self) -> None:
        """Give everything back; the context is still current. Callbacks of a window in use stay harmless."""
        if self._renderer is not None:
            self._enter()
            self._parts.close()
            self._renderer.shutdown()
            self._renderer = None
            self._implot.destroy_context(self._plots)
            self._imgui.destroy_context(self._context)

    def _make_context(self) -> None:
        self._context, self._plots = self._imgui.create_context(), self._implot.create_context()
        self._enter()
        self._imgui.get_io().set_ini_filename("")
        self._parts = self._module.Parts(self._style.load_fonts())

    def _enter(self) -> None:
        self._imgui.set_current_context(self._context)
        self._implot.set_current_context(self._plots)

    def _dress(self, scale: float) -> None:
        self._scale = scale
        self._style.apply(scale)

    def _density(self) -> float:
        """Size of letters in the pointer's coordinates: 1 where the system itself scales windows."""
        glfw, window = self._renderer_glfw, self._renderer.window
        content, drawn = glfw.get_window_content_scale(window)[0], glfw.get_framebuffer_size(window)[0]
        return float(content * glfw.get_window_size(window)[0] / max(drawn, 1)) or 1.0

    def _chain(self, glfw: Any, window: Any) -> None:
        """Let imgui hear every event first, and then whoever listened before."""
        self._renderer_glfw = glfw
        heard = self._renderer
        for install, hear in (
            (glfw.set_key_callback, heard.keyboard_callback),
            (glfw.set_char_callback, heard.char_callback),
            (glfw.set_mouse_button_callback, heard.mouse_button_callback),
            (glfw.set_scroll_callback, heard.scroll_callback),
            (glfw.set_cursor_pos_callback, self._on_move),
            (glfw.set_cursor_enter_callback, self._on_presence),
        ):
            before: list[Any] = []

            def callback(w: Any, *event: Any, hear: Any = hear, before: list[Any] = before) -> None:
                if self._renderer is not None:
                    self._enter()
                    hear(w, *event)
                    if hear != self._on_move:
                        self._heard = time.perf_counter()
                for listener in before:
                    listener(w, *event)

            earlier = install(window, callback)
            if earlier is not None:
                before.append(earlier)

    def _on_move(self, _: Any, x: float, y: float) -> None:
        self._imgui.get_io().add_mouse_pos_event(x, y)
        over = x >= self._imgui.get_io().display_size.x - self._parts.width
        if over or self._help or self.wants_pointer():
            self._heard = time.perf_counter()

    def _on_presence(self, _: Any, inside: int) -> None:
        if not inside:
            self._imgui.get_io().add_mouse_pos_event(NOWHERE, NOWHERE)
