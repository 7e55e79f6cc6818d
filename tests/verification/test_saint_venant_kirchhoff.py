"""St Venant-Kirchhoff tetrahedra and the Newton-Raphson increments around a contact force."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.numerics.errors import InputError
from palpo.studies.reference.displacement import DisplacementSolver
from palpo.studies.reference.increments import IncrementalBody, newton_raphson
from palpo.studies.reference.large_strain import LargeStrainBody, stress

RUBBER = Material(youngs_modulus=1e5, poisson_ratio=0.3, density=1000.0)
SIZE = np.array([0.1, 0.03, 0.03])
TURN = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
TURN *= np.sign(np.linalg.det(TURN))


def bar(gravity=(0.0, 0.0, 0.0), **options) -> LargeStrainBody:
    mesh = block(SIZE, (6, 2, 2))
    ends = mesh.nodes[:, 0] < mesh.nodes[:, 0].min() + 1e-9
    return LargeStrainBody("bar", mesh, RUBBER, np.flatnonzero(ends), gravity, **options)


def tip(body) -> np.ndarray:
    x = body.mesh.nodes[:, 0]
    return np.flatnonzero(x > x.max() - 1e-9)


def push(body, force) -> tuple[np.ndarray, np.ndarray]:
    """The force [N] shared evenly among the nodes of the free end."""
    nodes = tip(body)
    return nodes, np.tile(np.array(force) / nodes.size, (nodes.size, 1))


def shaken(body, amount: float, seed: int = 0) -> np.ndarray:
    u = np.zeros_like(body.u)
    u[body.free] = amount * np.random.default_rng(seed).standard_normal((body.free.size, 3))
    return u


def tangent(body, u) -> np.ndarray:
    """K_T over the free freedoms, from the blocks that the factor gets."""
    rows, cols = body.pattern.rows, body.pattern.cols
    blocks = body.tangent_blocks(u, convex=False)
    lower = np.zeros((3 * body.free.size,) * 2)
    for r, c, b in zip(rows, cols, blocks.reshape(-1, 3, 3), strict=True):
        lower[3 * r : 3 * r + 3, 3 * c : 3 * c + 3] = b
        lower[3 * c : 3 * c + 3, 3 * r : 3 * r + 3] = b.T
    return lower


def test_no_rigid_motion_gives_a_force_or_an_energy():
    body = bar()
    x = body.mesh.nodes
    u = x @ TURN.T + [0.3, -0.2, 0.5] - x
    scale = RUBBER.youngs_modulus * SIZE[1] ** 2
    assert np.abs(body.internal_force(u)).max() < 1e-12 * scale
    assert body.energy(u) < 1e-20 * scale


@pytest.mark.parametrize("stretch", [0.7, 1.0, 1.4, 2.0])
def test_uniaxial_stretch_gives_the_closed_form(stretch):
    """Free sides: S_11 = E (l^2 - 1) / 2, the lateral Green-Lagrange strain is -nu times the axial one."""
    lam, mu = RUBBER.lame()
    axial = 0.5 * (stretch**2 - 1.0)
    side = np.sqrt(1.0 - 2.0 * RUBBER.poisson_ratio * axial)
    s = np.empty((3, 3))
    density = stress(np.diag([stretch, side, side]), lam, mu, s)
    expected = np.diag([RUBBER.youngs_modulus * axial, 0.0, 0.0])
    assert np.abs(s - expected).max() < 1e-11 * RUBBER.youngs_modulus
    assert density == pytest.approx(0.5 * RUBBER.youngs_modulus * axial**2, abs=1e-9)


def test_a_pulled_bar_carries_nominal_stress_stretch_times_s():
    """F / A = l E (l^2 - 1) / 2 where neither the clamp nor the loaded end reach: a width away from both."""
    body = bar()
    force = 20.0
    body.equilibrate(*push(body, (force, 0.0, 0.0)))
    assert body.converged
    x = body.mesh.nodes[:, 0]
    middle = [np.isclose(x, side).nonzero()[0] for side in np.unique(x)[[2, 4]]]
    ends = [(body.mesh.nodes + body.u)[nodes, 0].mean() for nodes in middle]
    stretch = (ends[1] - ends[0]) / (x[middle[1]][0] - x[middle[0]][0])
    nominal = stretch * RUBBER.youngs_modulus * 0.5 * (stretch**2 - 1.0)
    assert nominal == pytest.approx(force / SIZE[1] ** 2, rel=0.02)
    assert stretch > 1.15


def test_force_is_minus_the_gradient_of_the_energy_and_the_tangent_its_derivative():
    body = bar()
    u, direction = shaken(body, 2e-3), shaken(body, 1.0, seed=1)
    step = 1e-7
    plus, minus = u + step * direction, u - step * direction
    slope = (body.energy(plus) - body.energy(minus)) / (2.0 * step)
    # central differences, second order in a step of 1e-5 of the elements' size
    assert -np.vdot(body.internal_force(u), direction) == pytest.approx(slope, rel=1e-6)
    difference = (body.internal_force(minus) - body.internal_force(plus)) / (2.0 * step)
    exact = tangent(body, u) @ direction[body.free].ravel()
    assert np.abs(difference[body.free].ravel() - exact).max() < 1e-6 * np.abs(exact).max()


def test_small_strain_is_linear_elasticity():
    soft = bar()
    linear = QuasistaticBody("bar", soft.mesh, RUBBER, soft.clamped, (0.0, 0.0, 0.0))
    assert np.abs(tangent(soft, soft.u) - linear.K[np.ix_(f := freedoms(soft), f)].toarray()).max() < 1e-9
    nodes = tip(soft)
    for force, share in ((1e-3, 1e-3), (1e-5, 1e-5)):
        loads = push(soft, (0.0, -force, 0.0))
        difference = soft.displacements(*loads, nodes) - linear.displacements(*loads, nodes)
        # the departure is quadratic in the load: relative, linear
        assert np.abs(difference).max() < share * np.abs(linear.displacements(*loads, nodes)).max()


def freedoms(body) -> np.ndarray:
    return (3 * body.free[:, None] + np.arange(3)).ravel()


def test_newton_converges_quadratically_to_equilibrium():
    body = bar()
    loads = push(body, (0.0, -0.4, 0.0))
    steps = []
    for _ in range(12):
        body.linearise()
        steps.append(body.advance(*loads))
    residual = (body.internal_force(body.u) + body.load(*loads))[body.free]
    assert np.abs(residual).max() < 1e-12
    assert np.abs(body.u[tip(body), 1]).mean() > 0.01  # a tenth of the length: far from linear
    digits = -np.log([s for s in steps if s > 1e-13])  # below that, rounding
    gained = np.diff(digits)
    # the order of the last step, which tends to 2; a tangent that is a little wrong has order 1
    assert len(gained) >= 3
    assert gained[-1] / gained[-2] > 1.7


def test_equilibrium_turns_with_clamps_and_forces():
    straight, turned = bar(gravity=(0.0, -9.81, 0.0)), bar(gravity=TURN @ (0.0, -9.81, 0.0))
    loads = push(straight, (0.05, -0.2, 0.1))
    nodes = tip(straight)
    u = straight.displacements(*loads, nodes)
    turned.place((1.0, 2.0, 3.0), quaternion(TURN))
    v = turned.displacements(loads[0], loads[1] @ TURN.T, nodes)
    assert np.abs(v - u @ TURN.T).max() < 1e-9 * np.abs(u).max()
    assert np.abs(turned.positions(turned.clamped).mean(axis=0) - (1.0, 2.0, 3.0)).max() < 1e-12


def quaternion(rotation) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(rotation).as_quat(), 1)


def test_tangent_compliance_and_free_displacement_predict_the_linearised_answer():
    body = bar(gravity=(0.0, -9.81, 0.0))
    body.place(body.position, quaternion(TURN))
    body.u = shaken(body, 5e-4)
    body.linearise()
    nodes = np.append(tip(body), body.clamped[0])
    K, u = tangent(body, body.u), body.u.copy()
    free_step = np.zeros_like(u)
    free_step[body.free] = np.linalg.solve(
        K, (body.internal_force(u) + body.weight())[body.free].ravel()
    ).reshape(-1, 3)
    expected = body.to_world((u + free_step)[nodes])
    assert np.abs(body.free_displacement(nodes) - expected).max() < 1e-9 * np.abs(expected).max()
    C = body.compliance(nodes)
    inverse = np.zeros((u.size, u.size))
    inverse[np.ix_(f := freedoms(body), f)] = np.linalg.inv(K)
    dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
    turn = np.kron(np.eye(nodes.size), TURN)
    assert np.abs(C - turn @ inverse[np.ix_(dofs, dofs)] @ turn.T).max() < 1e-9 * np.abs(C).max()
    assert np.all(C[-3:] == 0.0)


def wall(body, height: float):
    """A frictionless floor under the tip, solved node by node from free displacement and compliance only."""

    def contact():
        nodes = tip(body)
        C = body.compliance(nodes)[1::3, 1::3]
        free = (body.rest_positions(nodes) + body.free_displacement(nodes))[:, 1] - height
        force = np.zeros(nodes.size)
        for _ in range(20000):
            before = force.copy()
            for i in range(nodes.size):
                force[i] = max(0.0, force[i] - (C[i] @ force + free[i]) / C[i, i])
            if np.abs(force - before).max() <= 1e-13:
                break
        return [(nodes, np.outer(force, [0.0, 1.0, 0.0]))]

    return contact


@pytest.mark.parametrize("kind", ["linear", "large strain"])
def test_one_contact_solver_serves_the_linear_and_the_large_strain_body(kind):
    body = bar(gravity=(0.0, -9.81, 0.0))
    if kind == "linear":
        body = QuasistaticBody("bar", body.mesh, RUBBER, body.clamped)
    height = body.mesh.nodes[:, 1].min() - 5e-4  # the free tip would hang two millimetres lower
    contact = wall(body, height)
    ended = newton_raphson([body], contact, tolerance=1e-9)
    assert ended.converged
    assert ended.increments <= (2 if kind == "linear" else 8)
    nodes, forces = contact()[0]
    gap = body.positions(nodes)[:, 1] - height
    # Signorini at the nonlinear equilibrium, to the tolerance of the increments
    assert gap.min() > -1e-9
    assert forces[:, 1].sum() > 1e-3
    assert np.abs(gap * forces[:, 1]).max() < 1e-11


def test_a_step_too_far_is_shortened_until_the_potential_falls():
    body = bar()
    body.u = shaken(body, 4e-3)  # elements crushed and turned inside out
    loads = push(body, (0.0, -0.1, 0.0))
    energies, lengths = [], []
    for _ in range(100):
        energies.append(body.energy(body.u) - np.vdot(body.load(*loads), body.u))
        body.linearise()
        if body.advance(*loads) < 1e-12:
            break
        lengths.append(body.length)
    assert min(lengths) < 1.0
    assert np.all(np.diff(energies) <= 1e-12 * np.abs(energies[0]))


def test_every_convex_tangent_is_positive_semidefinite():
    body = bar()
    rows, cols = body.pattern.rows, body.pattern.cols
    for seed in range(3):
        blocks = body.tangent_blocks(shaken(body, 4e-3, seed), convex=True)
        dofs = np.arange(3)
        i = (3 * rows[:, None, None] + dofs[:, None]).repeat(3, axis=2)
        j = (3 * cols[:, None, None] + dofs[None, :]).repeat(3, axis=1)
        size = 3 * body.free.size
        lower = sp.coo_array((blocks.ravel(), (i.ravel(), j.ravel())), shape=(size, size)).toarray()
        eigenvalues = np.linalg.eigvalsh(np.tril(lower) + np.tril(lower, -1).T)
        assert eigenvalues[0] > -1e-12 * eigenvalues[-1]


def test_the_body_answers_both_protocols_and_needs_tetrahedra_and_a_free_node():
    body = bar()
    assert isinstance(body, DisplacementSolver)
    assert isinstance(body, IncrementalBody)
    with pytest.raises(InputError, match="clamps all of its nodes"):
        LargeStrainBody("stone", body.mesh, RUBBER, np.arange(len(body.mesh.nodes)))
    with pytest.raises(InputError, match="large strains are for tetrahedra"):
        LargeStrainBody("brick", hex_block(SIZE, (2, 1, 1)), RUBBER, (0, 1, 2, 3))
