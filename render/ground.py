"""Draws the ground: the scene's planes, or a grid below everything where it has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import SceneGeometry, plane_corners
from palpo.render import gl, palette
from palpo.render.overlays import round_number
from palpo.render.program import Program, VertexArray

Floats = NDArray[np.float64]

REACH = 2.6  # the grid fades out at this many scene lengths from the middle
UP = np.array([0.0, 1.0, 0.0])
FROM_BELOW = 0.18  # opacity of a plane seen from behind, so that it does not hide the scene


def grid_spacing(length: float) -> float:
    """Distance of the grid's lines [m], a round number near a fourteenth of the scene's length."""
    return round_number(length / 10.0) if length > 0 else 0.01


class GroundLayer:
    """Each plane as two triangles; the colours, lines and fading come from the shader."""

    def __init__(self, geometry: SceneGeometry, vertices: Floats) -> None:
        self._program = Program("ground", "ground")
        self._geometry = geometry
        planes = [d for d in geometry.drawables if d.kind == "plane"]
        corners = [vertices[d.span] for d in planes]
        colours = [d.colour for d in planes]
        if not planes:
            below = geometry.centre.copy()
            below[1] = geometry.lower[1]
            corners = [plane_corners(below, UP, REACH * max(geometry.length, 1e-3))]
            colours = [palette.GROUND]
        self._planes = []
        for c, colour in zip(corners, colours, strict=True):
            array = VertexArray((3,))
            array.stream(c.astype(np.float32))
            array.set_indices("faces", [[0, 1, 2], [0, 2, 3]])
            self._planes.append((array, plane_of(c), colour))

    @property
    def plane(self) -> Floats:
        """The first plane as (n, d) with n . x = d, shape (4,)."""
        return self._planes[0][1]

    def draw(self, to_clip: Floats, eye: Floats, axes: bool) -> None:
        """Draw all planes; `axes` colours the lines through the world's origin."""
        length = max(self._geometry.length, 1e-3)
        self._program.use(to_clip=to_clip, fade=REACH * length, spacing=grid_spacing(length))
        self._program.set(line=palette.GRID_LINE, show_axes=float(axes))
        gl.glEnable(gl.GL_BLEND)
        for array, plane, colour in self._planes:
            n, d = plane[:3], plane[3]
            seen = n @ eye > d
            u, v, i, j = in_plane_axes(n)
            self._program.set(axis_u=u, axis_v=v, origin=d * n, base=colour)
            self._program.set(colour_u=palette.AXES[i], colour_v=palette.AXES[j])
            self._program.set(centre=self._geometry.centre - (n @ self._geometry.centre - d) * n)
            self._program.set(opacity=1.0 if seen else FROM_BELOW)
            gl.glDepthMask(bool(seen))
            array.draw(gl.GL_TRIANGLES, "faces")
        gl.glDepthMask(True)

    def delete(self) -> None:
        """Give everything back to the driver."""
        self._program.delete()
        for array, _, _ in self._planes:
            array.delete()


def plane_of(corners: Floats) -> Floats:
    """(n, d) of the plane through the corners (4, 3), counter-clockwise seen from the side of n."""
    n = np.cross(corners[1] - corners[0], corners[3] - corners[0])
    n /= np.linalg.norm(n)
    return np.append(n, n @ corners[0])


def in_plane_axes(normal: Floats) -> tuple[Floats, Floats, int, int]:
    """Two unit vectors in the plane, nearest to two of the world's axes, with the numbers of these axes."""
    i, j = sorted(np.argsort(np.abs(normal))[:2])
    u = np.eye(3)[i] - normal[i] * normal
    u /= np.linalg.norm(u)
    v = np.cross(normal, u)
    return u, v, int(i), int(j)
