"""Draws the bodies: lit surfaces and tubes that deform from frame to frame, their edges and their shadow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState
from palpo.render import gl, palette
from palpo.render.normals import SmoothSurface
from palpo.render.program import Program, VertexArray
from palpo.render.stencil import GHOST, REST, once
from palpo.render.stencil import SHADOW as SHADOWED
from palpo.render.tubes import Tube

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

SHADOW = (0.10, 0.13, 0.20, 0.17)
EDGE_OPACITY = 0.38
VEIL, EDGES = (0.17, 0.34), (0.42, 0.6)
"""Opacity of the faces and of the edges of the shape at rest, and of a ghost."""
NO_VALUE = -1.0


class _Body:
    """One drawable on the graphics card, as it is and as it was at rest."""

    def __init__(self, drawable: Drawable, rest: Floats) -> None:
        self._drawable = drawable
        points = rest[drawable.span]
        if drawable.kind == "tube":
            self._shape: Tube | SmoothSurface = Tube(drawable.n_vertices, drawable.radius)
        else:
            surface = SmoothSurface(points, drawable.triangles)
            self._shape, self._source = surface, surface.source
        self._array, self._rest = self._make(points), None if drawable.static else self._make(points)

    @property
    def colour(self) -> tuple[float, float, float]:
        return self._drawable.colour

    def update(self, vertices: Floats, values: Floats | None) -> None:
        if not self._drawable.static:
            span = self._drawable.span
            self._array.stream(self._rows(vertices[span], None if values is None else values[span]))

    def faces(self) -> None:
        self._array.draw(gl.GL_TRIANGLES, "faces")

    def edges(self) -> None:
        self._array.draw(gl.GL_LINES, "edges")

    def drawn(self, faces: bool) -> None:
        (self.faces if faces else self.edges)()

    def rest(self, faces: bool) -> None:
        if self._rest is not None:
            self._rest.draw(*((gl.GL_TRIANGLES, "faces") if faces else (gl.GL_LINES, "edges")))

    def delete(self) -> None:
        self._array.delete()
        if self._rest is not None:
            self._rest.delete()

    def _make(self, points: Floats) -> VertexArray:
        array = VertexArray((3, 3, 1))
        array.set_indices("faces", self._shape.triangles)
        array.set_indices("edges", self._shape.edges)
        array.stream(self._rows(points, None))
        return array

    def _rows(self, points: Floats, values: Floats | None) -> NDArray[np.float32]:
        """Position, normal and share of the colour bar of each drawn vertex, (k, 7)."""
        rows = self._shape.rows(points)
        column = np.full((len(rows), 1), NO_VALUE, np.float32)
        if values is not None and self._drawable.kind == "surface":
            column[:, 0] = values[self._source]
        return np.hstack([rows, column])


class SurfaceLayer:
    """All surfaces and tubes of a scene; creases are those of the shape at rest."""

    def __init__(self, geometry: SceneGeometry) -> None:
        self._plain, self._mapped = Program("surface", "lit"), Program("surface", "lit", "MAPPED")
        self._lit = self._plain
        self._flat = Program("surface", "flat")
        self._bodies = [_Body(d, geometry.rest) for d in geometry.drawables if d.kind != "plane"]

    def update(self, state: SceneState, coloured: bool) -> None:
        """Take over the vertices of a frame, and its scalar if `coloured`."""
        values = shares(state, state.scalar) if coloured else None
        self._lit = self._mapped if coloured else self._plain
        for body in self._bodies:
            body.update(state.vertices, values)

    def draw_shadow(self, to_clip: Floats, plane: Floats, light: Floats) -> None:
        """Darken where the bodies stand between `light` (3,) and the `plane` (4,): n . x = d as (n, d).

        Each pixel is darkened once.
        """
        self._flat.use(to_clip=to_clip @ shadow_matrix(plane, light), colour=SHADOW)
        gl.glDepthMask(False)
        gl.glDisable(gl.GL_DEPTH_TEST)
        gl.glEnable(gl.GL_BLEND)
        with once(SHADOWED):
            for body in self._bodies:
                body.faces()
        gl.glEnable(gl.GL_DEPTH_TEST)
        gl.glDepthMask(True)

    def draw(self, to_clip: Floats, eye: Floats, light: Floats, wireframe: bool) -> None:
        """Draw the bodies, and their edges if `wireframe`."""
        # Faces step back a little so that the edges drawn on them are not half hidden.
        gl.glEnable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glPolygonOffset(1.0, 1.0)
        self._lit.use(to_clip=to_clip, eye=eye, light=light, gloss=1.0, glow=0.0)
        if self._lit is self._mapped:
            self._lit.set(colour_map=palette.COLOUR_MAP)
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

    def draw_rest(self, to_clip: Floats) -> None:
        """A veil with edges where the bodies were at rest, where nothing else stands before it."""
        self._veil(to_clip, palette.REST, REST, _Body.rest, VEIL[0], EDGES[0])

    def draw_ghost(self, to_clip: Floats) -> None:
        """A veil with edges where the bodies are, where nothing else stands before it."""
        self._veil(to_clip, palette.GHOST, GHOST, _Body.drawn, VEIL[1], EDGES[1])

    def _veil(
        self, to_clip: Floats, colour: palette.Colour, pixels: int, draw: Callable[[_Body, bool], None],
        faces: float, edges: float,
    ) -> None:  # fmt: skip
        """Each pixel of the faces once, then the edges, at these opacities."""
        self._flat.use(to_clip=to_clip, colour=(*colour, faces))
        gl.glDepthMask(False)
        gl.glEnable(gl.GL_BLEND)
        with once(pixels):
            for body in self._bodies:
                draw(body, True)
        self._flat.set(colour=(*colour, edges))
        for body in self._bodies:
            draw(body, False)
        gl.glDepthMask(True)

    def delete(self) -> None:
        """Give everything back to the driver."""
        for program in (self._plain, self._mapped, self._flat):
            program.delete()
        for body in self._bodies:
            body.delete()


def shares(state: SceneState, scalar: Floats) -> Floats:
    """Where each `scalar` lies on the frame's colour bar, 0 to 1; `NO_VALUE` where there is none."""
    lower, upper = state.scalar_range
    share = np.clip((scalar - lower) / max(upper - lower, 1e-300), 0.0, 1.0)
    return np.where(np.isfinite(share), share, NO_VALUE)


def shadow_matrix(plane: Floats, light: Floats) -> Floats:
    """Projection (4, 4) along `light` (3,) onto the plane (n, d): x - light (n . x - d) / (n . light)."""
    n, d = plane[:3], plane[3]
    m = np.eye(4)
    m[:3, :3] -= np.outer(light, n) / (n @ light)
    m[:3, 3] = light * d / (n @ light)
    return m
