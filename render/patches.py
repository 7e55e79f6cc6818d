"""Draws patches: coloured triangles on the bodies and between them, faintly where a body hides them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import SceneState
from palpo.render import gl, palette
from palpo.render.program import Program, VertexArray
from palpo.render.stencil import PATCHES, once
from palpo.render.surfaces import shares

Floats = NDArray[np.float64]

HIDDEN_OPACITY = 0.55
OFFSET = -2.0
"""Steps of the depth buffer towards the eye: a patch lies in the very surface that it is a part of."""


class PatchLayer:
    """The patches of the newest frame on the graphics card."""

    def __init__(self) -> None:
        self._lit = Program("surface", "lit", "MAPPED")
        self._array = VertexArray((3, 3, 1, 1))
        self._count = 0

    def update(self, state: SceneState) -> None:
        """Take over the patches of a frame."""
        self._count = 3 * len(state.patch)
        if self._count:
            self._array.stream(_rows(state))

    def draw(self, to_clip: Floats, eye: Floats, light: Floats) -> None:
        """Draw them over what the depth buffer holds."""
        if not self._count:
            return
        self._lit.use(to_clip=to_clip, eye=eye, light=light, gloss=0.0, glow=0.0, depth=0.0, mirror=0.0)
        self._lit.set(colour_map=palette.COLOUR_MAP)
        gl.glEnable(gl.GL_BLEND)
        # Each pixel once: both walls of a cavity on top of each other would hide what is before them.
        gl.glEnable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glPolygonOffset(OFFSET, OFFSET)
        with once(PATCHES):
            self._pass(1.0)
            gl.glDepthMask(False)
            gl.glDepthFunc(gl.GL_GREATER)
            self._pass(HIDDEN_OPACITY)
        gl.glDepthFunc(gl.GL_LESS)
        gl.glDepthMask(True)
        gl.glDisable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glDisable(gl.GL_BLEND)

    def delete(self) -> None:
        """Give everything back to the driver."""
        self._lit.delete()
        self._array.delete()

    def _pass(self, opacity: float) -> None:
        self._lit.set(colour=(0.0, 0.0, 0.0, opacity))
        self._array.draw_all(gl.GL_TRIANGLES, self._count)


def _rows(state: SceneState) -> NDArray[np.float32]:
    """Position, normal, share of the colour bar and open part of the sky of each corner, (3 p, 8)."""
    corners = state.patch
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    share = shares(state, state.patch_scalar)
    each = np.column_stack([normal, share, np.ones(len(share))]).repeat(3, axis=0)
    return np.hstack([corners.reshape(-1, 3), each]).astype(np.float32)
