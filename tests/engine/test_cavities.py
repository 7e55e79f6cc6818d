"""The air of a cavity is solved together with joints, contact and friction, and keeps the laws of gases."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.linalg as sl

from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.compliance.modal import MODAL, adopt_newest
from palpo.physics.compliance.modal_state import Modal, make_modal
from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contract.contacts import Contacts, append, make_contacts
from palpo.physics.contract.stages import DONE, NOT_FINITE, make_batch
from palpo.physics.engine.build import Bound, Built, make_engine
from palpo.physics.engine.cavities import Cavities, make_cavities
from palpo.physics.engine.joints import Joint
from palpo.physics.engine.pressurising import pressure_unit
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.exchange.buffer import make_control, publish, writer_slot
from palpo.physics.exchange.constraint_frame import (
    IS_FIELD,
    REDUCED,
    Capacity,
    make_frame,
)
from palpo.physics.exchange.force_log import make_force_log
from palpo.physics.exchange.handle import Handle
from palpo.physics.gas.law import OutsideAir
from tests.engine.bodies import STEP, Listed, listed, skew
from tests.engine.whole_step import engine_step

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
POINTS, MODES = 4, 6  # of each body; its field comes after its points
SLOTS = 2 * (POINTS + 1)
AIR = OutsideAir(largest=np.inf)
VOLUME = 2e-6
BODIES = 0  # of the engine


@dataclass
class Pair:
    """Two floating bodies that wall one cavity, as a slow loop's frame has them, and their dense description.

    Freedoms of each: its modes, then velocity and spin.
    """

    modal: Modal
    mass: np.ndarray  # (2,)
    inertia: np.ndarray  # (2, 3, 3)
    centre: np.ndarray  # (2, 3)
    place: np.ndarray  # (2, POINTS, 3) body axes
    shapes: np.ndarray  # (2, POINTS, 3, MODES)
    wall: np.ndarray  # (2, MODES)
    pull: np.ndarray  # (2, 6)

    @property
    def compliance(self) -> np.ndarray:
        """C of both bodies' freedoms."""
        parts = []
        for b in range(2):
            rigid = [np.eye(3) / self.mass[b], np.linalg.inv(self.inertia[b])]
            parts += [np.eye(MODES), *rigid]
        return STEP**2 * sl.block_diag(*parts)

    def rows(self, b: int, point: int) -> np.ndarray:
        """J (3, freedoms) of a point of body b, or of its field, in whose place only the first is one."""
        out, first = np.zeros((3, 2 * (MODES + 6))), b * (MODES + 6)
        if point == POINTS:
            out[0, first : first + MODES + 6] = np.append(self.wall[b], self.pull[b])
        else:
            own = [self.shapes[b, point], np.eye(3), -skew(self.place[b, point])]
            out[:, first : first + MODES + 6] = np.hstack(own)
        return out

    def energy(self, cavities: Cavities) -> float:
        """Kinetic, elastic, and the free energy of the air in its atmosphere [J]."""
        now, f = self.modal.now, 0
        modal = slice(0, 2 * MODES)
        stiffness = self.modal.frame.stiffness[f, modal, modal]
        z, rate = now.z[modal], now.rate[modal]
        # V^T M V of modes with V^T (M + h^2 K) V = 1
        total = 0.5 * rate @ (rate - STEP**2 * stiffness @ rate) + 0.5 * z @ stiffness @ z
        for b in range(2):
            total += 0.5 * self.mass[b] * now.velocity[b] @ now.velocity[b]
            total += 0.5 * now.spin[b] @ self.inertia[b] @ now.spin[b]
        v, nrt = cavities.volume[0], cavities.amount[0] * AIR.rt
        return float(total + AIR.atmosphere * v - nrt * np.log(v))


def make_pair(near: int = SLOTS, moving: float = 0.0, closed: bool = True, seed: int = 5) -> Pair:
    """Two bodies at rest or on their way; closed: the cavity's walls make a closed surface."""
    rng = np.random.default_rng(seed)
    capacity = Capacity(
        slots=SLOTS, near=max(near, 1), modes=2 * MODES, pairs=1, contacts=8, points=SLOTS, bodies=2,
        all_bodies=2,
    )  # fmt: skip
    frame, control = make_frame(capacity), make_control()
    f = int(writer_slot(control))
    head = frame.head[f]
    head["id"], head["n_slots"], head["n_near"], head["n_modes"] = 1, SLOTS, near, 2 * MODES
    head["motion"], head["base_tick"], head["n_fields"] = REDUCED, 0, 2
    frame.slot_of[f] = frame.slot_point[f] = np.arange(SLOTS)
    mass, inertia = np.array([0.02, 0.03]), np.array([a * np.diag([1.0, 1.5, 2.0]) for a in (1e-6, 2e-6)])
    centre = rng.uniform(-0.01, 0.01, (2, 3))
    place = rng.uniform(-0.01, 0.01, (2, POINTS, 3))
    shapes = 3.0 * rng.standard_normal((2, POINTS, 3, MODES))
    wall = 1e-3 * rng.standard_normal((2, MODES))
    pull = 1e-4 * rng.standard_normal((2, 6)) * np.repeat([1.0, 0.01], 3)
    if closed:
        # sum of all forces, and of all moments about the origin, of a pressure inside
        pull[1, :3] = -pull[0, :3]
        pull[1, 3:] = -pull[0, 3:] - np.cross(centre[0] - centre[1], pull[0, :3])
    frame.floating[f], frame.mass[f], frame.centre[f] = 1, mass, centre
    frame.inertia[f, :, 0], frame.inertia[f, :, 1] = inertia, np.linalg.inv(inertia)
    frame.mode_body[f] = 0, MODES, 2 * MODES
    for b in range(2):
        slots, modes = np.arange(POINTS) + b * (POINTS + 1), slice(b * MODES, (b + 1) * MODES)
        field = POINTS + b * (POINTS + 1)
        frame.slot_body[f, [*slots, field]] = b
        frame.slot_x[f, slots] = place[b]
        frame.slot_modes[f, slots, :, modes] = shapes[b]
        frame.slot_modes[f, field, 0, modes] = wall[b]
        frame.slot_turns[f, field] = IS_FIELD
        frame.slot_x[f, field, 0] = VOLUME if b == 0 else 0.0
        frame.field_slot[f, b], frame.field_pull[f, b] = field, pull[b]
        frame.stiffness[f, modes, modes] = np.diag(rng.uniform(0.0, 0.3, MODES)) / STEP**2
    if moving:
        frame.velocity[f], frame.spin[f] = moving * rng.standard_normal((2, 2, 3)) * [[[1.0]], [[10.0]]]
    pair = Pair(
        make_modal(capacity, frame, control, make_force_log(2, SLOTS), 64), mass, inertia, centre, place,
        shapes, wall, pull,
    )  # fmt: skip
    all_rows = np.vstack([pair.rows(b, p) for b in range(2) for p in range(POINTS + 1)])
    known = 3 * near
    modes = all_rows * np.tile(np.arange(MODES + 6) < MODES, 2)  # rigid motion is no part of it
    frame.compliance[f, :known, :known] = (modes @ pair.compliance @ modes.T)[:known, :known]
    publish(control)
    adopt_newest(Handle(pair.modal), Handle(make_batch(1)), STEP)
    return pair


def touching(pair: Pair, n: int) -> Contacts:
    """n contacts between points of both bodies, deep enough to press."""
    rng, out = np.random.default_rng(8), make_contacts(max(n, 1))
    frames = np.linalg.qr(rng.standard_normal((max(n, 1), 3, 3)))[0]
    for k in range(n):
        append(out, k, BODIES, BODIES)
        out.frame[k], out.gap[k], out.mu[k] = frames[k], -2e-6, 0.5
        out.slots[k, :, 0], out.weights[k, :, 0] = (k, k + POINTS + 1), 1.0
    return out


def engine_of(
    pair: Pair, contacts: int = 0, joint: bool = False, excess: float = 1.2, largest: float = np.inf
) -> tuple[Built, Cavities]:
    """The pair, with contacts and perhaps a joint to the ground; air that is `excess` times that outside."""
    cavities = make_cavities(1, (AIR.atmosphere, largest, AIR.rt))
    cavities.count[0] = 1
    cavities.body[0], cavities.slots[0, :, 0] = BODIES, (POINTS, SLOTS - 1)
    cavities.amount[0] = AIR.amount(excess * AIR.atmosphere, VOLUME)
    ground = FIXED.bind(make_fixed(pair.centre[:1] + pair.place[0, :1]))
    joints = [Joint((BODIES, 1), ([0], [0]))] if joint else []
    detectors = [Bound.bind(listed, Listed(touching(pair, contacts)))] if contacts else []
    built = make_engine(
        [MODAL.bind(pair.modal), ground], [gauss_seidel_unit], max(contacts, 1), STEP, detectors, joints,
        watched=[], cavities=(cavities, pressure_unit),
    )  # fmt: skip
    settings = built.engine.solver.settings
    settings["tolerance"], settings["sweeps"] = 1e-11, 5000
    return built, cavities


def run(built: Built, steps: int = 1) -> int:
    """So many steps, or to the first that fails."""
    handle = Handle(built.engine)
    for _ in range(steps):
        code = CALL(engine_step.address)(handle.address)
        if code != DONE:
            return int(code)
    return DONE


@pytest.mark.parametrize("near", [SLOTS, 3, 0])
@pytest.mark.parametrize("joint", [False, True], ids=["free", "joined"])
@pytest.mark.parametrize("contacts", [0, 3])
def test_pressures_solve_the_dense_problem_with_contacts_and_joints(contacts, joint, near):
    """x = x_free + C J^T (lambda, r, p - P_atm) of all freedoms, with a field of 12 freedoms a body."""
    pair = make_pair(near, moving=2e-3)
    built, cavities = engine_of(pair, contacts, joint)
    assert run(built) == DONE
    e, rows = built.engine, []
    if joint:
        rows.append(pair.rows(0, 0))
    given = touching(pair, contacts)
    rows += [given.frame[k] @ (pair.rows(0, k) - pair.rows(1, k)) for k in range(contacts)]
    rows.append((pair.rows(0, POINTS) + pair.rows(1, POINTS))[:1])
    J = np.vstack(rows)
    W = J @ pair.compliance @ J.T
    n, held = 3 * contacts, 3 * joint
    whole = 3 * (joint + contacts)
    b, x = np.append(e.b[:whole], e.b[whole]), np.append(e.r[:whole], cavities.pressure[0] - AIR.atmosphere)
    u = W @ x + b
    size = np.abs(W) @ np.abs(x) + np.abs(b)
    assert (np.abs(u[:held]) <= 1e-7 * size[:held]).all(), "joints stay"  # regularised by 1e-10
    if n:
        part = slice(held, held + n)
        free = u[part] - W[part, part] @ x[part]
        assert natural_map_residual(W[part, part], free, given.mu, x[part]) <= 1e-7
        assert (x[part][::3] > 0.0).any()
    assert cavities.pressure[0] * u[-1] == pytest.approx(cavities.amount[0] * AIR.rt, rel=1e-9)
    assert cavities.volume[0] == pytest.approx(u[-1], rel=1e-9)
    assert cavities.pressure[0] > AIR.atmosphere


def test_volume_is_where_the_walls_have_gone():
    """What the law takes for V at the step's end is what the bodies have made of it, tick by tick."""
    pair = make_pair()
    built, cavities = engine_of(pair)
    for _ in range(5):
        assert run(built) == DONE
        foreseen = cavities.volume[0]
        assert run(built) == DONE
        start = built.engine.b[0] - sum(
            built.batches[BODIES].d[built.engine.at[0, side], 0] for side in range(2)
        )
        # walls that turn do so on an arc: second order in a step's turn
        turn = STEP * np.abs(pair.modal.now.spin).max()
        assert start == pytest.approx(foreseen, rel=1e-12 + turn**2)


def test_air_keeps_its_amount_and_temperature():
    pair = make_pair(moving=1e-2)
    built, cavities = engine_of(pair)
    amount, seen = cavities.amount[0], []
    for _ in range(50):
        assert run(built) == DONE
        assert cavities.amount[0] == amount
        seen.append(cavities.pressure[0] * cavities.volume[0])
    np.testing.assert_allclose(seen, amount * AIR.rt, rtol=1e-9)


def test_gas_pushes_both_bodies_alike():
    """The walls of a closed cavity: no net force of the air, and no net moment."""
    pair = make_pair()
    built, _ = engine_of(pair)
    now = pair.modal.now
    assert run(built) == DONE
    momentum = pair.mass @ now.velocity
    size = np.abs(pair.mass[:, None] * now.velocity).max()
    assert size > 0.0
    assert np.abs(momentum).max() <= 1e-12 * size
    spin = np.einsum("bij,bj->i", pair.inertia, now.spin)
    turning = spin + sum(
        np.cross(c, m * v) for c, m, v in zip(pair.centre, pair.mass, now.velocity, strict=True)
    )
    assert (
        np.abs(turning).max()
        <= 1e-10 * np.abs(pair.mass[:, None] * np.cross(pair.centre, now.velocity)).max()
    )


def test_no_energy_comes_from_air():
    """Kinetic, elastic and free energy together never grow: backward Euler of a convex potential."""
    pair = make_pair()
    built, cavities = engine_of(pair, excess=1.5)
    cavities.volume[0] = VOLUME
    energies = [pair.energy(cavities)]
    for _ in range(200):
        assert run(built) == DONE
        energies.append(pair.energy(cavities))
    work = AIR.atmosphere * VOLUME
    assert np.diff(energies).max() <= 1e-9 * work
    assert energies[-1] < energies[0]


def test_air_leaves_at_the_largest_pressure_and_never_comes_back():
    pair = make_pair()
    largest = 1.05 * AIR.atmosphere
    built, cavities = engine_of(pair, excess=1.2, largest=largest)
    before = cavities.amount[0]
    for _ in range(30):
        assert run(built) == DONE
        assert cavities.pressure[0] <= largest
        assert cavities.amount[0] <= before
        before = cavities.amount[0]
    assert before < AIR.amount(1.2 * AIR.atmosphere, VOLUME)


def test_air_that_gets_by_a_rim_leaves_by_the_flow_s_own_law():
    """p V + s p^2 = n R T + s P_atm^2 with walls that yield; what is gone is s (p^2 - P_atm^2) / (R T)."""
    built, cavities = engine_of(make_pair(), excess=1.2)
    s = 2e-13
    cavities.seeping[:] = 0.0, s, s, 0.0
    before = cavities.amount[0]
    for _ in range(5):
        assert run(built) == DONE
        p, volume, amount = cavities.pressure[0], cavities.volume[0], cavities.amount[0]
        assert p * volume == pytest.approx(amount * AIR.rt, rel=1e-9)
        # each to 1e-10 of n R T, of which a step loses a thousandth
        assert before - amount == pytest.approx(s * (p**2 - AIR.atmosphere**2) / AIR.rt, rel=1e-5)
        before = amount


def test_given_pressure_is_the_force_of_a_piston():
    """An active cavity: its pressure stands, and a free wall moves by h^2 C of it."""
    pair = make_pair()
    built, cavities = engine_of(pair)
    cavities.active[0], cavities.pressure[0] = True, 0.9 * AIR.atmosphere
    assert run(built) == DONE
    J = (pair.rows(0, POINTS) + pair.rows(1, POINTS))[0]
    moved = float(J @ pair.compliance @ J) * -0.1 * AIR.atmosphere
    assert cavities.pressure[0] == 0.9 * AIR.atmosphere
    assert cavities.volume[0] - VOLUME == pytest.approx(moved, rel=1e-9)


@pytest.mark.parametrize("what", ["amount", "pressure", "volume"])
def test_air_that_is_no_number_pushes_nothing(what):
    pair = make_pair(moving=1e-2)
    built, cavities = engine_of(pair, contacts=3)
    assert run(built) == DONE
    before = [np.copy(a) for a in (pair.modal.now.z, pair.modal.now.velocity, pair.modal.now.force)]
    if what == "volume":
        pair.modal.looked.x[POINTS] = np.nan  # as it was looked up when the step before had ended
    else:
        getattr(cavities, what)[0] = np.nan
    assert run(built) == NOT_FINITE
    for then, now in zip(
        before, (pair.modal.now.z, pair.modal.now.velocity, pair.modal.now.force), strict=True
    ):
        np.testing.assert_array_equal(then, now)


def test_a_scene_without_cavities_takes_the_same_steps_with_room_for_them():
    """Bit for bit: where there are none, the engine solves what it did."""
    states = []
    for room in (False, True):
        pair = make_pair(moving=1e-2)
        contacts = Bound.bind(listed, Listed(touching(pair, 3)))
        more = {"cavities": (make_cavities(2), pressure_unit)} if room else {}
        built = make_engine(
            [MODAL.bind(pair.modal)], [gauss_seidel_unit], 3, STEP, [contacts], watched=[], **more
        )
        assert run(built, 20) == DONE
        states.append(np.concatenate([pair.modal.now.z, pair.modal.now.velocity.ravel()]).tobytes())
    assert states[0] == states[1]
