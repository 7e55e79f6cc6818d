"""The trilinear hexahedron: patch test, rigid modes, bending, and the meshes it is used on."""

import numpy as np
import pytest

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem import hex8
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import assemble, node_volumes, rest_stiffness
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh, orient_hexes, validate_hexes
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable

SOFT = Material(youngs_modulus=2e4, poisson_ratio=0.35, density=1000.0)
SHEAR = np.array([[1.0, 0.3, -0.2], [0.1, 0.9, 0.25], [-0.15, 0.2, 1.1]])

NAMES = {"incompatible": "hex8", "bbar": "hex8-bbar", "selective": "hex8-selective", "full": "hex8-full"}


def distorted_block(seed: int = 0) -> HexMesh:
    """A block whose inner nodes are shaken, so that no element is a parallelepiped."""
    mesh = hex_block((0.1, 0.08, 0.06), (3, 3, 3))
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    nodes = mesh.nodes.copy()
    nodes[inner] += np.random.default_rng(seed).uniform(-5e-3, 5e-3, (inner.size, 3))
    return HexMesh(nodes, mesh.hexes)


def sheared_block() -> HexMesh:
    mesh = hex_block((0.1, 0.08, 0.06), (3, 3, 3))
    return mesh.with_nodes(mesh.nodes @ SHEAR.T)


@pytest.mark.parametrize(
    ("integration", "mesh"),
    [
        ("full", distorted_block()),
        ("bbar", distorted_block()),
        ("incompatible", distorted_block()),
        ("full", sheared_block()),
        ("bbar", sheared_block()),
        # the gradient at the centre is the element's mean on parallelepipeds only
        ("selective", sheared_block()),
    ],
)
def test_patch_test_constant_strain_is_in_equilibrium_inside(integration, mesh):
    K = rest_stiffness(mesh, SOFT, NAMES[integration])
    strain = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 3))
    residual = (K @ (mesh.nodes @ (strain + strain.T)).ravel()).reshape(-1, 3)
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    # rounding only: relative to the forces that the same strain needs on the surface
    assert np.abs(residual[inner]).max() < 1e-12 * np.abs(residual).max()


@pytest.mark.parametrize("integration", ["full", "bbar", "selective", "incompatible"])
def test_homogeneous_strain_stores_the_energy_of_hookes_law(integration):
    mesh = sheared_block()
    lam, mu = SOFT.lame()
    strain = np.random.default_rng(2).uniform(-1.0, 1.0, (3, 3))
    strain = strain + strain.T
    u = (mesh.nodes @ strain).ravel()
    energy = 0.5 * u @ (rest_stiffness(mesh, SOFT, NAMES[integration]) @ u)
    exact = mesh.volume * (0.5 * lam * np.trace(strain) ** 2 + mu * np.sum(strain**2))
    assert energy == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("integration", ["full", "bbar", "selective", "incompatible"])
def test_rigid_modes_cost_nothing_and_are_the_only_ones(integration):
    eigenvalues = np.linalg.eigvalsh(rest_stiffness(distorted_block(), SOFT, NAMES[integration]).toarray())
    assert np.all(np.abs(eigenvalues[:6]) < 1e-12 * eigenvalues[-1])
    assert eigenvalues[6] > 1e-4 * eigenvalues[-1]


def test_selective_integration_is_b_bar_on_parallelepipeds():
    lam, mu = SOFT.lame()
    mesh = sheared_block()
    selective, bbar = (hex8.stiffness(mesh.nodes, mesh.hexes, lam, mu, i) for i in ("selective", "bbar"))
    assert np.abs(selective - bbar).max() < 1e-13 * np.abs(bbar).max()


def test_all_integrations_agree_where_nothing_is_volumetric():
    """With kappa = 0 (nu = -1, in the limit) there is nothing to integrate otherwise."""
    mesh = distorted_block()
    mu = 1e4
    full, bbar = (hex8.stiffness(mesh.nodes, mesh.hexes, -2.0 / 3.0 * mu, mu, i) for i in ("full", "bbar"))
    assert np.abs(full - bbar).max() < 1e-13 * np.abs(bbar).max()


def test_assembly_is_the_sum_over_elements():
    mesh = distorted_block()
    k = hex8.stiffness(mesh.nodes, mesh.hexes, *SOFT.lame())
    dense = np.zeros((3 * len(mesh.nodes),) * 2)
    for nodes, matrix in zip(mesh.hexes, k, strict=True):
        dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
        dense[np.ix_(dofs, dofs)] += matrix
    assert (
        np.abs(assemble(mesh.hexes, k, len(mesh.nodes)).toarray() - dense).max() < 1e-12 * np.abs(dense).max()
    )


@pytest.mark.parametrize("mesh", [distorted_block(), block((0.1, 0.08, 0.06), (3, 2, 2))])
def test_node_volumes_and_the_surface_enclose_the_same_volume(mesh):
    volumes = node_volumes(mesh)
    assert volumes.min() > 0.0
    assert volumes.sum() == pytest.approx(0.1 * 0.08 * 0.06, rel=1e-12)
    assert mesh.volume == pytest.approx(volumes.sum(), rel=1e-12)


def bending_stiffness(size, divisions, poisson: float, integration: str) -> float:
    """Tip force over tip displacement of a cantilever along x loaded in y, over Timoshenko's, minus one."""
    mesh = hex_block(size, divisions)
    material = Material(1e5, poisson, 1000.0)
    length, height, width = size
    x = mesh.nodes[:, 0]
    body = QuasistaticBody(
        "beam", mesh, material, np.flatnonzero(x < x.min() + 1e-9), (0, 0, 0), NAMES[integration]
    )
    tip = np.flatnonzero(x > x.max() - 1e-9)
    # an even shear on the end face: half a share at its edges, a quarter at its corners
    at_edge = np.abs(np.abs(mesh.nodes[tip, 1:]) - np.abs(mesh.nodes[tip, 1:]).max(axis=0)) < 1e-9
    shares = 0.5 ** at_edge.sum(axis=1)
    force = np.outer(shares / shares.sum(), [0.0, 1.0, 0.0])
    deflection = np.vdot(force, body.displacements(tip, force, tip))
    inertia, area = width * height**3 / 12.0, width * height
    shear_modulus = 1e5 / (2.0 * (1.0 + poisson))
    kappa = 10.0 * (1.0 + poisson) / (12.0 + 11.0 * poisson)  # Cowper's, for a rectangle
    exact = length**3 / (3.0 * 1e5 * inertia) + length / (kappa * shear_modulus * area)
    return exact / deflection - 1.0


@pytest.mark.parametrize("integration", ["bbar", "selective"])
@pytest.mark.parametrize(("poisson", "tolerance"), [(0.3, 0.03), (0.49, 0.065)])
def test_a_cantilever_bends_as_beam_theory_says(integration, poisson, tolerance):
    """What is left at 20 x 5 x 5 cells is shear locking, of second order, and the clamp, which the theory
    lets contract: the more the larger nu is."""
    error = bending_stiffness((0.1, 0.02, 0.02), (20, 5, 5), poisson, integration)
    assert 0.0 < error < tolerance


@pytest.mark.parametrize(("poisson", "tolerance"), [(0.0, 0.002), (0.3, 0.015), (0.49, 0.06)])
def test_incompatible_modes_bend_a_slender_beam_one_element_thick(poisson, tolerance):
    """Of twenty cubes. Without a cross contraction there is the discretisation alone; the clamp hinders that
    within the first cube, which has a fourteenth of the bending energy."""
    size, cells = (0.2, 0.01, 0.01), (20, 1, 1)
    assert abs(bending_stiffness(size, cells, poisson, "incompatible")) < tolerance
    assert bending_stiffness(size, cells, poisson, "full") > 0.45


def test_incompatible_modes_converge_to_the_elements_that_lock():
    """Both are elasticity: on a fine mesh of a thick block they meet."""
    fine = [bending_stiffness((0.06, 0.02, 0.02), (18, 6, 6), 0.3, i) for i in ("full", "incompatible")]
    assert abs(fine[0] - fine[1]) < 0.03


def test_full_integration_locks_when_nearly_incompressible_and_b_bar_does_not():
    full, bbar = (bending_stiffness((0.1, 0.02, 0.02), (20, 5, 5), 0.49, i) for i in ("full", "bbar"))
    assert full > 5.0 * bbar
    compressible, _ = (bending_stiffness((0.1, 0.02, 0.02), (20, 5, 5), 0.3, i) for i in ("full", "bbar"))
    assert compressible < 0.06


@pytest.mark.parametrize(
    ("size", "stiffer"),
    [((0.10, 0.02, 0.02), 0.42), ((0.067, 0.015, 0.067), 0.48), ((0.08, 0.025, 0.035), 0.39)],
)
def test_full_integration_is_39_to_48_percent_too_stiff_on_the_clamped_blocks_of_the_thesis(size, stiffer):
    """Over B-bar on the same 10 x 5 x 10 cells at nu = 0.49: what the volumetric locking alone adds."""
    full, bbar = (bending_stiffness(size, (10, 5, 10), 0.49, i) for i in ("full", "bbar"))
    assert (1.0 + full) / (1.0 + bbar) - 1.0 == pytest.approx(stiffer, abs=0.01)


@pytest.mark.parametrize(
    ("size", "cells", "nodes", "elements"),
    [
        ((8.0, 2.5, 3.5), (10, 5, 10), 726, 500),
        ((1.0, 4.0, 1.0), (5, 8, 5), 324, 200),
        ((1.0, 4.0, 1.0), (3, 10, 3), 176, 90),
        ((1.425, 2.4, 1.425), (5, 10, 10), 726, 500),
    ],
)
def test_the_blocks_of_the_thesis_have_its_numbers_of_nodes_elements_and_contacts(
    size, cells, nodes, elements
):
    mesh = hex_block(np.array(size) * 1e-2, cells)
    validate_hexes(mesh.nodes, mesh.hexes, "block")
    assert (len(mesh.nodes), len(mesh.hexes)) == (nodes, elements)
    bottom = mesh.nodes[:, 1] < mesh.nodes[:, 1].min() + 1e-9
    assert bottom.sum() == (cells[0] + 1) * (cells[2] + 1)
    assert mesh.volume == pytest.approx(np.prod(size) * 1e-6, rel=1e-12)


def test_a_block_of_hexahedra_has_the_nodes_of_the_block_of_tetrahedra():
    arguments = (0.1, 0.2, 0.3), (2, 3, 4), (2.0, 1.0, 0.5)
    np.testing.assert_array_equal(hex_block(*arguments).nodes, block(*arguments).nodes)


def test_elements_given_inside_out_are_turned_and_others_left():
    mesh = distorted_block()
    mixed = mesh.hexes.copy()
    mixed[::2] = mixed[::2, [4, 5, 6, 7, 0, 1, 2, 3]]
    np.testing.assert_array_equal(orient_hexes(mesh.nodes, mesh.hexes), mesh.hexes)
    validate_hexes(mesh.nodes, orient_hexes(mesh.nodes, mixed), "mixed")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda nodes, hexes: (nodes, hexes[:, [0, 2, 1, 3, 4, 5, 6, 7]]), "flat, folded or inverted"),
        (lambda nodes, hexes: (nodes, np.concatenate([hexes, hexes[:1]])), "elements 0 and 27 .* overlap"),
        (lambda nodes, hexes: (nodes, hexes[1:]), "node 0 .* belongs to no element"),
        (lambda nodes, hexes: (nodes, hexes + 1), "nodes run from 0 to 63"),
        (
            lambda nodes, hexes: (np.concatenate([nodes, nodes + 1.0]), np.concatenate([hexes, hexes + 64])),
            "2 disconnected pieces",
        ),
    ],
)
def test_a_mesh_that_cannot_be_simulated_is_refused_in_words(spoil, words):
    mesh = distorted_block()
    with pytest.raises(InputError, match=f"(?s)part: .*{words}"):
        validate_hexes(*spoil(mesh.nodes, mesh.hexes), "part")


def test_an_unknown_integration_and_a_folded_element_are_refused():
    mesh = distorted_block()
    with pytest.raises(InputError, match="expected one of bbar, selective, full, incompatible"):
        hex8.stiffness(mesh.nodes, mesh.hexes, 1.0, 1.0, "reduced")
    with pytest.raises(InputError, match="hexahedron 0 has the Jacobian"):
        hex8.stiffness(mesh.nodes, mesh.hexes[:, [4, 5, 6, 7, 0, 1, 2, 3]], 1.0, 1.0)
