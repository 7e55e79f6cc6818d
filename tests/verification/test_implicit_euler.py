"""Backward Euler with one linearisation a step: free fall, momentum, energy, and the factors behind it."""

import threading

import numpy as np
import pytest
import scipy.sparse.linalg as sla
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.body import Factor, SteppedBody
from palpo.physics.bodies.chain_body import BeamBody, RigidBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.mesh.beam import BeamLine

STEPS = (1e-3, 2e-2)
STILL = (0.0, 0.0, 0.0)
GRAVITY = np.array([0.0, -9.81, 0.0])


def soft(fixed: bool, gravity=STILL, mass_matrix="lumped", alpha=0.0, beta=0.0) -> SoftBody:
    mesh = generate.block((0.1, 0.06, 0.06), (4, 2, 2))
    end = np.flatnonzero(mesh.nodes[:, 0] < mesh.nodes[:, 0].min() + 1e-9) if fixed else ()
    return SoftBody("block", mesh, Material(1e4, 0.4, 1000.0, alpha, beta), end, gravity, mass_matrix)


def beam(fixed: bool, gravity=STILL, mass_matrix="averaged", alpha=0.0, beta=0.0) -> BeamBody:
    line = BeamLine(np.linspace(0.0, 0.3, 11)[:, None] * np.array([0.6, 0.0, 0.8]), 2e-3)
    material = Material(2e9, 0.3, 1150.0, alpha, beta)
    return BeamBody("beam", line, material, [0] if fixed else [], gravity, mass_matrix=mass_matrix)


def rigid(fixed: bool = False, gravity=STILL, mass_matrix=None, alpha=0.0, beta=0.0) -> RigidBody:
    q = Rotation.from_rotvec([0.3, 0.4, -0.2]).as_quat(scalar_first=True)
    return RigidBody("body", 0.2, np.diag([1e-4, 2e-4, 2.5e-4]), (0.1, 0.0, 0.0), q, gravity, alpha)


BODIES = [
    pytest.param(soft, "lumped", id="tets lumped"),
    pytest.param(soft, "consistent", id="tets consistent"),
    pytest.param(beam, "lumped", id="beam lumped"),
    pytest.param(beam, "averaged", id="beam averaged"),
    pytest.param(rigid, None, id="rigid"),
]


def step(body: SteppedBody, h: float, f: np.ndarray | None = None) -> None:
    body.linearise()
    body.advance(body.free_velocity(body.factor(h), h, f), h)


def shake(body: SteppedBody, size: float, seed: int = 0) -> None:
    """Random velocities [m/s] of the nodes; frames turn by the same per element length."""
    v = size * np.random.default_rng(seed).standard_normal(body.n_dof)
    if not isinstance(body, SoftBody):
        v.reshape(-1, 6)[:, 3:] *= 10.0
    body.v = v


@pytest.mark.parametrize(("make", "mass"), BODIES)
def test_every_body_keeps_the_protocol(make, mass):
    body = make(False, mass_matrix=mass)
    assert isinstance(body, SteppedBody)
    assert isinstance(body.factor(1e-3), Factor)
    assert body.floating
    assert not body.invalid()
    body.x[0, 0] = np.nan
    assert body.invalid()


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize(("make", "mass"), BODIES)
def test_free_fall_is_the_exact_sum_of_backward_euler(make, mass, h):
    body = make(False, GRAVITY, mass)
    start = body.x.copy()
    n = 25
    for _ in range(n):
        step(body, h)
    # x_n = x_0 + g h^2 n (n + 1) / 2, and nothing deforms: only rounding, of 1e-16 m times a stiffness of
    # 1e6 N/m over a mass of 1e-3 kg, over 25 steps
    fall = start + GRAVITY * h * h * n * (n + 1) / 2.0
    assert np.abs(body.x - fall).max() < 1e-10
    assert np.abs(body.v.reshape(len(body.x), -1)[:, :3] - GRAVITY * n * h).max() < 1e-9


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize(("make", "mass"), BODIES)
def test_linear_momentum_of_a_free_body_is_kept(make, mass, h):
    body = make(False, mass_matrix=mass)
    shake(body, 0.05)
    before, _ = body.momentum()
    for _ in range(50):
        step(body, h)
    after, _ = body.momentum()
    # beams carry 1e4 N of rounding-prone stiffness: 1e-10 of the momentum that flows inside
    scale = body.mass * 0.05
    assert np.abs(after - before).max() < 1e-9 * scale


@pytest.mark.parametrize(("make", "mass"), BODIES)
def test_angular_momentum_of_a_free_body_is_lost_at_most_in_proportion_to_the_step(make, mass):
    drift = []
    for h in (2e-4, 1e-4, 5e-5):
        body = make(False, mass_matrix=mass)
        middle = body.x.mean(axis=0)
        v = np.cross([0.0, 2.0, 1.0], body.x - middle)
        spin = np.tile([0.0, 2.0, 1.0], (len(body.x), 1))
        body.v = v.ravel() if isinstance(body, SoftBody) else np.hstack([v, spin]).ravel()
        _, before = body.momentum()
        for _ in range(round(0.02 / h)):
            step(body, h)
        _, after = body.momentum()
        drift.append(np.linalg.norm(after - before) / np.linalg.norm(before))
    # zero to rounding (rigid, and beams without tension), or first order in h or better
    assert drift[-1] < 1e-9 or (drift[2] < 0.6 * drift[1] < 0.36 * drift[0] * 1.02)
    assert drift[-1] < 1e-4


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("fixed", [True, False], ids=["clamped", "free"])
@pytest.mark.parametrize(("make", "mass"), BODIES)
def test_energy_never_grows_without_input(make, mass, fixed, h):
    body = make(fixed, mass_matrix=mass)
    # nodes move by at most 1e-3 of an element a step: one linearisation turns a rotation of a into a stretch
    # of a^2 / 2, the scheme's own and not what is tested here
    shake(body, 1e-3 * 0.02 / h * (1.0 if isinstance(body, SoftBody) else 0.05))
    energy = [body.energy()]
    for _ in range(200):
        step(body, h)
        energy.append(body.energy())
    assert np.diff(energy).max() <= 1e-7 * energy[0]
    assert energy[-1] >= 0.0


@pytest.mark.parametrize("h", STEPS)
def test_energy_of_a_swinging_clamped_block_under_gravity_never_grows(h):
    body = soft(True, GRAVITY)
    energy = [body.energy()]
    for _ in range(100):
        step(body, h)
        energy.append(body.energy())
    # it bends by a quarter of its length; the bound is 1e-6 of the energy that is exchanged
    assert np.diff(energy).max() <= 1e-6 * (energy[0] - energy[-1])


@pytest.mark.parametrize("h", STEPS)
def test_rayleigh_mass_damping_slows_a_free_body_by_one_plus_alpha_h_a_step(h):
    for body in (soft(False, alpha=3.0), beam(False, alpha=3.0), rigid(alpha=3.0)):
        v = np.zeros(body.n_dof).reshape(len(body.x), -1)
        v[:, :3] = [0.1, 0.2, -0.1]
        body.v = v.ravel()
        for _ in range(10):
            step(body, h)
        kept = body.v.reshape(len(body.x), -1)[:, :3]
        # rounding of the deformation that a stiff body sees
        assert np.abs(kept - np.array([0.1, 0.2, -0.1]) / (1.0 + 3.0 * h) ** 10).max() < 1e-9


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("make", [soft, beam, rigid], ids=["tets", "beam", "rigid"])
def test_free_velocity_solves_the_equation_of_the_scheme(make, h):
    # a beam gets no gravity here: the string term of its tension is no part of this equation
    body = make(True, STILL if make is beam else GRAVITY, alpha=0.3, beta=2e-3)
    step(body, h)
    shake(body, 0.01 if isinstance(body, SoftBody) else 1e-4)
    body.linearise()
    load = np.random.default_rng(3).standard_normal(body.n_dof) * 1e-3
    alpha, beta = (0.3, 0.0) if isinstance(body, RigidBody) else (0.3, 2e-3)
    M, K = (m.toarray() if hasattr(m, "toarray") else m for m in (body.M, body.K))
    A = M + h * (alpha * M + beta * K) + h * h * K
    dv = np.linalg.solve(A, h * (body.force() - h * (K @ body.v) + load))
    v_new = body.free_velocity(body.factor(h), h, load)
    # the gyroscopic impulse (quadratic in spins of 1e-3 rad/s) and a beam's string term are 1e-5 of the
    # change
    tolerance = 1e-9 if isinstance(body, SoftBody) else 1e-4
    assert np.abs(v_new - body.v - dv).max() < tolerance * np.abs(dv).max()
    correction = body.correction_velocity(body.factor(h), h, load)
    assert np.abs(correction - np.linalg.solve(A, h * load)).max() < tolerance * np.abs(correction).max()


@pytest.mark.parametrize("mass_matrix", ["lumped", "consistent"])
def test_tet_substeps_equal_single_steps_with_the_same_factor(mass_matrix):
    h, nodes = 1e-3, np.array([3, 44, 0], dtype=np.int32)
    forces = 0.02 * np.random.default_rng(0).standard_normal((20, 3, 3))
    one, many = (soft(True, GRAVITY, mass_matrix, 0.1, 1e-3) for _ in range(2))
    factor = one.factor(h)
    dofs = one.dofs_of(nodes)
    for f in forces:
        load = np.zeros(one.n_dof)
        for row, dof in zip(f, dofs, strict=True):
            if dof[0] >= 0:
                load[dof] += row
        one.advance(one.free_velocity(factor, h, load), h)
    many.substeps(many.factor(h), h, forces, nodes)
    assert np.abs(one.x - many.x).max() < 1e-13
    assert np.abs(one.v - many.v).max() < 1e-11


def test_beam_substeps_equal_single_steps():
    h, frames = 1e-3, np.array([10, 5])
    wrenches = np.random.default_rng(0).standard_normal((20, 2, 6)) * np.array(
        [0.1, 0.1, 0.1, 1e-3, 1e-3, 1e-3]
    )
    one, many = beam(True, GRAVITY, beta=1e-4), beam(True, GRAVITY, beta=1e-4)
    for wrench in wrenches:
        load = np.zeros(one.n_dof)
        for row, dof in zip(wrench, one.dofs_of(frames), strict=True):
            load[dof] += row
        step(one, h, load)
    many.substeps(many.factor(h), h, wrenches, frames)
    assert np.abs(one.x - many.x).max() < 1e-12
    assert np.abs(one.q - many.q).max() < 1e-11


def bent_block() -> SoftBody:
    body = soft(True, GRAVITY, alpha=0.1, beta=1e-3)
    for _ in range(10):
        step(body, 1e-2)
    body.linearise()
    return body


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("k", [1, 7, 32, 90])
def test_sparse_factor_solves_like_a_general_solver(h, k):
    body = bent_block()
    A = ((1.0 + 0.1 * h) * body.M + (1e-3 * h + h * h) * body.K).tocsc()
    b = np.random.default_rng(k).standard_normal((body.n_dof, k))
    exact = sla.splu(A).solve(b)
    factor = body.factor(h)
    # the condition number is below 1e4
    assert np.abs(factor.solve_many(b) - exact).max() < 1e-11 * np.abs(exact).max()
    assert np.abs(factor.solve(b[:, 0]) - exact[:, 0]).max() < 1e-11 * np.abs(exact).max()
    in_place = b.copy()
    factor.solve_many(in_place, in_place)
    assert np.abs(in_place - exact).max() < 1e-11 * np.abs(exact).max()


def test_sparse_right_hand_sides_and_half_solves_give_the_compliance():
    body = bent_block()
    factor = body.factor(1e-3)
    b = np.zeros((body.n_dof, 12))
    for c, row in enumerate(np.random.default_rng(0).choice(body.n_dof, 12, replace=False)):
        b[row, c] = 1.0
    full = b.T @ factor.solve_many(b)
    half = factor.half_solve_many(b)
    assert np.abs(half.T @ half - full).max() < 1e-12 * np.abs(full).max()
    dense = rigid().factor(1e-3)
    y = dense.half_solve_many(np.eye(6))
    assert np.abs(y.T @ y - dense.solve_many(np.eye(6))).max() < 1e-9 * np.abs(y.T @ y).max()


def test_factors_of_two_steps_built_in_two_threads_equal_those_built_alone():
    body, alone = bent_block(), bent_block()
    b = np.random.default_rng(0).standard_normal(body.n_dof)

    def build(h: float, into: dict) -> None:
        into[h] = body.factor(h)

    expected = {h: alone.factor(h).solve(b) for h in STEPS}
    for _ in range(20):
        built = {}
        threads = [threading.Thread(target=build, args=(h, built)) for h in STEPS]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for h in STEPS:
            assert np.array_equal(built[h].solve(b), expected[h])


def test_a_non_finite_state_is_reported_and_not_a_crash():
    block = soft(False)
    block.x[1] = np.nan
    step(block, 1e-3)
    assert block.invalid()
    chain = beam(False)
    chain.x[1] = np.nan
    chain.linearise()
    with pytest.raises(FloatingPointError, match="positive"):
        chain.factor(1e-3)
    with pytest.raises(FloatingPointError, match="pivot"):
        chain.substeps(None, 1e-3, np.zeros((1, 1, 6)), [0])
