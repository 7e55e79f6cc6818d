"""What the servos of HapCo's two loops share: the frame in force, and the wait for one that is overdue.

Both are tuples with a `servo` (palpo.physics.systems.hapco_tick), a `count`, and a `frame` that begins with
settings and shapes (palpo.physics.exchange.contact_frame, palpo.physics.exchange.tangent_frame).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.arrays import copy_rows
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.patience import PATIENCE_PERIODS, is_overdue, renewed
from palpo.physics.kernels import inlined, kernel
from palpo.physics.systems.hapco_tick import QuasistaticServo, put_settings

COUNT = np.dtype(
    [("calls", np.int64), ("adopted_at", np.int64), ("waited", np.int64), ("patience", np.int64)]
)
"""Calls of the tick; steps done when the frame in force was adopted; calls that have waited for the next; and
how old it may become [ticks]. The frame in force is the servo's live_id."""


def freeze(servo: QuasistaticServo, ratio: int) -> NDArray[Any]:
    """From now on the servo's shapes come with frames, one in `ratio` ticks; its count, (1,) of COUNT."""
    servo.mobile.frozen[0] = servo.fixed.frozen[0] = True
    count = np.zeros(1, COUNT)
    count["patience"] = PATIENCE_PERIODS * ratio
    return count


@inlined
def frame_age(m):
    """Ticks since the frame in force was adopted."""
    return m.servo.engine.now[0] - m.count[0].adopted_at


@inlined
def waits(m):
    """Count a call of the tick; whether it waits, since the frame in force is overdue by far."""
    count = m.count[0]
    count.calls += 1
    if m.servo.live_id[0] > 0 and is_overdue(frame_age(m), count.patience, m.frame_control):
        count.waited += 1
        return True
    return False


@kernel
def adopt(m):
    """The newest frame comes into force, with its settings and its shapes; returns its slot."""
    f, _ = acquire(m.frame_control)
    s, frame, count = m.servo, m.frame, m.count[0]
    s.live[0] = frame.settings[f]
    put_settings(s)
    s.live_id[0] = frame.id[f]
    count.adopted_at, count.waited = s.engine.now[0], 0
    count.patience = renewed(s.port, count.patience, frame.patience[f, 0], frame.patience[f, 1])
    copy_rows(frame.mobile_u[f], s.mobile.u)
    copy_rows(frame.fixed_u[f], s.fixed.u)
    s.tracked.tracker.gap[0] = frame.nearest[f]
    return f
