"""Drawing each pixel once, whatever number of faces lies above it.

Each layer marks its pixels with a value of its own, so that none of them has to clear the stencil.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from palpo.render import gl

SHADOW, PATCHES, REST, HIDDEN, GHOST = 1, 2, 3, 4, 5


@contextmanager
def once(value: int) -> Iterator[None]:
    """Within it pixels that do not hold `value` yet are drawn, and then hold it."""
    gl.glEnable(gl.GL_STENCIL_TEST)
    gl.glStencilFunc(gl.GL_NOTEQUAL, value, 0xFF)
    gl.glStencilOp(gl.GL_KEEP, gl.GL_KEEP, gl.GL_REPLACE)
    yield
    gl.glDisable(gl.GL_STENCIL_TEST)
