"""How near what the hand holds is to other bodies, and how their surfaces lie where they are touched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.nearest import TriangleTree, nearest_places, triangle_tree
from palpo.physics.contact.laws import OPEN
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

NEAR = 0.1
"""Distance within which it is shown, in lengths of the scene."""
TOUCHED = 0.02
"""How far off a surface a contact may be whose normal is told, likewise."""


class Nearness:
    """Fills `contact_normal` and `nearest` of a scene's states."""

    def __init__(self, geometry: SceneGeometry, held: Drawable) -> None:
        """held: the shape that the hand holds."""
        self._length, self._held = geometry.length, held
        others = [d for d in geometry.drawables if d is not held]
        faces, own = np.vstack([np.zeros((0, 3), np.int32), *(_faces(d) for d in others)]), _faces(held)
        self._others, self._own = (triangle_tree(geometry.rest, part) for part in (faces, own))
        points = np.arange(held.first_vertex, held.first_vertex + held.n_vertices, dtype=np.int32)
        self._points = np.unique(own) if len(own) else points
        self._facing = np.unique(faces)

    def look(self, state: SceneState) -> None:
        """Write what there is to see into the state; a distance only while nothing is touched."""
        x = np.ascontiguousarray(state.vertices)
        self._look_at_contacts(state, x)
        state.nearest = np.full((2, 3), np.nan)
        pressed = np.asarray(state.contact_state) != OPEN
        if not pressed.any() and self._facing.size and np.isfinite(x).all():
            self._look_around(state, x)

    def _look_at_contacts(self, state: SceneState, x: Floats) -> None:
        n = len(state.contact_point)
        state.contact_normal = np.full((n, 3), np.nan)
        if n and self._facing.size:
            points = np.ascontiguousarray(state.contact_point)
            within, places = TOUCHED * self._length, np.zeros((n, 3))
            nearest_places(points, self._others, x, within, places, state.contact_normal)

    def _look_around(self, state: SceneState, x: Floats) -> None:
        """The two nearest places: a vertex of either side, and the nearest place of the other's faces."""
        within = NEAR * self._length + self._held.radius
        own, facing = x[self._points], x[self._facing]
        low, high = own.min(axis=0) - within, own.max(axis=0) + within
        here = facing[((facing >= low) & (facing <= high)).all(axis=1)]
        found = [_least(own, x, self._others, within)]
        if len(here) and len(self._own.triangles):
            there = _least(here, x, self._own, within)
            found.append((there[0], there[1][::-1]))
        distance, pair = min(found, key=lambda one: one[0])
        if np.isfinite(distance) and distance > self._held.radius:
            start, end = pair
            # from the skin of what is round about its line
            state.nearest = np.array([start + (end - start) * self._held.radius / distance, end])


def _faces(shape: Drawable) -> Indices:
    """A shape's triangles, by vertices of the scene; a plate's are two."""
    if shape.kind == "plane":
        return np.array([[0, 1, 2], [0, 2, 3]], np.int32) + np.int32(shape.first_vertex)
    return (shape.triangles + shape.first_vertex).astype(np.int32)


def _least(points: Floats, x: Floats, surface: TriangleTree, within: float) -> tuple[float, Floats]:
    """The least distance of points to a surface [m], infinite beyond `within`; and where it is, (2, 3)."""
    points = np.ascontiguousarray(points)
    places, normals = np.zeros_like(points), np.zeros_like(points)
    distances = nearest_places(points, surface, x, within, places, normals)
    k = int(np.argmin(distances))
    return float(distances[k]), np.array([points[k], places[k]])
