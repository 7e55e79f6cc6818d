"""OpenGL 3.3 core, loaded late: the one place that chooses PyOpenGL's platform.

PyOpenGL binds itself to EGL or GLX at its first import and cannot change afterwards, so nothing else in the
program imports it before `load`. Then OpenGL's names are attributes here: `gl.glEnable(gl.GL_BLEND)`.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

REMEDIES = {
    "egl": "PyOpenGL and, on Debian or Ubuntu, the packages libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri",
    "x11": "PyOpenGL, glfw and, on Debian or Ubuntu, the packages libgl1 libglx-mesa0 libgl1-mesa-dri "
    "libxcursor1 libxi6 libxinerama1 libxrandr2",
    "native": "PyOpenGL, glfw and the graphics card's own driver",
}
NAMES = ("gl", "GL_")
BARE = {"GL_1_1": ["glDrawElements"], "GL_1_5": ["glBufferData"], "GL_3_1": ["glDrawElementsInstanced"]}
"""What is called for each shape of each picture, by where PyOpenGL has it as it is in C, for numbers and
addresses alone: its conversions take longer than such a call does."""
_BOUND = {"EGLPlatform": "egl", "GLXPlatform": "x11"}

_module: ModuleType | None = None
_platform = ""


class RenderUnavailable(RuntimeError):
    """No picture can be drawn on this machine; the message is one sentence that says what is missing."""


def window_platform() -> str:
    """The platform of windows here: X11's on Linux, also in a Wayland session; elsewhere the system's own."""
    return "native" if sys.platform in ("win32", "darwin") else "x11"


def bound() -> str:
    """The platform that PyOpenGL is bound to in this process, whoever imported it; "" while it is free."""
    platform = getattr(sys.modules.get("OpenGL.platform"), "PLATFORM", None)
    return _BOUND.get(type(platform).__name__, "native") if platform is not None else ""


def renderer() -> str:
    """What draws in the current context, as it calls itself."""
    return str(__getattr__("glGetString")(__getattr__("GL_RENDERER")), "utf-8", "replace")


def load(platform: str) -> None:
    """Bind PyOpenGL to `platform`: "egl" for pictures without a display, or that of windows.

    Raises RenderUnavailable if its libraries are missing, or if this process has bound it to another one.
    """
    global _module, _platform
    if _platform == platform:
        return
    if bound() not in ("", platform):
        raise RenderUnavailable(
            f"OpenGL is already bound to {bound()} in this process, so {platform} needs a process of its own."
        )
    if platform != "native":
        os.environ["PYOPENGL_PLATFORM"] = platform
    try:
        options: Any = importlib.import_module("OpenGL")
        if platform == "egl":
            importlib.import_module("OpenGL.EGL")  # first: it cannot be imported with its checks off
        # One check at the end of each frame (`check`) finds the same errors at a hundredth of the calls.
        options.ERROR_CHECKING = False
        options.ERROR_LOGGING = False
        _module = importlib.import_module("OpenGL.GL")
        # found at once and not by way of `__getattr__`: a picture asks hundreds of times
        globals().update({name: known for name, known in vars(_module).items() if name.startswith(NAMES)})
        for version, names in BARE.items():
            bare = importlib.import_module(f"OpenGL.raw.GL.VERSION.{version}")
            globals().update({name: getattr(bare, name) for name in names})
    except (ImportError, OSError, AttributeError, TypeError) as error:
        raise missing(platform, error) from error
    _platform = platform


def missing(platform: str, error: object) -> RenderUnavailable:
    """The sentence that says what to install."""
    reason = str(error).strip().rstrip(".") or type(error).__name__
    return RenderUnavailable(
        f"OpenGL through {platform} is not available here ({reason}); install {REMEDIES[platform]}."
    )


def check() -> None:
    """Raise RuntimeError if an OpenGL call since the last check failed."""
    code = __getattr__("glGetError")()
    if code:
        raise RuntimeError(f"OpenGL reported error 0x{int(code):04x} while drawing.")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or _module is None:
        raise AttributeError(f"{name}: call palpo.render.gl.load first")
    return getattr(_module, name)
