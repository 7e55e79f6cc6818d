"""Quasi-static linear bodies: K^-1 on the boundary, the moving frame, W gathered, conjugate gradients."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.boundary import add_delassus, add_surface_displacement, gather_scratch
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.io import read_tet_mesh
from palpo.physics.numerics.errors import InputError
from palpo.studies.reference.conjugate_gradient_body import ConjugateGradientBody
from palpo.studies.reference.displacement import DisplacementSolver
from palpo.studies.reference.increments import IncrementalBody

pytestmark = pytest.mark.portable

TISSUE = Material(youngs_modulus=2e4, poisson_ratio=0.4, density=1000.0)
SIZE, CELLS = (0.06, 0.03, 0.04), (4, 3, 3)
MESHES = {"tets": block(SIZE, CELLS), "hexes": hex_block(SIZE, CELLS)}
LIVER = Path(__file__).resolve().parents[3] / "shared" / "data" / "liver.msh"
POSE = (0.3, -0.1, 0.2), np.roll(Rotation.from_rotvec((0.4, -1.1, 0.7)).as_quat(), 1)
GRAVITY = (0.0, -9.81, 0.0)


def on_side(mesh, axis: int, sign: float) -> np.ndarray:
    x = sign * mesh.nodes[:, axis]
    return np.flatnonzero(x > x.max() - 1e-9)


def held(kind: str = "hexes", body=QuasistaticBody, **options):
    """A block clamped at its left end."""
    mesh = MESHES[kind]
    return body("block", mesh, TISSUE, on_side(mesh, 0, -1.0), **options)


def dense_inverse(body) -> np.ndarray:
    """K^-1 over all freedoms with zeros where clamped."""
    free = (3 * body.free[:, None] + np.arange(3)).ravel()
    out = np.zeros(body.K.shape)
    out[np.ix_(free, free)] = np.linalg.inv(body.K.toarray()[np.ix_(free, free)])
    return out


def freedoms(nodes) -> np.ndarray:
    return (3 * np.asarray(nodes)[:, None] + np.arange(3)).ravel()


def some_forces(nodes, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((len(nodes), 3))


@pytest.mark.parametrize("kind", MESHES)
def test_compliance_is_the_inverse_stiffness_on_the_boundary(kind):
    body = held(kind)
    dofs = freedoms(body.surface_nodes)
    exact = dense_inverse(body)[np.ix_(dofs, dofs)]
    C = body.boundary.compliance
    assert np.abs(C - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.array_equal(C, C.T)
    # positive definite where a node is free, to rounding
    eigenvalues = np.linalg.eigvalsh(C)
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
    assert np.all(C[freedoms(body.slot[body.clamped])] == 0.0)


def test_the_stiffness_of_tetrahedra_is_that_of_the_dynamic_body_at_rest():
    body = held("tets")
    reference = SoftBody("block", MESHES["tets"], TISSUE).K.toarray()
    assert np.abs(body.K.toarray() - reference).max() < 1e-12 * np.abs(reference).max()


@pytest.mark.parametrize("kind", MESHES)
def test_displacements_answer_the_load_and_the_weight(kind):
    body = held(kind, gravity=GRAVITY)
    nodes = on_side(body.mesh, 0, 1.0)
    forces = 1e-2 * some_forces(nodes)
    load = TISSUE.density * body.volumes[:, None] * GRAVITY
    load[nodes] += forces
    exact = (dense_inverse(body) @ load.ravel()).reshape(-1, 3)
    at = body.surface_nodes[::3]
    assert np.abs(body.displacements(nodes, forces, at) - exact[at]).max() < 1e-11 * np.abs(exact).max()
    moved = body.displace(nodes, forces)
    assert np.abs(moved - (body.mesh.nodes + exact)[body.surface_nodes]).max() < 1e-11 * np.abs(exact).max()


def test_a_hanging_column_stretches_as_the_closed_form_at_every_node():
    """nu = 0: u(s) = rho g (L s - s^2 / 2) / E, which linear elements meet at their nodes."""
    mesh = hex_block((0.02, 0.1, 0.02), (2, 5, 2))
    wood = Material(1e4, 0.0, 1000.0)
    body = QuasistaticBody("column", mesh, wood, on_side(mesh, 1, 1.0), GRAVITY)
    below = 0.05 - mesh.nodes[body.surface_nodes, 1]
    exact = -1000.0 * 9.81 * (0.1 * below - 0.5 * below**2) / 1e4
    u = body.free_displacement(body.surface_nodes)
    assert np.abs(u[:, 1] - exact).max() < 1e-12
    assert np.abs(u[:, [0, 2]]).max() < 1e-12


@pytest.mark.parametrize("kind", MESHES)
def test_an_imposed_rigid_motion_carries_the_shape_and_strains_nothing(kind):
    body = held(kind, gravity=(0.0, 0.0, 0.0))
    body.place(*POSE)
    x = body.displace((), ())
    turn = Rotation.from_rotvec((0.4, -1.1, 0.7)).as_matrix()
    expected = (body.mesh.nodes[body.surface_nodes] - body.centre) @ turn.T + POSE[0]
    assert np.abs(x - expected).max() < 1e-15
    assert np.abs(body.u).max() == 0.0


def test_answers_turn_with_clamps_forces_and_gravity():
    turn = Rotation.from_rotvec((0.4, -1.1, 0.7)).as_matrix()
    straight, turned = held(gravity=GRAVITY), held(gravity=turn @ GRAVITY)
    turned.place(*POSE)
    nodes, at = on_side(straight.mesh, 0, 1.0), straight.surface_nodes
    forces = 1e-2 * some_forces(nodes)
    u = straight.displacements(nodes, forces, at)
    assert np.abs(turned.displacements(nodes, forces @ turn.T, at) - u @ turn.T).max() < 1e-14
    blocks = np.kron(np.eye(nodes.size), turn)
    expected = blocks @ straight.compliance(nodes) @ blocks.T
    assert np.abs(turned.compliance(nodes) - expected).max() < 1e-13 * np.abs(expected).max()


def test_two_loads_do_equal_work_on_each_others_displacements():
    """Betti: f . u_g = g . u_f without weight."""
    body = held(gravity=(0.0, 0.0, 0.0))
    here, there = on_side(body.mesh, 0, 1.0), on_side(body.mesh, 1, -1.0)
    f, g = some_forces(here, 1), some_forces(there, 2)
    one = np.vdot(f, body.displacements(there, g, here))
    assert one == pytest.approx(np.vdot(g, body.displacements(here, f, there)), rel=1e-12)


def test_forces_given_twice_on_a_node_add_up_and_those_on_clamps_do_nothing():
    body = held(gravity=(0.0, 0.0, 0.0))
    node, clamp = on_side(body.mesh, 0, 1.0)[0], body.clamped[0]
    f = np.array([1e-2, -2e-2, 3e-2])
    at = body.surface_nodes
    for solver in (body, held(body=ConjugateGradientBody, gravity=(0, 0, 0), tolerance=1e-12)):
        twice = solver.displacements([node, clamp, node], [f, f, f], at)
        once = solver.displacements([node], [2.0 * f], at)
        assert np.abs(twice - once).max() < 1e-10 * np.abs(once).max()


def random_points(body, n: int, corners: int, seed: int):
    """n points of the surface on `corners` nodes each, their weights and orthonormal axes."""
    rng = np.random.default_rng(seed)
    slots = np.zeros((n, 3), np.int32)
    slots[:, :corners] = body.slot[
        body.surface.triangles[rng.integers(0, len(body.surface.triangles), n), :corners]
    ]
    weights = np.zeros((n, 3))
    weights[:, :corners] = rng.dirichlet(np.ones(corners), n)
    axes = np.ascontiguousarray(np.linalg.qr(rng.standard_normal((n, 3, 3)))[0])
    return slots, weights, axes


@pytest.mark.parametrize("corners", [1, 2, 3])
def test_the_gathered_delassus_operator_is_h_k_inverse_h_transposed(corners):
    body, n = held(), 20
    slots, weights, axes = random_points(body, n, corners, seed=corners)
    contact = (
        np.random.default_rng(9).permutation(n + 3)[:n].astype(np.int32)
    )  # other bodies have the other rows
    scratch = gather_scratch(body.surface_nodes.size, n)
    H = np.zeros((3 * (n + 3), body.boundary.compliance.shape[0]))
    for k in range(n):
        for s, w in zip(slots[k], weights[k], strict=True):
            H[3 * contact[k] : 3 * contact[k] + 3, 3 * s : 3 * s + 3] += w * axes[k]
    exact = H @ body.boundary.compliance @ H.T
    W = np.zeros_like(exact)
    for repetition in (1, 2):  # it adds, and leaves its workspace as it found it
        add_delassus(body.boundary.compliance, n, contact, slots, weights, axes, scratch, W)
        assert np.abs(W - repetition * exact).max() < 1e-13 * np.abs(exact).max()
        assert np.array_equal(W, W.T)


def test_delassus_and_surface_displacement_agree_in_the_moved_frame():
    """u at the contacts = W r: the kernels of the servo against the body's own answer, in world axes."""
    body, n = held(gravity=(0.0, 0.0, 0.0)), 12
    body.place(*POSE)
    slots, weights, axes = random_points(body, n, 3, seed=4)
    world_axes = axes @ body.rotation.T
    r = np.random.default_rng(5).standard_normal(3 * n)
    W = np.zeros((3 * n, 3 * n))
    scratch = gather_scratch(body.surface_nodes.size, n)
    add_delassus(body.boundary.compliance, n, np.arange(n, dtype=np.int32), slots, weights, axes, scratch, W)
    push = np.einsum("kij,ki->kj", world_axes, r.reshape(-1, 3))
    nodes = body.surface_nodes[slots.ravel()]
    forces = (weights[:, :, None] * push[:, None, :]).reshape(-1, 3)
    u = (weights[:, :, None] * body.displacements(nodes, forces, nodes).reshape(n, 3, 3)).sum(axis=1)
    assert np.abs(np.einsum("kij,kj->ki", world_axes, u).ravel() - W @ r).max() < 1e-12 * np.abs(W @ r).max()
    out = np.zeros(3 * body.surface_nodes.size)
    add_surface_displacement(body.boundary.compliance, slots.ravel(), body.to_body(forces), out)
    moved = body.displace(nodes, forces) - body.rest_positions(body.surface_nodes)
    assert np.abs(body.to_world(out.reshape(-1, 3)) - moved).max() < 1e-12 * np.abs(moved).max()


def test_a_body_clamped_everywhere_is_rigid():
    mesh = MESHES["hexes"]
    body = QuasistaticBody("stone", mesh, TISSUE, np.arange(len(mesh.nodes)))
    assert body.rigid
    nodes = body.surface_nodes
    assert np.all(body.displacements(nodes, some_forces(nodes), nodes) == 0.0)
    assert np.all(body.compliance(nodes[:5]) == 0.0)
    np.testing.assert_allclose(body.displace(nodes, some_forces(nodes)), mesh.nodes[nodes], atol=1e-15)


def test_compliance_falls_to_that_of_a_rigid_body_as_the_modulus_grows():
    nodes = on_side(MESHES["hexes"], 0, 1.0)
    soft = held().compliance(nodes)
    for factor in (1e3, 1e6):
        material = Material(factor * TISSUE.youngs_modulus, TISSUE.poisson_ratio, 1000.0)
        stiff = QuasistaticBody("block", MESHES["hexes"], material, held().clamped).compliance(nodes)
        np.testing.assert_allclose(stiff, soft / factor, rtol=1e-9, atol=1e-12 * np.abs(soft).max() / factor)


@pytest.mark.parametrize(
    ("clamped", "words"),
    [
        ((), "no clamped node, so its stiffness is singular"),
        ((0,), "1 nodes that lie on one line"),
        ((0, 4, 8, 12), "4 nodes that lie on one line"),
        ((0, 5, 5000), "clamps node 5000 but its nodes are 0 to 79"),
        ((-1, 5, 7), "clamps node -1 "),
    ],
)
@pytest.mark.parametrize("kind", [QuasistaticBody, ConjugateGradientBody])
def test_a_body_that_its_clamps_do_not_hold_is_refused_in_words(kind, clamped, words):
    with pytest.raises(InputError, match=f"body 'jelly' .*{words}"):
        kind("jelly", MESHES["hexes"], TISSUE, clamped)


def test_forces_inside_and_a_foreign_inverse_or_stiffness_are_refused():
    body = held()
    inside = np.flatnonzero(body.slot < 0)[0]
    for nodes, at in (([inside], []), ([], [inside])):
        with pytest.raises(InputError, match=f"node {inside} lies inside"):
            body.displacements(nodes, np.zeros((len(nodes), 3)), at)
    again = held(inverse=body.boundary.compliance)
    np.testing.assert_array_equal(again.boundary.compliance, body.boundary.compliance)
    with pytest.raises(InputError, match=r"K\^-1 disagrees with K by 0\.5 "):
        held(inverse=1.5 * body.boundary.compliance)
    with pytest.raises(InputError, match=r"K\^-1 has shape \(3, 3\), expected"):
        held(inverse=np.eye(3))
    with pytest.raises(InputError, match="not positive definite"):
        held(stiffness=-1.0 * body.K)


def test_the_inverse_is_kept_by_content_and_only_that(tmp_path):
    shares: list[float] = []
    first = held(cache=tmp_path, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 2
    kept = list(tmp_path.glob("*.npz"))
    assert len(kept) == 1
    again = held(cache=tmp_path, gravity=(1.0, 2.0, 3.0))
    np.testing.assert_array_equal(again.boundary.compliance, first.boundary.compliance)
    assert "factor" not in vars(again)  # nothing was factored
    assert list(tmp_path.glob("*.npz")) == kept
    held(cache=tmp_path, elements="hex8-full")
    QuasistaticBody("block", first.mesh, TISSUE, first.clamped[:-1], cache=tmp_path)
    QuasistaticBody("block", first.mesh, Material(2e4, 0.3, 1000.0), first.clamped, cache=tmp_path)
    held("tets", cache=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 5


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "other"])
def test_a_damaged_cache_costs_time_and_nothing_else(tmp_path, damage):
    first = held(cache=tmp_path)
    (file,) = tmp_path.glob("*.npz")
    data = file.read_bytes()
    if damage == "other":
        np.savez(file.with_suffix(""), compliance=np.zeros((3, 3)), sag=np.zeros(3))
    else:
        file.write_bytes({"cut": data[: len(data) // 2], "noise": b"\xff" * 999, "empty": b""}[damage])
    np.testing.assert_array_equal(held(cache=tmp_path).boundary.compliance, first.boundary.compliance)
    assert file.stat().st_size == len(data)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("no folder")
    body = held(cache=tmp_path / "file" / "cache")
    np.testing.assert_array_equal(body.boundary.compliance, held().boundary.compliance)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
def test_conjugate_gradients_agree_with_the_direct_solution_to_their_tolerance(tolerance):
    direct, iterative = held(), held(body=ConjugateGradientBody, tolerance=tolerance)
    assert isinstance(iterative, DisplacementSolver) and isinstance(direct, DisplacementSolver)
    assert isinstance(direct, IncrementalBody)
    nodes, at = on_side(direct.mesh, 0, 1.0), direct.surface_nodes
    forces = 1e-2 * some_forces(nodes)
    for body in (direct, iterative):
        body.place(*POSE)
    exact = direct.displacements(nodes, forces, at)
    found = iterative.displacements(nodes, forces, at)
    assert iterative.converged and iterative.residual <= tolerance
    # a residual of eps is an error of at most cond(K) eps; on this block the condition is some hundreds
    assert np.abs(found - exact).max() < 300.0 * tolerance * np.abs(exact).max()
    iterative.displacements(nodes, forces, at)
    assert iterative.iterations == 0  # it starts from the answer
    iterative.displacements(nodes, 1.001 * forces, at)
    warm = iterative.iterations
    cold = held(body=ConjugateGradientBody, tolerance=tolerance)
    cold.place(*POSE)
    cold.displacements(nodes, 1.001 * forces, at)
    assert warm < cold.iterations


def test_a_body_let_go_stands_exactly_as_at_rest():
    for kind in (QuasistaticBody, ConjugateGradientBody):
        body = held(body=kind, gravity=(0.0, 0.0, 0.0))
        nodes = on_side(body.mesh, 0, 1.0)
        assert np.abs(body.displacements(nodes, some_forces(nodes), nodes)).min() > 0.0
        assert np.all(body.displacements((), (), nodes) == 0.0)


def test_conjugate_gradients_end_within_as_many_steps_as_freedoms_and_say_when_they_did_not():
    body = held(body=ConjugateGradientBody, tolerance=1e-8)
    nodes = on_side(body.mesh, 0, 1.0)
    body.displacements(nodes, some_forces(nodes), nodes)
    assert 0 < body.iterations <= 3 * body.free.size
    short = held(body=ConjugateGradientBody, tolerance=1e-8, max_iterations=3)
    short.displacements(nodes, some_forces(nodes), nodes)
    assert not short.converged
    assert short.iterations == 3 and short.residual > 1e-8


@pytest.mark.skipif(not LIVER.is_file(), reason="the shared mesh files are not on this machine")
def test_the_liver_on_three_nodes_sags_as_the_direct_solution_says():
    mesh = read_tet_mesh(LIVER)
    organ = Material(youngs_modulus=5000.0, poisson_ratio=0.3, density=1.0)
    fixed = (3, 39, 64)
    direct = QuasistaticBody("liver", mesh, organ, fixed, (0.0, -1.0, 0.0))
    iterative = ConjugateGradientBody("liver", mesh, organ, fixed, (0.0, -1.0, 0.0), tolerance=1e-10)
    at = direct.surface_nodes
    exact = direct.free_displacement(at)
    found = iterative.displacements((), (), at)
    assert iterative.converged
    # three nodes hold it: the condition number is tens of thousands
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()
    assert exact[:, 1].mean() < 0.0
