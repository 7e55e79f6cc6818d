"""What the hand holds in a picture: which shape it is, and where the scene's own path leads it."""

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.system import system_of
from palpo.config.schema.scene import BaseScene
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry

Floats = NDArray[np.float64]


def held_name(spec: BaseScene) -> str:
    """Name of the shape that the hand holds; empty where it holds none."""
    return system_of(spec).held_name(spec)


def shape_of(geometry: SceneGeometry, name: str) -> Drawable | None:
    """The shape of this name, if there is one."""
    return next((d for d in geometry.drawables if d.name == name), None)


def swept(spec: BaseScene, geometry: SceneGeometry) -> Floats:
    """Points (n, 3) [m] between which the scene's own paths lead its tool or cups, as if none would bend."""
    ways = {held_name(spec): spec.device.path} | system_of(spec).further_paths(spec)
    points = [np.zeros((0, 3))]
    for name, way in ways.items():
        shape, moves = shape_of(geometry, name), np.array([row[1:] for row in way], float)
        if shape is not None:
            box = np.array([f(geometry.rest[shape.span], axis=0) for f in (np.min, np.max)])
            corners = np.array(np.meshgrid(*box.T, indexing="ij")).reshape(3, -1).T
            points.append((corners[None] + (moves - moves[0])[:, None]).reshape(-1, 3))
    return np.vstack(points)
