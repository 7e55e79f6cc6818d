"""Soft bodies of scenes at two rates: their meshes, cut into the elements that they are to be made of."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.material_parts import parts_of
from palpo.app.build.parts import NO_EDGES, BodyPart, chosen_nodes, fields_of, key_of, material_of
from palpo.app.build.shapes import soft_mesh
from palpo.config.schema.body import Soft
from palpo.config.schema.needle import NeedleSpec
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.topology import LOW, CollisionShape
from palpo.physics.exchange.constraint_frame import PATH_POINTS
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.fem.facet_yield import mean_longest_edge
from palpo.physics.fem.laws import LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.mesh.crossings import crossings, mesh_edges
from palpo.physics.mesh.cut_surface import CutRoom
from palpo.physics.mesh.cutting import cut_mesh, of_copies
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import EDGES, QuadraticTetMesh, with_chosen_middles
from palpo.physics.mesh.tet import TetMesh, tet_volumes
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

LARGE = 2500
"""Nodes from which a body is solved by multigrid: a slow step then costs half of what it does with factors,
which are cheaper only well below a thousand (`palpo bench large-body`)."""

LOCKS = 0.4
"""Poisson's ratio from which tetrahedra share their change of volume where nothing is said: plain ones in a
bonded, pressed block err by 3% at 0.3, 18% at 0.45 and without bound above, those that share it by 2, 7 and
10% at most (tests/verification/test_patches.py). They cost a slow step 1.2 times the time."""


MORE = CutRoom(1, 4, 8)
"""Nodes, points and triangles that a body has room for where a blade may cut it, by its nodes: enough for
a cut through each third edge of a mesh."""

EDGES_A_TRIANGLE = 3
"""That come with a triangle at most."""


def elements_of(body: Soft, mesh: SolidMesh, large: bool) -> str | None:
    """The elements of a body as told, or by its mesh, its material and how it is solved."""
    if body.elements != "auto":
        return body.elements
    if body.material.law != LINEAR and isinstance(mesh, HexMesh):
        raise InputError(
            f'bodies.{body.name}.material.law is "{body.material.law}", but its file holds hexahedra, which '
            'follow "linear" alone: give a file of tetrahedra.'
        )
    shared = isinstance(mesh, TetMesh) and not large and body.material.poisson_ratio >= LOCKS
    return "tet4-patch" if shared else None


def soft_part(spec: SceneSpec, body: Soft) -> BodyPart:
    """A soft body of the scene; raises InputError for what only its mesh can tell."""
    mesh = soft_mesh(body)
    fixed, fields = fixed_nodes(spec, body, mesh), fields_of(spec, body.name)
    large = body.solver == "multigrid" or (
        body.solver == "auto" and fields == 0 and len(mesh.nodes) >= LARGE and body.mass_model == "lumped"
    )
    parts = parts_of(body, mesh)
    material = _material(body, mesh, parts)
    if body.incisions or any(blade.tissue == body.name for blade in spec.blades):
        return _cut_part(spec, body, mesh, fixed, material)
    solid = SoftBody(
        body.name, mesh, material, fixed, spec.gravity, body.mass_model,
        elements=elements_of(body, mesh, large), solver="multigrid" if large else "direct", fields=fields,
    )  # fmt: skip
    if any(needle.tissue == body.name for needle in spec.needles):
        solid.add_inner(PATH_POINTS, mesh.cells.shape[1])
    triangles = mesh.surface().triangles
    shape = CollisionShape(
        solid.count, triangles, NO_EDGES, 0.0, LOW, facet_yield=solid.facet_yield(triangles),
        facet=mean_longest_edge(mesh.nodes, triangles),
    )  # fmt: skip
    return BodyPart(
        body, shape, np.vstack([mesh.nodes, np.zeros((solid.count - solid.nodes, 3))]), len(mesh.nodes), solid
    )


def _cut_part(
    spec: SceneSpec, body: Soft, mesh: SolidMesh, fixed: NDArray[np.int32], material: Material
) -> BodyPart:
    """A body of linear tetrahedra with its incisions, which blades may cut on."""
    if not isinstance(mesh, TetMesh):
        key = key_of(spec, "bodies", body.name, "geometry")
        raise InputError(f"{key}: the file holds hexahedra; a body that is cut is of linear tetrahedra.")
    edges, shares, held = incised(spec, body, mesh)
    cut, blades = cut_mesh(mesh, shares), [blade for blade in spec.blades if blade.tissue == body.name]
    now = CutRoom(len(cut.copies), len(cut.corners), len(cut.triangles))
    room = CutRoom(*(have + more * len(mesh.nodes) for have, more in zip(now, MORE, strict=True)))
    solid = CutBody(
        body.name, cut, material, fixed, spec.gravity, elements_of(body, mesh, large=False),
        of_copies(cut, edges, held), room if blades else None, sum(2 * blade.points for blade in blades),
    )  # fmt: skip
    surface, rest = solid.surface, solid.at_rest()
    spare = room.triangles - len(cut.triangles) if blades else 0
    shape = CollisionShape(
        solid.count, np.pad(surface.triangles, ((0, spare), (0, 0))), NO_EDGES, 0.0, LOW,
        spare_edges=EDGES_A_TRIANGLE * spare,
    )  # fmt: skip
    return BodyPart(body, shape, rest, len(rest), solid)


def incised(spec: SceneSpec, body: Soft, mesh: TetMesh) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Edges (k, 2) of a body's mesh, where its incisions cross them, NaN where they do not, and the toughness
    [J/m2] of each there."""
    key = key_of(spec, "bodies", body.name, "incisions")
    edges, _ = mesh_edges(mesh.tets)
    shares, held = np.full(len(edges), np.nan), np.zeros(len(edges))
    for i, incision in enumerate(body.incisions):
        first, *others = np.array(incision.corners)
        outline = np.array([[first, a, b] for a, b in pairwise(others)])
        met = crossings(mesh.nodes, edges, outline)
        if np.isnan(met).all():
            lo, hi = mesh.nodes.min(axis=0), mesh.nodes.max(axis=0)
            raise InputError(
                f"{key}.{i}.corners cut nothing: the nodes of {body.name} lie between "
                f"{np.round(lo, 6).tolist()} and {np.round(hi, 6).tolist()} m."
            )
        held = np.where(np.isnan(shares) & ~np.isnan(met), incision.toughness or 0.0, held)
        shares = np.where(np.isnan(shares), met, shares)
    return edges, shares, held


def _material(body: Soft, mesh: SolidMesh, parts: NDArray[np.intp]) -> Material:
    """What a body is of; parts (m,) as `parts_of` finds them."""
    try:
        made = material_of(body.material, body.mass, 1.0 if body.mass is None else _volume(mesh))
        if not body.materials:
            return made
        moduli = [part.youngs_modulus or made.youngs_modulus for part in body.materials]
        densities = [part.density or made.density for part in body.materials]
        moduli, densities = [*moduli, made.youngs_modulus], [*densities, made.density]
        return replace(
            made, moduli=tuple(moduli[k] for k in parts), densities=tuple(densities[k] for k in parts)
        )
    except InputError as error:
        raise InputError(f"bodies.{body.name}.{error}") from None


def pierced(
    spec: SceneSpec, needle: NeedleSpec, mesh: SolidMesh
) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
    """Of each element of a needle's tissue its material, and by that cutting [N], friction [N/m] and what its
    border bears [N], (m,)."""
    body = spec.body(needle.tissue)
    assert isinstance(body, Soft)
    part, told = parts_of(body, mesh), body.materials
    cutting = [needle.cutting if one.cutting is None else one.cutting for one in told]
    friction = [needle.friction if one.friction is None else one.friction for one in told]
    walls = [one.puncture or 0.0 for one in told]
    return (
        part, np.array([*cutting, needle.cutting])[part], np.array([*friction, needle.friction])[part],
        np.array([*walls, 0.0])[part],
    )  # fmt: skip


def _volume(mesh: SolidMesh) -> float:
    """[m^3]; the edges of tetrahedra of ten nodes are straight at rest."""
    if isinstance(mesh, QuadraticTetMesh):
        return float(tet_volumes(mesh.nodes, mesh.cells[:, :4]).sum())
    return mesh.volume


def fixed_nodes(spec: BaseScene, body: Soft, mesh: SolidMesh) -> NDArray[np.int32]:
    """Nodes of a body's mesh that never move; the middle of an edge with both of its ends."""
    key, corners, ends = key_of(spec, "bodies", body.name, "fixed"), len(mesh.nodes), None
    if isinstance(mesh, QuadraticTetMesh):
        corners = int(mesh.cells[:, :4].max()) + 1
        ends = np.empty((len(mesh.nodes) - corners, 2), np.int32)
        ends[mesh.cells[:, 4:] - corners] = mesh.cells[:, EDGES]
    chosen = chosen_nodes(key, body.name, body.fixed, mesh.nodes[:corners])
    return chosen if ends is None else with_chosen_middles(chosen, ends, corners)
