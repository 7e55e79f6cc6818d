"""The working set of a HapCo tick: the forces of the whole problem, out of a few of its contacts."""

from itertools import pairwise

import numpy as np
import pytest

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.problem import Stop
from palpo.physics.engine.equilibrium import NEWCOMERS, admit
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import tick, tick_data
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.port import OK
from palpo.physics.mesh.generate import hex_block
from palpo.physics.systems.hapco.detection import Detection
from palpo.physics.systems.hapco.loop import make_multirate
from palpo.physics.systems.hapco.servo import BodyPair, Hold, default_settings, make_servo
from palpo.studies.reference.interaction import Interaction
from tests.verification.hapco_bench import ABOVE, BELOW, STIFF, TISSUE, WEIGHTLESS, side

TOLERANCE = 1e-10
MU = 0.4


def blocks():
    """A block whose lower face of 7 by 7 vertices is a bowl, over tissue: most of them stay open."""
    above, below = hex_block(ABOVE, (6, 3, 6)), hex_block(BELOW, (8, 4, 6))
    bottom = side(above, 1, -1.0)
    x, y, z = above.nodes.T
    # 0.7 mm higher at the sides, nothing at the top
    bowl = 20.0 * (x * x + z * z) * (0.5 - y / ABOVE[1])
    above = above.with_nodes(np.column_stack([x, y + 0.5 * ABOVE[1] + bowl, z]))
    below = below.with_nodes(below.nodes - np.array([0.0, 0.5 * BELOW[1], 0.0]))
    return (
        QuasistaticBody("above", above, STIFF, side(above, 1, 1.0), WEIGHTLESS),
        QuasistaticBody("below", below, TISSUE, side(below, 1, -1.0), WEIGHTLESS),
    ), bottom


def way(n=12):
    """Down by 0.5 mm, along by 2, up, down again; n ticks each [m]."""
    t = np.linspace(0.0, 1.0, n)[:, None]
    corners = np.array([[0, 0.1, 0], [0, -0.5, 0], [2, -0.5, 0.4], [2, -0.2, 0.4], [1, -0.6, 0]]) * 1e-3
    return np.concatenate([a + t * (b - a) for a, b in pairwise(corners)])


def test_the_tick_gives_the_forces_of_all_contacts_and_nothing_sinks_in_outside_its_set():
    """The off-line method solves for every contact that is found; both to the solver's tolerance."""
    (above, below), bottom = blocks()
    detection = Detection(bottom, tolerance=np.inf, edges=False)
    settings = default_settings(MU, TOLERANCE, 100000, collision=np.inf)
    servo, state = make_servo(BodyPair(above, below, detection, settings=settings))
    data = tick_data(servo)
    (above, below), _ = blocks()
    whole = Interaction(above, below, detection, MU, stop=Stop(TOLERANCE, 100000))
    start, sizes, largest = state.mobile.frame.now.position.copy(), [], 0.0
    for p in start + way():
        state.port.position[:] = p
        assert tick(data) == OK
        step, n = whole.step(p), int(state.engine.contacts.count[0]["found"])
        largest = max(largest, float(np.linalg.norm(step.force)))
        np.testing.assert_allclose(state.port.force, step.force, atol=1e-7 * largest + 1e-15)
        assert n == bottom.size and state.port.info["residual"][0] <= 1.5 * TOLERANCE
        outside = ~state.engine.inside[:n]
        gaps = state.engine.u[: 3 * n : 3][outside]
        compliance = np.diag(step.problem.w).mean()
        assert gaps.min(initial=0.0) >= -TOLERANCE * np.linalg.norm(state.engine.r[: 3 * n]) * compliance
        sizes.append(int(state.engine.count["members"][0]))
    assert largest > 0.05 and np.median(sizes) < 0.6 * bottom.size


@pytest.mark.parametrize("hold", [Hold(), Hold(direct=False, gains=Gains(400.0, 2.0, 0.5, 1e-3))])
def test_at_two_rates_the_set_solves_what_the_frame_has_of_all_contacts(hold):
    """The natural map of the whole problem, W of the frame and all contacts, vanishes to the tolerance."""
    (above, below), bottom = blocks()
    settings = default_settings(MU, TOLERANCE, 100000, collision=np.inf, gains=hold.gains)
    servo, m, low = make_multirate(
        BodyPair(above, below, Detection(bottom, tolerance=np.inf, edges=False), hold, settings, ratio=5)
    )
    lock, points = LockedLoops([low]), iter(m.servo.mobile.frame.now.position + way(60))
    sizes, n, data = [], bottom.size, tick_data(servo)

    def ticks(count):
        for _ in range(count):
            m.servo.port.position[:] = next(points)
            assert tick(data) == OK
            sizes.append(int(m.servo.engine.count["members"][0]))
            assert m.servo.port.info["residual"][0] <= 1.5 * TOLERANCE
            u = m.servo.engine.u[: 3 * n : 3]
            assert u.min() >= -1e-6 * np.abs(u).max()

    lock.advance(240, ticks)
    assert np.median(sizes) < 0.6 * n


def test_of_many_that_sink_in_at_once_some_join_evenly():
    n = 5 * NEWCOMERS
    inside, gap = np.zeros(n, bool), np.full(n, -1.0)
    gap[::2] = 1.0
    admit(gap, n, inside)
    joined = np.flatnonzero(inside)
    assert joined.size == NEWCOMERS and (gap[joined] < 0.0).all()
    assert np.diff(joined).max() <= 2 * (n // 2 // NEWCOMERS + 1)
