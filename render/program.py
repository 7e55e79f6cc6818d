"""Shader programs from the files in render/shaders, and vertex arrays that are streamed to them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.render import gl

SHADERS = Path(__file__).parent / "shaders"
FLOAT_BYTES = 4
LINES = "lines"
"""Name of the indices that are drawn once."""


class Program:
    """A vertex and a fragment shader, linked; `set` gives its uniforms their values by name."""

    def __init__(self, vertex: str, fragment: str, *defined: str) -> None:
        """defined: names that the shaders' preprocessor knows."""
        self.handle = gl.glCreateProgram()
        stages = ((gl.GL_VERTEX_SHADER, f"{vertex}.vert"), (gl.GL_FRAGMENT_SHADER, f"{fragment}.frag"))
        shaders = [_compile(stage, name, defined) for stage, name in stages]
        for shader in shaders:
            gl.glAttachShader(self.handle, shader)
        gl.glLinkProgram(self.handle)
        for shader in shaders:
            gl.glDeleteShader(shader)
        if not gl.glGetProgramiv(self.handle, gl.GL_LINK_STATUS):
            log = _text(gl.glGetProgramInfoLog(self.handle))
            raise RuntimeError(f"{vertex}.vert with {fragment}.frag: {log}")
        self._locations: dict[str, int] = {}
        self._told: dict[str, bytes] = {}
        """The present values of uniforms, which a program keeps."""

    def use(self, **uniforms: ArrayLike) -> None:
        """Make it current and set these uniforms."""
        gl.glUseProgram(self.handle)
        self.set(**uniforms)

    def set(self, **uniforms: ArrayLike) -> None:
        """Set uniforms of the current program: floats, vectors, (4, 4) matrices acting on columns, and (n, 3)
        for an array of vectors.
        """
        for name, value in uniforms.items():
            v = np.asarray(value, np.float32, order="C")
            told = v.tobytes()
            if self._told.get(name) == told:
                continue
            self._told[name] = told
            where = self._location(name)
            if v.shape == (4, 4):
                gl.glUniformMatrix4fv(where, 1, True, v)
            elif v.ndim == 2:
                gl.glUniform3fv(where, len(v), v)
            elif v.ndim == 0:
                gl.glUniform1f(where, float(v))
            else:
                (gl.glUniform2fv, gl.glUniform3fv, gl.glUniform4fv)[len(v) - 2](where, 1, v)

    def delete(self) -> None:
        """Give it back to the driver."""
        gl.glDeleteProgram(self.handle)

    def _location(self, name: str) -> int:
        if name not in self._locations:
            self._locations[name] = gl.glGetUniformLocation(self.handle, name)
        return self._locations[name]


class VertexArray:
    """Interleaved float attributes of the given sizes at locations 0, 1, ..., with optional index buffers.

    `per_instance` attributes follow in a second buffer and advance once for each instance.
    """

    def __init__(self, sizes: tuple[int, ...], per_instance: tuple[int, ...] = ()) -> None:
        self.handle = gl.glGenVertexArrays(1)
        self._buffers: list[int] = []
        self._indices: dict[str, tuple[int, int]] = {}
        gl.glBindVertexArray(self.handle)
        self._vertices = self._attributes(sizes, 0, 0)
        self._instances = self._attributes(per_instance, len(sizes), 1) if per_instance else 0
        gl.glBindVertexArray(0)

    def stream(self, rows: NDArray[np.float32]) -> None:
        """Replace the vertices by `rows` (n, sum of sizes) in new storage; frames in flight keep the old."""
        self._upload(self._vertices, rows)

    def stream_instances(self, rows: NDArray[np.float32]) -> None:
        """Replace the instances by `rows` (n, sum of per_instance)."""
        self._upload(self._instances, rows)

    def set_indices(self, name: str, indices: ArrayLike) -> None:
        """Keep an index list under a name: one array can be drawn as triangles and as edges."""
        flat = np.ascontiguousarray(indices, np.uint32).ravel()
        buffer = self._indices[name][0] if name in self._indices else self._generate()
        gl.glBindVertexArray(0)
        gl.glBindBuffer(gl.GL_ELEMENT_ARRAY_BUFFER, buffer)
        gl.glBufferData(gl.GL_ELEMENT_ARRAY_BUFFER, flat.nbytes, _address(flat), gl.GL_STATIC_DRAW)
        gl.glBindBuffer(gl.GL_ELEMENT_ARRAY_BUFFER, 0)
        self._indices[name] = (buffer, len(flat))

    def draw(self, mode: int, name: str, instances: int | None = None) -> None:
        """Draw one index list, `instances` times if given."""
        buffer, count = self._indices[name]
        gl.glBindVertexArray(self.handle)
        gl.glBindBuffer(gl.GL_ELEMENT_ARRAY_BUFFER, buffer)
        if instances is None:
            gl.glDrawElements(mode, count, gl.GL_UNSIGNED_INT, None)
        else:
            gl.glDrawElementsInstanced(mode, count, gl.GL_UNSIGNED_INT, None, instances)
        gl.glBindVertexArray(0)

    def draw_edges(self, edges: ArrayLike) -> None:
        """Draw lines between these pairs of vertices (e, 2), now and not again."""
        self.set_indices(LINES, edges)
        self.draw(gl.GL_LINES, LINES)

    def draw_all(self, mode: int, count: int) -> None:
        """Draw the first `count` vertices in their order."""
        gl.glBindVertexArray(self.handle)
        gl.glDrawArrays(mode, 0, count)
        gl.glBindVertexArray(0)

    def delete(self) -> None:
        """Give the array and its buffers back to the driver."""
        gl.glDeleteVertexArrays(1, np.array([self.handle], np.uint32))
        gl.glDeleteBuffers(len(self._buffers), np.array(self._buffers, np.uint32))

    def _generate(self) -> int:
        buffer = int(gl.glGenBuffers(1))
        self._buffers.append(buffer)
        return buffer

    def _attributes(self, sizes: tuple[int, ...], first: int, divisor: int) -> int:
        buffer = self._generate()
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, buffer)
        stride, offset = FLOAT_BYTES * sum(sizes), 0
        for location, size in enumerate(sizes, first):
            gl.glEnableVertexAttribArray(location)
            gl.glVertexAttribPointer(location, size, gl.GL_FLOAT, False, stride, ctypes.c_void_p(offset))
            gl.glVertexAttribDivisor(location, divisor)
            offset += FLOAT_BYTES * size
        return buffer

    def _upload(self, buffer: int, rows: NDArray[np.float32]) -> None:
        data = np.ascontiguousarray(rows, np.float32)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, buffer)
        gl.glBufferData(gl.GL_ARRAY_BUFFER, data.nbytes, _address(data), gl.GL_STREAM_DRAW)


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _compile(stage: int, name: str, defined: tuple[str, ...]) -> int:
    shader = gl.glCreateShader(stage)
    version, rest = (SHADERS / name).read_text(encoding="utf-8").split("\n", 1)
    gl.glShaderSource(shader, "\n".join([version, *(f"#define {what}" for what in defined), rest]))
    gl.glCompileShader(shader)
    if not gl.glGetShaderiv(shader, gl.GL_COMPILE_STATUS):
        raise RuntimeError(f"{name}: {_text(gl.glGetShaderInfoLog(shader))}")
    return int(shader)


def _text(log: bytes | str) -> str:
    return (log.decode("utf-8", "replace") if isinstance(log, bytes) else log).strip()
