"""HapCo along tangents: exact until a status changes, near the full solution on the way, passive,
repeatable."""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from palpo.app.devices.protection import limits_of
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import run
from palpo.config.load import load_scene
from palpo.config.words import ConfigError
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.compliance.followed import SMOOTHING, aim, make_followed
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contact.tangents import ForceTangents
from palpo.physics.engine.build import Bound
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import tick, tick_data
from palpo.physics.exchange.buffer import acquire, reader_slot
from palpo.physics.exchange.frames import patience_of
from palpo.physics.exchange.port import OK, WAITING
from palpo.physics.exchange.tangent_frame import make_tangent_frame
from palpo.physics.mesh.generate import hex_block
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.hapco.detection import Detection
from palpo.physics.systems.hapco.servo import BodyPair, Hold, default_settings, make_servo
from palpo.physics.systems.hapco.tangent import SLIDES, tangent_link
from palpo.physics.systems.hapco.tangent_loop import make_tangent
from tests.verification.hapco_bench import STIFF, TISSUE, WEIGHTLESS, side
from tests.verification.test_hapco_multirate import QUICK

TOLERANCE = 1e-10
"""Of the solver."""
RATIOS = (40, 20, 10)
DEPTH, SPEED = 2e-3, 1e-2


@cache
def bodies():
    """A plate of 49 vertices just on a block twice as wide, of the same spacing."""
    plate, tissue = hex_block((0.03, 0.005, 0.03), (6, 1, 6)), hex_block((0.06, 0.015, 0.06), (12, 3, 12))
    plate = plate.with_nodes(plate.nodes + np.array([0.0, 0.0025, 0.0]))
    tissue = tissue.with_nodes(tissue.nodes - np.array([0.0, 0.0075, 0.0]))
    return (
        QuasistaticBody("plate", plate, STIFF, side(plate, 1, 1.0), WEIGHTLESS),
        QuasistaticBody("tissue", tissue, TISSUE, side(tissue, 1, -1.0), WEIGHTLESS),
    )


def setup(mu, vertices=slice(None)):
    """What both servos are made from; `vertices` of the plate's touch."""
    detection = Detection(side(bodies()[0].mesh, 1, -1.0)[vertices], edges=False)
    return *bodies(), detection, Hold(), default_settings(mu, TOLERANCE, 100000)


def straight(*rows):
    """Positions (n, 3) [m] through offsets from the touch, at SPEED, with their marks."""
    parts = []
    for a, b in pairwise(rows):
        way = np.subtract(b, a)
        n = max(1, round(float(np.linalg.norm(way)) / SPEED * 1e3)) if way.any() else 100
        parts.append(np.asarray(a) + np.linspace(0.0, 1.0, n + 1)[1:, None] * way)
    return bodies()[0].centre + np.concatenate(parts), np.cumsum([len(part) for part in parts])


ABOVE, DOWN, ALONG = (0.0, 5e-4, 0.0), (0.0, -DEPTH, 0.0), (3e-3, -DEPTH, 6e-4)
BACK = (1.5e-3, -DEPTH, 0.0)
PATH = (ABOVE, DOWN, DOWN, ALONG, ALONG, BACK, (1.5e-3, 5e-4, 0.0))
"""Down, rest, along, rest, back, off."""


def lead(state, step, point):
    state.port.position[:] = point
    assert step() == OK
    return state.port.force.copy()


@cache
def full(mu, rows=PATH):
    """Force of the full solution at each tick (n, 3)."""
    ticks, state = make_servo(BodyPair(*setup(mu)))
    data = tick_data(ticks)
    return np.array([lead(state, lambda: tick(data), p) for p in straight(*rows)[0]])


def followed(mu, ratio, points, vertices=slice(None)):
    """Force along the tangents (n, 3), and both sides."""
    servo, m, low = make_tangent(BodyPair(*setup(mu, vertices), ratio=ratio))
    data, rows, ahead = tick_data(servo), [], iter(points)
    LockedLoops([low]).advance(
        len(points), lambda n: rows.extend(lead(m.servo, lambda: tick(data), next(ahead)) for _ in range(n))
    )
    return np.array(rows), m, low, servo


@cache
def along_path(mu, ratio):
    return followed(mu, ratio, straight(*PATH)[0])[0]


class Hand(NamedTuple):
    """What a body that follows the hand reads of it."""

    position: np.ndarray
    orientation: np.ndarray


def test_the_velocity_of_a_steady_hand_is_approached_with_the_time_constant_of_the_smoothing():
    """Implicit Euler of tau dv/dt = hand's - v, whose solution is v (1 - (tau / (tau + h))^n)."""
    h, hand = 1e-3, Hand(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    body, steady = make_followed(make_tangent_frame(1, 1, 1), *hand), np.array([0.02, -0.03, 0.01])
    for n in range(40):
        aim(body, hand, n == 0, h)
        expected = steady * (1.0 - (SMOOTHING / (SMOOTHING + h)) ** n)
        np.testing.assert_allclose(body.velocity[:3], expected, rtol=1e-10, atol=1e-15)
        assert not body.velocity[3:].any()
        hand.position[:] += h * steady


def random_problem(seed):
    """Well-posed, of twelve contacts of all statuses: W (36, 36), b, mu, and db/dq of two motions."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((36, 60))
    mu = rng.uniform(0.2, 0.6, 12)
    b = rng.standard_normal((12, 3)) * (1.0, 0.3, 0.3) - (0.5, 0.0, 0.0)
    return a @ a.T / 60.0, b.ravel(), mu, rng.standard_normal((36, 2))


def solved(w, b, mu):
    result = find_solver("anderson").solve(ContactProblem(w, b, mu), Stop(1e-13, 20000))
    assert result.residual < 1e-11
    return result


@pytest.mark.parametrize("seed", range(4))
def test_the_tangent_is_the_limit_of_difference_quotients(seed):
    """Of problems whose statuses stay: what slides keeps its direction only where its slip grows along
    itself, so that sliding contacts are led along their friction, or stopped."""
    w, b, mu, motion = random_problem(seed)
    here = solved(w, b, mu)
    slides = here.status == SLIP
    assert slides.any() and (here.status == STICK).any() and (here.status == OPEN).any()
    tangent = ForceTangents(w, motion, here.r, here.status, mu).following()
    # b moves so that the slip of what slides stays as it was: the direction of its friction stays, too
    held = motion + _slip_held(w, tangent, motion, slides)
    again = ForceTangents(w, held, here.r, here.status, mu).following()
    np.testing.assert_allclose(again, tangent, atol=1e-8 * np.abs(tangent).max())
    step = 1e-6
    for m in range(2):
        there = solved(w, b + step * held[:, m], mu)
        np.testing.assert_array_equal(there.status, here.status)
        np.testing.assert_allclose(
            (there.r - here.r) / step, tangent[:, m], atol=2e-5 * np.abs(tangent).max()
        )


def _slip_held(w, tangent, motion, slides):
    """Change of `motion` in the sliding contacts' tangential rows that leaves their slip as it was."""
    change = np.zeros_like(motion)
    rows = np.repeat(slides, 3)
    rows[::3] = False
    change[rows] = -(w @ tangent + motion)[rows]
    return change


@pytest.mark.parametrize("seed", range(4))
def test_while_all_that_bears_sticks_nothing_of_it_moves(seed):
    """W dr = -db on every row of what bears, and no force elsewhere; whatever slid, and with those beside
    that are named. The ridge is the method's error."""
    w, b, mu, motion = random_problem(seed)
    here = solved(w, b, mu)
    tangents = ForceTangents(w, motion, here.r, here.status, mu)
    assert tangents.slides
    more = here.status == OPEN
    more[np.flatnonzero(more)[::2]] = False
    for bears, beside in ((here.status != OPEN, np.zeros(12, bool)), ((here.status != OPEN) | more, more)):
        elastic, rows = tangents.sticking(beside), np.repeat(bears, 3)
        size = np.abs(motion).max() * np.linalg.cond(w[np.ix_(rows, rows)])
        np.testing.assert_allclose((w @ elastic + motion)[rows], 0.0, atol=1e-9 * size)
        assert not elastic[~rows].any() and elastic[rows].any()


@pytest.mark.parametrize("below", [0.0, 1e-9])
def test_what_sticks_does_not_move_even_where_the_matrix_is_not_definite(below):
    """Roundings may leave a singular W with an eigenvalue below zero, and without Cholesky's factor."""
    rng = np.random.default_rng(5)
    q = np.linalg.qr(rng.standard_normal((36, 36)))[0]
    w = (q * np.r_[-below, np.linspace(1.0, 2.0, 35)]) @ q.T
    motion = w @ rng.standard_normal((36, 3))
    sticks = np.ones(36), np.full(12, STICK), np.full(12, 0.3)
    tangent = ForceTangents(0.5 * (w + w.T), motion, *sticks).following()
    np.testing.assert_allclose(w @ tangent, -motion, atol=1e-6)


def test_a_matrix_that_no_bodies_have_is_refused():
    """With an eigenvalue of -1/2 pressing would pull."""
    w = np.diag(np.r_[-0.5, np.ones(5)])
    with pytest.raises(FloatingPointError, match="not positive definite"):
        ForceTangents(w, np.ones((6, 1)), np.ones(6), np.full(2, STICK), np.full(2, 0.3))


@pytest.mark.parametrize("vertices", [slice(None), slice(24, 25)], ids=["all", "one"])
def test_what_sticks_is_followed_exactly(vertices):
    """With friction that nothing overcomes the forces are linear in the pose: the tangent gives what the slow
    loop then finds there, to the solver's tolerance. Of one contact alone, too."""
    rest = np.tile(bodies()[0].centre - np.array([0.0, DEPTH, 0.0]), (200, 1))
    down = straight(ABOVE, DOWN)[0]
    moved = rest + np.array([2e-4, -1e-4, 1e-4])
    force, m, _, _ = followed(5.0, 20, np.concatenate([down, rest, moved]), vertices)
    bearing = m.servo.port.status["contacts"][0]
    assert bearing == 1 if vertices.stop else bearing > 30
    first = len(down) + len(rest)
    assert np.linalg.norm(force[first] - force[first - 1]) > 0.03 * np.linalg.norm(force[first])
    np.testing.assert_allclose(force[first], force[-1], atol=1e-6 * np.linalg.norm(force[-1]))


def test_without_friction_a_rest_ends_at_the_full_solution():
    """An equilibrium without friction has no history."""
    points, _ = straight(ABOVE, DOWN, DOWN, DOWN, DOWN)
    np.testing.assert_allclose(
        followed(0.0, 20, points)[0][-1], full(0.0, (ABOVE, DOWN, DOWN, DOWN, DOWN))[-1],
        atol=1e-4 * np.linalg.norm(full(0.0, (ABOVE, DOWN, DOWN, DOWN, DOWN))[-1]),
    )  # fmt: skip


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_force_errs_by_less_than_a_per_cent_at_fifty_hertz_and_less_at_more(mu):
    """RMS over press, drag, turning back and lift at 1 cm/s, in shares of the peak; friction's part, too."""
    truth = full(mu)
    peak = np.linalg.norm(truth, axis=1).max()
    errors = [np.linalg.norm(along_path(mu, ratio) - truth, axis=1) / peak for ratio in RATIOS]
    rms = [float(np.sqrt((error**2).mean())) for error in errors]
    assert rms[1] < 0.01 and errors[1].max() < 0.05
    assert rms[2] < 0.75 * rms[1] < 0.75**2 * rms[0]


def test_the_force_begins_with_the_touch_and_not_with_a_frame():
    """Landing between frames: the slow loop has foretold it."""
    points, _ = straight(ABOVE, DOWN)
    truth, force = full(0.3)[: len(points), 1], along_path(0.3, 40)[: len(points), 1]
    felt = np.flatnonzero(force > 0.0)[0]
    assert felt % 40 != 0 and abs(felt - np.flatnonzero(truth > 0.0)[0]) <= 3


def energy(points, force):
    """Work on the hand [J] by the trapezoidal rule: what holding a force for a tick leaks is the servo's,
    of any spring."""
    return np.cumsum(np.einsum("ij,ij->i", 0.5 * (force[:-1] + force[1:]), np.diff(points, axis=0)))


@pytest.mark.parametrize("hertz", [2.0, 7.0])
def test_a_hand_that_turns_back_between_frames_gets_no_more_than_it_gave(hertz):
    """Rubbing to and fro at frames of 25 Hz, which foretell a motion that has turned when they come."""
    t = np.arange(1500) * 1e-3
    rub = np.where(t > 0.5, 1.5e-3 * np.sin(2.0 * np.pi * hertz * (t - 0.5)), 0.0)
    down = np.interp(t, [0.0, 0.3], [5e-4, -DEPTH])
    points = bodies()[0].centre + np.stack([rub, down, np.zeros_like(t)], axis=1)
    assert energy(points, followed(0.3, 40, points)[0]).max() <= 0.0


@pytest.mark.parametrize("way", [(1e-3, 0.0, 0.0), (0.0, 2e-4, 1e-3), (1e-3, 2e-4, -5e-4)])
def test_within_a_frame_no_rubbing_gives_energy(way):
    """A frame made while the plate slides; then to and fro along a line through its pose. Round an ellipse
    that presses as it rubs a cycle may give a little, which the account of the port takes back."""
    points, _ = straight(ABOVE, DOWN, ALONG)
    _, m, _, servo = followed(0.3, 20, points)
    m.servo.frames.in_force["patience"] = 10**6
    data, swing = tick_data(servo), np.sin(2.0 * np.pi * np.arange(1201) / 400.0)
    ways = points[-1] + swing[:, None] * np.array(way)
    work = energy(ways, np.array([lead(m.servo, lambda: tick(data), p) for p in ways]))
    assert m.frame.release[m.following.slot[0]].any()
    assert (np.diff(work[::400]) <= 1e-9 * np.abs(work).max()).all() and work[400] < 0.0


def test_forces_stay_in_their_cones_wherever_the_hand_jumps():
    """Within a frame's life, as no step of the slow loop sees it."""
    points, _ = straight(ABOVE, DOWN, DOWN)
    _, m, _, servo = followed(0.3, 20, points)
    data, rng, seen = tick_data(servo), np.random.default_rng(0), set()
    for jump in rng.uniform(-3e-3, 3e-3, (15, 3)):
        force = lead(m.servo, lambda: tick(data), points[-1] + jump)
        n = int(m.frame.count["found"][m.following.slot[0]])
        r = m.following.force[:n]
        assert (r[:, 0] >= 0.0).all()
        assert (np.hypot(r[:, 1], r[:, 2]) <= 0.3 * r[:, 0] * (1.0 + 1e-12)).all()
        # the picture tells of this tick, and what slides in it
        acquire(m.servo.picture_control)
        picture, slot = m.servo.picture, reader_slot(m.servo.picture_control)
        bears, slides = r[:, 0] > 0.0, np.hypot(r[:, 1], r[:, 2]) >= (1.0 - SLIDES) * 0.3 * r[:, 0]
        status = np.where(bears, np.where(slides, SLIP, STICK), OPEN)
        np.testing.assert_array_equal(picture.contact_status[slot, :n], status)
        seen |= set(status.tolist())
        assert picture.tick[slot] == m.servo.ticks["done"][0]
        assert np.isfinite(force).all() and m.servo.port.status["contacts"][0] == (r[:, 0] > 0.0).sum()
    assert seen == {OPEN, STICK, SLIP}


def test_time_stands_still_while_a_frame_is_overdue():
    """The force stays, for the servo's side to let it fall, and the next frame ends the wait."""
    ratio, points = 4, straight(ABOVE, DOWN)[0]
    servo, m, low = make_tangent(BodyPair(*setup(0.3), ratio=ratio))
    data = tick_data(servo)
    low.step()
    low.publish(0)
    for k in range(patience_of(ratio, ratio, 1e-3)[0]):
        force = lead(m.servo, lambda: tick(data), points[k])
    assert force[1] > 0.0
    for _ in range(3):
        np.testing.assert_array_equal(lead(m.servo, lambda: tick(data), points[-1]), force)
        assert m.servo.port.status["flags"][0] == WAITING
    low.step()
    low.publish(low.known())
    assert (lead(m.servo, lambda: tick(data), points[-1]) != force).any()
    assert m.servo.port.status["age"][0] == 0


def test_only_a_body_that_is_where_the_hand_is_can_be_followed():
    with pytest.raises(InputError, match="where the hand is"):
        make_tangent(BodyPair(*setup(0.3)[:3], Hold(direct=False)))
    with pytest.raises(ConfigError, match=r'hold\.mode.*"tangent" needs a body that is where the hand is'):
        load_scene("hapco-16", ["loops=tangent", "tool.hold.mode=coupling"])


def test_the_compiled_function_takes_this_servo_only():
    _, m, _ = make_tangent(BodyPair(*setup(0.3)))
    with pytest.raises(TypeError, match="TangentServo is not laid out"):
        Bound.bind(tangent_link, m._replace(way=m.way.astype(np.float32)))


def test_the_port_s_controller_holds_down_what_tangents_of_frames_may_give():
    """From one frame to the next they need not be passive; a whole solution in each tick is."""
    along = load_scene("hapco-16", ["loops=tangent"])
    assert limits_of(along).passivity.mode == limits_of(load_scene("wire")).passivity.mode
    assert limits_of(along).passivity.mode != limits_of(load_scene("hapco-16")).passivity.mode
    free = load_scene("hapco-16", ["loops=tangent", "safety.passivity=observe"])
    assert limits_of(free).passivity.mode == limits_of(load_scene("hapco-16")).passivity.mode


@pytest.mark.parametrize("lock_step", [True, False])
def test_a_run_repeats_bit_for_bit(tmp_path, monkeypatch, lock_step):
    """In lock-step, and in threads by the schedule of its frames."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path, changes = tmp_path / "run.h5", (*QUICK, 'loops="tangent"')
    run(Options("hapco-16", changes, "mock", lock_step=lock_step, baseline=False, duration=0.5, record=path))
    result = replay(path).result
    assert result["force_N"]["max_norm"] > 0.1
    assert result["replay"]["equal"] and result["replay"]["ticks"] > 250
