"""Tetrahedra that change their volume in patches: the patches, and what they are for."""

import numpy as np
import pytest
import scipy.sparse.linalg as sl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, cylinder, hex_block, sphere
from palpo.physics.mesh.liver import liver
from palpo.physics.mesh.patches import patches_of
from palpo.physics.mesh.quadratic import with_middles
from palpo.physics.mesh.tet import OUTWARD_FACES, TetMesh
from palpo.physics.numerics.errors import InputError

BLOCK = (0.06, 0.04, 0.05)


def shuffled(mesh: TetMesh) -> TetMesh:
    """The same mesh, its elements in no order."""
    return TetMesh(mesh.nodes, mesh.tets[np.random.default_rng(4).permutation(len(mesh.tets))])


MESHES = pytest.mark.parametrize(
    "mesh",
    [
        block(BLOCK, (4, 3, 4)),
        shuffled(block(BLOCK, (4, 3, 4))),
        sphere(0.02, 2),
        shuffled(cylinder(0.02, 0.04, 12, 3)),
        liver(0.1, 0.01),
        block(BLOCK, (1, 1, 1)),
        TetMesh(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 1, 2, 3]], np.int32)),
    ],
    ids=["block", "shuffled", "ball", "cylinder", "liver", "cell", "one"],
)


@MESHES
def test_patches_share_out_all_elements_and_each_hangs_together(mesh):
    patch = patches_of(mesh.nodes, mesh.tets)
    assert np.array_equal(np.unique(patch), np.arange(patch.max() + 1))
    faces = np.sort(mesh.tets[:, OUTWARD_FACES].reshape(-1, 3), axis=1)
    order = np.lexsort(faces.T)
    same = np.flatnonzero((faces[order[1:]] == faces[order[:-1]]).all(axis=1))
    one, other = order[same] // 4, order[same + 1] // 4
    within = patch[one] == patch[other]
    m = len(patch)
    graph = coo_array((np.ones(within.sum()), (one[within], other[within])), shape=(m, m))
    assert connected_components(graph, directed=False)[0] == patch.max() + 1
    if m >= 100:
        # as many conditions on the volume as nodes can meet: fewer than one a node, which has three freedoms
        assert patch.max() + 1 < len(mesh.nodes)


def test_the_cells_of_a_generated_mesh_are_its_patches():
    for mesh, size in ((block(BLOCK, (4, 3, 4)), 5), (sphere(0.02, 2), 6)):
        patch = patches_of(mesh.nodes, mesh.tets)
        assert np.array_equal(patch, np.arange(len(mesh.tets)) // size)
    # listed in another order they are not to be had, and patches are still of about that size
    mixed = shuffled(block(BLOCK, (4, 3, 4)))
    assert 4.0 < len(mixed.tets) / (patches_of(mixed.nodes, mixed.tets).max() + 1) < 7.0


def pressed(mesh, elements: str, nu: float) -> float:
    """Force [N] of a bonded body per metre that its upper face comes down."""
    y = mesh.nodes[:, 1]
    ends = np.flatnonzero((y > y.max() - 1e-9) | (y < y.min() + 1e-9))
    body = SoftBody("b", mesh, Material(2e4, nu, 1000.0), gravity=(0.0, 0.0, 0.0), elements=elements)
    k, u = body.tangent().tocsc(), np.zeros_like(mesh.nodes)
    u[ends, 1] = y[ends] > y.mean()
    held = (3 * ends[:, None] + np.arange(3)).ravel()
    free, x = np.setdiff1d(np.arange(u.size), held), u.ravel()
    x[free] = sl.spsolve(k[free][:, free], -(k @ x)[free])
    return float(x @ (k @ x))


@pytest.fixture(scope="module")
def converged() -> float:
    """Of hexahedra with incompatible modes: 0.6% off those of half the edge, and above the truth."""
    return pressed(hex_block(BLOCK, (18, 12, 15)), "hex8", 0.499)


@pytest.mark.parametrize("order", [lambda mesh: mesh, shuffled], ids=["cells", "found"])
def test_a_pressed_block_does_not_lock_where_it_can_hardly_change_its_volume(order, converged):
    """Nearly as at a ratio of 0.3, where nothing locks; plain tetrahedra are five times too stiff."""
    cells = (6, 4, 5)
    easy = pressed(hex_block(BLOCK, (18, 12, 15)), "hex8", 0.3)
    assert pressed(block(BLOCK, cells), "tet4", 0.499) > 4.0 * converged
    assert pressed(block(BLOCK, cells), "tet4", 0.3) == pytest.approx(easy, rel=0.05)
    assert pressed(order(block(BLOCK, cells)), "tet4-patch", 0.499) == pytest.approx(converged, rel=0.15)


def test_a_pressed_block_converges_with_its_cells(converged):
    """At about second order down to what the reference itself leaves."""
    errors = [
        pressed(block(BLOCK, cells), "tet4-patch", 0.499) / converged - 1.0
        for cells in ((3, 2, 3), (6, 4, 6), (12, 8, 12))
    ]
    assert errors[0] > errors[1] > errors[2] > -0.01
    assert errors[1] < 0.5 * errors[0] and errors[2] < 0.5 * errors[1]


def test_a_body_of_any_mesh_does_not_lock():
    """A cylinder, against ten-node tetrahedra of the same cells, at the ratio where plain ones fail."""
    mesh = cylinder(0.02, 0.03, 14, 4)
    truth = pressed(with_middles(cylinder(0.02, 0.03, 24, 6))[1], "tet10", 0.499)
    assert pressed(mesh, "tet4-patch", 0.499) == pytest.approx(truth, rel=0.15)
    assert pressed(mesh, "tet4", 0.499) > 3.0 * truth


def droop(cells, elements: str = "tet4-patch") -> float:
    """Of a square cantilever of 12 by 2 by 2 cm and multiples under its weight, over Timoshenko's."""
    length, side, young, nu = 0.12, 0.02, 2e6, 0.4
    mesh = block((length, side, side), cells)
    x = mesh.nodes[:, 0]
    held = np.flatnonzero(x < x.min() + 1e-9)
    body = SoftBody("b", mesh, Material(young, nu, 1000.0), held, elements=elements)
    u = sl.spsolve(body.tangent().tocsc(), body.undamped_force()).reshape(-1, 3)
    load, second = 1000.0 * side**2 * 9.81, side**4 / 12.0
    beam = load * length**4 / (8.0 * young * second)
    beam += 0.5 * load * length**2 / (5.0 / 6.0 * side**2 * young / (2.0 * (1.0 + nu)))
    return float(-u[x[body.free] > x.max() - 1e-9, 1].mean() / beam)


def test_a_cantilever_converges():
    """Linear strains are missing: second order in the cells across, from above the stiffness of the beam.

    The clamped end, where the beam's sides are not free, is worth some 1%.
    """
    short = [1.0 - droop(cells) for cells in ((12, 2, 2), (24, 4, 4), (48, 8, 8))]
    assert short[0] > 2.3 * short[1] and short[1] > 2.0 * short[2] > 0.0
    assert short[2] < 0.06
    assert droop((24, 4, 4)) > droop((24, 4, 4), "tet4") + 0.02


def growth(stretch: float, nu: float) -> float:
    """Of the volume of a block that is pulled out by a part of its height, bonded at both ends."""
    mesh = shuffled(block(BLOCK, (4, 4, 4)))
    y = mesh.nodes[:, 1]
    ends = np.flatnonzero(np.abs(y) > y.max() - 1e-9)
    body = SoftBody("b", mesh, Material(2e4, nu, 1e3), ends, (0.0, 0.0, 0.0), elements="tet4-patch")
    body.x[ends, 1] += stretch * y[ends]
    for _ in range(30):
        body.linearise()
        body.advance(sl.spsolve(body.K.tocsc(), body.undamped_force()), 1.0)
    assert np.abs(body.undamped_force()).max() < 1e-6
    at = body.x[mesh.tets]
    return float(np.linalg.det(at[:, 1:] - at[:, :1]).sum() / 6.0 / np.prod(BLOCK) - 1.0)


def test_a_stretched_body_keeps_its_volume():
    """To second order in the stretch, since the law is of small strains: strains s, -s / 2, -s / 2 make
    -3/4 s^2, and here some are larger than the whole's."""
    assert growth(0.04, 0.3) > 0.25 * 0.04
    small, twice = growth(0.04, 0.49999), growth(0.08, 0.49999)
    assert abs(small) < 1.5 * 0.04**2
    assert twice == pytest.approx(4.0 * small, rel=0.15)


def test_a_body_that_needs_its_elements_one_by_one_refuses_them():
    with pytest.raises(InputError, match="change their volume in patches have no stiffness of their own"):
        QuasistaticBody(
            "b", block(BLOCK, (2, 2, 2)), Material(2e4, 0.4, 1e3), [0, 1, 2, 5, 9], elements="tet4-patch"
        )
