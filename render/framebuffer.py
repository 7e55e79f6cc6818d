"""A picture on the graphics card that a frame is drawn into, whether or not a window then shows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.render import gl
from palpo.render.gl import RenderUnavailable
from palpo.render.program import Program, VertexArray

Picture = NDArray[np.uint8]

SAMPLES = 4
CORNERS = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
"""Of a picture, in shares of its width and height."""
SOFTWARE = ("llvmpipe", "softpipe", "swiftshader", "software")
"""In the names of renderers that draw on the processor."""


def on_processor(renderer: str) -> bool:
    """Whether a renderer of this name takes the processor's time."""
    return any(name in renderer.lower() for name in SOFTWARE)


def window_samples(renderer: str) -> int:
    """Samples of each pixel of a window: on the processor one, and bodies' edges are smoothed as lines."""
    return 0 if on_processor(renderer) else SAMPLES


class Framebuffer:
    """Colour, depth and stencil, multisampled where the driver can; needs a current context."""

    def __init__(self, width: int, height: int, samples: int = SAMPLES) -> None:
        largest = int(gl.glGetIntegerv(gl.GL_MAX_RENDERBUFFER_SIZE))
        if not (0 < width <= largest and 0 < height <= largest):
            raise ValueError(f"a picture cannot be {width} x {height} pixels; each side is 1 to {largest}.")
        self.width, self.height = width, height
        self._buffers: list[int] = []
        self._texture = 0
        """What pixels of one sample are kept in."""
        self._copier: tuple[Program, VertexArray] | None = None
        samples = min(samples, int(gl.glGetIntegerv(gl.GL_MAX_SAMPLES)))
        self._drawn = self._make(samples)
        self._resolved = self._make(0) if samples else self._drawn

    def bind(self) -> None:
        """Draw into it from now on."""
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._drawn)

    def take(self, other: Framebuffer, width: int) -> None:
        """Copy colour, depth and stencil of the first `width` columns of another of this size and samples.

        It is bound afterwards.
        """
        everything = gl.GL_COLOR_BUFFER_BIT | gl.GL_DEPTH_BUFFER_BIT | gl.GL_STENCIL_BUFFER_BIT
        self._copy(other._drawn, self._drawn, width, everything)
        self.bind()

    def read(self) -> Picture:
        """What was drawn, shape (height, width, 3), the first row on top."""
        self._resolve()
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._resolved)
        gl.glPixelStorei(gl.GL_PACK_ALIGNMENT, 1)
        picture = np.empty((self.height, self.width, 3), np.uint8)
        gl.glReadPixels(0, 0, self.width, self.height, gl.GL_RGB, gl.GL_UNSIGNED_BYTE, picture)
        gl.check()
        return picture[::-1].copy()

    def show(self) -> None:
        """Copy what was drawn to the current context's window, which has the same size.

        As a texture on two triangles: on the processor this takes an eighth of a blit's time.
        """
        self._resolve()
        if self._copier is None:
            self._copier = Program("picture", "picture"), VertexArray((2,))
            self._copier[1].stream(CORNERS)
            self._copier[1].set_indices("faces", [[0, 1, 2], [0, 2, 3]])
        program, corners = self._copier
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, 0)
        gl.glViewport(0, 0, self.width, self.height)
        gl.glDisable(gl.GL_DEPTH_TEST)
        gl.glDisable(gl.GL_BLEND)
        gl.glActiveTexture(gl.GL_TEXTURE0)
        gl.glBindTexture(gl.GL_TEXTURE_2D, self._texture)
        program.use()
        corners.draw(gl.GL_TRIANGLES, "faces")
        gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
        gl.check()

    def copy(self, other: Framebuffer) -> None:
        """Copy what was drawn, one sample a pixel, into another of this size."""
        self._resolve()
        self._copy(self._resolved, other._drawn, self.width)

    def copy_to_texture(self, frame: int, texture: int) -> None:
        """Copy what was drawn into a texture of this size, through another framebuffer's number."""
        self._resolve()
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, frame)
        gl.glFramebufferTexture2D(gl.GL_FRAMEBUFFER, gl.GL_COLOR_ATTACHMENT0, gl.GL_TEXTURE_2D, texture, 0)
        self._copy(self._resolved, frame, self.width)
        gl.check()

    def delete(self) -> None:
        """Give it back to the driver."""
        frames = sorted({self._drawn, self._resolved})
        gl.glDeleteFramebuffers(len(frames), np.array(frames, np.uint32))
        gl.glDeleteRenderbuffers(len(self._buffers), np.array(self._buffers, np.uint32))
        gl.glDeleteTextures([self._texture])
        for kept in self._copier or ():
            kept.delete()

    def _resolve(self) -> None:
        """Average the samples of each pixel."""
        if self._resolved != self._drawn:
            self._copy(self._drawn, self._resolved, self.width)

    def _copy(self, source: int, target: int, w: int, what: int | None = None) -> None:
        h, what = self.height, gl.GL_COLOR_BUFFER_BIT if what is None else what
        gl.glBindFramebuffer(gl.GL_READ_FRAMEBUFFER, source)
        gl.glBindFramebuffer(gl.GL_DRAW_FRAMEBUFFER, target)
        gl.glBlitFramebuffer(0, 0, w, h, 0, 0, w, h, what, gl.GL_NEAREST)

    def _make(self, samples: int) -> int:
        frame = int(gl.glGenFramebuffers(1))
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, frame)
        attachments = [(gl.GL_DEPTH_STENCIL_ATTACHMENT, gl.GL_DEPTH24_STENCIL8)]
        if samples:
            attachments.append((gl.GL_COLOR_ATTACHMENT0, gl.GL_RGBA8))
        else:
            self._texture = _picture(self.width, self.height)
            gl.glFramebufferTexture2D(
                gl.GL_FRAMEBUFFER, gl.GL_COLOR_ATTACHMENT0, gl.GL_TEXTURE_2D, self._texture, 0
            )
        for attachment, layout in attachments:
            buffer = int(gl.glGenRenderbuffers(1))
            self._buffers.append(buffer)
            gl.glBindRenderbuffer(gl.GL_RENDERBUFFER, buffer)
            gl.glRenderbufferStorageMultisample(gl.GL_RENDERBUFFER, samples, layout, self.width, self.height)
            gl.glFramebufferRenderbuffer(gl.GL_FRAMEBUFFER, attachment, gl.GL_RENDERBUFFER, buffer)
        if gl.glCheckFramebufferStatus(gl.GL_FRAMEBUFFER) != gl.GL_FRAMEBUFFER_COMPLETE:
            raise RenderUnavailable(f"the driver refuses a framebuffer with {samples} samples a pixel.")
        return frame


def _picture(width: int, height: int) -> int:
    """A texture without contents, whose bytes lie as a window's do."""
    texture = int(gl.glGenTextures(1))
    gl.glBindTexture(gl.GL_TEXTURE_2D, texture)
    gl.glTexImage2D(gl.GL_TEXTURE_2D, 0, gl.GL_RGBA, width, height, 0, gl.GL_BGRA, gl.GL_UNSIGNED_BYTE, None)
    for name, value in (
        (gl.GL_TEXTURE_MIN_FILTER, gl.GL_NEAREST),
        (gl.GL_TEXTURE_MAG_FILTER, gl.GL_NEAREST),
        (gl.GL_TEXTURE_WRAP_S, gl.GL_CLAMP_TO_EDGE),
        (gl.GL_TEXTURE_WRAP_T, gl.GL_CLAMP_TO_EDGE),
    ):
        gl.glTexParameteri(gl.GL_TEXTURE_2D, name, value)
    gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
    return texture
