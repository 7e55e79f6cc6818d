"""A scene as its file describes it, drawn before anything is compiled: its bodies at rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.meshes import cup_mesh, rigid_surface, soft_partner_mesh, solid_mesh
from palpo.app.build.parts import beam_line, placed, rigid_form, static_surface, tet_mesh
from palpo.app.build.snap_connector import connector_of
from palpo.app.visual.solids import capsule_surface, plate
from palpo.config.schema.body import BeamBody, PlaneBody, RigidBody, TetBody
from palpo.config.schema.hapco import HapcoScene
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.snap import SnapScene
from palpo.config.schema.suction import SoftPartner, SuctionScene
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState, make_geometry

Floats = NDArray[np.float64]


class _Shapes:
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
    shapes = _Shapes()
    if isinstance(spec, SceneSpec):
        _add_bodies(shapes, spec)
    elif isinstance(spec, HapcoScene):
        for body in (spec.mobile, spec.fixed):
            mesh = solid_mesh(body)
            shapes.add(body.name, mesh.nodes, mesh.surface().triangles, colour=body.colour)
    elif isinstance(spec, SnapScene):
        connector = connector_of(spec)
        for i, prong in enumerate(connector.prongs):
            skin = prong.mesh.surface().triangles
            shapes.add(f"prong {i + 1}", prong.mesh.nodes, skin, colour=spec.socket_colour)
        plug = connector.plug
        shapes.add("plug", plug.vertices + connector.rest_position, plug.triangles, colour=spec.plug_colour)
    elif isinstance(spec, SuctionScene):
        _add_cups(shapes, spec)
    vertices = np.vstack(shapes.points)
    return make_geometry(shapes.drawables, vertices), SceneState(vertices)


def _add_bodies(shapes: _Shapes, spec: SceneSpec) -> None:
    for body in spec.bodies:
        if isinstance(body, TetBody):
            mesh = tet_mesh(body)
            shapes.add(body.name, mesh.nodes, mesh.surface().triangles, colour=body.colour)
        elif isinstance(body, BeamBody):
            line = beam_line(body)
            shapes.add(body.name, line.nodes, kind="tube", radius=line.radius, colour=body.colour)
        elif isinstance(body, RigidBody):
            shapes.add(body.name, *_rigid(body), colour=body.colour)
        elif not isinstance(body, PlaneBody):
            surface = static_surface(body)
            shapes.add(body.name, surface.vertices, surface.triangles, colour=body.colour, static=True)
    solid = np.vstack([*shapes.points, np.array([p[1:] for p in spec.device.path])])
    for body in spec.bodies:
        if isinstance(body, PlaneBody):
            shapes.add(body.name, plate(body, solid), kind="plane", colour=body.colour, static=True)


def _rigid(body: RigidBody) -> tuple[Floats, Any]:
    """Vertices where they are placed, and triangles."""
    g, scale = body.geometry, body.placement.scale
    turn = quaternion_matrix(body.placement.quaternion)
    points, triangles, _, _, _, centre, _ = rigid_form(body)
    if g.kind in ("sphere", "capsule"):
        length = g.length * scale if g.kind == "capsule" else 0.0
        points, triangles = capsule_surface(g.radius * scale, length)
    return np.array(body.placement.position) + (points + centre) @ turn.T, triangles


def _add_cups(shapes: _Shapes, spec: SuctionScene) -> None:
    for cup in spec.cups:
        mesh = cup_mesh(cup)
        shapes.add(cup.name, mesh.nodes, mesh.surface().triangles, colour=cup.colour)
    told = spec.partner
    if isinstance(told, SoftPartner):
        mesh = soft_partner_mesh(told)
        points, triangles = mesh.nodes, mesh.surface().triangles
    else:
        surface = rigid_surface(spec)
        points, triangles = placed(surface.vertices, told.placement), surface.triangles
    shapes.add(told.name, points, triangles, colour=told.colour, static=told.kind == "static")
