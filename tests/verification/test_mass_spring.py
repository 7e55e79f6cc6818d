"""Mass-spring bodies: the network's modulus, its equilibrium, and the question that every body is asked."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.displacement import DisplacementSolver
from palpo.physics.bodies.increments import IncrementalBody
from palpo.physics.bodies.mass_spring import MassSpringBody, spring_network
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block

CORK = Material(youngs_modulus=5e4, poisson_ratio=0.25, density=200.0)
CUBES = hex_block((0.05, 0.03, 0.04), (5, 3, 4))
TETS = block((0.05, 0.03, 0.04), (5, 3, 4))


def held(mesh, body=MassSpringBody, gravity=(0.0, 0.0, 0.0), **options):
    left = mesh.nodes[:, 0] < mesh.nodes[:, 0].min() + 1e-9
    return body("cork", mesh, CORK, np.flatnonzero(left), gravity, **options)


def tip(body) -> np.ndarray:
    return np.flatnonzero(body.mesh.nodes[:, 0] > body.mesh.nodes[:, 0].max() - 1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_lattice_of_cubes_is_hookes_law_with_the_modulus_of_the_material_and_nu_a_quarter(seed):
    """Energy of a small homogeneous strain; the next order in the strain is 1e-6 of it."""
    lam, mu = CORK.lame()  # of nu = 1/4
    strain = np.random.default_rng(seed).uniform(-1e-6, 1e-6, (3, 3))
    strain = strain + strain.T
    exact = CUBES.volume * (0.5 * lam * np.trace(strain) ** 2 + mu * np.sum(strain**2))
    assert held(CUBES).energy(CUBES.nodes @ strain) == pytest.approx(exact, rel=1e-4)


def test_a_dilatation_stores_the_energy_of_hookes_law_in_any_network():
    """Whatever the directions of its springs, a network feels a dilatation e alike in all of them.

    For lam = mu = 2 E / 5 Hooke's law gives (9 lam + 6 mu) e^2 / 2 = 3 E e^2 per volume.
    """
    e = 1e-6
    for mesh in (TETS, CUBES):
        exact = 3.0 * CORK.youngs_modulus * e**2 * mesh.volume
        assert held(mesh).energy(e * mesh.nodes) == pytest.approx(exact, rel=1e-6)


def test_every_edge_is_one_spring_and_the_shares_add_up_to_six_volumes():
    for mesh, pairs in ((TETS, 6), (CUBES, 24)):
        springs, shares = spring_network(mesh)
        assert len(np.unique(springs, axis=0)) == len(springs)
        assert np.all(springs[:, 0] < springs[:, 1])
        assert shares.sum() == pytest.approx(6.0 * mesh.volume, rel=1e-12)
        assert len(springs) < pairs * (len(mesh.tets) if mesh is TETS else len(mesh.hexes))


@pytest.mark.parametrize("mesh", [TETS, CUBES], ids=["tets", "hexes"])
def test_force_is_minus_the_gradient_of_the_energy_and_a_turn_costs_nothing(mesh):
    body = held(mesh)
    rng = np.random.default_rng(3)
    u, direction = 2e-3 * rng.standard_normal((2, *mesh.nodes.shape)) * [[[1.0]], [[500.0]]]
    step = 1e-7
    slope = (body.energy(u + step * direction) - body.energy(u - step * direction)) / (2.0 * step)
    # central differences, second order in a step of 1e-5 of the springs' length
    assert -np.vdot(body.internal_force(u), direction) == pytest.approx(slope, rel=1e-6)
    force = body.internal_force(u)
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).max() * len(force)
    turn = Rotation.from_rotvec((0.5, 1.0, -0.8)).as_matrix()
    assert body.energy(mesh.nodes @ turn.T - mesh.nodes) < 1e-20


def tangent(body, u, convex: bool) -> np.ndarray:
    rows, cols = body._pattern_of()
    blocks = np.empty((rows.size, 9))
    body._assemble(u, convex, blocks)
    dense = np.zeros((body.free.size, 3, body.free.size, 3))
    dense[rows, :, cols] = blocks.reshape(-1, 3, 3)
    dense[cols, :, rows] = blocks.reshape(-1, 3, 3)  # a spring's block is symmetric
    return dense.reshape(3 * body.free.size, -1)


@pytest.mark.parametrize("mesh", [TETS, CUBES], ids=["tets", "hexes"])
def test_tangent_is_the_derivative_of_the_force_and_its_convex_neighbour_never_negative(mesh):
    body = held(mesh)
    rng = np.random.default_rng(4)
    u, direction = np.zeros((2, *mesh.nodes.shape))
    u[body.free], direction[body.free] = rng.standard_normal((2, body.free.size, 3)) * [[[2e-3]], [[1.0]]]
    step = 1e-7
    before, after = (body.internal_force(u + sign * step * direction) for sign in (-1.0, 1.0))
    difference = (before - after) / (2.0 * step)
    exact = tangent(body, u, False) @ direction[body.free].ravel()
    # central differences, second order in a step of 1e-5 of the springs' length
    assert np.abs(difference[body.free].ravel() - exact).max() < 1e-6 * np.abs(exact).max()
    squashed = -0.4 * mesh.nodes
    exact, convex = (np.linalg.eigvalsh(tangent(body, squashed, convex)) for convex in (False, True))
    assert exact[0] < -1e-3 * exact[-1]
    assert convex[0] > -1e-12 * convex[-1]


@pytest.mark.parametrize("mesh", [TETS, CUBES], ids=["tets", "hexes"])
def test_equilibrium_balances_springs_weight_and_forces_at_every_free_node(mesh):
    body = held(mesh, gravity=(0.0, -9.81, 0.0))
    nodes = tip(body)
    forces = np.tile([0.02, -0.1, 0.05], (nodes.size, 1))
    body.displacements(nodes, forces, nodes)
    assert body.converged
    residual = (body.internal_force(body.u) + body.load(nodes, forces))[body.free]
    assert np.abs(residual).max() < 1e-10 * 0.1
    assert np.all(body.u[body.clamped] == 0.0)


def test_answers_turn_with_clamps_forces_and_gravity():
    turn = Rotation.from_rotvec((0.4, -1.1, 0.7))
    straight, turned = held(CUBES, gravity=(0, -9.81, 0)), held(CUBES, gravity=turn.apply((0, -9.81, 0)))
    turned.place((0.1, 0.2, 0.3), np.roll(turn.as_quat(), 1))
    nodes = tip(straight)
    forces = np.tile([0.02, -0.1, 0.05], (nodes.size, 1))
    u = straight.displacements(nodes, forces, nodes)
    v = turned.displacements(nodes, turn.apply(forces), nodes)
    assert np.abs(v - turn.apply(u)).max() < 1e-9 * np.abs(u).max()


def test_a_small_load_bends_the_lattice_as_it_bends_the_continuum():
    """Same modulus and nu; what differs is how three cells of height bend."""
    springs, solid = held(CUBES), held(CUBES, QuasistaticBody)
    nodes = tip(springs)
    forces = np.tile([0.0, -1e-4, 0.0], (nodes.size, 1))
    ours = springs.displacements(nodes, forces, nodes)[:, 1].mean()
    theirs = solid.displacements(nodes, forces, nodes)[:, 1].mean()
    assert ours == pytest.approx(theirs, rel=0.15)


def test_under_a_crushing_load_the_potential_falls_at_every_step():
    """Compressed springs push sideways: the tangent loses its sign, and a network may fold without end."""
    body = held(TETS)
    nodes = tip(body)
    loads = nodes, np.tile([-0.3, 0.03, 0.0], (nodes.size, 1))
    potential = []
    for _ in range(30):
        potential.append(body.energy(body.u) - np.vdot(body.load(*loads), body.u))
        body.linearise()
        body.advance(*loads)
        assert body.length > 0.0
    assert np.all(np.diff(potential) < 0.0)


def test_a_solve_that_stops_short_says_so():
    body = held(CUBES, max_iterations=2)
    nodes = tip(body)
    body.displacements(nodes, np.tile([0.02, -0.1, 0.05], (nodes.size, 1)), nodes)
    assert not body.converged
    assert body.iterations == 2


def test_it_answers_the_questions_of_every_body():
    body = held(CUBES)
    assert isinstance(body, DisplacementSolver)
    assert isinstance(body, IncrementalBody)
