"""The operator's panel in a picture instead of a window."""

import importlib
from typing import Any

from palpo.render.panel import Panel


class OffscreenPanel(Panel):
    """The same panel in pictures of width x height points, with a pointer that the program moves."""

    def __init__(self, width: int, height: int, scale: float = 1.0) -> None:
        super().__init__()
        self._size, self._wanted_scale = (width, height), scale

    def attach(self, window: Any = None) -> None:
        """Begin in the current context, of EGL for one; there is no window."""
        self._make_context()
        backend = importlib.import_module("imgui_bundle.python_backends.opengl_backend_programmable")
        self._renderer = backend.ProgrammablePipelineRenderer()
        self._dress(self._wanted_scale)

    def begin(self) -> None:
        """Begin a frame, a sixtieth of a second after the last."""
        self._enter()
        io = self._imgui.get_io()
        io.display_size, io.delta_time = self._imgui.ImVec2(*self._size), 1.0 / 60.0
        self._imgui.new_frame()

    def move(self, x: float, y: float) -> None:
        """The pointer is at (x, y) [points] from the upper left corner."""
        self._imgui.get_io().add_mouse_pos_event(x, y)

    def button(self, pressed: bool) -> None:
        """The left button went down or up."""
        self._imgui.get_io().add_mouse_button_event(0, pressed)

    def write(self, words: str) -> None:
        """Keys were typed."""
        self._imgui.get_io().add_input_characters_utf8(words)

    def key(self, name: str, pressed: bool) -> None:
        """A key of imgui's names went down or up: "enter", "mod_ctrl"."""
        self._imgui.get_io().add_key_event(getattr(self._imgui.Key, name), pressed)
