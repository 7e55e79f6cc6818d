"""What frames carry for the picture: strain when it is asked for, and the time of their publication."""

import time

import numpy as np
import pytest

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.systems.multirate.build import build_scene
from palpo.app.systems.multirate.picture import Visual
from palpo.app.visual.colours import COLOURED, SMALLEST_STRAIN, colour_range
from palpo.config.load import load_scene
from palpo.haptics.control import tick_count
from palpo.haptics.drivers import servo_run
from palpo.physics.engine.servo import run_ticks
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.snapshot import COUNTERS, NO_SCALAR, STRAIN
from palpo.physics.reduction.slot_motion import slot_position
from palpo.physics.systems.multirate.lock_step import LockStep

NOTHING = np.zeros(len(COUNTERS), np.int64)


@pytest.fixture(scope="module")
def visual():
    spec = load_scene("wire")
    lock = LockStep(build_scene(spec), "krylov", spec.interface.latency)
    yield Visual(spec, lock.scene, lock.high)
    lock.low.close()


def shown(visual):
    visual.publish(visual.take_tool(), 0, NOTHING)
    return visual.latest()[0]


def test_frames_carry_strain_only_when_asked(visual):
    kinds = []
    for visual.strain in (False, True, False):
        kinds.append(shown(visual).scalar_kind)
    assert kinds == [NO_SCALAR, STRAIN, NO_SCALAR]


def test_a_stretched_body_shows_its_strain_and_the_others_none(visual):
    soft = next(d for d in visual.geometry.drawables if d.name == "cylinder")
    body = next(m for m in visual.members.values() if m.body.name == "cylinder").body
    before, visual.strain = body.x.copy(), True
    body.x[:] = before * [1.2, 1.0, 1.0]
    state = shown(visual)
    np.testing.assert_allclose(state.scalar[soft.span], (1.2**2 - 1) / 3, rtol=1e-9)
    others = np.ones(len(state.scalar), bool)
    others[soft.span] = False
    assert np.isnan(state.scalar[others]).all()
    assert state.scalar_range[0] == 0.0
    assert (1.2**2 - 1) / 3 <= state.scalar_range[1] <= 0.5
    body.x[:] = before
    assert shown(visual).scalar[soft.span].max() < 1e-12
    visual.strain = False


def test_frames_of_a_timed_run_carry_the_clock_and_others_nothing(visual):
    assert shown(visual).published_ns == 0
    visual.timed, before = True, time.perf_counter_ns()
    assert before <= shown(visual).published_ns <= time.perf_counter_ns()
    visual.timed = False


def test_who_follows_the_servo_sees_it_where_it_is_and_not_where_the_slow_loop_left_it():
    spec = load_scene("wire")
    lock = LockStep(build_scene(spec), "krylov", spec.interface.latency)
    high = lock.high
    visual = Visual(spec, lock.scene, high, lock.lows)
    visual.follow_servo()
    visual.follows = False
    # a slow step, and then ticks that it knows nothing of; the hand moves as fast as a hand does
    for ticks in (4 * lock.ratio + 1, lock.ratio // 2):
        visual.publish(visual.take_tool(), lock.tick, NOTHING)
        for _ in range(ticks):
            high.port.position[1] += 2e-4
            lock.advance(1, lambda n: run_ticks(lock.handle, n))
    behind = visual.latest()[0].vertices.copy()
    visual.follows = True
    state, _ = visual.latest()
    assert state.tick == lock.tick
    drawable = {d.name: d for d in visual.geometry.drawables}
    tool = state.vertices[drawable["wire"].span]
    np.testing.assert_array_equal(tool, high.held.tool.x)
    np.testing.assert_array_equal(state.device_point, high.held.hold.target)
    assert np.abs(tool - behind[drawable["wire"].span]).max() > 1e-4
    # slots: the points that the servo itself moves, less what is left of the joint to the last frame
    f, member = int(reader_slot(high.link.frame_control)), lock.scene.members[0]
    high.link.interface.join[:] = 0.0
    slots = high.link.frame.slot_point[f, : high.link.frame.head["n_slots"][f]]
    here = np.empty((len(slots), 3))
    for slot in range(len(slots)):
        slot_position(high.link.frame, f, high.link.interface, slot, here[slot])
    soft = drawable[lock.scene.names[member.number]].span
    drawn, left = state.vertices[soft][slots - member.first], behind[soft][slots - member.first]
    # the same sums in another order: rounding of some hundred terms
    np.testing.assert_allclose(drawn, here, atol=1e-12)
    assert np.abs(left - here).max() > 1e-7
    lock.low.close()


@pytest.mark.parametrize("name", ["hapco-block", "snap"])
def test_a_servo_that_tells_all_there_is_to_see_is_drawn_at_its_last_tick(name):
    session = Session(Options(name, device="mock", lock_step=True, duration=1.0))
    session.prepare()
    rig, visual = session.rig, session.visual
    low_period = rig.ratio
    rig.lock.advance(low_period, lambda n: servo_run(rig.servo, n))
    visual.publish(visual.take_tool(), low_period, NOTHING)
    for ticks in (3, 1):  # the slow loop knows nothing of these
        before = int(tick_count(rig.servo))
        servo_run(rig.servo, ticks)
        state, fresh = visual.latest()
        assert fresh and state.tick == before + ticks
        np.testing.assert_array_equal(state.device_point, visual.picture.target[rig_slot(visual)])
    assert not visual.latest()[1]


def test_the_hand_on_a_suction_cup_is_drawn_at_the_servos_last_tick():
    session = Session(Options("suction-cube", device="mock", lock_step=True, duration=1.0))
    session.prepare()
    rig, visual = session.rig, session.visual
    rig.lock.advance(rig.ratio, lambda n: servo_run(rig.servo, n))
    visual.publish(visual.take_tool(), rig.ratio, NOTHING)
    servo_run(rig.servo, 3)
    state, _ = visual.latest()
    np.testing.assert_array_equal(state.device_point, rig.state.cup.target)
    np.testing.assert_array_equal(state.held_point, rig.state.cup.position)


def test_a_connector_tells_its_largest_strain_over_the_limit_that_its_scene_gives():
    session = Session(Options("snap", ("strain_limit=1 %",), device="mock", lock_step=True, duration=3.0))
    session.prepare()
    rig, visual = session.rig, session.visual
    shares = []
    for ticks in (10, 2000):
        rig.lock.advance(ticks, lambda n: servo_run(rig.servo, n))
        visual.strain = True
        state, _ = visual.latest()
        assert state.strained == pytest.approx(np.nanmax(state.scalar) / 0.01, rel=1e-9)
        shares.append(state.strained)
    # the wedge has spread the prongs
    assert shares[1] > shares[0]
    plain = Session(Options("snap", device="mock", lock_step=True, duration=1.0))
    plain.prepare()
    assert np.isnan(plain.visual.latest()[0].strained)


def rig_slot(visual):
    return int(reader_slot(visual.picture_control))


@pytest.mark.parametrize("scale", [0.0011, 0.02, 0.3, 7.0])
def test_a_colour_bar_ends_at_a_round_number_that_holds_most_values_and_is_not_far_too_large(scale):
    values = scale * np.linspace(0.0, 1.0, 1001)
    upper = colour_range(SMALLEST_STRAIN, values)
    mantissa = upper / 10 ** np.floor(np.log10(upper * (1 + 1e-9)))
    assert min(abs(mantissa - k) for k in (1, 2, 5)) < 1e-9
    assert (values <= upper).mean() >= COLOURED
    assert upper <= 2.5 * scale


def test_a_colour_bar_does_not_flicker_when_its_values_hover_at_a_round_number():
    upper, ends = SMALLEST_STRAIN, []
    for strain in 0.2 + 0.01 * np.sin(np.arange(100)):
        upper = colour_range(upper, np.full(10, strain))
        ends.append(upper)
    # it may grow once, and then stays
    assert len(set(ends[10:])) == 1


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf], [0.0], [1e-12]])
def test_a_colour_bar_has_a_length_whatever_there_is_to_show(values):
    assert colour_range(1.0, np.array(values, float)) == SMALLEST_STRAIN
