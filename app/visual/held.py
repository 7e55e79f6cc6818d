"""What the hand holds in a picture: which shape it is, and where the scene's own path leads it."""

import numpy as np
from numpy.typing import NDArray

from palpo.config.schema.hapco import HapcoScene
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.snap import SnapScene
from palpo.config.schema.suction import HandDrive, ScriptedDrive, SuctionScene
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry

Floats = NDArray[np.float64]


def held_name(spec: BaseScene) -> str:
    """Name of the shape that the hand holds; empty where it holds none."""
    if isinstance(spec, SceneSpec):
        return spec.tool.body
    if isinstance(spec, HapcoScene):
        return spec.mobile.name
    if isinstance(spec, SuctionScene):
        return next((cup.name for cup in spec.cups if isinstance(cup.drive, HandDrive)), "")
    return "plug" if isinstance(spec, SnapScene) else ""


def shape_of(geometry: SceneGeometry, name: str) -> Drawable | None:
    """The shape of this name, if there is one."""
    return next((d for d in geometry.drawables if d.name == name), None)


def swept(spec: BaseScene, geometry: SceneGeometry) -> Floats:
    """Points (n, 3) [m] between which the scene's own paths lead its tool or cups, as if none would bend."""
    ways = {held_name(spec): spec.device.path}
    if isinstance(spec, SuctionScene):
        ways |= {cup.name: cup.drive.path for cup in spec.cups if isinstance(cup.drive, ScriptedDrive)}
    points = [np.zeros((0, 3))]
    for name, way in ways.items():
        shape, moves = shape_of(geometry, name), np.array([row[1:] for row in way], float)
        if shape is not None:
            box = np.array([f(geometry.rest[shape.span], axis=0) for f in (np.min, np.max)])
            corners = np.array(np.meshgrid(*box.T, indexing="ij")).reshape(3, -1).T
            points.append((corners[None] + (moves - moves[0])[:, None]).reshape(-1, 3))
    return np.vstack(points)
