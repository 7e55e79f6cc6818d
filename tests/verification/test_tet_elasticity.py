"""Linear tetrahedra at rest: patch test, rigid modes, and an independent finite element library."""

import numpy as np
import pytest
import scipy.sparse.linalg as sla

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem import tet4
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable

SOFT = Material(youngs_modulus=2e4, poisson_ratio=0.35, density=1000.0)


def distorted_block(seed: int = 0) -> TetMesh:
    """A block whose inner nodes are shaken, so that no two elements are alike."""
    mesh = generate.block((0.1, 0.08, 0.06), (3, 3, 3))
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    nodes = mesh.nodes.copy()
    nodes[inner] += np.random.default_rng(seed).uniform(-4e-3, 4e-3, (inner.size, 3))
    return TetMesh(nodes, mesh.tets)


def weightless(mesh: TetMesh, fixed=(), material: Material = SOFT) -> SoftBody:
    return SoftBody("block", mesh, material, fixed, gravity=(0.0, 0.0, 0.0))


def test_patch_test_constant_strain_is_in_equilibrium_inside_a_distorted_mesh():
    mesh = distorted_block()
    body = weightless(mesh)
    strain = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 3))
    u = mesh.nodes @ (strain + strain.T).T
    residual = (body.K @ u.ravel()).reshape(-1, 3)
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    # rounding only: relative to the forces that the same strain needs on the surface
    assert np.abs(residual[inner]).max() < 1e-9 * np.abs(residual).max()


def test_rigid_modes_cost_nothing_and_are_the_only_ones():
    mesh = distorted_block()
    K = weightless(mesh).K.toarray()
    x = mesh.nodes - mesh.nodes.mean(axis=0)
    modes = [np.tile(e, (len(x), 1)).ravel() for e in np.eye(3)] + [np.cross(e, x).ravel() for e in np.eye(3)]
    scale = np.abs(K).max()
    for mode in modes:
        assert np.abs(K @ mode).max() < 1e-9 * scale * np.abs(mode).max()
    eigenvalues = np.linalg.eigvalsh(K)
    assert np.all(np.abs(eigenvalues[:6]) < 1e-9 * eigenvalues[-1])
    assert eigenvalues[6] > 1e-5 * eigenvalues[-1]


def test_stiffness_is_symmetric_and_equals_its_element_sum():
    mesh = distorted_block()
    body = weightless(mesh)
    volumes, g = tet4.gradients(mesh.nodes, mesh.tets)
    K0 = tet4.blocks(volumes, g, *SOFT.lame())
    dense = np.zeros((body.n_dof, body.n_dof))
    for tet, block in zip(mesh.tets, K0, strict=True):
        dofs = (3 * tet[:, None] + np.arange(3)).ravel()
        dense[np.ix_(dofs, dofs)] += block
    K = body.K.toarray()
    assert np.abs(K - K.T).max() == 0.0
    assert np.abs(K - dense).max() < 1e-12 * np.abs(dense).max()


@pytest.mark.parametrize("mass_matrix", ["lumped", "consistent"])
def test_mass_matrix_carries_the_mass_of_the_volume(mass_matrix):
    mesh = distorted_block()
    body = SoftBody("block", mesh, SOFT, mass_matrix=mass_matrix)
    along = np.tile([1.0, 0.0, 0.0], len(mesh.nodes))
    exact = 0.1 * 0.08 * 0.06 * SOFT.density
    assert along @ (body.M @ along) == pytest.approx(exact, rel=1e-12)
    assert body.mass == pytest.approx(exact, rel=1e-12)


def cantilever() -> tuple[TetMesh, np.ndarray, np.ndarray]:
    mesh = generate.block((0.2, 0.04, 0.04), (10, 2, 2))
    ends = mesh.nodes[:, 0].min(), mesh.nodes[:, 0].max()
    return (
        mesh,
        np.flatnonzero(mesh.nodes[:, 0] < ends[0] + 1e-9),
        np.flatnonzero(mesh.nodes[:, 0] > ends[1] - 1e-9),
    )


def independent_solution(mesh: TetMesh, clamped: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Displacements (n, 3) by scikit-fem's P1 vector element on the same mesh."""
    import skfem
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    basis = skfem.Basis(
        skfem.MeshTet(mesh.nodes.T.copy(), mesh.tets.T.astype(np.int64)),
        skfem.ElementVector(skfem.ElementTetP1()),
    )
    K = linear_elasticity(*lame_parameters(SOFT.youngs_modulus, SOFT.poisson_ratio)).assemble(basis).tocsr()
    order = basis.nodal_dofs.T.ravel()
    K = K[order][:, order]
    free = np.setdiff1d(np.arange(3 * len(mesh.nodes)), (3 * clamped[:, None] + np.arange(3)).ravel())
    u = np.zeros(3 * len(mesh.nodes))
    u[free] = sla.spsolve(K[free][:, free].tocsc(), load.ravel()[free])
    return u.reshape(-1, 3)


def settle(
    body: SoftBody, load: np.ndarray, h: float = 100.0, tolerance: float = 1e-13, steps: int = 60
) -> None:
    """Static equilibrium by steps so long that inertia does not count, the velocity dropped in between."""
    for _ in range(steps):
        body.v = np.zeros(body.n_dof)
        body.linearise()
        v = body.free_velocity(body.factor(h), h, load)
        body.advance(v, h)
        if np.abs(h * v).max() < tolerance:
            break
    body.v = np.zeros(body.n_dof)


def test_cantilever_tip_equals_an_independent_p1_solution_in_the_limit_of_small_loads():
    mesh, clamped, tip = cantilever()
    size = 2e-7
    load = np.zeros_like(mesh.nodes)
    load[tip, 1] = -size / tip.size
    u = independent_solution(mesh, clamped, load)
    moved = []
    for sign in (1.0, -1.0):
        body = weightless(mesh, clamped)
        settle(body, sign * load[body.free].ravel(), tolerance=1e-18)
        moved.append(body.x - mesh.nodes)
    # the odd part cancels the quadratic terms; u / L = 1e-6 leaves cubic ones of 1e-12 and rounding of
    # 1e-16 m in positions against 1e-7 m
    odd = 0.5 * (moved[0] - moved[1])
    assert np.abs(odd - u).max() < 1e-8 * np.abs(u).max()


def test_sag_under_small_gravity_equals_the_linear_solution():
    mesh, clamped, _ = cantilever()
    gravity = np.array([0.0, -1e-5, 0.0])
    body = SoftBody("block", mesh, SOFT, clamped, gravity)
    u = independent_solution(mesh, clamped, body.node_mass[:, None] * gravity)
    settle(body, np.zeros(body.n_dof), tolerance=1e-17)
    # elements turn by 4e-6, and the corotational correction is of first order in that
    assert np.abs(body.x - mesh.nodes - u).max() < 1e-5 * np.abs(u).max()


def test_an_inverted_rest_element_is_refused_by_its_number():
    mesh = generate.block((0.1, 0.1, 0.1), (1, 1, 1))
    tets = mesh.tets.copy()
    tets[2] = tets[2][[1, 0, 2, 3]]
    with pytest.raises(InputError, match="tetrahedron 2 has volume -"):
        weightless(TetMesh(mesh.nodes, tets))


@pytest.mark.parametrize(
    ("key", "value"), [("youngs_modulus", 0.0), ("poisson_ratio", 0.5), ("density", -1.0), ("beta", np.nan)]
)
def test_material_constants_out_of_range_are_refused_by_name(key, value):
    constants = {"youngs_modulus": 1e4, "poisson_ratio": 0.3, "density": 1000.0, "alpha": 0.0, "beta": 0.0}
    with pytest.raises(InputError, match=key):
        Material(**{**constants, key: value})
