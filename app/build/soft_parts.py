"""Soft bodies of scenes at two rates: their meshes, cut into the elements that they are to be made of."""

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.parts import (
    NO_EDGES,
    BodyPart,
    chosen_nodes,
    cup_shape,
    fields_of,
    generated_tets,
    key_of,
    material_of,
    placed,
)
from palpo.app.runtime.memory import require_stiffness
from palpo.config.schema.body import TetBodySpec
from palpo.config.schema.geometry import BlockGeometry, CupModel, RevolvedCup, VolumeFile
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.topology import LOW, CollisionShape
from palpo.physics.fem.elements import ELEMENTS, SolidMesh
from palpo.physics.fem.facet_yield import mean_longest_edge
from palpo.physics.mesh import hex_cups, io
from palpo.physics.mesh.generate import hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import EDGES, QuadraticTetMesh, with_chosen_middles, with_middles
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

LARGE = 2500
"""Nodes from which a body is solved by multigrid: a slow step then costs half of what it does with factors,
which are cheaper only well below a thousand (`palpo bench large-body`)."""

LOCKS = 0.4
"""Poisson's ratio from which tetrahedra share their change of volume where nothing is said: plain ones in a
bonded, pressed block err by 3% at 0.3, 18% at 0.45 and without bound above, those that share it by 2, 7 and
10% at most (tests/verification/test_patches.py). They cost a slow step 1.2 times the time."""


def elements_of(body: TetBodySpec, mesh: SolidMesh, large: bool) -> str | None:
    """The elements of a body as told, or by its mesh, its material and how it is solved."""
    if body.elements != "auto":
        return body.elements
    shared = isinstance(mesh, TetMesh) and not large and body.material.poisson_ratio >= LOCKS
    return "tet4-patch" if shared else None


def soft_part(spec: SceneSpec, body: TetBodySpec) -> BodyPart:
    """A soft body of the scene; raises InputError for what only its mesh can tell."""
    mesh = soft_mesh(body)
    fixed, fields = fixed_nodes(spec, body, mesh), fields_of(spec, body.name)
    large = body.solver == "multigrid" or (
        body.solver == "auto" and fields == 0 and len(mesh.nodes) >= LARGE and body.mass_model == "lumped"
    )
    solid = SoftBody(
        body.name, mesh, material_of(body), fixed, spec.gravity, body.mass_model,
        elements=elements_of(body, mesh, large), solver="multigrid" if large else "direct", fields=fields,
    )  # fmt: skip
    triangles = mesh.surface().triangles
    shape = CollisionShape(
        len(mesh.nodes) + fields, triangles, NO_EDGES, 0.0, LOW, facet_yield=solid.facet_yield(triangles),
        facet=mean_longest_edge(mesh.nodes, triangles),
    )  # fmt: skip
    return BodyPart(body, shape, np.vstack([mesh.nodes, np.zeros((fields, 3))]), len(mesh.nodes), solid)


def soft_mesh(spec: TetBodySpec) -> SolidMesh:
    """The mesh of a soft body where it is placed [m].

    Raises InputError for elements that its shape does not have, and Refusal for more than the machine holds.
    """
    wanted = None if spec.elements == "auto" else ELEMENTS[spec.elements].mesh
    mesh: SolidMesh = _hexahedra(spec) if wanted is HexMesh else _cells(spec)
    if wanted is QuadraticTetMesh and isinstance(mesh, TetMesh):
        # an edge, and so its middle, is shared by some five elements
        nodes = len(mesh.nodes) + 6 * len(mesh.tets) // 5
        require_stiffness(f"bodies.{spec.name}.elements", nodes, len(mesh.tets), 10)
        mesh = with_middles(mesh)[1]
    if wanted is not None and not isinstance(mesh, wanted):
        has, use = ("hexahedra", '"hex8"') if isinstance(mesh, HexMesh) else ("tetrahedra", '"tet10"')
        raise InputError(
            f'bodies.{spec.name}.elements is "{spec.elements}", but the file holds {has}: use {use}.'
        )
    return mesh.with_nodes(placed(mesh.nodes, spec.placement))


def fixed_nodes(spec: BaseScene, body: TetBodySpec, mesh: SolidMesh) -> NDArray[np.int32]:
    """Nodes of a body's mesh that never move; the middle of an edge with both of its ends."""
    key, corners, ends = key_of(spec, "bodies", body.name, "fixed"), len(mesh.nodes), None
    if isinstance(mesh, QuadraticTetMesh):
        corners = int(mesh.cells[:, :4].max()) + 1
        ends = np.empty((len(mesh.nodes) - corners, 2), np.int32)
        ends[mesh.cells[:, 4:] - corners] = mesh.cells[:, EDGES]
    chosen = chosen_nodes(key, body.name, body.fixed, mesh.nodes[:corners])
    return chosen if ends is None else with_chosen_middles(chosen, ends, corners)


def _cells(spec: TetBodySpec) -> TetMesh | HexMesh:
    """Tetrahedra, or what a file holds, in the shape's own frame."""
    mesh, g = generated_tets(spec.geometry), spec.geometry
    if mesh is not None:
        return mesh
    assert isinstance(g, VolumeFile)
    read = io.read_solid_mesh(g.path)
    return read.with_nodes(read.nodes * g.scale)


def _hexahedra(spec: TetBodySpec) -> TetMesh | HexMesh:
    """Hexahedra, or what a file holds, in the shape's own frame."""
    g = spec.geometry
    if isinstance(g, BlockGeometry):
        a, b, c = g.divisions
        require_stiffness("geometry.divisions", (a + 1) * (b + 1) * (c + 1), a * b * c, 8)
        return hex_block(g.size, g.divisions, g.grading)
    if isinstance(g, CupModel | RevolvedCup):
        return hex_cups.hex_cup(cup_shape(g), hex_cups.GRIDS[g.resolution]).mesh
    return _cells(spec)
