"""Pictures without a display, from an EGL context that has no surface, or from a hidden window's."""

from __future__ import annotations

import importlib
from typing import Any

from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render import gl
from palpo.render.annotate import annotate
from palpo.render.camera import Camera
from palpo.render.framebuffer import Framebuffer, Picture
from palpo.render.gl import RenderUnavailable
from palpo.render.glfw_context import GlfwContext
from palpo.render.overlays import Overlays
from palpo.render.scene_view import SceneView, visible_points

__all__ = ["EglContext", "Framebuffer", "Offscreen", "RenderUnavailable", "render_picture"]

SURFACELESS_MESA = 0x31DD
MAJOR, MINOR, PROFILE, CORE = 0x3098, 0x30FB, 0x30FD, 1


class EglContext:
    """An OpenGL 3.3 core context, current on the thread that makes it; RenderUnavailable if there is none."""

    def __init__(self) -> None:
        gl.load("egl")
        try:
            self._egl: Any = importlib.import_module("OpenGL.EGL")
            self._display = self._open_display()
            self._context = self._create()
        except RenderUnavailable:
            raise
        except Exception as error:  # ctypes, attribute or EGL errors alike when a driver lacks a call
            raise gl.missing("egl", f"{type(error).__name__}: {error}") from error
        self.make_current()

    def make_current(self) -> None:
        """Make it current on the calling thread."""
        none = self._egl.EGL_NO_SURFACE
        if not self._egl.eglMakeCurrent(self._display, none, none, self._context):
            raise gl.missing("egl", "eglMakeCurrent refused a context without a surface")

    def close(self) -> None:
        """Release it; the display stays open for contexts made later in this process."""
        egl = self._egl
        egl.eglMakeCurrent(self._display, egl.EGL_NO_SURFACE, egl.EGL_NO_SURFACE, egl.EGL_NO_CONTEXT)
        egl.eglDestroyContext(self._display, self._context)

    def _open_display(self) -> Any:
        egl = self._egl
        platform_base = importlib.import_module("OpenGL.EGL.EXT.platform_base")
        major, minor = egl.EGLint(), egl.EGLint()
        candidates = (
            lambda: platform_base.eglGetPlatformDisplayEXT(SURFACELESS_MESA, egl.EGL_DEFAULT_DISPLAY, None),
            lambda: egl.eglGetDisplay(egl.EGL_DEFAULT_DISPLAY),
        )
        reason: object = "no EGL display could be opened"
        for candidate in candidates:
            try:
                display = candidate()
                if display and egl.eglInitialize(display, major, minor):
                    return display
            except Exception as error:  # the next candidate may do; the last reason is reported
                reason = error
        raise gl.missing("egl", reason)

    def _create(self) -> Any:
        egl = self._egl
        egl.eglBindAPI(egl.EGL_OPENGL_API)
        wanted = (
            *(egl.EGL_SURFACE_TYPE, egl.EGL_PBUFFER_BIT),
            *(egl.EGL_RENDERABLE_TYPE, egl.EGL_OPENGL_BIT),
            egl.EGL_NONE,
        )
        config, count = (egl.EGLConfig * 1)(), egl.EGLint()
        egl.eglChooseConfig(self._display, (egl.EGLint * len(wanted))(*wanted), config, 1, count)
        if not count.value:
            raise gl.missing("egl", "no EGL configuration draws OpenGL")
        version = (MAJOR, 3, MINOR, 3, PROFILE, CORE, egl.EGL_NONE)
        attributes = (egl.EGLint * len(version))(*version)
        context = egl.eglCreateContext(self._display, config[0], egl.EGL_NO_CONTEXT, attributes)
        if not context:
            raise gl.missing("egl", "the driver has no OpenGL 3.3 core profile")
        return context


def open_context() -> EglContext | GlfwContext:
    """EGL's, which needs no display; a hidden window's where there is no EGL or a window has bound OpenGL."""
    if gl.window_platform() == "x11" and gl.bound() in ("", "egl"):
        return EglContext()
    return GlfwContext()


class Offscreen:
    """Takes pictures of one scene: `with Offscreen(geometry, state, 1280, 800) as photographer: ...`."""

    def __init__(self, geometry: SceneGeometry, state: SceneState, width: int, height: int) -> None:
        self._context = open_context()
        self._frame = Framebuffer(width, height)
        self._view = SceneView(geometry, state)

    def __enter__(self) -> Offscreen:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def picture(
        self, state: SceneState, camera: Camera, overlays: Overlays | None = None, title: str = ""
    ) -> Picture:
        """One frame, (height, width, 3), with its legend if `overlays.labels`."""
        overlays = overlays or Overlays()
        self._context.make_current()
        self._frame.bind()
        scale = self._view.draw(state, camera, self._frame.width, self._frame.height, overlays)
        image = self._frame.read()
        if not overlays.labels:
            return image
        return annotate(image, self._view.geometry, state, camera, overlays, scale, title)

    def close(self) -> None:
        """Release the context and everything in it."""
        self._context.make_current()
        self._view.delete()
        self._frame.delete()
        self._context.close()


def render_picture(
    geometry: SceneGeometry,
    state: SceneState,
    camera: Camera | None = None,
    width: int = 1280,
    height: int = 800,
    overlays: Overlays | None = None,
    title: str = "",
) -> Picture:
    """One picture (height, width, 3) of one frame; without a camera, a perspective view that holds it all.

    Raises RenderUnavailable, in one sentence, where EGL or OpenGL 3.3 is missing.
    """
    with Offscreen(geometry, state, width, height) as photographer:
        if camera is None:
            camera = Camera.looking("perspective", visible_points(geometry, state), width / height)
        return photographer.picture(state, camera, overlays, title)
