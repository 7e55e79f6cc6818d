"""One scene on the graphics card: draws a frame into the bound framebuffer, a window's or a picture's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render import gl, palette
from palpo.render.camera import Camera, Viewpoint
from palpo.render.ground import GroundLayer
from palpo.render.marks import MarkLayer
from palpo.render.overlays import Overlays, axis_marks, fixed_marks, force_scale, place_marks
from palpo.render.patches import PatchLayer
from palpo.render.program import Program
from palpo.render.surfaces import SurfaceLayer

LIGHT = np.array([-0.42, 0.86, 0.29]) / np.linalg.norm([-0.42, 0.86, 0.29])  # direction to the key light
HALF = 0.6  # closeness of a picture that has half the width
TRIAD = 0.13  # side of the axes' corner, in heights of the picture
TRIAD_REACH = 1.35  # half the height that it shows, in lengths of an axis


class SceneView:
    """Needs a current OpenGL 3.3 context at every call."""

    def __init__(self, geometry: SceneGeometry, state: SceneState, smooth: bool = False) -> None:
        """smooth: whether bodies end in tones between two colours, where pixels have one sample only."""
        self.geometry, self._smooth = geometry, smooth
        self._background = Program("background", "background")
        self._empty = gl.glGenVertexArrays(1)
        self._ground = GroundLayer(geometry, state.vertices)
        self._surfaces = SurfaceLayer(geometry)
        self._patches = PatchLayer()
        self._marks = MarkLayer()
        self._axes = axis_marks()
        self._ghost: SurfaceLayer | None = None
        self._left = 0
        """First column of the picture that is drawn [pixels]."""

    def haunt(self, ghost: SceneGeometry | None) -> None:
        """From now on these shapes can be drawn faintly beside the scene's; None for none."""
        if self._ghost is not None:
            self._ghost.delete()
        self._ghost = None if ghost is None else SurfaceLayer(ghost)

    def ghost_at(self, vertices: NDArray[np.float64]) -> None:
        """They are here now (n, 3) [m]."""
        if self._ghost is not None:
            self._ghost.update(SceneState(vertices), False)

    def draw(self, state: SceneState, camera: Camera, width: int, height: int, overlays: Overlays) -> float:
        """Draw one frame of `width` x `height` pixels, for each eye where a pair is wanted.

        Returns the arrows' scale [m/N] that was used.
        """
        scale = 0.0
        for number, eye in enumerate(camera.pair() if overlays.paired else (camera,)):
            wide, own = width, eye
            if overlays.side_by_side:
                wide, own = width // 2, eye.zoom(HALF)
                self._left = number * wide
                gl.glEnable(gl.GL_SCISSOR_TEST)
                gl.glScissor(self._left, 0, wide, height)
            elif overlays.anaglyph:
                gl.glColorMask(number == 0, number == 1, number == 1, True)
            self.draw_backdrop(own, wide, height, overlays)
            scale = self.draw_bodies(state, own, wide, height, overlays)
        self._left = 0
        gl.glColorMask(True, True, True, True)
        gl.glDisable(gl.GL_SCISSOR_TEST)
        return scale

    def draw_backdrop(self, camera: Viewpoint, width: int, height: int, overlays: Overlays) -> None:
        """Draw what only the camera changes: background and ground. It may be kept and copied."""
        self._clear(width, height)
        if overlays.grid:
            self._ground.draw(camera.matrix(width / height), camera.eye, overlays.axes)
        gl.check()

    def draw_bodies(
        self, state: SceneState, camera: Viewpoint, width: int, height: int, overlays: Overlays
    ) -> float:
        """Draw everything else over the backdrop; returns the arrows' scale [m/N] that was used."""
        scale = force_scale(self.geometry, state) if overlays.force_scale is None else overlays.force_scale
        to_clip, eye = camera.matrix(width / height), camera.eye
        self._surfaces.update(state, overlays.coloured(state))
        self._patches.update(state)
        self._begin(width, height)
        plane = self._ground.plane
        shaded = overlays.grid and overlays.shadow and plane[:3] @ LIGHT > 0.2 and plane[:3] @ eye > plane[3]
        ground = plane if shaded else None
        self._surfaces.draw(to_clip, eye, LIGHT, ground, overlays.wireframe, self._smooth)
        self._patches.draw(to_clip, eye, LIGHT)
        if overlays.rest:
            self._surfaces.draw_rest(to_clip)
        if overlays.ghost and self._ghost is not None:
            self._ghost.draw_ghost(to_clip)
        if overlays.fixed:
            self._marks.draw(fixed_marks(self.geometry, state), to_clip, eye, LIGHT)
        marks = place_marks(self.geometry, state, overlays, scale)
        self._marks.draw(marks, to_clip, eye, LIGHT, through=True)
        if overlays.axes and isinstance(camera, Camera):
            self._draw_axes(camera, width, height)
        gl.check()
        return scale

    def delete(self) -> None:
        """Give everything back to the driver."""
        self.haunt(None)
        for layer in (self._background, self._ground, self._surfaces, self._patches, self._marks):
            layer.delete()
        gl.glDeleteVertexArrays(1, np.array([self._empty], np.uint32))

    def _begin(self, width: int, height: int) -> None:
        """The state in which every part of a frame finds OpenGL, whatever was drawn before."""
        gl.glViewport(self._left, 0, width, height)
        gl.glEnable(gl.GL_MULTISAMPLE)
        gl.glEnable(gl.GL_DEPTH_TEST)
        gl.glDepthFunc(gl.GL_LESS)
        gl.glBlendFunc(gl.GL_SRC_ALPHA, gl.GL_ONE_MINUS_SRC_ALPHA)
        gl.glDisable(gl.GL_BLEND)

    def _clear(self, width: int, height: int) -> None:
        self._begin(width, height)
        gl.glClear(gl.GL_COLOR_BUFFER_BIT | gl.GL_DEPTH_BUFFER_BIT | gl.GL_STENCIL_BUFFER_BIT)
        gl.glDisable(gl.GL_DEPTH_TEST)
        self._background.use(bottom=palette.BACKGROUND_BOTTOM, top=palette.BACKGROUND_TOP)
        gl.glBindVertexArray(self._empty)
        gl.glDrawArrays(gl.GL_TRIANGLES, 0, 3)
        gl.glEnable(gl.GL_DEPTH_TEST)

    def _draw_axes(self, camera: Camera, width: int, height: int) -> None:
        x, y, side = triad_corner(width, height)
        x += self._left
        gl.glViewport(x, y, side, side)
        gl.glEnable(gl.GL_SCISSOR_TEST)
        gl.glScissor(x, y, side, side)
        gl.glClear(gl.GL_DEPTH_BUFFER_BIT)
        camera = triad_camera(camera)
        self._marks.draw(self._axes, camera.matrix(1.0), camera.eye, LIGHT)
        gl.glDisable(gl.GL_SCISSOR_TEST)
        gl.glViewport(self._left, 0, width, height)


def triad_corner(width: int, height: int) -> tuple[int, int, int]:
    """Lower left pixel (counted from below) and side of the square that shows the world's axes."""
    side = max(40, int(TRIAD * height))
    return width - side - side // 8, side // 8, side


def triad_camera(camera: Camera) -> Camera:
    """The camera that shows three axes of length 1 as `camera` would."""
    distance = TRIAD_REACH / np.tan(np.radians(camera.field_of_view) / 2)
    return replace(camera, target=(0.0, 0.0, 0.0), distance=float(distance), aside=0.0)


def visible_points(geometry: SceneGeometry, state: SceneState) -> NDArray[np.float64]:
    """Points (n, 3) [m] that a picture ought to hold: bodies, contacts, hand, arrows, not the planes."""
    bodies = [state.vertices[d.span] for d in geometry.drawables if d.kind != "plane"]
    tails = np.vstack([state.contact_point, state.held_point])
    tips = tails + force_scale(geometry, state) * np.vstack([state.contact_force, state.hand_force])
    points = np.vstack([*bodies, tails, tips, state.device_point])
    return points[np.isfinite(points).all(axis=1)]
