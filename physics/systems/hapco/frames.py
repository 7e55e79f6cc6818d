"""How a frame comes into force in the servos of HapCo's two loops.

Both are tuples with a `servo` (palpo.physics.systems.hapco.tick), what is `in_force`
(palpo.physics.exchange.patience), and a `frame` that begins with settings and shapes
(palpo.physics.exchange.contact_frame, palpo.physics.exchange.tangent_frame).
"""

from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.patience import come_into_force
from palpo.physics.numerics.arrays import copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.hapco.tick import put_settings


@kernel
def adopt(m):
    """The newest frame comes into force, with its settings and its shapes; returns its slot."""
    f, _ = acquire(m.frame_control)
    s, frame = m.servo, m.frame
    s.live[0] = frame.settings[f]
    put_settings(s)
    s.live_id[0] = frame.id[f]
    come_into_force(m.in_force[0], frame.id[f], frame.patience[f], s.engine.now[0], s.port)
    copy_rows(frame.mobile_u[f], s.mobile.u)
    copy_rows(frame.fixed_u[f], s.fixed.u)
    s.tracked.tracker.gap[0] = frame.nearest[f]
    return f
