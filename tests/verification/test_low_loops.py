"""Soft bodies with slow loops of their own, at rates of their own: what holds whoever is quicker."""

from itertools import cycle

import numpy as np
import pytest
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.engine.servo import run_ticks
from palpo.physics.exchange.port import WAITING
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.physics.systems.multirate.scene import Scene
from tests.verification.small_scenes import proceed, resting, small_scene, straight

BALL_ON_BOX_ON_BLOCK = """
title = "a ball over a quick soft box on a slow block"
gravity = [0, -9.81, 0]

[[bodies]]
name = "block"
kind = "tets"
rate_hz = 20
geometry = { kind = "block", size = [0.06, 0.02, 0.06], divisions = [4, 2, 4] }
placement = { position = [0, -0.01, 0] }
material = { youngs_modulus = 20e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }
fixed = [{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }]

[[bodies]]
name = "box"
kind = "tets"
rate_hz = 100
geometry = { kind = "block", size = [0.03, 0.02, 0.03], divisions = [2, 1, 2] }
placement = { position = [0.001, 0.0106, 0.002] }
material = { youngs_modulus = 50e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.002, 0.0305, 0.001] }
mass = 0.03

[friction]
default = 0.5

[tool]
body = "ball"
"""

THROWN = """
title = "a soft box thrown at another"
gravity = [0, 0, 0]

[[bodies]]
name = "slow"
kind = "tets"
rate_hz = 20
geometry = { kind = "block", size = [0.03, 0.02, 0.03], divisions = [2, 2, 2] }
material = { youngs_modulus = 20e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }

[[bodies]]
name = "quick"
kind = "tets"
rate_hz = 100
geometry = { kind = "block", size = [0.02, 0.02, 0.02], divisions = [2, 2, 2] }
placement = { position = [0.002, 0.022, 0.001] }
material = { youngs_modulus = 50e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0, 0.5, 0] }
mass = 0.03

[tool]
body = "ball"
"""


def apart(text: str, *overrides: str, latency: str = "period") -> LockStep:
    """The scene, each soft body with a loop of its own."""
    return LockStep(small_scene(text, *overrides), "krylov", latency)


def catch_up(run: LockStep) -> None:
    """Every full body takes all forces of the servo so far."""
    for low in run.lows:
        low.step()
        low.publish(run.made)


def pressed(run: LockStep, ticks: int = 600) -> NDArray[np.float64]:
    """Force on the ball that is led down onto the box, along, and back to where it was."""
    start = run.high.port.position.copy()
    down = start - np.array([0.0, 0.004, 0.0])
    along = down + np.array([0.003, 0.0, 0.0])
    third = ticks // 3
    path = [straight(start, down, third), straight(down, along, third), straight(along, start, third)]
    return proceed(run, np.vstack(path))


def test_the_quicker_of_two_bodies_names_their_pairs_and_nobody_else():
    run = apart(BALL_ON_BOX_ON_BLOCK)
    pressed(run, 120)
    topology, names = run.scene.topology, run.scene.names
    assert [low.ratio for low in run.lows] == [10, 50]
    named = []
    for link in run.side.links:
        pairs, found = link.frame, set()
        for f in range(3):
            for k in range(int(pairs.head["n_pairs"][f])):
                first, second = int(pairs.pair_first[f, k]), int(pairs.pair_second[f, k])
                if pairs.pair_kind[f, k] == 0:
                    ends = first, int(topology.triangles[second, 0])
                else:
                    ends = int(topology.edges[first, 0]), int(topology.edges[second, 0])
                found.add(frozenset(names[topology.point_body[p]] for p in ends))
        named.append(found)
    run.close()
    assert frozenset(("box", "block")) in named[0]
    assert frozenset(("box", "ball")) in named[0]
    assert named[1] <= {frozenset(("block", "ball"))}


def test_what_one_soft_body_gets_the_other_gives_at_whatever_rates():
    run = apart(BALL_ON_BOX_ON_BLOCK, "gravity=[0,0,0]", latency="none")
    impulse = {low.number: np.zeros(3) for low in run.lows}

    def book(number: int):
        def booked(_points: NDArray, given: NDArray) -> None:
            impulse[number] += given.sum(axis=0)

        return booked

    for low in run.lows:
        low.booked = book(low.number)
    start = run.high.port.position.copy()
    forces = proceed(run, straight(start, start - np.array([0.0, 0.004, 0.0]), 500))["force"]
    catch_up(run)
    run.close()
    on_ball = 1e-3 * forces.sum(axis=0)
    assert np.linalg.norm(impulse[1]) > 1e-3, "the box was pressed onto the block"
    np.testing.assert_allclose(impulse[0] + impulse[1], -on_ball, atol=1e-12)


def test_two_soft_bodies_that_meet_keep_their_momentum_at_whatever_rates():
    run = apart(THROWN, latency="none")
    bodies = {run.scene.names[m.number]: m.body for m in run.scene.members}
    slow, quick = bodies["slow"], bodies["quick"]
    quick.v.reshape(-1, 3)[:] = [0.01, -0.1, 0.0]

    def momentum(body: SoftBody) -> NDArray[np.float64]:
        return (body.M @ body.v).reshape(-1, 3).sum(axis=0)

    before = momentum(quick)
    proceed(run, resting(run.high.port.position, 500))
    catch_up(run)
    run.close()
    passed = np.linalg.norm(momentum(slow))
    assert passed > 0.2 * np.linalg.norm(before), "they met"
    # the reduced models keep momentum to rounding; the full bodies are set to them
    np.testing.assert_allclose(momentum(slow) + momentum(quick), before, atol=1e-6 * passed)


def test_a_run_without_a_clock_is_the_same_bit_for_bit():
    forces = []
    for _ in range(2):
        run = apart(BALL_ON_BOX_ON_BLOCK)
        forces.append(pressed(run, 300)["force"])
        run.close()
    assert np.abs(forces[0]).max() > 0.05
    np.testing.assert_array_equal(forces[0], forces[1])


def test_loops_apart_are_as_near_to_everything_at_the_servo_s_rate_as_one_loop_for_all():
    forces = {}
    for name, kind, together in (
        ("exact", "monolithic", True),
        ("one", "krylov", True),
        ("apart", "krylov", False),
    ):
        scene = small_scene(BALL_ON_BOX_ON_BLOCK, "rates.low_hz=20")
        if together:
            whole = scene.loops(apart=False)
            scene.loops = lambda apart, whole=whole: whole  # type: ignore[method-assign]
        run = LockStep(scene, kind)
        proceed(run, resting(run.high.port.position, 200))
        forces[name] = pressed(run, 600)["force"]
        run.close()
    exact = forces["exact"]
    one, apart_ = (np.sqrt(((forces[k] - exact) ** 2).sum(axis=1).mean()) for k in ("one", "apart"))
    assert np.linalg.norm(exact, axis=1).max() > 0.5
    # both have the error of a tangent over a period; a quicker loop for the box can only lessen its part
    assert apart_ < 1.1 * one


def test_a_hand_that_presses_through_both_and_comes_back_has_gained_nothing():
    run = apart(BALL_ON_BOX_ON_BLOCK)
    proceed(run, resting(run.high.port.position, 300))
    start = run.high.port.position.copy()
    path = np.vstack([straight(start, start - np.array([0, 0.006, 0]), 200)] * 1)
    path = np.vstack([path, resting(path[-1], 100), straight(path[-1], start, 200), resting(start, 100)])
    trace = proceed(run, path)
    run.close()
    steps = np.diff(np.vstack([start, path]), axis=0)
    gained = float((trace["reaction"] * steps).sum())
    spent = float(np.abs((trace["reaction"] * steps).sum(axis=1)).sum())
    assert spent > 1e-4
    # the hold's own spring and the ball's weight give back what they got; a hand at rest at both ends
    assert gained < 1e-3 * spent


@pytest.mark.parametrize("late", [0, 1])
def test_a_loop_that_stalls_keeps_no_other_from_its_steps_and_the_scene_waits_when_it_is_overdue(late):
    run = apart(BALL_ON_BOX_ON_BLOCK)
    proceed(run, resting(run.high.port.position, 200))
    stalled, other = run.clocks[late], run.clocks[1 - late]
    stalled._durations = cycle([2000 / stalled.ratio])
    high = run.high
    frames = high.frames.in_force["frame"].tolist()
    run.advance(150, lambda n: run_ticks(run.handle, n))
    # 200 ticks without a frame are borne with at any rate: until then the other loop keeps its own
    made = int(high.frames.in_force["frame"][1 - late]) - frames[1 - late]
    assert made >= 150 // other.ratio - 1
    assert not high.port.status["flags"][0] & WAITING
    run.advance(1000, lambda n: run_ticks(run.handle, n))
    assert high.port.status["flags"][0] & WAITING
    tick, force, tool = int(high.engine.now[0]), high.port.force.copy(), high.held.tool.x.copy()
    run.advance(300, lambda n: run_ticks(run.handle, n))
    assert int(high.engine.now[0]) == tick, "the scene's time stands still"
    np.testing.assert_array_equal(high.port.force, force)
    np.testing.assert_array_equal(high.held.tool.x, tool)
    run.advance(1500, lambda n: run_ticks(run.handle, n))
    assert int(high.engine.now[0]) > tick, "and goes on with the frame"
    run.close()


def scene_of(*rates: str) -> Scene:
    return small_scene(BALL_ON_BOX_ON_BLOCK, *rates)


def test_loops_stand_in_the_order_of_their_rates_and_one_alone_has_all_where_bodies_are_not_apart():
    scene = scene_of()
    names = [[scene.names[b] for b in loop.numbers] for loop in scene.loops(apart=True)]
    assert names == [["box"], ["block"]]
    (whole,) = scene.loops(apart=False)
    assert set(whole.numbers) == {0, 1} and whole.ratio == scene.numbers.ratio
