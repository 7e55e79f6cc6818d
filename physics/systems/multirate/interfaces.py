"""The multi-rate method (003; EQUATIONS.md, 1): which module holds which interface kind.

`Krylov`        krylov.py      the servo gets a reduced model; the full bodies follow the servo's forces
`Paper`         literal.py     003 as printed: contact points at their free position at dt, directions frozen
`Extrapolated`  literal.py     the same, with contact points carried on at their velocity of L7
`Monolithic`    monolithic.py  the reference: every body at the servo's rate, detection at every tick

The servo is the same for all of them (high_rate.py).
"""

from palpo.physics.engine.servo import TickState
from palpo.physics.systems.multirate.assembly import ServoSide
from palpo.physics.systems.multirate.high_rate import make_servo
from palpo.physics.systems.multirate.krylov import Krylov
from palpo.physics.systems.multirate.literal import Extrapolated, Paper
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.monolithic import Monolithic
from palpo.physics.systems.multirate.scene import Scene

KINDS: dict[str, type[LowRate]] = {k.kind: k for k in (Krylov, Paper, Extrapolated, Monolithic)}


def make_low_rates(kind: str, scene: Scene) -> tuple[TickState, ServoSide, list[LowRate]]:
    """A scene's servo, its side of the exchange, and its low loops of one of KINDS, the quickest first."""
    loops = scene.loops(KINDS[kind].apart)
    servo, side = make_servo(scene, loops)
    lows = [KINDS[kind](scene, side.high, link, loops, i) for i, link in enumerate(side.links)]
    for low in lows:
        low.others = [other for other in lows if other is not low]
        low.drawn.wanted = len(lows) > 1
    return servo, side, lows
