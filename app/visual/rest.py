"""A scene as its file describes it, drawn before anything is compiled: its bodies at rest."""

from __future__ import annotations

from palpo.app.systems.system import system_of
from palpo.app.visual.picture import Shapes
from palpo.config.schema.scene import BaseScene
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState, make_geometry


def rest_picture(spec: BaseScene) -> tuple[SceneGeometry, SceneState]:
    """What a scene looks like before it moves; raises InputError for meshes that cannot be read.

    Nothing is computed but meshes: a body that springs or cables pull is drawn as it was made.
    """
    shapes = Shapes()
    system_of(spec).add_shapes(spec, shapes)
    return make_geometry(shapes.drawables, shapes.vertices), SceneState(shapes.vertices)
