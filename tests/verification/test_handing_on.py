"""Frames that begin where the servo is: what a new model takes over from the last one, and what it bears."""

import numpy as np
import pytest

from palpo.physics.systems.multirate.krylov import Krylov
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.studies.runs import SceneDrive, scene_path
from tests.verification.small_scenes import small_scene
from tests.verification.test_member_cavities import FREE_BLOCK

APART = FREE_BLOCK.replace("[0, 0.0004, 0]", "[0, 0.0304, 0]").replace("[0, 0.03, 0]", "[0, 0.09, 0]")
"""Two soft bodies that touch nothing."""

PERIODS = 3
"""Slow periods before the frame that is looked at."""


def flying(turn: float, swing: float) -> LockStep:
    """Both bodies fly, turn at some `turn` rad/s and swing in their slowest modes at some `swing` m/s."""
    lock = LockStep(small_scene(APART))
    low = lock.low
    assert isinstance(low, Krylov)
    for member, reduction in zip(low.members, low.reductions, strict=True):
        body, generator = member.body, np.random.default_rng(7)
        arm = body.x - member.body.rigid_state()[0]
        modes = reduction.slow @ generator.standard_normal(reduction.slow.shape[1])
        rigid = np.array([0.02, -0.01, 0.03]) + np.cross(turn * np.array([1.0, -2.0, 1.5]), arm)
        body.v = rigid.reshape(-1) + swing * modes / np.abs(modes).max()
    return lock


def apart(turn: float, swing: float) -> float:
    """How far [m] the nodes of a frame that is handed on are from where its own ticks have them, at most."""
    lock = flying(turn, swing)
    low = lock.low
    trace = lock.run(np.tile(lock.high.port.position.copy(), (PERIODS * lock.ratio + 1, 1)))
    assert len(trace["force"]) == PERIODS * lock.ratio + 1 and not lock.high.engine.contacts.count[0]["found"]
    assert isinstance(low, Krylov) and low._followed and low.frame_tick > low.tick
    handed = places(low)
    low._made_again(low.frame_tick)
    again = places(low)
    lock.close()
    return max(float(np.abs(a - b).max()) for a, b in zip(handed, again, strict=True))


def places(low: Krylov) -> list[np.ndarray]:
    """Where the present state of the last model has the nodes of each body, and has them a tick later."""
    state, found = low.state, []
    for k, reduction in enumerate(low.reductions):
        model, nodes = reduction.drawn(), slice(len(low.members[k].body.x))
        x = model.positions(state.z, state.centre[k], state.q[k])
        arms = x - state.centre[k]
        u = model.velocities(state.rate, arms, state.q[k], state.velocity[k], state.spin[k])
        found += [x[nodes], x[nodes] + low.dt * u[nodes]]
    return found


def test_without_contact_a_frame_handed_on_is_where_its_own_ticks_would_bring_it():
    """To rounding where nothing deforms; else both models are linear, each about a shape of its own, so that
    they part by the square of how far the bodies deform."""
    assert apart(1.0, 0.0) < 1e-13
    large, small = apart(0.0, 2e-2), apart(0.0, 1e-2)
    assert 1e-13 < large < 1e-7
    assert small < 0.4 * large


@pytest.mark.parametrize("durations", [(0.5, 1.5), (0.5, 2.5), (1.5, 0.7)])
def test_a_cup_lifts_a_soft_body_however_the_lateness_of_frames_changes(durations):
    """Gripped, its centre goes where the hand goes, but for the spring of the hold: what is let go stays
    behind by the whole way."""
    with SceneDrive("mixed-cup", ("rates.low_hz=100",), durations=durations) as run:
        names, members = run.lock.scene.names, run.lock.scene.members
        body = next(m.body for m in members if names[m.number] == "cylinder")
        path = scene_path(run.spec, 3.0)
        lifted, end = 700, 870
        run.go(path[:lifted])
        before = float(body.x[:, 1].mean()) - path[run.lock.low.tick, 1]
        run.go(path[lifted:end])
        after = float(body.x[:, 1].mean()) - path[run.lock.low.tick, 1]
    way = path[end, 1] - path[lifted, 1]
    assert way > 5e-3
    assert abs(after - before) < 0.15 * way


@pytest.mark.parametrize("late", [3.0, 18.0, 45.0])
def test_where_air_holds_bodies_no_tick_is_made_again_however_late_a_frame_is(late, monkeypatch):
    """Nothing would answer to its forces: a frame that comes after hundreds of ticks in which the scene stood
    still ended a run with numbers that are none."""
    again = []
    monkeypatch.setattr(Krylov, "_made_again", lambda low, until: again.append(until))
    with SceneDrive("mixed-cup", ("rates.low_hz=100",), durations=(0.5, late)) as run:
        run.go(scene_path(run.spec)[:900])
        waited = run.lock.tick - run.lock.made
    assert (waited > 0) == (late > 15.0)  # periods of the patience
    assert not run.stopped and not again


def test_a_frame_counts_as_taken_once_a_tick_on_it_has_ended():
    """A servo that is preempted in the tick that takes a frame has told nothing of it so far."""
    with SceneDrive("mixed-cup", ("rates.low_hz=100",)) as run:
        run.go(scene_path(run.spec)[:45])
        low, log = run.lock.low, run.lock.high.link.models
        assert low.in_force()
        row = (low.known() - 1) & (len(log.tick) - 1)
        log.frame[row] -= 1
        assert not low.in_force()
