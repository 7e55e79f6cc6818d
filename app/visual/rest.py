"""A scene as its file describes it, drawn before anything is compiled: its bodies at rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.system import system_of
from palpo.config.schema.scene import BaseScene
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState, make_geometry

Floats = NDArray[np.float64]


class Shapes:
    """Drawables in a row, with their vertices."""

    def __init__(self) -> None:
        self.drawables: list[Drawable] = []
        self.points: list[Floats] = []

    def add(
        self, name: str, points: Floats, triangles: Any = None, kind: str = "surface", **rest: Any
    ) -> None:
        """One more shape; `rest` are fields of its Drawable."""
        if triangles is not None:
            rest["triangles"] = np.asarray(triangles, np.int32)
        first = sum(map(len, self.points))
        self.drawables.append(Drawable(name, kind, first, len(points), **rest))  # type: ignore[arg-type]
        self.points.append(np.asarray(points, float))


def rest_picture(spec: BaseScene) -> tuple[SceneGeometry, SceneState]:
    """What a scene looks like before it moves; raises InputError for meshes that cannot be read.

    Nothing is computed but meshes: a body that springs or cables pull is drawn as it was made.
    """
    shapes = Shapes()
    system_of(spec).add_shapes(spec, shapes)
    vertices = np.vstack(shapes.points)
    return make_geometry(shapes.drawables, vertices), SceneState(vertices)
