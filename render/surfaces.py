"""Draws the bodies: lit surfaces and tubes that deform from frame to frame, their edges and their shadow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from physics.exchange.snapshot import Drawable, SceneGeometry, SceneState
from render import gl
from render.normals import SmoothSurface
from render.program import Program, VertexArray
from render.tubes import Tube

Floats = NDArray[np.float64]

SHADOW = (0.10, 0.13, 0.20, 0.17)
EDGE_OPACITY = 0.38


class _Body:
    """One drawable on the graphics card."""

    def __init__(self, drawable: Drawable, vertices: Floats) -> None:
        self._drawable = drawable
        points = vertices[drawable.span]
        if drawable.kind == "tube":
            self._shape: Tube | SmoothSurface = Tube(drawable.n_vertices, drawable.radius)
        else:
            self._shape = SmoothSurface(points, drawable.triangles)
        self._array = VertexArray((3, 3))
        self._array.set_indices("faces", self._shape.triangles)
        self._array.set_indices("edges", self._shape.edges)
        self._array.stream(self._shape.rows(points))

    @property
    def colour(self) -> tuple[float, float, float]:
        return self._drawable.colour

    def update(self, vertices: Floats) -> None:
        if not self._drawable.static:
            self._array.stream(self._shape.rows(vertices[self._drawable.span]))

    def faces(self) -> None:
        self._array.draw(gl.GL_TRIANGLES, "faces")

    def edges(self) -> None:
        self._array.draw(gl.GL_LINES, "edges")

    def delete(self) -> None:
        self._array.delete()


class SurfaceLayer:
    """All surfaces and tubes of a scene; creases are those of the vertices given here."""

    def __init__(self, geometry: SceneGeometry, vertices: Floats) -> None:
        self._lit = Program("surface", "lit")
        self._flat = Program("surface", "flat")
        self._bodies = [_Body(d, vertices) for d in geometry.drawables if d.kind != "plane"]

    def update(self, state: SceneState) -> None:
        """Take over the vertices of a frame."""
        for body in self._bodies:
            body.update(state.vertices)

    def draw_shadow(self, to_clip: Floats, plane: Floats, light: Floats) -> None:
        """Darken where the bodies stand between `light` (3,) and the `plane` (4,): n . x = d as (n, d).

        The stencil lets each pixel be darkened once, whatever number of faces lies above it.
        """
        self._flat.use(to_clip=to_clip @ shadow_matrix(plane, light), colour=SHADOW)
        gl.glEnable(gl.GL_STENCIL_TEST)
        gl.glStencilFunc(gl.GL_EQUAL, 0, 0xFF)
        gl.glStencilOp(gl.GL_KEEP, gl.GL_KEEP, gl.GL_INCR)
        gl.glDepthMask(False)
        gl.glDisable(gl.GL_DEPTH_TEST)
        gl.glEnable(gl.GL_BLEND)
        for body in self._bodies:
            body.faces()
        gl.glEnable(gl.GL_DEPTH_TEST)
        gl.glDepthMask(True)
        gl.glDisable(gl.GL_STENCIL_TEST)

    def draw(self, to_clip: Floats, eye: Floats, light: Floats, wireframe: bool) -> None:
        """Draw the bodies, and their edges if `wireframe`."""
        # Faces step back a little so that the edges drawn on them are not half hidden.
        gl.glEnable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glPolygonOffset(1.0, 1.0)
        self._lit.use(to_clip=to_clip, eye=eye, light=light, gloss=1.0, glow=0.0)
        for body in self._bodies:
            self._lit.set(colour=(*body.colour, 1.0))
            body.faces()
        gl.glDisable(gl.GL_POLYGON_OFFSET_FILL)
        if wireframe:
            self._flat.use(to_clip=to_clip)
            gl.glEnable(gl.GL_BLEND)
            for body in self._bodies:
                self._flat.set(colour=(*(0.25 * np.array(body.colour)), EDGE_OPACITY))
                body.edges()

    def delete(self) -> None:
        """Give everything back to the driver."""
        self._lit.delete()
        self._flat.delete()
        for body in self._bodies:
            body.delete()


def shadow_matrix(plane: Floats, light: Floats) -> Floats:
    """Projection (4, 4) along `light` (3,) onto the plane (n, d): x - light (n . x - d) / (n . light)."""
    n, d = plane[:3], plane[3]
    m = np.eye(4)
    m[:3, :3] -= np.outer(light, n) / (n @ light)
    m[:3, 3] = light * d / (n @ light)
    return m
