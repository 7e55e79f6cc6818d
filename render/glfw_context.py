"""An OpenGL context that comes with a window, shown or hidden; glfw is imported only here, and late."""

from __future__ import annotations

import importlib
import os
from typing import Any

from palpo.render import gl
from palpo.render.gl import RenderUnavailable


class GlfwContext:
    """An OpenGL 3.3 core context, current on the thread that makes it, which must be the main one.

    `glfw` is the module, `handle` the window. Raises RenderUnavailable, in one sentence, where there is no
    glfw, no display or no OpenGL 3.3.
    """

    def __init__(self, title: str = "", width: int = 64, height: int = 64, visible: bool = False) -> None:
        platform = gl.window_platform()
        gl.load(platform)
        self.glfw = glfw = _glfw(platform)
        glfw.ERROR_REPORTING = "raise"
        try:
            _start(glfw, platform)
            self.handle = _open(glfw, platform, title, width, height, visible)
        finally:
            # What fails later (no window positions in Wayland, a key without a name) has a harmless answer.
            glfw.ERROR_REPORTING = "log"
        self.make_current()

    def make_current(self) -> None:
        """Make it current on the calling thread."""
        self.glfw.make_context_current(self.handle)

    def close(self) -> None:
        """Close the window and release the context."""
        self.glfw.destroy_window(self.handle)


def _glfw(platform: str) -> Any:
    if platform == "x11":
        os.environ.setdefault("PYGLFW_LIBRARY_VARIANT", "x11")
        # Where the processor draws, Mesa's threads leave two of its cores to the servo and the slow loop.
        os.environ.setdefault("LP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) - 2)))
    try:
        return importlib.import_module("glfw")
    except (ImportError, OSError) as error:
        raise RenderUnavailable(
            f"a window needs the package glfw ({error}); install palpo[render]."
        ) from error


def _start(glfw: Any, platform: str) -> None:
    display = os.environ.get("DISPLAY")
    if platform == "x11" and not display:
        raise RenderUnavailable("there is no display to open a window on: DISPLAY is not set.")
    if platform == "x11" and hasattr(glfw, "PLATFORM_X11"):
        glfw.init_hint(glfw.PLATFORM, glfw.PLATFORM_X11)
    try:
        glfw.init()
    except glfw.GLFWError as error:
        where = f" on display {display}" if display else ""
        raise RenderUnavailable(f"no window can be opened{where} ({_reason(error)}).") from error


def _open(glfw: Any, platform: str, title: str, width: int, height: int, visible: bool) -> Any:
    glfw.default_window_hints()
    for hint, value in (
        (glfw.CONTEXT_VERSION_MAJOR, 3),
        (glfw.CONTEXT_VERSION_MINOR, 3),
        (glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE),
        (glfw.OPENGL_FORWARD_COMPAT, True),  # macOS has no other core profile
        (glfw.SCALE_TO_MONITOR, True),
        (glfw.VISIBLE, visible),
        # Frames are drawn into a framebuffer of our own, which has these.
        (glfw.DEPTH_BITS, 0),
        (glfw.STENCIL_BITS, 0),
    ):
        glfw.window_hint(hint, value)
    try:
        return glfw.create_window(width, height, title, None, None)
    except glfw.GLFWError as error:
        raise gl.missing(platform, f"no OpenGL 3.3 core profile: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """glfw's own words out of "(65550) b'X11: ...'"."""
    return str(error).split(") ", 1)[-1].removeprefix("b").strip("'\".")
