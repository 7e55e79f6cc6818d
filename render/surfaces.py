"""Draws the bodies: lit surfaces and tubes that deform from frame to frame, their edges and their shadow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState
from palpo.render import gl, palette
from palpo.render.normals import CREASE
from palpo.render.program import Program, VertexArray
from palpo.render.smooth_surface import SmoothSurface
from palpo.render.stencil import GHOST, REST, once
from palpo.render.stencil import SHADOW as SHADOWED
from palpo.render.tubes import Tube

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

SHADOW = (0.10, 0.13, 0.20, 0.17)
SHADOW_OFFSET = -64.0
"""Steps of the depth buffer towards the eye: a shadow lies in the very plane that it falls on."""
EDGE_OPACITY = 0.38
VEIL, EDGES = (0.17, 0.34), (0.42, 0.6)
"""Opacity of the faces and of the edges of the shape at rest, and of a ghost."""
THROUGH = 0.45
"""Opacity of a needle behind a surface."""
NO_VALUE = -1.0
MAPPED, PATTERNED = "MAPPED", "PATTERNED"
"""What programs for colours by a value and for specks are compiled with."""


class Look(NamedTuple):
    """How a material meets light: see `shaders/lit.frag`."""

    gloss: float = 1.0
    depth: float = 0.0
    mirror: float = 0.0
    specks: float = 0.0
    opacity: float = 1.0
    crease: float = CREASE
    """Degrees between two faces from which their edge is sharp: a coarse mesh of something round has more."""


LOOKS = {
    "soft": Look(gloss=1.2, depth=0.45, specks=0.11, crease=60.0),
    "clear": Look(gloss=1.6, depth=0.6, mirror=0.06, opacity=0.72),
    "hard": Look(mirror=0.2),
}
SPECK = 0.016
"""Size of a speck, in scene lengths."""
FINEST = 8000
"""Triangles of a scene's fine surfaces, at most."""
LEVELS, SHORT = 2, 0.02
"""How often edges are halved, at most, and the length in scene lengths from which they are short."""
REACH, CONTACT_REACH = 0.09, 0.09
"""Radius of a hollow that is as dark as one gets, and how far a contact darkens, in scene lengths."""
DARK, LIGHT_EDGE, CONTACT_DARK = 0.6, 0.2, 0.5
"""Part of the surrounding light that a hollow and a contact take at most, and that an edge gets more."""
SHARE, OPEN, PLACE = 6, 7, slice(8, 11)
"""Columns of a drawn point after its position and its normal."""


def fine_levels(geometry: SceneGeometry) -> list[int]:
    """How often the edges of each mesh are halved: until they are short, as far as `FINEST` allows."""
    counts = np.array([len(d.triangles) for d in geometry.drawables], float)
    edges = [_mean_edge(geometry.rest[d.span], d.triangles) for d in geometry.drawables]
    wanted = np.ceil(np.log2(np.maximum(edges, 1e-300) / (SHORT * max(geometry.length, 1e-300))))
    levels = np.clip(wanted, 0, LEVELS)
    while levels.any() and counts @ 4.0**levels > FINEST:
        levels = np.maximum(levels - 1, 0)
    return [int(level) for level in levels]


def _mean_edge(points: Floats, triangles: Indices) -> float:
    """Mean length [m] of the edges of triangles (m, 3)."""
    corners = points[triangles]
    return float(np.linalg.norm(np.roll(corners, 1, axis=1) - corners, axis=2).sum() / max(triangles.size, 1))


class _Body:
    """One drawable on the graphics card, as it is and as it was at rest."""

    def __init__(self, drawable: Drawable, rest: Floats, levels: int, length: float) -> None:
        self._drawable, self._length, self.look = drawable, length, LOOKS[drawable.look]
        self._first = points = rest[drawable.span]
        self._parted = 0
        if drawable.kind == "tube":
            self._shape: Tube | SmoothSurface = Tube(drawable.n_vertices, drawable.radius)
        else:
            self._shape = SmoothSurface(points, drawable.triangles, self.look.crease, levels)
        self._take_shape(points)
        self._array, self._rest = self._make(points), None if drawable.static else self._make(points)

    def _take_shape(self, points: Floats) -> None:
        """What follows from the shape, where it is at rest."""
        self._drawn = self._shape.drawn(points)
        outward = enclosed(self._drawn.points, self._shape.triangles) > 0.0
        self._closed = outward and self._shape.outline.closed
        self._rows = np.empty((len(self._drawn.points), PLACE.stop), np.float32)
        self._rows[:, PLACE] = self._drawn.points / (SPECK * max(self._length, 1e-300))

    def _grow(self, state: SceneState) -> None:
        """Other triangles join the vertices: the body has been cut."""
        self._parted = state.parted
        self._shape = SmoothSurface(self._first, state.triangles_of(self._drawable), self.look.crease)
        self._take_shape(self._first)
        self._array.delete()
        self._array = self._make(state.vertices[self._drawable.span])

    @property
    def colour(self) -> tuple[float, float, float]:
        return self._drawable.colour

    @property
    def pierces(self) -> bool:
        return self._drawable.pierces

    def mapped(self, values: Floats | None) -> bool:
        """Whether any of the scene's values is this body's."""
        return values is not None and bool((values[self._drawable.span] >= 0.0).any())

    def update(self, state: SceneState, values: Floats | None, contacts: Floats) -> None:
        if self._drawable.face_room and state.parted != self._parted:
            self._grow(state)
        span = self._drawable.span
        points, colours = state.vertices[span], None if values is None else values[span]
        before, earlier = self._filled
        same = np.array_equal(points, before) and np.array_equal(colours, earlier)  # type: ignore[arg-type]
        if not (self._drawable.static or same):
            self._fill(points, colours)
        elif not (len(contacts) or self._touched):
            return
        self._darken(contacts)
        self._array.stream(self._rows)

    def faces(self) -> None:
        self._array.draw(gl.GL_TRIANGLES, "faces")

    def skin(self) -> None:
        """The faces that can be seen: of a closed body, those in front."""
        flags = (gl.GL_BLEND, self.look.opacity < 1.0), (gl.GL_CULL_FACE, self._closed)
        for flag, on in flags:
            if on:
                gl.glEnable(flag)
        self.faces()
        for flag, _ in flags:
            gl.glDisable(flag)

    def coarse(self) -> None:
        """The faces as the mesh has them, for what is dim."""
        self._array.draw(gl.GL_TRIANGLES, "coarse")

    def edges(self) -> None:
        self._array.draw(gl.GL_LINES, "edges")

    def outline(self, eye: Floats) -> None:
        self._array.draw_edges(self._shape.outline.edges(self._drawn, eye))

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
        array = VertexArray((3, 3, 1, 1, 3))
        array.set_indices("faces", self._shape.triangles)
        array.set_indices("coarse", self._shape.coarse)
        array.set_indices("edges", self._shape.edges)
        self._fill(points, None)
        self._darken(np.zeros((0, 3)))
        array.stream(self._rows)
        return array

    def _fill(self, vertices: Floats, values: Floats | None) -> None:
        """Position, normal, share of the colour bar, and how far a hollow leaves the sky open."""
        self._filled = vertices.copy(), None if values is None else values.copy()
        self._drawn = drawn = self._shape.drawn(vertices)
        rows = self._rows
        rows[:, :3], rows[:, 3:6] = drawn.points, drawn.normals
        rows[:, SHARE] = NO_VALUE if values is None else self._shape.values(values)
        bent = np.clip(REACH * self._length * self._shape.hollows(drawn), -LIGHT_EDGE, 1.0)
        self._open = 1.0 - DARK * bent

    def _darken(self, contacts: Floats) -> None:
        """What is left of the sky beside contacts; a shadow of the size of a face would be a stain."""
        reach, self._touched = CONTACT_REACH * self._length, bool(len(contacts))
        near = near_contacts(self._drawn.points, contacts, reach)
        self._rows[:, OPEN] = self._open * np.where(self._shape.spacing < reach, near, 1.0)


def enclosed(points: Floats, triangles: Indices) -> float:
    """Volume [m^3] inside a closed surface, positive if its triangles are wound outward."""
    a, b, c = (points[triangles[:, k]] - points.mean(axis=0) for k in range(3))
    return float(np.einsum("mi,mi->", a, np.cross(b, c)) / 6.0)


def near_contacts(points: Floats, contacts: Floats, reach: float) -> Floats:
    """Part of the light that reaches each point (k,): less within `reach` [m] of a contact (n, 3)."""
    open_part = np.ones(len(points))
    if not len(contacts):
        return open_part
    low, high = contacts.min(axis=0) - reach, contacts.max(axis=0) + reach
    near = np.flatnonzero(((points > low) & (points < high)).all(axis=1))
    # |p - c|^2 by products, from the middle of them all
    p, c = (at - contacts.mean(axis=0) for at in (points[near], contacts))
    square = (c * c).sum(axis=1) - 2.0 * p @ c.T
    square = (square.min(axis=1) + (p * p).sum(axis=1)) / reach**2
    open_part[near] -= CONTACT_DARK * np.clip(1.0 - square, 0.0, 1.0) ** 2
    return open_part


class SurfaceLayer:
    """All surfaces and tubes of a scene; creases are those of the shape at rest."""

    def __init__(self, geometry: SceneGeometry) -> None:
        self._lit = {
            name: Program("surface", "lit", *filter(None, [name])) for name in ("", MAPPED, PATTERNED)
        }
        self._flat = Program("surface", "flat")
        shapes = [*zip(geometry.drawables, fine_levels(geometry), strict=True)]
        # what one sees through comes last
        shapes.sort(key=lambda shape: -LOOKS[shape[0].look].opacity)
        self._bodies = [
            _Body(d, geometry.rest, levels, geometry.length) for d, levels in shapes if d.kind != "plane"
        ]
        self._cell = 0.3 * CONTACT_REACH * max(geometry.length, 1e-3)
        self._values: Floats | None = None

    def update(self, state: SceneState, coloured: bool) -> None:
        """Take over the vertices of a frame, and its scalar if `coloured`."""
        self._values = shares(state, state.scalar) if coloured else None
        contacts = state.contact_point[np.isfinite(state.contact_point).all(axis=1)]
        # of those that stand closer than one sees, one
        _, first = np.unique(np.floor(contacts / self._cell), axis=0, return_index=True)
        contacts = contacts[first]
        for body in self._bodies:
            body.update(state, self._values, contacts)

    def draw(
        self, to_clip: Floats, eye: Floats, light: Floats, plane: Floats | None, wireframe: bool, smooth: bool
    ) -> None:  # fmt: skip
        """Draw the bodies, their shadow on a `plane` (n, d) if there is one, and their edges if `wireframe`.

        smooth: bodies end in tones between two colours, where pixels have one sample only.
        """
        # Faces step back a little so that the edges drawn on them are not half hidden.
        gl.glEnable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glPolygonOffset(1.0, 1.0)
        clear = [body for body in self._bodies if body.look.opacity < 1.0]
        solid = [body for body in self._bodies if body.look.opacity >= 1.0]
        self._each(solid, to_clip, eye, light, _Body.skin)
        if plane is not None:
            self._draw_shadow(to_clip, plane, light)
        gl.glPolygonOffset(1.0, 1.0)
        self._each(clear, to_clip, eye, light, _Body.skin)
        self._draw_through(to_clip, eye, light)
        gl.glDisable(gl.GL_POLYGON_OFFSET_FILL)
        gl.glEnable(gl.GL_BLEND)
        if smooth:
            gl.glEnable(gl.GL_LINE_SMOOTH)
            gl.glDepthMask(False)
            self._each(self._bodies, to_clip, eye, light, lambda body: body.outline(eye))
            gl.glDepthMask(True)
            gl.glDisable(gl.GL_LINE_SMOOTH)
        if wireframe:
            self._flat.use(to_clip=to_clip)
            for body in self._bodies:
                self._flat.set(colour=(*(0.25 * np.array(body.colour)), EDGE_OPACITY))
                body.edges()

    def _draw_shadow(self, to_clip: Floats, plane: Floats, light: Floats) -> None:
        """Darken where the bodies stand between `light` (3,) and the `plane` (4,): n . x = d as (n, d).

        Each pixel is darkened once, and none that a body hides: on the processor those would be most.
        """
        self._flat.use(to_clip=to_clip @ shadow_matrix(plane, light), colour=SHADOW)
        gl.glDepthMask(False)
        gl.glEnable(gl.GL_BLEND)
        gl.glPolygonOffset(0.0, SHADOW_OFFSET)
        gl.glEnable(gl.GL_CULL_FACE)  # what faces the light throws all of the shadow
        with once(SHADOWED):
            for body in self._bodies:
                body.coarse()
        gl.glDisable(gl.GL_CULL_FACE)
        gl.glDisable(gl.GL_BLEND)
        gl.glDepthMask(True)

    def _draw_through(self, to_clip: Floats, eye: Floats, light: Floats) -> None:
        """Draw of needles, dimly, what is behind a surface."""
        needles = [body for body in self._bodies if body.pierces]
        if not needles:
            return
        program = self._lit[""]
        program.use(to_clip=to_clip, eye=eye, light=light, glow=0.0)
        gl.glDepthFunc(gl.GL_GREATER)
        gl.glDepthMask(False)
        gl.glEnable(gl.GL_BLEND)
        gl.glEnable(gl.GL_CULL_FACE)
        for body in needles:
            program.set(colour=(*body.colour, THROUGH))
            program.set(gloss=body.look.gloss, depth=body.look.depth, mirror=body.look.mirror)
            body.faces()
        gl.glDisable(gl.GL_CULL_FACE)
        gl.glDisable(gl.GL_BLEND)
        gl.glDepthMask(True)
        gl.glDepthFunc(gl.GL_LESS)

    def _each(
        self, bodies: Sequence[_Body], to_clip: Floats, eye: Floats, light: Floats,
        draw: Callable[[_Body], None],
    ) -> None:  # fmt: skip
        """Draw of each of these bodies this much, lit."""
        used: Program | None = None
        for body in bodies:
            look, known = body.look, self._known(body)
            program = self._lit[known]
            if program is not used:
                program.use(to_clip=to_clip, eye=eye, light=light, glow=0.0)
                used = program
                if known == MAPPED:
                    program.set(colour_map=palette.COLOUR_MAP)
            program.set(colour=(*body.colour, look.opacity))
            program.set(gloss=look.gloss, depth=look.depth, mirror=look.mirror)
            if known == PATTERNED:
                program.set(specks=look.specks)
            draw(body)

    def _known(self, body: _Body) -> str:
        """What the program that draws this body knows."""
        return MAPPED if body.mapped(self._values) else PATTERNED if body.look.specks else ""

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
        for program in (*self._lit.values(), self._flat):
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
