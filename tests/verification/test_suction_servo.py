"""The servo of a held suction cup: closed forms, the step's own solution, balance, groups, no allocation."""

from dataclasses import replace

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.contact.problem import Stop
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import tick, tick_data
from palpo.physics.exchange.buffer import writer_slot
from palpo.physics.exchange.frames import hand_over
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.port import OK
from palpo.physics.exchange.suction_frame import VALUES
from palpo.physics.fem.material import Material
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh.cups import CUPS, GRIDS, cup
from palpo.physics.mesh.partners import slab
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.sides import FixedSide
from palpo.physics.systems.suction.condensed import (
    HeldProblem,
    couple,
    fewer_cavities,
    fill_frame,
    grouped,
    yielding,
)
from palpo.physics.systems.suction.loop import HandledCup, SuctionLoop
from palpo.physics.systems.suction.servo import make_servo
from palpo.physics.systems.suction.step import Suction
from tests.contact.pressure_problem import PressureProblem, solve

H, DT = 1e-2, 1e-3
AIR = OutsideAir(largest=102e3)
GAINS = Gains(500.0, 2.0, 1.0, 2e-3)


def settings(sweeps=2000, tolerance=1e-12):
    values = np.zeros(1, VALUES)
    values["step"], values["tolerance"], values["sweeps"] = H, tolerance, sweeps
    values["atmosphere"], values["largest"], values["rt"] = AIR.atmosphere, AIR.largest, AIR.rt
    return values


def servo_on(held, gains, error=None, sweeps=2000, origin=0, capacity=None):
    """(state, handle, coupling) of a servo at the origin with one frame of the problem."""
    contacts, cavities = capacity or (max(1, len(held.mu)), max(1, len(held.active)))
    servo, state = make_servo(np.zeros(3), contacts, cavities, DT)
    coupling = couple(held.stiffness, gains, H, np.zeros(6) if error is None else error)
    send(state, held, coupling, settings(sweeps), origin)
    return state, tick_data(servo), coupling


def send(state, held, coupling, values, origin=0, identity=1):
    slot = int(writer_slot(state.frames.control[0]))
    fill_frame(state.cup.frame, slot, held, coupling, values, origin)
    hand_over(state.frames, 0, identity)


def piston(area, volume, amount, stiffness=1e3, seeping=0.0):
    """A rigid piston along y over a cavity, without a contact."""
    rows = np.zeros((1, 6))
    rows[0, 1] = area
    return HeldProblem(
        np.zeros((1, 1)), np.array([volume]), np.zeros(1), rows, np.diag([stiffness] * 6), np.zeros(6),
        np.zeros(6), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3, 3)), np.zeros(0), np.array([False]),
        np.array([AIR.atmosphere]), np.array([amount]), np.array([[0.0, seeping], [seeping, 0.0]]),
    )  # fmt: skip


def soft_cup(n=8, k=2, seed=3):
    """A random passive body of 60 freedoms on a handle, n contacts and k cavities; also its dense parts."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(66, 66))
    a = factor @ factor.T + 30.0 * np.eye(66)
    a *= 200.0 / a[0, 0]
    j = 0.3 * rng.normal(size=(3 * n + k, 66))
    j[3 * n :] *= 1e-3
    force, momentum = rng.normal(size=66), rng.normal(size=66)
    body, hand = slice(6, 66), slice(0, 6)
    inner = np.linalg.inv(a[body, body])
    lift = -inner @ a[body, hand]
    held = HeldProblem(
        w=j[:, body] @ inner @ j[:, body].T,
        b=j[:, body] @ inner @ force[body] + np.append(np.full(3 * n, -2e-3), np.full(k, 4e-6)),
        momentum=j[:, body] @ inner @ momentum[body],
        rows=j[:, hand] + j[:, body] @ lift,
        stiffness=a[hand, hand] + a[hand, body] @ lift,
        load=force[hand] + lift.T @ force[body],
        load_momentum=momentum[hand] + lift.T @ momentum[body],
        mu=np.full(n, 0.5),
        points=rng.normal(size=(n, 3)),
        axes=np.tile(np.eye(3), (n, 1, 1)),
        start=np.zeros(3 * n),
        active=np.zeros(k, bool),
        pressure=np.full(k, AIR.atmosphere),
        amount=np.array([AIR.amount(AIR.atmosphere, 4e-6)] * k),
        seeping=np.zeros((k + 1, k + 1)),
    )
    return held, a, j, force, momentum


@pytest.mark.parametrize("way", [-2e-3, 1e-3, 5e-3])
def test_an_imposed_piston_feels_the_closed_form_of_the_gas_law(way):
    """p V = n R T exactly: the frame has no other compliance; above P_max the air leaves."""
    area, volume = 5e-4, 3e-6
    held = piston(area, volume, AIR.amount(AIR.atmosphere, volume), stiffness=0.0)
    state, handle, _ = servo_on(held, None)
    state.port.position[1] = way
    assert tick(handle) == OK
    pressure = min(AIR.largest, AIR.atmosphere * volume / (volume + area * way))
    np.testing.assert_allclose(state.port.force[1], area * (pressure - AIR.atmosphere), rtol=1e-12)


@pytest.mark.parametrize("way", [-2e-5, 1e-3, 5e-3])
def test_an_imposed_piston_whose_rim_leaks_feels_the_closed_form_too(way):
    """p V + s p^2 = n R T + s P_atm^2: of both roots the one that is a pressure."""
    area, volume, s = 5e-4, 3e-6, 1e-11
    n = AIR.amount(AIR.atmosphere, volume)
    state, handle, _ = servo_on(piston(area, volume, n, 0.0, s), None)
    state.port.position[1] = way
    assert tick(handle) == OK
    pressure = np.roots([s, volume + area * way, -n * AIR.rt - s * AIR.atmosphere**2]).max()
    assert pressure < AIR.largest
    np.testing.assert_allclose(state.port.force[1], area * (pressure - AIR.atmosphere), rtol=1e-9)


def test_the_tick_at_the_steps_end_is_the_steps_own_solution():
    """Forces, pressures, handle: the dense system of body, handle and coupling, solved off line.

    Both solve to 1e-12; the margin is the condition of W, about 1e3.
    """
    held, a, j, force, momentum = soft_cup()
    error = np.array([1e-3, -2e-3, 5e-4, 1e-2, 0.0, -2e-2])
    state, handle, _ = servo_on(held, GAINS, error, origin=-9)
    target = np.array([1e-3, -3e-3, 2e-3])
    state.port.position[:] = target
    assert tick(handle) == OK
    k, b, turn_k, turn_b = GAINS
    damping = np.repeat([b / H, turn_b / H], 3)
    spring = np.repeat([k, turn_k], 3) + damping
    way = np.append(target, np.zeros(3))
    whole = a.copy()
    whole[:6, :6] += np.diag(spring)
    load = force + momentum
    load[:6] += spring * way - damping * error
    offset = np.append(np.full(24, -2e-3), np.full(2, 4e-6))
    free = np.linalg.solve(whole, load)
    w = j @ np.linalg.solve(whole, j.T)
    problem = PressureProblem(
        0.5 * (w + w.T), j @ free + offset, held.mu, held.amount, held.pressure, held.active, AIR
    )
    exact = solve(problem, Stop(1e-12, 2000))
    assert exact.converged and (exact.r != 0.0).any()
    x = np.append(exact.r, exact.pressure - AIR.atmosphere)
    np.testing.assert_allclose(state.cup.x[:24], exact.r, atol=1e-8 * np.abs(exact.r).max())
    np.testing.assert_allclose(state.rows.cavities.pressure, exact.pressure, rtol=1e-9)
    twist = np.linalg.solve(whole, load + j.T @ x)[:6]
    np.testing.assert_allclose(state.cup.twist, twist, atol=1e-8 * np.abs(twist).max())
    pull = spring * (way - twist) - damping * error
    np.testing.assert_allclose(state.port.force, -pull[:3], atol=1e-8 * np.abs(pull).max())
    np.testing.assert_allclose(state.port.torque, -pull[3:], atol=1e-8 * np.abs(pull).max())


def test_a_handle_that_moves_evenly_with_the_hand_is_not_felt():
    """The bodies' momentum counts in proportion to the time, so that their inertia pulls on nobody."""
    mass, velocity = 0.03, np.array([0.1, -0.05, 0.2, 0.0, 0.0, 0.0])
    inertia = np.diag([mass] * 3 + [1e-5] * 3) / H**2
    held = piston(0.0, 1e-6, AIR.amount(AIR.atmosphere, 1e-6))
    moving = HeldProblem(**{**held.__dict__, "stiffness": inertia, "load_momentum": inertia @ velocity * H})
    state, handle, _ = servo_on(moving, GAINS)
    for t in range(1, 21):
        state.port.position[:] = DT * t * velocity[:3]
        assert tick(handle) == OK
        np.testing.assert_allclose(state.port.force, 0.0, atol=1e-12)
        np.testing.assert_allclose(state.cup.position, DT * t * velocity[:3], atol=1e-15)


def test_groups_of_contacts_carry_the_load_of_all():
    """A rigid block on twelve feet, pressed evenly: four groups hold it by the same force and torque."""
    angle = 2.0 * np.pi * np.arange(12) / 12
    points = 0.02 * np.stack([np.cos(angle), np.zeros(12), np.sin(angle)], axis=1)
    up = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    rows = np.zeros((36, 6))
    for i, point in enumerate(points):
        rows[3 * i : 3 * i + 3] = np.hstack([up, np.cross(point, up)])
    stiffness = np.diag([3000.0] * 3 + [1.0] * 3)
    held = HeldProblem(
        1e-5 * np.eye(36), np.zeros(36), np.zeros(36), rows, stiffness, np.array([0.0, -2.0, 0, 0, 0, 0]),
        np.zeros(6), np.full(12, 0.5), points, np.tile(up, (12, 1, 1)), np.zeros(36), np.zeros(0, bool),
        np.zeros(0), np.zeros(0), np.zeros((1, 1)),
    )  # fmt: skip
    felt = []
    for most in (12, 4):
        part = grouped(held, most)
        assert len(part.mu) == most
        state, handle, _ = servo_on(part, GAINS, capacity=(12, 1))
        state.port.position[1] = -4e-3
        assert tick(handle) == OK
        felt.append(np.append(state.port.force, state.port.torque))
    assert felt[0][1] > 1.0
    np.testing.assert_allclose(felt[1], felt[0], atol=1e-9)


def test_cavities_without_room_keep_their_pressure():
    """What stays is the whole problem at those pressures, and it is what the handle moves most."""
    k, n, generator = 3, 12, np.random.default_rng(5)
    pressure = AIR.atmosphere * np.array([0.8, 0.6, 1.01])
    held = replace(soft_cup(n=4, k=k)[0], pressure=pressure, seeping=np.arange(16.0).reshape(4, 4))
    held.rows[n] *= 10.0
    held.rows[n + 1] *= 0.1
    part = fewer_cavities(held, 2, AIR.atmosphere)
    assert fewer_cavities(held, 3, AIR.atmosphere) is held
    np.testing.assert_array_equal(part.pressure, pressure[[0, 2]])
    np.testing.assert_array_equal(part.seeping, [[0.0, 2.0, 3.0], [8.0, 10.0, 11.0], [12.0, 14.0, 15.0]])
    twist, x = generator.normal(size=6), generator.normal(size=n + 2)
    whole = np.insert(x, n + 1, pressure[1] - AIR.atmosphere)
    u = held.w @ whole + held.b + held.rows @ twist
    np.testing.assert_allclose(part.w @ x + part.b + part.rows @ twist, np.delete(u, n + 1), rtol=1e-10)
    pull = held.stiffness @ twist - held.load - held.rows.T @ whole
    np.testing.assert_allclose(part.stiffness @ twist - part.load - part.rows.T @ x, pull, rtol=1e-10)


def test_groups_keep_W_symmetric_and_positive_semidefinite():
    held = soft_cup(n=20, k=1)[0]
    w = yielding(grouped(held, 6), couple(held.stiffness, GAINS, H, np.zeros(6)))
    assert w.shape == (19, 19)
    np.testing.assert_array_equal(w, w.T)
    assert np.linalg.eigvalsh(w).min() > -1e-15


def test_a_tick_allocates_nothing_and_leaves_the_frame_as_it_is():
    held = soft_cup()[0]
    state, handle, _ = servo_on(held, GAINS, sweeps=5)
    state.port.position[1] = -3e-3
    tick(handle)
    w = state.cup.frame.w.copy()
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        assert all(tick(handle) == OK for _ in range(20))
        assert rtsys.get_allocation_stats().alloc == before
    finally:
        _nrt_python.memsys_disable_stats()
    assert np.linalg.norm(state.port.force) > 0.1
    np.testing.assert_array_equal(state.cup.frame.w, w)


def held_cup(contacts, gains=GAINS, tolerance=1e-10, leak=0.0, seal=None, places=(0.0,), cavities=2):
    """(servo, its handle, slow loop, lock) of the smallest cup, 0.3 mm above a plate; others beside."""
    made = cup(CUPS["small"].shape, GRIDS[76])
    wall = np.union1d(made.underside, made.rim)
    material = Material(338e3, 0.42, 30e-3 / made.mesh.volume, 0.5, 1e-3)
    meshes = [made.mesh.with_nodes(made.mesh.nodes + np.array([x, 0.3e-3, 0.0])) for x in places]
    cups = [CupSpec(HeldBody("cup", mesh, material, made.held, wall), seal=seal) for mesh in meshes]
    suction = Suction(
        cups, FixedSide(slab(0.1, 4, 0.02)), thresholds(1e-4, 5e-4, 2e-3), replace(AIR, leak=leak), H,
        stop=Stop(tolerance, 2000), capacity=128 * len(cups),
    )  # fmt: skip
    hand = HandledCup(suction, 0, gains)
    servo, state = make_servo(hand.handle.position, contacts, cavities, DT, turns=False)
    low = SuctionLoop(state, suction, [], hand, settings(tolerance=tolerance))
    return state, tick_data(servo), low, LockedLoops([low], "none")


def press_and_pull(state, handle, low, lock, down=1.5e-3, up=20e-3, speed=2e-2):
    """Forces on the hand [N], shape (n, 3): the servo's in each tick, the slow loop's at each step's end."""
    start, hand, period = state.cup.position.copy(), low.hand, lock.ratio
    way = np.concatenate([np.arange(0.0, down, speed * DT) * -1.0, np.arange(-down, up, speed * DT)])
    felt, own, before = [], [], np.zeros(3)

    def make(n):
        for _ in range(n):
            state.port.position[:] = start + np.array([0.0, way[len(felt)], 0.0])
            assert tick(handle) == OK
            felt.append(state.port.force.copy())

    for k in range(len(way) // period):
        lock.advance(period, make)
        if k:  # the step that ends with the tick before these
            error = hand.error[:3].copy()
            own.append(-GAINS[0] * error - GAINS[1] * (error - before) / H)
            before = error
    return np.array(felt), np.array(own)


@pytest.mark.parametrize("seal", [None, seal_of(RoughSurface(5e-6, 250e-6), 4e5)], ids=["tight", "rough"])
def test_the_tick_that_ends_a_step_feels_what_the_slow_loop_computes(seal):
    """Every contact in the frame: both solve one problem to 1e-10, through seal, grip and release."""
    felt, own = press_and_pull(*held_cup(contacts=64, seal=seal))
    ends = felt[9::10][: len(own)]
    assert np.abs(own).max() > 2.0
    np.testing.assert_allclose(ends, own, atol=1e-6 * np.abs(own).max())


def test_a_cup_beside_takes_no_room_from_the_one_that_is_held():
    """Both shut in air, and the servo has room for one cavity: it is that of the hand's cup."""
    state, handle, low, lock = held_cup(contacts=64, places=(-0.025, 0.025), cavities=1)
    felt, own = press_and_pull(state, handle, low, lock, up=0.0)
    assert low.suction.cavity_cup.tolist() == [0, 1]
    assert np.abs(own).max() > 0.3
    np.testing.assert_allclose(felt[9::10][: len(own)], own, atol=1e-6 * np.abs(own).max())
    low.close()


def test_the_hand_feels_the_cup_stick_and_let_go():
    """In groups of contacts, as a scene has them; at the end only the cup's weight pulls."""
    state, handle, low, lock = held_cup(contacts=12, tolerance=1e-4)
    felt, _ = press_and_pull(state, handle, low, lock, up=60e-3, speed=5e-2)
    pull = -felt[:, 1]
    peak = pull.argmax()
    assert pull[:peak].min() < -0.3 and pull[peak] > 3.0
    # 30 g less those of the nodes that are held with the stem's end, which the hand carries all the same
    np.testing.assert_allclose(pull[-20:].mean(), 0.03 * 9.81, rtol=0.05)
    assert low.suction.cavity_count == 0
