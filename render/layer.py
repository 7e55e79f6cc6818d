"""What a window draws over its scene, and what goes before the scene with pointer and keys: the panel."""

from __future__ import annotations

from typing import Any, Protocol


class Layer(Protocol):
    """Called by the window, in the order attach, then (begin, end) or `again` for each frame, detach."""

    @property
    def due(self) -> bool:
        """Whether it is to be drawn anew in this frame; if not, the window keeps what it covers."""

    @property
    def covered(self) -> int:
        """Pixels of the picture's width, at its right, that the layer covers: the scene is drawn beside them.

        Asked for between `begin` and `end`, and before `again`.
        """

    def attach(self, window: Any) -> None:
        """Begin: `window` is glfw's handle, its context is current.

        Callbacks that the layer installs call those that were there before. Modules that import OpenGL are
        imported here, not earlier: the window chooses OpenGL's platform.
        """

    def begin(self) -> None:
        """Take over the events since the last frame, and begin a new one."""

    def wants_pointer(self) -> bool:
        """Whether the pointer's events belong to the layer."""

    def wants_keys(self) -> bool:
        """Whether keys belong to the layer; the emergency stop is heard all the same."""

    def end(self, width: int, height: int) -> None:
        """Draw the frame of width x height pixels into the bound framebuffer."""

    def again(self, width: int, height: int) -> None:
        """Draw what the last `end` drew over the scene once more; what it covers is still there."""

    def detach(self) -> None:
        """Give everything back; the context is still current."""
