"""What one frame of the picture needs: the scene's shapes, fixed at build, and their present state.

The low-rate loop writes a `Snapshot` slot and publishes it through the triple buffer of
`physics.exchange.buffer`; the renderer acquires a slot and reads it through `view`. Lengths in metres, forces
in newtons, world axes, y up.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]

OPEN, STICK, SLIP, BILATERAL = 0, 1, 2, 3
CONTACT_STATES = ("open", "stick", "slip", "bilateral")

# Columns of `counters`: servo ticks missed and run on a stale frame, low steps that took longer than their
# period, and contacts and patches that did not fit the capacity.
COUNTERS = ("missed", "stale", "overruns", "overflow")
OVERFLOW = COUNTERS.index("overflow")

# What the vertices' scalar may be: name and unit.
NO_SCALAR, STRAIN, PRESSURE, DEFLECTION = 0, 1, 2, 3
SCALARS = (("", ""), ("equivalent strain", "-"), ("gauge pressure", "kPa"), ("deflection", "mm"))


def _no_triangles() -> Indices:
    return np.zeros((0, 3), np.int32)


def _no_indices() -> Indices:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Drawable:
    """One shape of the scene: where its vertices are among all of them, and how they are joined.

    A `surface` is a triangle mesh wound counter-clockwise from outside; a `tube` a polyline of beam nodes
    with a `radius` [m]; a `plane` the four corners of a plate (`plane_corners`), drawn as ground.
    """

    name: str
    kind: Literal["surface", "tube", "plane"]
    first_vertex: int
    n_vertices: int
    triangles: Indices = field(default_factory=_no_triangles)  # (m, 3), counted from first_vertex
    radius: float = 0.0
    colour: tuple[float, float, float] = (0.70, 0.72, 0.76)  # sRGB, 0 to 1
    fixed: Indices = field(default_factory=_no_indices)  # clamped vertices, counted from first_vertex
    static: bool = False  # its vertices never move: uploaded once
    look: Literal["soft", "clear", "hard"] = "hard"  # as tissue, as clear rubber, as metal
    pierces: bool = False  # a needle: seen dimly through what is before it
    first_face: int = 0  # where its triangles are among a frame's `faces`, if they change
    face_room: int = 0  # how many of these rows are its own; 0 where its triangles stay

    @property
    def span(self) -> slice:
        """Rows of `vertices` that belong to this shape."""
        return slice(self.first_vertex, self.first_vertex + self.n_vertices)


@dataclass(frozen=True, eq=False)
class SceneGeometry:
    """All shapes of a scene, where they were at first, and the box [m] around all but planes."""

    drawables: tuple[Drawable, ...]
    rest: Floats  # (n_vertices, 3) m
    lower: Floats  # (3,)
    upper: Floats  # (3,)

    @property
    def n_vertices(self) -> int:
        """Vertices of all shapes together."""
        return len(self.rest)

    @property
    def centre(self) -> Floats:
        """Middle of the box [m], shape (3,)."""
        return 0.5 * (self.lower + self.upper)

    @property
    def length(self) -> float:
        """Diagonal of the box [m], the length that marks and arrows are sized by."""
        return float(np.linalg.norm(self.upper - self.lower))


def make_geometry(drawables: Sequence[Drawable], vertices: Floats) -> SceneGeometry:
    """Join the shapes with their first positions (n_vertices, 3) [m]; InputError if they do not fit."""
    drawables = tuple(drawables)
    vertices = np.asarray(vertices, float)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
        raise InputError(f"scene vertices must be finite and of shape (n, 3), not {vertices.shape}.")
    for d in drawables:
        _check(d, len(vertices))
    solid = [vertices[d.span] for d in drawables if d.kind != "plane"] or [vertices]
    box = np.concatenate([*solid, np.zeros((0 if len(vertices) else 1, 3))])
    radius = max((d.radius for d in drawables if d.kind == "tube"), default=0.0)
    return SceneGeometry(drawables, vertices.copy(), box.min(axis=0) - radius, box.max(axis=0) + radius)


def _check(d: Drawable, n_vertices: int) -> None:
    if d.first_vertex < 0 or d.first_vertex + d.n_vertices > n_vertices:
        raise InputError(f"drawable {d.name!r}: vertices {d.span} lie outside the scene's {n_vertices}.")
    for what, index in (("triangle", d.triangles), ("fixed vertex", d.fixed)):
        if index.size and not 0 <= index.min() <= index.max() < d.n_vertices:
            raise InputError(
                f"drawable {d.name!r}: a {what} names vertex {index.max()}, but there are {d.n_vertices}."
            )
    if d.kind == "tube" and not (d.radius > 0 and d.n_vertices >= 2):
        raise InputError(f"drawable {d.name!r}: a tube needs a positive radius and at least two vertices.")
    if d.kind == "plane" and d.n_vertices != 4:
        raise InputError(f"drawable {d.name!r}: a plane has 4 corners, not {d.n_vertices} vertices.")


def plane_corners(point: Floats, normal: Floats, half_width: float) -> Floats:
    """Corners (4, 3) [m] of a square plate around `point`, counter-clockwise seen against `normal`."""
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    u = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    u /= np.linalg.norm(u)
    v = np.cross(n, u)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) @ np.array([u, v])
    return np.asarray(point, float) + half_width * corners


class Snapshot(NamedTuple):
    """Three frames side by side, one for each slot of the triple buffer (leading dimension of every array).

    A point that is not there (no device yet, an attachment released) is NaN.
    """

    tick: Ints  # (3,) servo tick that the frame joined
    time: Floats  # (3,) s
    vertices: Floats  # (3, n_vertices, 3) m
    contact_point: Floats  # (3, cap, 3) m
    contact_force: Floats  # (3, cap, 3) N, world axes, on body 1 (the tool)
    contact_state: Ints  # (3, cap) OPEN, STICK, SLIP or BILATERAL
    n_contacts: Ints  # (3,)
    device_point: Floats  # (3, 3) m, where the hand is
    device_turn: Floats  # (3, 4) how it is turned
    held_point: Floats  # (3, 3) m, the tool's point that the hand holds
    hand_force: Floats  # (3, 3) N, on the hand
    attachment_point: Floats  # (3, cap_a, 3) m
    counters: Ints  # (3, len(COUNTERS))
    scalar: Floats  # (3, n_vertices) to colour the bodies by, NaN where a vertex has none
    scalar_kind: Ints  # (3,) NO_SCALAR or another index of SCALARS
    scalar_range: Floats  # (3, 2) scalars of the two ends of the colour bar
    patch: Floats  # (3, cap_p, 3, 3) m, corners of coloured triangles on or between the bodies
    patch_scalar: Floats  # (3, cap_p) their scalar
    n_patches: Ints  # (3,)
    strained: Floats  # (3,) largest strain over what the material bears
    faces: Indices  # (3, cap_f, 3) triangles of shapes whose triangles change, -1 for none
    parted: Ints  # (3,) how often they have changed
    published_ns: Ints  # (3,) `time.perf_counter_ns` when it was published; 0 in lock-step


@dataclass(eq=False)
class SceneState:
    """One frame; the arrays are those of a snapshot's slot, or any others of these shapes."""

    vertices: Floats  # (n_vertices, 3) m
    tick: int = 0
    time: float = 0.0
    contact_point: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    contact_force: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    contact_state: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    device_point: Floats = field(default_factory=lambda: np.full(3, np.nan))
    device_turn: Floats = field(default_factory=lambda: np.full(4, np.nan))
    held_point: Floats = field(default_factory=lambda: np.full(3, np.nan))
    hand_force: Floats = field(default_factory=lambda: np.full(3, np.nan))
    attachment_point: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    counters: Ints = field(default_factory=lambda: np.zeros(len(COUNTERS), np.int64))
    scalar: Floats = field(default_factory=lambda: np.zeros(0))  # (n_vertices,), (0,) for NO_SCALAR
    scalar_kind: int = NO_SCALAR
    scalar_range: Floats = field(default_factory=lambda: np.array([0.0, 1.0]))
    patch: Floats = field(default_factory=lambda: np.zeros((0, 3, 3)))
    patch_scalar: Floats = field(default_factory=lambda: np.zeros(0))
    strained: float = np.nan
    """Largest strain over what the material bears; NaN where nobody says how much that is."""
    published_ns: int = 0
    contact_normal: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """Of the surface that is touched, (n, 3); NaN where nobody has looked, as in `nearest`."""
    nearest: Floats = field(default_factory=lambda: np.full((2, 3), np.nan))
    """Where what is held, and what it has not touched yet, are nearest to each other [m]."""

    faces: Indices = field(default_factory=_no_triangles)
    """Triangles of the shapes whose triangles change; a row of -1 is none."""
    parted: int = 0
    """How often these have changed."""

    def triangles_of(self, shape: Drawable) -> Indices:
        """How a shape's vertices are joined in this frame, (m, 3), counted from its first vertex."""
        if not shape.face_room or not len(self.faces):
            return shape.triangles
        own = self.faces[shape.first_face : shape.first_face + shape.face_room]
        return own[own[:, 0] >= 0]

    def copy(self) -> SceneState:
        """A frame that stays as it is when its slot is written again."""
        return deepcopy(self)


def make_snapshot(
    n_vertices: int, n_contacts: int, n_attachments: int = 0, n_patches: int = 0, n_faces: int = 0
) -> Snapshot:
    """Slots for `n_vertices` vertices and at most so many contacts, attachments, triangles of patches, and
    triangles of shapes whose triangles change."""

    def points(*shape: int) -> Floats:
        return np.full((SLOTS, *shape, 3), np.nan)

    def integers(*shape: int) -> Ints:
        return np.zeros((SLOTS, *shape), np.int64)

    return Snapshot(
        tick=integers(),
        time=np.zeros(SLOTS),
        vertices=np.zeros((SLOTS, n_vertices, 3)),
        contact_point=np.zeros((SLOTS, n_contacts, 3)),
        contact_force=np.zeros((SLOTS, n_contacts, 3)),
        contact_state=integers(n_contacts),
        n_contacts=integers(),
        device_point=points(),
        device_turn=np.full((SLOTS, 4), np.nan),
        held_point=points(),
        hand_force=points(),
        attachment_point=points(n_attachments),
        counters=integers(len(COUNTERS)),
        scalar=np.full((SLOTS, n_vertices), np.nan),
        scalar_kind=integers(),
        scalar_range=np.zeros((SLOTS, 2)),
        patch=points(n_patches, 3),
        patch_scalar=np.zeros((SLOTS, n_patches)),
        n_patches=integers(),
        strained=np.full(SLOTS, np.nan),
        faces=np.full((SLOTS, n_faces, 3), -1, np.int32),
        parted=integers(),
        published_ns=integers(),
    )


def view(snapshot: Snapshot, slot: int) -> SceneState:
    """The frame in `slot`, without copying: it stays valid until the reader acquires another slot."""
    n, m = int(snapshot.n_contacts[slot]), int(snapshot.n_patches[slot])
    kind = int(snapshot.scalar_kind[slot])
    return SceneState(
        vertices=snapshot.vertices[slot],
        tick=int(snapshot.tick[slot]),
        time=float(snapshot.time[slot]),
        contact_point=snapshot.contact_point[slot, :n],
        contact_force=snapshot.contact_force[slot, :n],
        contact_state=snapshot.contact_state[slot, :n],
        device_point=snapshot.device_point[slot],
        device_turn=snapshot.device_turn[slot],
        held_point=snapshot.held_point[slot],
        hand_force=snapshot.hand_force[slot],
        attachment_point=snapshot.attachment_point[slot],
        counters=snapshot.counters[slot],
        scalar=snapshot.scalar[slot, : 0 if kind == NO_SCALAR else None],
        scalar_kind=kind,
        scalar_range=snapshot.scalar_range[slot],
        patch=snapshot.patch[slot, :m],
        patch_scalar=snapshot.patch_scalar[slot, :m],
        strained=float(snapshot.strained[slot]),
        faces=snapshot.faces[slot],
        parted=int(snapshot.parted[slot]),
        published_ns=int(snapshot.published_ns[slot]),
    )


def write(snapshot: Snapshot, slot: int, state: SceneState) -> None:
    """Copy a frame into the writer's own `slot`; contacts and patches beyond the capacity are left out and
    counted.
    """
    n = min(len(state.contact_point), snapshot.contact_point.shape[1])
    m = min(len(state.patch), snapshot.patch.shape[1])
    snapshot.tick[slot] = state.tick
    snapshot.time[slot] = state.time
    snapshot.vertices[slot] = state.vertices
    snapshot.contact_point[slot, :n] = state.contact_point[:n]
    snapshot.contact_force[slot, :n] = state.contact_force[:n]
    snapshot.contact_state[slot, :n] = state.contact_state[:n]
    snapshot.n_contacts[slot] = n
    snapshot.device_point[slot] = state.device_point
    snapshot.device_turn[slot] = state.device_turn
    snapshot.held_point[slot] = state.held_point
    snapshot.hand_force[slot] = state.hand_force
    snapshot.attachment_point[slot] = state.attachment_point
    snapshot.counters[slot] = state.counters
    if state.scalar_kind != NO_SCALAR:
        snapshot.scalar[slot] = state.scalar
    snapshot.scalar_kind[slot] = state.scalar_kind
    snapshot.scalar_range[slot] = state.scalar_range
    snapshot.patch[slot, :m] = state.patch[:m]
    snapshot.patch_scalar[slot, :m] = state.patch_scalar[:m]
    snapshot.n_patches[slot] = m
    snapshot.strained[slot] = state.strained
    if len(state.faces):
        snapshot.faces[slot] = state.faces
    snapshot.parted[slot] = state.parted
    snapshot.published_ns[slot] = state.published_ns
    snapshot.counters[slot, OVERFLOW] += len(state.contact_point) - n + len(state.patch) - m
