"""OpenGL 3.3 core, loaded late: the one place that chooses PyOpenGL's platform.

PyOpenGL binds itself to EGL or GLX at its first import and cannot change afterwards, so nothing else in the
program imports it. After `load`, OpenGL's names are attributes of this module: `gl.glEnable(gl.GL_BLEND)`.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

PACKAGES = {
    "egl": "libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri",
    "x11": "libgl1 libglx-mesa0 libgl1-mesa-dri libxcursor1 libxi6 libxinerama1 libxrandr2",
}

_module: ModuleType | None = None
_platform = ""


class RenderUnavailable(RuntimeError):
    """No picture can be drawn on this machine; the message is one sentence that says what is missing."""


def load(platform: str) -> None:
    """Bind PyOpenGL to `platform` ("egl" for pictures without a display, "x11" for a window).

    Raises RenderUnavailable if its libraries are missing, or if this process has bound it to another one.
    """
    global _module, _platform
    if _platform == platform:
        return
    loaded = sys.modules.get("OpenGL.platform") and os.environ.get("PYOPENGL_PLATFORM")
    if loaded and loaded != platform:
        raise RenderUnavailable(
            f"OpenGL is already bound to {loaded} in this process, so {platform} needs a process of its own."
        )
    os.environ["PYOPENGL_PLATFORM"] = platform
    try:
        options: Any = importlib.import_module("OpenGL")
        if platform == "egl":
            importlib.import_module("OpenGL.EGL")  # first: it cannot be imported with its checks off
        # One check at the end of each frame (`check`) finds the same errors at a hundredth of the calls.
        options.ERROR_CHECKING = False
        options.ERROR_LOGGING = False
        _module = importlib.import_module("OpenGL.GL")
    except (ImportError, OSError, AttributeError, TypeError) as error:
        raise missing(platform, error) from error
    _platform = platform


def missing(platform: str, error: object) -> RenderUnavailable:
    """The sentence that says what to install."""
    reason = str(error).strip().rstrip(".") or type(error).__name__
    return RenderUnavailable(
        f"OpenGL through {platform} is not available here ({reason}); "
        f"install PyOpenGL and, on Debian or Ubuntu, the packages {PACKAGES.get(platform, PACKAGES['x11'])}."
    )


def check() -> None:
    """Raise RuntimeError if an OpenGL call since the last check failed."""
    code = __getattr__("glGetError")()
    if code:
        raise RuntimeError(f"OpenGL reported error 0x{int(code):04x} while drawing.")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or _module is None:
        raise AttributeError(f"{name}: call render.gl.load first")
    return getattr(_module, name)
