"""By how much the meshes of a scene err under its tools, as far as that can be told beforehand."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from palpo.physics.bodies.mesh_error import can_estimate, press_error
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.topology import LONGEST
from palpo.physics.systems.multirate.scene import Scene

DENT = np.sqrt(0.5)
"""Radius of the press over the tool's: that of a dent half as deep as the tool is round."""
TOLD = 0.25
"""Up to here the estimate is a number; above, only that it is more (tests/convergence/test_mesh_error.py)."""


class MeshError(NamedTuple):
    """What the mesh of a soft body does to a press of a tool."""

    body: str
    radius: float
    """Of the tool [m]."""
    error: float
    """Share of the force, too large or too small."""

    def __str__(self) -> str:
        size = "a quarter or more" if self.error > TOLD else f"some {100.0 * self.error:.0f}%"
        return (
            f"bodies.{self.body}: under a tip of {1e3 * self.radius:.3g} mm its mesh errs by {size}, "
            "by an estimate; `palpo converge` measures it"
        )


def mesh_errors(scene: Scene) -> Iterator[MeshError]:
    """Of each soft body of linear tetrahedra, under the thickest of the tools, where that is nearest to it.

    Tools are balls, capsules and beams: what presses with a mesh has edges, under which none converges.
    """
    t = scene.topology
    radius = max(float(t.body_radius[t.point_body[start]]) for start, _ in scene.tool_spans())
    if radius == 0.0:
        return
    for member in scene.members:
        body = member.body
        if not isinstance(body, SoftBody) or not can_estimate(body):
            continue
        triangles = t.triangles[t.point_body[t.triangles[:, 0]] == member.number] - member.first
        places = body.mesh.nodes[np.intersect1d(triangles, body.free)]
        if not len(places):
            continue
        away = np.linalg.norm(places[:, None] - scene.tool_frames().x, axis=2).min(axis=1)
        by_area = LONGEST * radius >= t.body_facet[member.number]
        error, off = press_error(body, triangles, places[int(away.argmin())], DENT * radius, bool(by_area))
        yield MeshError(body.name, radius, max(abs(error), off))
