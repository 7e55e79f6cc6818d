"""Quasi-static bodies, their K^-1 computed or loaded."""

from numpy.typing import ArrayLike

from palpo.app.build.parts import chosen_nodes
from palpo.app.build.shapes import placed, quasistatic_mesh
from palpo.app.runtime.memory import require_compliance
from palpo.config.schema.body import Quasistatic
from palpo.config.schema.geometry import (
    BodyFile,
    HexBlock,
)
from palpo.physics.bodies.io import read_body
from palpo.physics.bodies.quasistatic import Progress, QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.cache import cache_folder


def quasistatic_body(
    told: Quasistatic, key: str, gravity: ArrayLike, progress: Progress | None = None
) -> QuasistaticBody:
    """The body at rest, K^-1 computed or loaded; progress is told the share that is done.

    InputError that names `key` for a region without a node, and for a K^-1 that the memory does not hold.
    """
    if isinstance(told.geometry, BodyFile):
        held = read_body(told.geometry.path)
        mesh = held.mesh.with_nodes(placed(held.mesh.nodes, told.placement))
        _require_room(told, mesh)
        return QuasistaticBody(
            told.name, mesh, held.material, held.clamped, gravity, _elements(told, mesh), held.stiffness,
            held.inverse, cache_folder("compliance"), progress,
        )  # fmt: skip
    assert told.material is not None
    if isinstance(told.geometry, HexBlock):  # known before there is a mesh
        a, b, c = told.geometry.divisions
        nodes, inside = (a + 1) * (b + 1) * (c + 1), (a - 1) * (b - 1) * (c - 1)
        require_compliance(f"bodies.{told.name}.geometry.divisions", nodes, nodes - inside, a * b * c, 8)
    solid, m = quasistatic_mesh(told), told.material
    _require_room(told, solid)
    clamped = chosen_nodes(key, told.name, told.clamped, solid.nodes, "clamps")
    material = Material(m.youngs_modulus, m.poisson_ratio, m.density)
    return QuasistaticBody(
        told.name, solid, material, clamped, gravity, _elements(told, solid),
        cache=cache_folder("compliance"), progress=progress,
    )  # fmt: skip


def _elements(told: Quasistatic, mesh: HexMesh | TetMesh) -> str | None:
    return f"hex8-{told.integration}" if isinstance(mesh, HexMesh) else None


def _require_room(told: Quasistatic, mesh: HexMesh | TetMesh) -> None:
    """Refusal for a body whose K^-1 the machine cannot hold."""
    require_compliance(f"bodies.{told.name}", len(mesh.nodes), len(mesh.boundary_nodes), *mesh.cells.shape)
