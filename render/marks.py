"""Draws `Solids`: one instanced call for each shape, faintly where a body hides them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.render import gl
from palpo.render.program import Program, VertexArray
from palpo.render.solids import BALL, Indices, Solids, unit_shapes
from palpo.render.stencil import HIDDEN, once

Floats = NDArray[np.float64]

HIDDEN_OPACITY = 0.62
ROOM = 1.25
"""Half a square's side over the radius of the ball in it: a pixel more, of a ball of a few."""


class MarkLayer:
    """The unit shapes on the graphics card."""

    def __init__(self) -> None:
        self._program, self._balls = Program("solid", "lit"), Program("ball", "lit", "ROUND")
        self._shapes: dict[str, VertexArray] = {}
        for name, (rows, triangles) in (unit_shapes() | {BALL: _square()}).items():
            shape = VertexArray((3, 3), per_instance=(3, 3, 3, 3, 3))
            shape.stream(rows)
            shape.set_indices("faces", triangles)
            self._shapes[name] = shape

    def draw(self, marks: Solids, to_clip: Floats, eye: Floats, light: Floats, through: bool = False) -> None:
        """Draw all marks over what the depth buffer holds; `through` shows the hidden ones faintly."""
        counts = {}
        for name, shape in self._shapes.items():
            rows = marks.rows(name)
            counts[name] = len(rows)
            if len(rows):
                shape.stream_instances(rows)
        if not any(counts.values()):
            return
        for program in (self._program, self._balls):
            program.use(to_clip=to_clip, eye=eye, light=light, gloss=0.6, glow=0.45, depth=0.0, mirror=0.0)
        gl.glEnable(gl.GL_CULL_FACE)
        gl.glEnable(gl.GL_BLEND)
        if through:
            self._draw_hidden(counts)
        self._draw(counts, 1.0)
        gl.glDisable(gl.GL_CULL_FACE)

    def delete(self) -> None:
        """Give everything back to the driver."""
        self._program.delete()
        self._balls.delete()
        for shape in self._shapes.values():
            shape.delete()

    def _draw_hidden(self, counts: dict[str, int]) -> None:
        """What lies behind a body, each pixel once: blended marks on top of each other would be a blur."""
        gl.glDepthMask(False)
        gl.glDepthFunc(gl.GL_GREATER)
        with once(HIDDEN):
            self._draw(counts, HIDDEN_OPACITY)
        gl.glDepthMask(True)
        gl.glDepthFunc(gl.GL_LESS)

    def _draw(self, counts: dict[str, int], opacity: float) -> None:
        for name, shape in self._shapes.items():
            if counts[name]:
                (self._balls if name == BALL else self._program).use(opacity=opacity)
                shape.draw(gl.GL_TRIANGLES, "faces", counts[name])


def _square() -> tuple[NDArray[np.float32], Indices]:
    """The square of a ball's disc and its edge's last pixel, as rows of `unit_shapes`."""
    corners = ROOM * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    rows = np.hstack([corners, np.zeros((4, 1)), np.tile([0.0, 0.0, 1.0], (4, 1))])
    return rows.astype(np.float32), np.array([[0, 1, 2], [0, 2, 3]], np.int32)
