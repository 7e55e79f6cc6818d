"""A multi-rate scene in one thread without a clock, and its hand led along given positions.

Of the multi-rate method (003; EQUATIONS.md, 1) each interface kind has its module.

`Krylov`        krylov.py      the servo gets a reduced model; the full bodies follow the servo's forces
`Paper`         literal.py     003 as printed: contact points at their free position at dt, directions frozen
`Extrapolated`  literal.py     the same, with contact points carried on at their velocity of L7
`Monolithic`    monolithic.py  the reference: every body at the servo's rate, detection at every tick

The servo is the same for all of them (high_rate.py).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import TickState, tick
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK, WAITING
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


class LockStep(LockedLoops):
    """All rates of a scene. The scene's bodies move: one scene serves one run.

    kind: of the interface; the rest as LockedLoops.
    """

    lows: Sequence[LowRate]

    def __init__(
        self, scene: Scene, kind: str = "krylov", latency: str = "period", durations: Sequence[float] = (1.0,)
    ) -> None:
        self.scene, self.kind = scene, kind
        self.servo, self.side, lows = make_low_rates(kind, scene)
        super().__init__(lows, latency, durations)
        self.high = self.side.high
        self.handle = Handle(self.servo)
        self._slips = np.zeros((len(self.side.held), 3))
        """How far [m] `run` has led each hand while the scene stood still: it slips by that."""
        self._row = 0
        self.broken = ""
        """Why a low step of `run` could not be made, in words; empty while all could."""

    @property
    def low(self) -> LowRate:
        """The quickest low loop, which is the only one where there is but one."""
        return self.lows[0]

    def close(self) -> None:
        """End the low loops' worker threads."""
        self.low.close()

    def run(
        self,
        positions: NDArray[np.float64],
        orientations: NDArray[np.float64] | None = None,
        others: Sequence[NDArray[np.float64]] = (),
    ) -> dict[str, NDArray]:
        """Lead the hand's target along positions (n, 3) [m], one a tick, without any device between.

        others: positions (n, 3) [m] of the hands of further tools, which stand where they are without.
        While the scene stands still the hands slip. Returns by name, one row a tick: force (n, 3) the
        constraint sum, reaction and moment (n, 3) of the hold on the hand, felt (n, hands, 3) what devices
        are told, held (n, 3), tool (n, frames, 3), depth, contacts, sweeps, residual. Stops early at a tick
        that fails, or at a low step, whose reason then is in `broken`.
        """
        n = len(positions)
        port, high = self.high.port, self.high
        trace = {
            "force": np.zeros((n, 3)), "held": np.zeros((n, 3)),
            "reaction": np.zeros((n, 3)), "moment": np.zeros((n, 3)),
            "tool": np.zeros((n, len(high.held.tool.x), 3)), "depth": np.zeros(n), "residual": np.zeros(n),
            "felt": np.zeros((n, len(self.side.held), 3)),
            "contacts": np.zeros(n, np.int64), "sweeps": np.zeros(n, np.int64), "rows": np.zeros(n, np.int64),
        }  # fmt: skip
        failed = [n]

        def ticks(span: int) -> None:
            for _ in range(span):
                i = self._row
                if failed[0] < n:
                    return
                before = [held.port.position.copy() for held in self.side.held]
                for held, way, slip in zip(self.side.held, (positions, *others), self._slips, strict=False):
                    held.port.position[:] = way[i] - slip
                if orientations is not None:
                    port.orientation[:] = orientations[i]
                if tick(self.handle) != OK:
                    failed[0] = i
                    return
                if port.status["flags"][0] & WAITING:
                    for held, slip, place in zip(self.side.held, self._slips, before, strict=True):
                        slip += held.port.position - place
                        held.port.position[:] = place
                trace["force"][i] = port.info["total"][0]
                trace["felt"][i] = [held.port.force for held in self.side.held]
                trace["reaction"][i], trace["moment"][i] = -high.held.hold.force.reshape(-1, 3)
                trace["held"][i] = port.info["held"][0]
                trace["tool"][i] = high.held.tool.x
                trace["depth"][i], trace["residual"][i] = port.info["depth"][0], port.info["residual"][0]
                trace["contacts"][i], trace["sweeps"][i] = (
                    port.status["contacts"][0],
                    port.status["sweeps"][0],
                )
                trace["rows"][i] = high.engine.contacts.count[0]["found"]
                self._row += 1

        self._row = 0
        while self._row < n and failed[0] == n:
            try:
                self.advance(1, ticks)
            except FloatingPointError as error:
                self.broken = str(error)
                break
        made = min(self._row, failed[0])
        return {name: values[:made] for name, values in trace.items()}
