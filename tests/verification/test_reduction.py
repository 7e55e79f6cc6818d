"""The reduced models of soft bodies: their basis, the full body that follows them, what is kept of both."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg as sl
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft_points import rigid_motions
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.constraint_frame import MODE_FORCE, MODE_RATE, ConstraintFrame
from palpo.physics.fem.assembly import multiply, turn_blocks
from palpo.physics.reduction.past import Past
from palpo.physics.reduction.rational_krylov import krylov_modes, slow_modes
from palpo.physics.reduction.reduced_frame import Page
from palpo.physics.reduction.soft_reduction import SoftReduction
from palpo.physics.reduction.tangent_ahead import AHEAD
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import (
    BALL_ON_BLOCK,
    BOX_ON_PLANE,
    SOFT_BOX,
    lock_step,
    proceed,
    resting,
    straight,
)

LIMP = ("bodies.box.material.youngs_modulus=2e3", "bodies.box.material.beta=0")
TURN = Rotation.from_rotvec([0.9, -0.7, 1.6]).as_matrix()


def free_box(*overrides: str, ball: str = "[0.004, 0.0295, 0.003]", kind: str = "krylov") -> LockStep:
    """A soft box in empty space and the ball over it."""
    text = BOX_ON_PLANE.format(box=SOFT_BOX).replace("[0, 0.5, 0]", ball)
    return lock_step(text, "gravity=[0,0,0]", "contact.ignore=[['box', 'ground']]", *overrides, kind=kind)


# ---- products by blocks


@pytest.mark.parametrize("columns", [1, 32, 45])
def test_the_product_by_blocks_is_the_matrix_s_own_and_turns_with_its_axes(columns):
    run = lock_step(BALL_ON_BLOCK)
    body = run.scene.members[0].body
    run.close()
    rng = np.random.default_rng(0)
    body.x[body.free] += 1e-3 * rng.standard_normal((body.free.size, 3))
    blocks, matrix = body.tangent_blocks(), body.tangent().toarray()
    b = rng.standard_normal((body.n_dof, columns))
    out = np.empty_like(b)
    multiply(body.neighbours, blocks, b, out, 0, b.shape[1])
    # rounding of some 60 products
    np.testing.assert_allclose(out, matrix @ b, atol=1e-13 * np.abs(matrix).max() * 60)
    turn_blocks(blocks, TURN)
    multiply(body.neighbours, blocks, b, out, 0, b.shape[1])
    every = np.kron(np.eye(body.free.size), TURN)
    np.testing.assert_allclose(out, every.T @ matrix @ every @ b, atol=1e-13 * np.abs(matrix).max() * 60)


# ---- modes


@pytest.mark.parametrize("negative", [0, 2])
def test_modes_are_orthonormal_in_the_system_and_what_of_the_tangent_is_negative_is_left_out(negative):
    rng = np.random.default_rng(1)
    n, k, held, pull = 40, 12, 1.01, 1e-2
    mass = np.diag(rng.uniform(1.0, 2.0, n))
    spectrum = np.geomspace(1.0, 1e4, n)
    spectrum[:negative] = -500.0
    shapes = np.linalg.qr(rng.standard_normal((n, n)))[0]
    stiffness = shapes @ np.diag(spectrum) @ shapes.T
    basis = np.hstack([shapes[:, :2], rng.standard_normal((n, k - 2))])
    basis = np.hstack([basis, basis @ rng.standard_normal((k, 3))])  # three that depend on the others
    modes = krylov_modes(basis.T @ mass @ basis, basis.T @ stiffness @ basis, held, pull, 100)
    v = basis @ modes.transform
    assert v.shape[1] == k
    system = held * (v.T @ mass @ v) + pull * modes.stiffness
    np.testing.assert_allclose(system, np.eye(k), atol=1e-8)
    assert np.linalg.eigvalsh(modes.stiffness).min() > -1e-8 * np.abs(modes.stiffness).max()
    if not negative:
        np.testing.assert_allclose(v.T @ stiffness @ v, modes.stiffness, atol=1e-8 / pull)
    # a column's coordinates give the column back
    np.testing.assert_allclose(v @ modes.coordinates(5), basis[:, 5], atol=1e-8)


# ---- the full body


@pytest.mark.parametrize("low_hz", [50, 10])
def test_the_full_body_is_where_the_servo_s_model_has_it_however_late(low_hz):
    """x = c + R (X + V z) at every slot, but for rounding, where nothing jolts it any more."""
    run = free_box(*LIMP, f"rates.low_hz={low_hz}")
    start = run.high.port.position.copy()
    proceed(run, straight(start, start - [0.004, 0.02, 0.0], 200))
    proceed(run, resting(run.high.port.position, 200))
    member, frame, model = run.scene.members[0], run.high.link.frame, run.high.link.interface
    f = int(reader_slot(run.high.link.frame_control))
    run.low.publish(run.tick)
    n, count = int(frame.mode_body[f, 1]), int(frame.head["n_slots"][f])
    modal = frame.slot_modes[f, :count, :, :n] @ model.z[:n]
    places = model.centre[0] + (frame.slot_x[f, :count] + modal) @ model.axes[0].T
    points = frame.slot_point[f, :count] - member.first
    moved = np.abs(modal).max()
    run.close()
    np.testing.assert_allclose(member.body.positions()[points], places, atol=1e-12)
    assert moved > 1e-8


def test_what_lands_is_jolted_and_what_rests_hangs_or_is_squeezed_is_not():
    weight, none = np.array([0.0, -2.0, 0.0]), np.zeros((2, 3))
    rests = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    squeezed = rests + np.array([[0.0, -9.0, 0.0], [0.0, 9.0, 0.0]])
    loads = (none, rests, squeezed, 1.2 * rests, 2.0 * rests, 0.5 * rests)
    ticks, span, points = 20, 0.02, np.arange(2)
    jolts = [Past(ticks * load, points, 0.0, span).jolts(weight, 1e-3) for load in loads]
    assert jolts == [False, False, False, False, True, True]


def test_a_body_that_nobody_touches_rings_on_as_if_it_were_integrated():
    """Three of its slow modes at once, whose phases part, so that no single shape can carry them."""
    ringing = {}
    for kind in ("krylov", "monolithic"):
        run = free_box(*LIMP, "rates.low_hz=20", ball="[0, 5, 0]", kind=kind)
        member = run.scene.members[0]
        shapes = slow_modes(member.body, 0.02)[:, [0, 2, 4]]
        # displacements of a tenth of a micrometre on cells of centimetres: linear to 1e-5
        member.body.v = 1e-5 * np.sign(shapes[0]) @ shapes.T / np.abs(shapes).max()
        rest = member.body.x.copy()
        proceed(run, resting(run.high.port.position, 199))
        run.low.follow(199)
        ringing[kind] = member.body.x - rest
        run.close()
    amplitude = np.abs(ringing["monolithic"]).max()
    assert amplitude > 1e-9
    np.testing.assert_allclose(ringing["krylov"], ringing["monolithic"], atol=5e-3 * amplitude)


def test_the_force_of_a_frame_s_model_errs_by_the_third_power_of_the_way_where_the_body_goes():
    """At half the speed it misses an eighth, and no quarter, after twice the time that it is ahead."""
    missed = []
    for speed in (0.1, 0.05):
        run = free_box(*LIMP)
        run.close()
        reduction, frame, member = run.low.reductions[0], run.high.link.frame, run.scene.members[0]
        shape = slow_modes(member.body, 0.02)[:, 1]
        member.body.v = speed * shape / np.abs(shape).max()
        start, rate = member.body.x.copy(), member.body.v.copy()
        frame.head[0], frame.mode_body[0] = 0, 0
        with ThreadPoolExecutor(2) as pool:
            reduction.prepare(np.arange(4), pool)
            reduction.write(Page(frame, 0, 0, np.arange(4), np.arange(4), 4, 1e-3, 1000), pool)
        modes, later = slice(0, int(frame.head["n_modes"][0])), 2.0 * AHEAD * run.scene.numbers.low_dt
        force, velocity = frame.modes[0, MODE_FORCE, modes], frame.modes[0, MODE_RATE, modes]
        drawn = reduction.drawn()
        v = drawn.basis @ drawn.modes.transform
        member.body.x[member.body.free] = start[member.body.free] + later * rate.reshape(-1, 3)
        exact = v.T @ member.body.undamped_force()
        found = force - frame.stiffness[0, modes, modes] @ (later * velocity)
        missed.append(np.linalg.norm(found - exact))
    assert missed[1] < missed[0] / 6.5


# ---- what is kept from frame to frame


def compliance(run: LockStep, reduction: SoftReduction, nodes: np.ndarray) -> np.ndarray:
    """W_soft^dt of those nodes by a model of the present state, world axes."""
    frame, h = run.high.link.frame, run.scene.numbers.dt
    frame.head[0], frame.mode_body[0] = 0, 0
    k = len(nodes)
    with ThreadPoolExecutor(1) as pool:
        reduction.write(Page(frame, 0, 0, np.arange(k), nodes, k, h, run.scene.capacity.modes), pool)
        reduction.renew(pool)
    return with_rigid_motion(frame, k, h)


def with_rigid_motion(frame: ConstraintFrame, k: int, h: float) -> np.ndarray:
    """W of the first k slots of a frame of one floating body, world axes: its modes, and Newton and Euler."""
    axes = Rotation.from_quat(frame.orientation[0, 0], scalar_first=True).as_matrix()
    rows = rigid_motions(frame.slot_x[0, :k])
    moved = sl.block_diag(np.eye(3) / frame.mass[0, 0], frame.inertia[0, 0, 1]) * h * h
    moved /= 1.0 + h * frame.damping[0, 0, 0]
    every = np.kron(np.eye(k), axes)
    return every @ (frame.compliance[0, : 3 * k, : 3 * k] + rows @ moved @ rows.T) @ every.T


def dense_compliance(run: LockStep, nodes: np.ndarray) -> np.ndarray:
    """h^2 J A_h^-1 J^T."""
    body, h = run.scene.members[0].body, run.scene.numbers.dt
    alpha, beta = run.scene.members[0].body.damping
    body.linearise()
    system = ((1.0 + h * alpha) * body.M + h * (beta + h) * body.K).toarray()
    load = run.scene.members[0].body.columns(nodes)
    return h * h * load.T @ np.linalg.solve(system, load)


def test_columns_of_contacts_that_stay_serve_a_body_that_has_turned():
    run = free_box("interface.shifts=2")
    run.close()
    body, reduction = run.scene.members[0].body, run.low.reductions[0]
    first, later = np.array([0, 5, 7]), np.array([5, 7, 9, 11])
    with ThreadPoolExecutor(2) as pool:
        reduction.prepare(first, pool)
        before = dense_compliance(run, first)
        np.testing.assert_allclose(
            compliance(run, reduction, first), before, atol=1e-6 * np.abs(before).max()
        )
        factors = [factor.panels.copy() for factor in reduction.factors]
        body.x[:] = (body.x - body.x.mean(axis=0)) @ TURN.T
        compliance(run, reduction, first)
        reduction.prepare(later, pool)
    for factor, panels in zip(reduction.factors, factors, strict=True):
        np.testing.assert_array_equal(factor.panels, panels)
    after = dense_compliance(run, later)
    # columns below 3e-6 of their norm are dropped
    np.testing.assert_allclose(compliance(run, reduction, later), after, atol=1e-6 * np.abs(after).max())


def test_the_basis_is_renewed_when_the_body_has_bent():
    run = free_box()
    run.close()
    body, reduction = run.scene.members[0].body, run.low.reductions[0]
    nodes = np.array([0, 5, 7])
    with ThreadPoolExecutor(2) as pool:
        reduction.prepare(nodes, pool)
        compliance(run, reduction, nodes)
        stale = reduction.factors[0].panels.copy()
        reduction.prepare(nodes, pool)
        np.testing.assert_array_equal(reduction.factors[0].panels, stale)
        angle = 20.0 * body.x[:, 0]  # half a radian at either end
        x = body.x.copy()
        body.x[:, 1] = x[:, 1] * np.cos(angle) - x[:, 2] * np.sin(angle)
        body.x[:, 2] = x[:, 1] * np.sin(angle) + x[:, 2] * np.cos(angle)
        compliance(run, reduction, nodes)
        reduction.prepare(nodes, pool)
    assert np.abs(reduction.factors[0].panels - stale).max() > 0.0


def test_a_frame_with_less_room_than_columns_keeps_those_of_the_likeliest_contacts():
    run = free_box("interface.shifts=2")
    run.close()
    reduction, frame = run.low.reductions[0], run.high.link.frame
    nodes, h = np.array([7, 0, 5, 11, 2, 9]), run.scene.numbers.dt
    # two points of three columns at two steps
    most = reduction.need(0) + 12

    def kept(room: int) -> np.ndarray:
        frame.head[0], frame.mode_body[0] = 0, 0
        reduction.write(Page(frame, 0, 0, np.arange(6), nodes, 6, h, room), pool)
        assert frame.head["n_modes"][0] <= room
        return with_rigid_motion(frame, 6, h)

    with ThreadPoolExecutor(2) as pool:
        reduction.prepare(nodes, pool)
        exact = dense_compliance(run, nodes)
        whole, less, again = kept(1000), kept(most), kept(1000)
    two = slice(0, 6)
    scale = np.abs(exact).max()
    np.testing.assert_allclose(less[two, two], exact[two, two], atol=1e-6 * scale)
    assert np.abs(less - exact).max() > 1e-3 * scale
    np.testing.assert_allclose(again, whole, atol=1e-9 * scale)
