"""Bodies of each kind to touch each other, each with a dense answer of how it yields, and detectors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from palpo.physics.bodies.admittance import make_plug
from palpo.physics.bodies.chain import chain_assemble
from palpo.physics.bodies.chain_models import beam_model, chain_work, rest_state, rigid_model
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.compliance.chain import CHAIN, make_chain
from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.compliance.hold import apply_hold, make_hold
from palpo.physics.compliance.midpoint_held import MIDPOINT_HELD, make_midpoint_held
from palpo.physics.compliance.midpoint_modal import MIDPOINT_MODAL, make_midpoint_modal
from palpo.physics.compliance.modal import MODAL, adopt_newest
from palpo.physics.compliance.modal_state import make_modal
from palpo.physics.compliance.surface import SURFACE
from palpo.physics.compliance.surface_state import COUPLED, STANDS, make_surface
from palpo.physics.contract.contacts import FIND, Contacts, append, detector
from palpo.physics.contract.stages import DONE, ROTATION, Batch, Body, make_batch
from palpo.physics.engine.build import Bound, Built, make_engine
from palpo.physics.exchange.buffer import make_control, publish, writer_slot
from palpo.physics.exchange.constraint_frame import (
    MODE_FORCE,
    MODE_RATE,
    MODE_Z,
    REDUCED,
    Capacity,
    make_frame,
)
from palpo.physics.exchange.force_log import make_force_log
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.handle import Handle
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.reduction.joining import cut, join

STEP = 1e-3
ROOM = 64
SOFT = Material(2e4, 0.4, 1000.0)
DAMPED = Material(164.76e6, 0.35, 1050.0, 1.0, 1e-5)
BLOCK = block((0.02, 0.004, 0.008), (4, 1, 2))
CLAMPED = np.flatnonzero(BLOCK.nodes[:, 0] < -0.00999)
CONTACT = np.flatnonzero(BLOCK.nodes[:, 0] > 0.004)


def turned(rng: np.random.Generator) -> np.ndarray:
    """A unit quaternion."""
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)


def matrix(q: np.ndarray) -> np.ndarray:
    """Its rotation matrix."""
    out = np.empty((3, 3))
    quat_to_matrix(q, out)
    return out


def skew(a: np.ndarray) -> np.ndarray:
    """[a]x."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


class Yielding(NamedTuple):
    """A body, and how the freedoms y of an independent description yield: C (k, k), and J of its points."""

    body: Body
    compliance: np.ndarray

    def rows(self, batch: Batch, k: int) -> np.ndarray:
        """J (3, freedoms) of point k of a batch, in world axes."""
        s, name = self.body.state, self.body.kind.name
        out = np.zeros((3, len(self.compliance)))
        for weight, a in zip(batch.weights[k], batch.slots[k], strict=True):
            if name == "chain":
                i = 6 * s.frame[a]
                arm = matrix(s.now.q[s.frame[a]]) @ s.lever[a] + batch.arm[k]
                if batch.what[k] == ROTATION:
                    out[:, i + 3 : i + 6] += weight * np.eye(3)
                else:
                    out[:, i : i + 3] += weight * np.eye(3)
                    out[:, i + 3 : i + 6] -= weight * skew(arm)
            elif name in ("midpoint modal", "modal"):
                out[:, 3 * a : 3 * a + 3] += weight * np.eye(3)
            elif name == "midpoint held":
                turning = batch.what[k] == ROTATION
                out[:, 3:] += weight * (np.eye(3) if turning else -skew(batch.arm[k]))
                out[:, :3] += 0.0 if turning else weight * np.eye(3)
            elif name == "surface":
                out[:, 3 * a : 3 * a + 3] += weight * np.eye(3)
                if s.frame.grip[0] == COUPLED:
                    g = s.softness[0] * s.frame.now.rotation.T @ s.gravity
                    local = s.boundary.rest[a] + np.einsum("i,ij->j", g, s.boundary.sag[:, a])
                    out[:, -6:-3] += weight * np.eye(3)
                    out[:, -3:] -= weight * skew(s.frame.now.rotation @ local)
        return out


def fixed(rng: np.random.Generator) -> Yielding:
    """Five points of the ground."""
    return Yielding(FIXED.bind(make_fixed(rng.uniform(-0.01, 0.01, (5, 3)))), np.zeros((1, 1)))


def _chain(model: Any, state: Any, frame: Sequence[int], lever: np.ndarray, hold: Any = None) -> Yielding:
    s = make_chain(model, state, frame, lever, ROOM, hold)
    work = chain_work(len(state.x))
    chain_assemble(model, state, STEP, work)
    if hold is not None:
        apply_hold(hold, state, STEP, work)
    n = len(state.x)
    a = np.zeros((6 * n, 6 * n))
    for i in range(n):
        a[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = work.D[i]
    for i in range(n - 1):
        a[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12] = work.U[i]
        a[6 * i + 6 : 6 * i + 12, 6 * i : 6 * i + 6] = work.U[i].T
    return Yielding(CHAIN.bind(s), STEP**2 * np.linalg.inv(a))


def rigid(rng: np.random.Generator) -> Yielding:
    """A tumbling free body, its mass matrix written down."""
    root = rng.standard_normal((3, 3))
    inertia = 1e-6 * (root @ root.T + np.eye(3))
    model, q = rigid_model(0.02, inertia), turned(rng)
    state = rest_state(rng.uniform(-0.01, 0.01, (1, 3)), q[None])
    state.v[:], state.w[:] = rng.standard_normal((1, 3)), rng.standard_normal((1, 3))
    built = _chain(model, state, [0] * 5, rng.uniform(-0.01, 0.01, (5, 3)))
    turn = matrix(q)
    a = np.zeros((6, 6))
    a[:3, :3], a[3:, 3:] = 0.02 * np.eye(3), turn @ inertia @ turn.T
    return built._replace(compliance=STEP**2 * np.linalg.inv(a))


def coupled(rng: np.random.Generator) -> Yielding:
    """A rigid body that a hand holds beside its centre, through a coupling."""
    model = rigid_model(0.02, 1e-6 * np.eye(3))
    state = rest_state(rng.uniform(-0.01, 0.01, (1, 3)), turned(rng)[None])
    hold = make_hold(0, False, True, Gains(800.0, 1.0, 0.5, 1e-3), rng.uniform(-0.01, 0.01, 3))
    return _chain(model, state, [0] * 5, rng.uniform(-0.01, 0.01, (5, 3)), hold)


def beam(rng: np.random.Generator) -> Yielding:
    """Five frames of a wire, free."""
    nodes = np.linspace([0.0, 0.0, 0.0], [0.1, 0.0, 0.0], 5)
    model, state = beam_model(nodes, 2e-3, Material(1e8, 0.3, 2000.0))
    return _chain(model, state, [0, 1, 2, 3, 4, 2], rng.uniform(-2e-3, 2e-3, (6, 3)))


def surface(rng: np.random.Generator, grip: int = STANDS) -> Yielding:
    """A soft block of another modulus, turned, on its clamped base."""
    block = hex_block((0.03, 0.02, 0.02), (3, 2, 2))
    base = np.flatnonzero(block.nodes[:, 1] <= block.nodes[:, 1].min() + 1e-9)
    body = QuasistaticBody("block", block, SOFT, base)
    body.place(rng.uniform(-0.01, 0.01, 3), turned(rng))
    s = make_surface(body, ROOM, grip)
    s.softness[0] = 0.7
    n = len(s.u)
    c = np.zeros((3 * n + 6, 3 * n + 6))
    c[: 3 * n, : 3 * n] = 0.7 * body.compliance(body.surface_nodes)
    if grip == COUPLED:
        k, d, kt, dt = s.frame.gains[0]
        c[3 * n :, 3 * n :] = np.diag(np.repeat([1.0 / (k + d / STEP), 1.0 / (kt + dt / STEP)], 3))
    return Yielding(SURFACE.bind(s), c)


def held_surface(rng: np.random.Generator) -> Yielding:
    """The same in a hand, through a coupling."""
    return surface(rng, COUPLED)


def segments(rng: np.random.Generator) -> Yielding:
    """A clamped block under the passive midpoint rule, whole, on its way."""
    (part,) = cut(BLOCK, DAMPED, CLAMPED, np.zeros(len(BLOCK.tets), np.int64))
    s = make_midpoint_modal(join(BLOCK, [part], CONTACT, STEP))
    s.state.x[:], s.state.v[:] = 1e-4 * rng.standard_normal((2, part.n_dof)) * [[1.0], [100.0]]
    M, K = part.M.toarray(), part.K.toarray()
    C = 2.0 * STEP * np.linalg.inv((2.0 / STEP + DAMPED.alpha) * M + (DAMPED.beta + 0.5 * STEP) * K)
    seen = part.dofs_of(CONTACT)
    return Yielding(MIDPOINT_MODAL.bind(s), C[np.ix_(seen, seen)])


def admitted(rng: np.random.Generator) -> Yielding:
    """A rigid body on an admittance hold under the same rule, turning and off its target."""
    gains = 0.1 + rng.random((3, 6))
    gains[2, 3:] = 5.0
    model, motion = make_plug(*gains, STEP, rng.uniform(-0.01, 0.01, 3), turned(rng))
    motion.velocity[:], motion.error[:] = rng.standard_normal(6), 0.01 * rng.standard_normal(6)
    M, D, K = (np.diag(a) for a in gains)
    C = 2.0 * STEP * np.linalg.inv(2.0 / STEP * M + D + 0.5 * STEP * K)
    return Yielding(MIDPOINT_HELD.bind(make_midpoint_held(model, motion)), C)


def reduced(rng: np.random.Generator) -> Yielding:
    """Modes from a slow loop's frame, on their way: the compliance of three of five points is known."""
    p, near, m = 5, 3, 15
    capacity = Capacity(slots=p, near=near, modes=m, pairs=1, contacts=1, points=p, bodies=1, all_bodies=1)
    frame, control = make_frame(capacity), make_control()
    f = int(writer_slot(control))
    head = frame.head[f]
    head["id"], head["n_slots"], head["n_near"], head["n_modes"], head["motion"] = 1, p, near, m, REDUCED
    frame.slot_of[f] = frame.slot_point[f] = np.arange(p)
    frame.slot_x[f] = rng.uniform(-0.01, 0.01, (p, 3))
    modes = 3.0 * rng.standard_normal((3 * p, m))
    frame.slot_modes[f] = modes.reshape(p, 3, m)
    frame.modes[f, [MODE_FORCE, MODE_Z, MODE_RATE]] = rng.standard_normal((3, m)) * [[1.0], [1e-5], [1e-2]]
    # V^T A_h V = 1 bounds the stiffness by 1 / h^2
    frame.stiffness[f] = np.diag(rng.uniform(0.0, 0.5, m)) / STEP**2
    frame.mode_body[f] = 0, m
    C = STEP**2 * modes @ modes.T
    frame.compliance[f] = C[: 3 * near, : 3 * near]
    publish(control)
    body = MODAL.bind(make_modal(capacity, frame, control, make_force_log(2, 1), ROOM))
    adopt_newest(body.handle, Handle(make_batch(1)), STEP)
    return Yielding(body, C)


KINDS = {
    "fixed": fixed, "rigid": rigid, "coupled": coupled, "beam": beam, "surface": surface,
    "held surface": held_surface, "segments": segments, "admitted": admitted, "reduced": reduced,
}  # fmt: skip
MIDPOINT = MIDPOINT_MODAL, MIDPOINT_HELD
"""Kinds whose rows see T v+ and that move by T vh (EQUATIONS.md, 3, equation 28)."""


def random_batch(rng: np.random.Generator, body: Body, n: int, **of: Any) -> Batch:
    """n points of a body, each the mean of up to three, with arms where the kind has a use for them."""
    batch = make_batch(n)
    batch.count[0] = n
    points = body.kind.points(body.state)
    batch.slots[:] = rng.integers(0, points, (n, 3))
    batch.weights[:] = rng.dirichlet((1, 1, 1), n)
    batch.weights[0] = 1.0, 0.0, 0.0
    batch.block[:] = np.arange(n)
    batch.axes[:] = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]
    batch.f[:] = rng.standard_normal((n, 3))
    if body.kind.name in ("chain", "midpoint held"):
        batch.arm[:] = 1e-3 * rng.standard_normal((n, 3))
    return batch


class Listed(NamedTuple):
    """A detector's state: the contacts to be given in each step."""

    given: Contacts


@kernel
def _copy_contact(given, k, contacts):
    c = append(contacts, given.identity[k], given.body[k, 0], given.body[k, 1])
    if c < 0:
        return
    contacts.gap[c], contacts.mu[c], contacts.restitution[c] = given.gap[k], given.mu[k], given.restitution[k]
    for i in range(3):
        for j in range(3):
            contacts.frame[c, i, j] = given.frame[k, i, j]
        for side in range(2):
            contacts.slots[c, side, i] = given.slots[k, side, i]
            contacts.weights[c, side, i] = given.weights[k, side, i]
            contacts.arm[c, side, i] = given.arm[k, side, i]


def _one_contact() -> Contacts:
    from palpo.physics.contract.contacts import make_contacts

    return make_contacts(1)


@detector(Listed(_one_contact()))
def listed(stage, s, contacts, h):
    """The same contacts in each step."""
    if stage == FIND:
        for k in range(s.given.count[0].found):
            _copy_contact(s.given, k, contacts)
    return DONE


class Plane(NamedTuple):
    """A detector's state: all points of one body over a plane of another, whose point 0 is on it."""

    body: np.ndarray  # (2,) int64
    x: np.ndarray  # (s, 3)
    ground: np.ndarray  # (g, 3)
    frame: np.ndarray  # (3, 3)
    mu: np.ndarray  # (2,) friction, restitution


@detector(Plane(np.zeros(2, np.int64), np.zeros((1, 3)), np.zeros((1, 3)), np.eye(3), np.zeros(2)))
def over_plane(stage, s, contacts, h):
    """Every point is a contact, with the point of the ground below it."""
    if stage == FIND:
        for a in range(s.x.shape[0]):
            c = append(contacts, a, s.body[0], s.body[1])
            if c < 0:
                continue
            contacts.mu[c], contacts.restitution[c] = s.mu[0], s.mu[1]
            gap = 0.0
            for i in range(3):
                gap += s.frame[0, i] * (s.x[a, i] - s.ground[0, i])
                for j in range(3):
                    contacts.frame[c, i, j] = s.frame[i, j]
                for side in range(2):
                    contacts.slots[c, side, i] = a if side == 0 and i == 0 else 0
                    contacts.weights[c, side, i] = 1.0 if i == 0 else 0.0
            contacts.gap[c] = gap
    return DONE


def on_plane(
    body: Body, mu: float, normal: Sequence[float], restitution: float = 0.0, hand: Any = None, **more: Any
) -> Built:
    """An engine of a body over fixed ground through the origin."""
    from palpo.physics.engine.relaxing import anderson_unit

    n = np.array(normal, float) / np.linalg.norm(normal)
    t = np.cross(n, [0.0, 0.0, 1.0])
    t /= np.linalg.norm(t)
    ground = FIXED.bind(make_fixed(np.zeros((1, 3))))
    plane = Plane(
        np.array([0, 1]), body.whole.x, ground.whole.x, np.array([n, t, np.cross(n, t)]),
        np.array([mu, restitution]),
    )  # fmt: skip
    hands = {} if hand is None else {0: hand}
    count = body.kind.points(body.state)
    built = make_engine(
        [body, ground], [anderson_unit], count, STEP, [Bound.bind(over_plane, plane)], hands=hands, **more
    )
    built.engine.solver.settings["tolerance"] = 1e-10
    return built
