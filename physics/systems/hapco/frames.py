"""How a frame comes into force in the servos of HapCo's two loops.

Both are tuples with a `servo` (palpo.physics.systems.hapco.tick) and a `frame` that begins with shapes
(palpo.physics.systems.hapco.two_rates, palpo.physics.exchange.tangent_frame).
"""

from palpo.physics.numerics.arrays import copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.hapco.tick import take_settings


@kernel
def adopt(m):
    """The newest frame comes into force, with its settings and its shapes; its slot, -1 if there is none."""
    s, frame = m.servo, m.frame
    f = take_settings(s)
    if f < 0:
        return f
    copy_rows(frame.mobile_u[f], s.mobile.u)
    copy_rows(frame.fixed_u[f], s.fixed.u)
    s.tracked.tracker.gap[0] = frame.nearest[f]
    return f
