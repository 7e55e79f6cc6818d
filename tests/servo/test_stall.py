"""A hand on a scene whose frames fail to come: no force grows, no energy is given, and nothing jumps."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import cfunc, typeof, types
from numpy.typing import NDArray

from palpo.benchmarks.stall import CASES, SPEED, WAY, stalled
from palpo.haptics.clutch import CATCH_UP_SPEED
from palpo.haptics.limiter import LET_GO, let_go, make_limit_state
from palpo.haptics.limits import AT_ONCE, Fades, make_limits
from palpo.haptics.servo import make_servo
from palpo.haptics.workspace import make_workspace
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, WAITING, Port, end_tick, make_port
from tests.servo.hand import external, move

T = 1e-3
TICK_LEAK = 0.5 * LET_GO * (SPEED * T) ** 2
"""What a spring of stiffness K gives beyond its energy in the tick in which it comes to its end,
K v^2 T^2 / 2 [J]."""
RECOVERY = 0.25
"""Of the force after a wait, as the scenes have it [s]."""

NAMES = ("probe", "probe, paper", "probe, held directly", "hapco-16", "hapco-16, coupled", "suction-cube")
"""Every system whose servo waits, both ways to hold a tool."""
SYSTEMS = ("probe", "hapco-16", "suction-cube")
IN, OUT = -0.2 * WAY, WAY
WEIGHT = {"suction-cube": 0.03 * 9.81}
"""Of what hangs on the hand [N]: lowering it gives the hand energy that no contact has to pay back."""
RUNS = [
    *((name, 0.5, way) for name in NAMES for way in (OUT, IN)),
    *((name, seconds, OUT) for name in SYSTEMS for seconds in (0.21, 2.0)),
    ("probe, held directly", 0.21, IN),
]
"""Scene, length of the stall [s], way of the hand along the force [m]."""


@cache
def run(name, seconds, way):
    return stalled(CASES[name], seconds, way)


def waiting(found):
    return (found.rows["tick_flags"].astype(int) & WAITING) != 0


def paid(name, found):
    """What the hand had put into contact, springs and air when it began to move [J]."""
    lowered = found.at[0, 1] - found.at[found.moved, 1]
    return max(found.paid + WEIGHT.get(name, 0.0) * lowered, 0.0)


@pytest.mark.parametrize(("name", "seconds", "way"), [r for r in RUNS if r[2] == OUT])
def test_a_hand_that_withdraws_gets_back_no_more_than_it_paid(name, seconds, way):
    """In the stall and after it."""
    found = run(name, seconds, way)
    assert waiting(found).any()
    assert found.returned <= paid(name, found) + TICK_LEAK


@pytest.mark.parametrize(("name", "seconds", "way"), [r for r in RUNS if r[2] == IN])
def test_a_hand_that_pushes_on_is_not_thrown_back(name, seconds, way):
    """It slips in while the scene waits; the way that it has slipped is not paid out when frames return."""
    found = run(name, seconds, way)
    assert waiting(found).any()
    assert found.returned <= paid(name, found) + TICK_LEAK


@pytest.mark.parametrize(("name", "seconds", "way"), RUNS)
def test_while_a_scene_waits_the_force_only_falls_and_its_direction_stays(name, seconds, way):
    found = run(name, seconds, way)
    still = np.flatnonzero(waiting(found))
    force = found.sent[still]
    size = np.linalg.norm(force, axis=1)
    assert size[0] > 0.1
    assert (np.diff(size) <= 1e-12).all()
    np.testing.assert_allclose(force, size[:, None] * force[0] / size[0], atol=1e-12)


@pytest.mark.parametrize(("name", "seconds", "way"), RUNS)
def test_the_force_does_not_step_when_frames_return(name, seconds, way):
    """It rises by the recovery's ramp, and by the scene's stiffness at the speeds of hand and catching up.

    That stiffness is the steepest that the hand has met while it pressed.
    """
    found = run(name, seconds, way)
    n = found.began
    travel = np.linalg.norm(np.diff(found.at[:n], axis=0), axis=1)
    change = np.linalg.norm(np.diff(found.sent[:n], axis=0), axis=1)
    stiffness = (change[travel > 5e-6] / travel[travel > 5e-6]).max()
    force = np.linalg.norm(found.sent[found.moved - 1])
    back = slice(found.ended - 1, found.ended + 50)
    steps = np.linalg.norm(np.diff(found.sent[back], axis=0), axis=1)
    assert steps.max() <= force * T / RECOVERY + stiffness * (CATCH_UP_SPEED + SPEED) * T


@given(arrays(np.float64, (60, 3), elements=st.floats(-1e-3, 1e-3)), st.floats(0.01, 3.0))
@settings(deadline=None, max_examples=100)
def test_a_force_that_lets_go_gives_what_a_spring_would_and_no_more(steps, force):
    """Its energy before less its energy after, to rounding, until the step in which it ends."""
    state = make_limit_state(make_limits(10.0, fades=AT_ONCE))
    state.force[:] = force, 0.0, 0.0
    given, held = 0.0, force**2 / (2.0 * LET_GO)
    for step in steps:
        gain = state.gate["gain"][0]
        given += gain * force * max(0.0, step[0])
        let_go(state, step)
        assert state.gate["gain"][0] <= gain
        left = (state.gate["gain"][0] * force) ** 2 / (2.0 * LET_GO)
        if left > 0.0:
            assert left == pytest.approx(held - given, rel=1e-9, abs=1e-15)
        elif gain > 0.0:
            assert given - held <= 0.5 * LET_GO * step[0] ** 2 + 1e-15


STIFFNESS = 600.0


class Answering(NamedTuple):
    """A wall and whether it waits."""

    port: Port
    waits: NDArray[np.bool_]  # (1,)


_CONTENT = typeof(Answering(make_port(), np.zeros(1, np.bool_)))


@cfunc(types.int32(HandleType(_CONTENT)), cache=True)
def waiting_wall(wall):
    """A one-sided spring at x = 0 that waits whenever it is told to: then it neither looks nor answers."""
    port = wall.port
    if wall.waits[0]:
        port.status[0].flags = WAITING
    else:
        port.status[0].flags = 0
        port.force[0] = -STIFFNESS * max(port.position[0], 0.0)
    return np.int32(end_tick(port, OK, 0))


class Waiting:
    """That wall under a servo."""

    def __init__(self, scale=1.0):
        self.data = Handle(Answering(make_port(), np.zeros(1, np.bool_)))
        self.port, self.waits = self.data.state
        self.servo = make_servo(
            waiting_wall.address, self.data.address, self.port, external(),
            make_limits(1e9, max_rate=1e15, fades=Fades(0.0, recovery=RECOVERY), hand_speed=np.inf),
            make_workspace(scale),
        )  # fmt: skip

    def go(self, points, wait=False):
        self.waits[0] = wait
        return move(self.servo, points)


@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("seed", range(12))
def test_however_the_hand_moves_and_the_wall_waits_it_gives_no_more_than_it_takes(seed, scale):
    """But for what a sampled spring leaks, K step^2 / 2 a tick; the one that lets go, once a wait."""
    rng = np.random.default_rng(seed)
    wall, x, given, leak, last = Waiting(scale), np.array([-1e-3, 0.0, 0.0]), 0.0, 0.0, None
    for k in range(30):
        target = np.append(rng.uniform(-4e-3, 4e-3), rng.uniform(-2e-3, 2e-3, 2)) / scale
        way = target - x
        n = max(1, round(np.linalg.norm(way) * scale / (SPEED * T)))
        waits = bool(k % 3 == 2)
        leak += waits * TICK_LEAK
        points = x + np.arange(1, n + 1)[:, None] / n * way
        rows = wall.go(points, wait=waits)
        for point, sent in zip(points, rows["sent"], strict=True):
            if last is not None:
                step = point - last[0]
                given += last[1] @ step
                leak += 0.5 * scale**2 * STIFFNESS * step @ step * last[1].any()
                assert given <= leak + 1e-12
            last = point, sent
        x = target


def test_after_a_withdrawal_the_tool_comes_to_the_hand_and_stays_there():
    wall = Waiting()
    wall.go(np.outer(np.linspace(-1e-3, 2e-3, 20), [1, 0, 0]))
    wall.go(np.outer(np.linspace(2e-3, -3e-3, 50), [1, 0, 0]), wait=True)
    behind = wall.port.position[0] + 3e-3
    # what has let go went with the hand: a spring of LET_GO has unloaded, and one tick's way
    assert behind == pytest.approx(5e-3 - 2e-3 * STIFFNESS / LET_GO, abs=2.1e-4)
    rows = wall.go(np.outer(np.full(1000, -3e-3), [1, 0, 0]))
    speeds = np.diff(rows["p"][:, 0]) / T
    assert (speeds <= 1e-12).all() and (speeds >= -CATCH_UP_SPEED - 1e-9).all()
    assert rows["p"][-1, 0] == -3e-3
    assert (rows["sent"][:, 0] <= 0.0).all()


def test_pressed_on_the_lag_stays_until_the_force_ends():
    """Making it up would load the wall, and nobody would have paid for that."""
    wall = Waiting()
    wall.go(np.outer(np.linspace(-1e-3, 2e-3, 20), [1, 0, 0]))
    wall.go(np.outer(np.linspace(2e-3, 5e-3, 30), [1, 0, 0]), wait=True)
    rows = wall.go(np.outer(np.full(500, 5e-3), [1, 0, 0]))
    assert np.ptp(rows["p"][:, 0]) == 0.0
    np.testing.assert_allclose(rows["sent"][:, 0], -STIFFNESS * 2e-3, rtol=0.1)
    wall.go(np.outer(np.linspace(5e-3, -2e-3, 60), [1, 0, 0]))
    rows = wall.go(np.outer(np.full(1000, -2e-3), [1, 0, 0]))
    assert rows["p"][-1, 0] == -2e-3


def test_a_turn_while_the_scene_waits_comes_back_without_a_jump():
    wall = Waiting()
    wall.go([[0.0, 0.0, 0.0]] * 3)
    turned = (np.cos(0.3), 0.0, np.sin(0.3), 0.0)
    wall.waits[0] = True
    held = move(wall.servo, [[0.0, 0.0, 0.0]] * 5, orientation=turned)["q"]
    assert (held[1:] == held[1]).all()
    wall.waits[0] = False
    back = move(wall.servo, [[0.0, 0.0, 0.0]] * 6000, orientation=turned)["q"]
    assert np.abs(np.diff(back, axis=0)).max() < 0.6 * T / 0.3
    np.testing.assert_allclose(back[-1], turned, atol=1e-6)
