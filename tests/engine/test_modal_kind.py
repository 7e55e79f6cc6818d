"""Bodies behind a slow loop, as the engine sees them, against the full bodies at the servo's step."""

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.compliance.modal import MODAL
from palpo.physics.compliance.modal_state import make_modal
from palpo.physics.contract.stages import (
    ADOPT,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FREE,
    MOVED,
    PLACE,
    POINT,
    PUSH,
    ROTATION,
    Batch,
    Body,
    make_batch,
    make_problem,
)
from palpo.physics.exchange.atomics import CACHE_LINE
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.force_log import add_force, close_entry, lead, open_entry
from palpo.physics.exchange.handle import Handle
from palpo.physics.reduction import tangent_ahead
from palpo.physics.systems.multirate.lock_step import make_low_rates
from tests.contact.test_delassus import dense_body
from tests.verification.small_scenes import BALL_ON_BLOCK, BOX_ON_PLANE, RIGID_BOX, SOFT_BOX, small_scene

BALL_ON_FREE_BOX = BOX_ON_PLANE.replace("[0, 0.5, 0]", "[0.004, 0.0293, 0.003]")
WELD = """
[[attachments]]
kind = "weld"
a = { body = "box", at = [0.004, 0.0205, 0.003] }
b = { body = "ball", at = [0.004, 0.0205, 0.003] }
"""
SCENES = {
    "clamped block": BALL_ON_BLOCK,
    "free soft box": BALL_ON_FREE_BOX.format(box=SOFT_BOX),
    "free rigid box": BALL_ON_FREE_BOX.format(box=RIGID_BOX),
    "rigid box in a weld": BALL_ON_FREE_BOX.format(box=RIGID_BOX) + WELD,
}
# krylov: columns below 3e-6 of their norm are dropped; monolithic: a factorisation's rounding
TOLERANCE = {"krylov": 1e-5, "monolithic": 1e-9}

MODELLED = 12
"""Slots that have columns of their own in the basis; what others yield alone is not in the modes."""
UNIT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_double)


@pytest.fixture(autouse=True)
def _tangent_of_now(monkeypatch):
    """Models are about the present, where the full body is too, and not about where it will be."""
    monkeypatch.setattr(tangent_ahead, "AHEAD", 0.0)


class Loop:
    """One slow-rate body, its slow loop, and the kind that stands for it at the servo."""

    def __init__(self, text: str, kind: str, *overrides: str) -> None:
        self.scene = small_scene(text, "gravity=[0,0,0]", "interface.shifts=2", *overrides)
        self.member, self.h = self.scene.members[0], self.scene.numbers.dt
        _, side, (self.low,) = make_low_rates(kind, self.scene)
        self.high = side.high
        self.batch, self.problem = make_batch(12), make_problem(12)

    def body(self) -> Body:
        high = self.high
        return MODAL.bind(
            make_modal(self.scene.capacity, high.link.frame, high.link.frame_control, high.link.log, 12)
        )

    def send(self) -> None:
        """One frame, of now."""
        self.low.step()
        self.low.publish(self.low.tick)

    def ask(self, body: Body, stage: int) -> None:
        handles = body.handle, Handle(self.batch), Handle(self.problem)
        assert UNIT(MODAL.unit.address)(stage, *(handle.address for handle in handles), self.h) == DONE

    def carried(self) -> NDArray[np.intp]:
        """Points that the newest frame has modes for, as the member numbers them."""
        slot_of = self.high.link.frame.slot_of[int(reader_slot(self.high.link.frame_control))]
        own = slot_of[self.member.first : self.member.first + self.member.count]
        return np.flatnonzero((own >= 0) & (own < MODELLED))


def random_batch(loop: Loop, n: int = 6, seed: int = 1) -> tuple[Batch, NDArray[np.float64]]:
    """n random points of three of the body's own each, and their J (3 n, n_dof) along random axes."""
    generator, batch, member = np.random.default_rng(seed), loop.batch, loop.member
    local = loop.carried()
    turns = member.body.turns(local) == 1
    points, rotations = local[~turns], local[turns]
    batch.count[0] = n
    jacobian = np.zeros((3 * n, member.body.n_dof))
    for k in range(n):
        chosen = generator.choice(points, 3, replace=False)
        batch.what[k], batch.weights[k] = POINT, generator.dirichlet((1.0, 1.0, 1.0))
        if len(rotations) and k % 2:
            chosen[0] = rotations[0]
            batch.what[k], batch.weights[k] = ROTATION, (1.0, 0.0, 0.0)
        batch.slots[k] = chosen + member.first
        batch.block[k] = k // 2  # two points of this body in every block
        batch.axes[k] = np.linalg.qr(generator.standard_normal((3, 3)))[0]
        for p, weight in zip(chosen, batch.weights[k], strict=True):
            jacobian[3 * k : 3 * k + 3] += weight * batch.axes[k] @ member.body.columns(np.array([p])).T
    return batch, jacobian


def rotations(q: NDArray[np.float64]) -> Rotation:
    return Rotation.from_quat(q, scalar_first=True)


def started(name: str, kind: str) -> tuple[Loop, Body]:
    """A loop whose body moves a little, and its kind with the first frame."""
    loop = Loop(SCENES[name], kind)
    body, generator = loop.member.body, np.random.default_rng(0)
    if isinstance(body, RigidBody):
        body.state.v[:], body.state.w[:] = 1e-4 * generator.standard_normal((2, 1, 3))
    else:
        body.v[:] = 1e-4 * generator.standard_normal(body.v.shape)
    loop.send()
    servo = loop.body()
    loop.ask(servo, ADOPT)
    return loop, servo


@pytest.mark.parametrize("kind", ["krylov", "monolithic"])
@pytest.mark.parametrize("name", SCENES)
def test_compliance_is_that_of_the_full_body(name, kind):
    """W = h^2 J A_h^-1 J^T, with both sides of each block on the one body."""
    loop, servo = started(name, kind)
    _, jacobian = random_batch(loop)
    loop.problem.rows[:] = 0, 9
    loop.ask(servo, BEGIN)
    loop.ask(servo, DELASSUS)
    loop.low.close()
    w = loop.problem.w[:81].reshape(9, 9)
    sides = np.kron(np.eye(3), np.hstack([np.eye(3), np.eye(3)])) @ jacobian
    expected = loop.h**2 * sides @ np.linalg.solve(dense_body(loop.member.body, loop.h), sides.T)
    lower = np.kron(np.tril(np.ones((3, 3))), np.ones((3, 3))) == 1
    np.testing.assert_allclose(w[lower], expected[lower], atol=TOLERANCE[kind] * np.abs(expected).max())


@pytest.mark.parametrize("name", SCENES)
def test_a_step_under_forces_is_that_of_the_full_body(name):
    """What a force adds to the free motion is h^2 J A_h^-1 J^T f, and where END leaves points is MOVED."""
    loop, servo = started(name, "krylov")
    batch, jacobian = random_batch(loop)
    for stage in (PLACE, BEGIN, FREE):
        loop.ask(servo, stage)
    x, q, free = batch.x[:6].copy(), batch.q[:6].copy(), batch.d[:6].copy()
    batch.f[:6] = 1e-3 * np.random.default_rng(2).standard_normal((6, 3))
    batch.wants[0]["d"] = 1
    for stage in (CLEAR, PUSH, MOVED):
        loop.ask(servo, stage)
    pushed = batch.d[:6].copy()
    loop.ask(servo, END)
    np.testing.assert_array_equal(batch.d[:6], pushed)
    loop.ask(servo, PLACE)
    moved = batch.x[:6] - x
    loop.low.close()
    world = np.zeros((18, 18))
    for k in range(6):
        world[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = batch.axes[k]
    jacobian = world.T @ jacobian
    force = batch.f[:6].reshape(-1)
    answer = loop.h**2 * jacobian @ np.linalg.solve(dense_body(loop.member.body, loop.h), jacobian.T @ force)
    size = np.abs(answer).max()
    np.testing.assert_allclose((pushed - free).reshape(-1), answer, atol=TOLERANCE["krylov"] * size)
    # turning by an angle a carries points along an arc, off the tangent by a^2: 1e-4 rad
    kept = batch.what[:6] == POINT
    np.testing.assert_allclose(moved[kept], pushed[kept], atol=1e-4 * np.abs(pushed).max())
    assert (not kept.all()) == (name == "rigid box in a weld")
    turned = (rotations(batch.q[:6]) * rotations(q).inv()).as_rotvec()
    np.testing.assert_allclose(turned[~kept], pushed[~kept], atol=1e-4 * np.abs(pushed).max())
    assert np.abs(free).max() > 1e-8


@pytest.mark.parametrize("name", ["free soft box", "free rigid box", "rigid box in a weld"])
def test_compliance_is_of_where_a_floating_body_is_now_and_not_of_where_its_frame_had_it(name):
    """W r is what forces r move, after ticks that have turned and deformed the body since its frame.

    Forces that W has elsewhere than the body turn it unseen, so that what sticks creeps.
    """
    loop, servo = started(name, "krylov")
    batch, _ = random_batch(loop)
    force, r = np.random.default_rng(4).standard_normal((2, 9))
    loop.ask(servo, PLACE)
    before = batch.x[:6].copy()
    for _ in range(30):
        batch.f[:6] = np.where(batch.what[:6, None] == POINT, force[:3], 0.0)
        for stage in (BEGIN, CLEAR, PUSH, END):
            loop.ask(servo, stage)
    loop.ask(servo, PLACE)
    assert np.abs(batch.x[:6] - before).max() > 1e-3  # of some 40 mm
    loop.problem.rows[:] = 0, 9
    batch.wants[0]["d"] = 1
    for stage in (BEGIN, FREE):
        loop.ask(servo, stage)
    free = batch.d[:6].copy()
    loop.ask(servo, DELASSUS)
    for k in range(6):
        batch.f[k] = batch.axes[k].T @ r[3 * (k // 2) : 3 * (k // 2) + 3]
    for stage in (CLEAR, PUSH, MOVED):
        loop.ask(servo, stage)
    loop.low.close()
    moved = np.einsum("kij,kj->ki", batch.axes[:6], batch.d[:6] - free).reshape(3, 2, 3).sum(axis=1).ravel()
    w = np.tril(loop.problem.w[:81].reshape(9, 9))
    np.testing.assert_allclose((w + np.tril(w, -1).T) @ r, moved, rtol=0, atol=1e-9 * np.abs(moved).max())


def logged(loop: Loop, servo: Body | None, led: bool) -> None:
    """Seven ticks of random forces on six points in the log, which one reader of the frame follows."""
    batch, log, generator = loop.batch, loop.high.link.log, np.random.default_rng(3)
    batch.slots[:6, 0] = loop.carried()[:6] + loop.member.first
    batch.weights[:6], batch.what[:6] = (1.0, 0.0, 0.0), POINT
    for tick in range(7):
        batch.f[:6] = 1e-2 * generator.standard_normal((6, 3))
        entry = open_entry(log, tick)
        for k in range(6):
            add_force(log, entry, batch.slots[k, 0], batch.f[k], 1.0)
            if led and k < 2:
                lead(log, entry, batch.slots[k, 0], batch.x[k] + 1e-6 * tick)
        close_entry(log)
        for stage in (BEGIN, CLEAR, PUSH, END) if servo else ():
            loop.ask(servo, stage)


def adopted_late(loop: Loop, body: Body) -> None:
    """The frame that was taken is handed out once more, seven ticks later, to who had none before."""
    control, reader = body.state.control, 2 * CACHE_LINE
    control[0], control[reader] = 4 | control[reader], control[0] & 3
    loop.batch.now[0], loop.batch.count[0], loop.batch.frame[0]["id"] = 7, 0, 0
    loop.ask(body, ADOPT)
    assert loop.batch.frame[0]["replayed"] == 7


STATE = ("z", "rate", "centre", "q", "velocity", "spin")


def test_a_late_frame_is_brought_to_the_present_bit_for_bit():
    """ADOPT under logged forces leaves the state of whoever had the frame from the start."""
    loop, servo = started("free soft box", "krylov")
    random_batch(loop)
    logged(loop, servo, led=False)
    late = loop.body()
    adopted_late(loop, late)
    loop.low.close()
    for name in STATE:
        np.testing.assert_array_equal(getattr(late.state.now, name), getattr(servo.state.now, name))


def test_what_joints_held_by_the_frame_before_does_not_matter_to_the_next():
    """Its slots may be others: who adopted frames before comes to where one comes who adopts its first."""
    loop, servo = started("free soft box", "krylov")
    random_batch(loop)
    loop.ask(servo, PLACE)
    logged(loop, None, led=True)
    first, later = loop.body(), loop.body()
    later.state.led.count[0] = 0  # the frame before had no joint
    adopted_late(loop, first)
    adopted_late(loop, later)
    loop.low.close()
    assert first.state.led.count[0] == later.state.led.count[0] == 2
    for name in STATE:
        np.testing.assert_array_equal(getattr(later.state.now, name), getattr(first.state.now, name))


@pytest.mark.parametrize("kind", ["krylov", "paper", "extrapolated"])
def test_points_are_where_they_were_and_how_far_they_jump_as_a_frame_is_adopted(kind):
    """The next contacts know of a jump before it is taken for a motion; a reduced model joins on instead."""
    loop, servo = started("clamped block", kind)
    batch, _ = random_batch(loop)
    loop.ask(servo, PLACE)
    before = batch.x[:6].copy()
    loop.send()
    loop.ask(servo, ADOPT)
    jump = batch.d[:6].copy()
    loop.ask(servo, PLACE)
    loop.low.close()
    assert batch.frame[0]["fresh"] == 1
    np.testing.assert_allclose(batch.x[:6], before + jump, atol=1e-15)
    assert (np.abs(jump).max() > 1e-9) == (kind != "krylov")
