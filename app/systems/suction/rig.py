"""Suction ready to run: the slow loop makes whole steps, and the servo feels a held cup (physics.systems).

Where nobody holds a cup the servo only keeps the time: the scene's path, cables or figure move it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.runtime.rigs import CavityReading, Curves, Rig, Solid, Start, limits_met, no_contact
from palpo.app.systems.suction.build import (
    SERVO_CAVITIES,
    SERVO_CONTACTS,
    air_of,
    build,
    coupling_gains,
    settings_of,
    walls_on,
)
from palpo.app.systems.suction.findings import Findings
from palpo.app.systems.suction.picture import SuctionVisual
from palpo.app.systems.suction.pumped import change_pump
from palpo.app.systems.suction.rehearsal import rehearse
from palpo.config.schema.gas import ActiveGas
from palpo.config.schema.suction import SuctionScene
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import servo_tick, tick_data
from palpo.physics.suction.sides import RigidSide, SoftSide
from palpo.physics.systems.suction.drives import Switches
from palpo.physics.systems.suction.loop import SuctionLoop
from palpo.physics.systems.suction.servo import make_servo as make_handle


class SuctionRig(Rig):
    """One scene for one run, a `Rig`. The same object is driven in lock-step or by threads."""

    def __init__(self, spec: SuctionScene, start: Start) -> None:
        self.spec = spec
        self.dt = spec.rates.dt
        with start.progress.stage("building the scene"):
            self.built = build(spec)
        suction, hand = self.built.suction, self.built.hand
        self.held: NDArray[np.float64] = np.array(spec.device.path[0][1:])
        turns = False
        if hand is not None and spec.tool is not None:
            self.held = hand.handle.position.copy()
            turns = spec.tool.hold.orientation
        self.ticks, self.state = make_handle(
            self.held,
            SERVO_CONTACTS,
            SERVO_CAVITIES,
            self.dt,
            held=hand is not None,
            turns=turns,
            ratio=spec.rates.ratio,
        )
        self._loop = SuctionLoop(
            self.state, suction, self.built.drives, hand, settings_of(spec), self.built.gauge,
            self.built.lead,
        )  # fmt: skip
        self.lock = LockedLoops([self._loop], "none")
        self.found = Findings(suction)
        self._loop.watch = self._watch
        self.serve(start, servo_tick.address, tick_data(self.ticks), self.state.port)

    def _watch(self) -> None:
        self.found.note()
        self.visual.look()

    @cached_property
    def visual(self) -> SuctionVisual:
        """What there is to see."""
        return SuctionVisual(self.spec, self.built, self.state)

    @property
    def latency(self) -> str:
        """How old a frame is when it is first felt, in words."""
        if self.built.hand is None:
            return "none: no hand takes part"
        return "one slow step" if self.threads else "none: a slow step takes effect at once"

    @property
    def behind(self) -> int:
        """See Rig; a step in time ends a period after its start, and the next has not ended yet."""
        if self.built.hand is not None:
            return 0
        done = round(self.built.suction.time / self.dt) + 2 * self._loop.budget.period
        return max(0, int(self.state.ticks["done"][0]) - done)

    @property
    def turn(self) -> NDArray[np.float64]:
        """Orientation of what the hand holds (w, x, y, z), shape (4,)."""
        return self.state.cup.orientation

    def masses(self) -> dict[str, float]:
        """Mass of each moving body [kg]."""
        suction = self.built.suction
        masses = {cup.body.name: cup.body.mass for cup in suction.cups}
        body = getattr(suction.partner, "body", None)
        return masses if body is None else masses | {body.name: body.mass}

    def solids(self) -> dict[str, Solid]:
        """See Rig; where the last step of the slow loop left them."""
        suction = self.built.suction
        sides = [*zip((cup.name for cup in self.spec.cups), suction.cups, strict=True)]
        found = {}
        for name, side in (*sides, (self.spec.partner.name, suction.partner)):
            if isinstance(side, SoftSide):
                body = side.body
                found[name] = Solid(body.mesh, body.elements, body.material, body.x, side.nodes)
        return found

    def cavities(self) -> list[CavityReading]:
        """See Rig; those of the last step of the slow loop."""
        s, j, found = self.built.suction, 0, []
        for cup, enclosure in zip(self.spec.cups, s.enclosures, strict=True):
            for c in enclosure.active.tolist():
                walls = {
                    name: np.flatnonzero(np.abs(gradient[c]).sum(axis=1))
                    for name, gradient in (
                        (cup.name, enclosure.gradient), (self.spec.partner.name, enclosure.partner_gradient),
                    )
                }  # fmt: skip
                gauge = float(s.pressure[j] - s.air.atmosphere)
                found.append(CavityReading(gauge, float(s.volume[j]), float(s.amount[j]), walls))
                j += 1
        return [found[k] for k in np.argsort(s.identity[:j], kind="stable")]

    def change(self, spec: SuctionScene) -> None:
        """See Rig."""
        rougher = getattr(spec.gas, "seal", None) != getattr(self.spec.gas, "seal", None)
        super().change(spec)
        suction, gas, solver = self.built.suction, spec.gas, spec.solver
        suction.mu[:] = [spec.mu(cup) for cup in spec.cups]
        suction.air = air_of(gas)
        for drive in self.built.drives:
            if isinstance(drive, Switches):
                change_pump(gas, drive)
        if rougher:
            for enclosure, soft in zip(suction.enclosures, self.built.soft, strict=True):
                enclosure.take_walls(walls_on(spec, soft.material, self.built.rest))
        if isinstance(gas, ActiveGas) and not gas.table:
            suction.gauge = gas.gauge
        suction.take_stop(Stop(solver.tolerance if solver.stop == "residual" else 0.0, solver.sweeps))
        for side in suction.sides:
            if isinstance(side, SoftSide | RigidSide):
                side.body.gravity[:] = spec.gravity
        if spec.tool is not None and self.built.hand is not None:
            self.built.hand.gains = coupling_gains(spec.tool.hold)
        self._loop.settings = settings_of(spec)

    def warm_up(self, progress: Progress) -> None:
        """See Rig."""
        super().warm_up(progress)
        with progress.stage("compiling contacts and cavities, or loading them"):
            rehearse(min(2, len(self.spec.cups)))

    def problem(self) -> ContactProblem:
        """The last step's contacts without the cavities [m], [N]; InputError if it had none."""
        suction = self.built.suction
        (w, b), n = suction.problem, len(suction.problem[1]) - suction.cavity_count
        if n == 0:
            raise no_contact("step")
        return ContactProblem(w[:n, :n].copy(), b[:n].copy(), suction.contacts.mu[suction.solved])

    def counts(self) -> dict[str, int]:
        """See Rig."""
        return limits_met(self.state.engine, "not converged", "solves diverged")

    def warnings(self, result: Mapping[str, Any]) -> list[str]:
        """Sentences on slow motion, and on solves that stopped short."""
        found = []
        if late := self.behind:
            found.append(
                f"The scene ran in slow motion: it took {late * self.dt:.2f} s longer than its own time."
            )
        if diverged := self.counts()["solves diverged"]:
            found.append(f"In {diverged} ticks the servo's solver diverged and its best force was kept.")
        if diverged := self.built.suction.diverged:
            found.append(f"The slow loop's solver diverged {diverged} times; pressures and air were kept.")
        return found

    def findings(self, columns: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """How well the cups held."""
        return self.found.numbers()

    def curves(self) -> list[Curves]:
        """The cavities over the last seconds."""
        return self.found.curves()
