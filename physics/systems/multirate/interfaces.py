"""The multi-rate method (003; EQUATIONS.md, 1): which module holds which interface kind.

`Krylov`        krylov.py      the servo gets a reduced model; the full bodies follow the servo's forces
`Paper`         literal.py     003 as printed: contact points at their free position at dt, directions frozen
`Extrapolated`  literal.py     the same, with contact points carried on at their velocity of L7
`Monolithic`    monolithic.py  the reference: every body at the servo's rate, detection at every tick

The high-rate steps H1 to H6 are one tick for all of them, in high_rate.py.
"""

from palpo.physics.systems.multirate.assembly import ServoSide, make_servo_side
from palpo.physics.systems.multirate.krylov import Krylov
from palpo.physics.systems.multirate.literal import Extrapolated, Paper
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.monolithic import Monolithic
from palpo.physics.systems.multirate.scene import Scene

KINDS: dict[str, type[LowRate]] = {k.kind: k for k in (Krylov, Paper, Extrapolated, Monolithic)}

READY_SHARE = 0.4
"""Share of a low period, in lock-step, between the end of a reduced frame's full integration and its
publication; in threads it is the time that the algebra of `Krylov.finish` takes."""


def make_low_rates(kind: str, scene: Scene) -> tuple[ServoSide, list[LowRate]]:
    """A scene's servo and its low loops, of an interface kind, one of KINDS; the quickest loop first."""
    loops = scene.loops(KINDS[kind].apart)
    side = make_servo_side(scene, loops)
    lows = [KINDS[kind](scene, side.high, link, loops, i) for i, link in enumerate(side.links)]
    for low in lows:
        low.others = [other for other in lows if other is not low]
        low.drawn.wanted = len(lows) > 1
    return side, lows
