"""Suction cups, and the body that they are set on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from palpo.app.runtime.live import Live, hand_keys, hold_keys
from palpo.app.systems.system import ENGINE, PHYSICS, YIELDS, System
from palpo.config.schema.gas import AirtightGas, PassiveGas, PumpedGas
from palpo.config.schema.suction import ScriptedDrive, SuctionScene

if TYPE_CHECKING:
    from palpo.app.runtime.rigs import Rig, Start
    from palpo.app.visual.picture import Shapes


VALVE = "gas.manifold.vent.state"
"""Key of the valve that lets a pump's cups go."""


class SuctionSystem(System):
    """See System."""

    scene = SuctionScene
    heading = "Suction cups"
    ticks = (
        f"{YIELDS}.condensed",
        f"{YIELDS}.fixed",
        f"{ENGINE}.servo",
        f"{ENGINE}.pressurising",
        f"{PHYSICS}.suction.servo",
    )
    rehearsed = ("suction-active", "suction-arm", "suction-bellows", "suction-cube", "suction-softcube")

    def make_rig(self, spec: SuctionScene, start: Start) -> Rig:
        """See System."""
        from palpo.app.systems.suction.rig import SuctionRig

        return SuctionRig(spec, start)

    def live_keys(self, spec: SuctionScene) -> list[Live]:
        """Friction, air, solver, and the hold of a cup that the hand holds."""
        gas, solver, kpa = spec.gas, spec.solver, 1e3
        air: list[Live] = []
        if isinstance(gas, AirtightGas):
            lower, upper = gas.atmosphere + 1.0, max(gas.atmosphere + 20 * kpa, 2 * gas.max_pressure)
            air = [
                Live("gas.max_pressure", "air", "P_max", "Pa", lower, upper, gas.max_pressure, True,
                     help="pressure at which air lifts the rim"),
                Live("gas.leak", "air", "slot under the rim", "m", 0.0, max(2e-5, 2 * gas.leak), gas.leak),
            ]  # fmt: skip
        elif isinstance(gas, PassiveGas):
            rms = gas.seal.rms
            air = [
                Live("gas.seal.rms", "air", "roughness, rms", "m", 1e-7, max(5e-5, 2 * rms), rms, True,
                     help="of cup and surface together: sets the leak under the rim"),
            ]  # fmt: skip
        elif not gas.table:
            air = [
                Live("gas.gauge", "air", "pump", "Pa", min(-20 * kpa, gas.gauge), max(kpa, gas.gauge),
                     gas.gauge, help="pressure against the atmosphere"),
            ]  # fmt: skip
        if isinstance(gas, PumpedGas):
            air += _pump_keys(gas, bool(spec.led))
        return [
            Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
            *air,
            *(hold_keys("tool.hold", spec.tool.hold) if spec.tool is not None else ()),
            Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
            Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
            *hand_keys(spec),
            Live("gravity.1", "world", "gravity", "m/s2", -30.0, 30.0, spec.gravity[1], help="along y, up"),
        ]

    def held_name(self, spec: SuctionScene) -> str:
        """See System."""
        return spec.led if spec.tool is None else spec.tool.body

    def valve_key(self, spec: SuctionScene) -> str:
        """See System."""
        return VALVE if isinstance(spec.gas, PumpedGas) else ""

    def further_paths(self, spec: SuctionScene) -> dict[str, Any]:
        """See System."""
        return {cup.name: cup.drive.path for cup in spec.cups if isinstance(cup.drive, ScriptedDrive)}

    def add_shapes(self, spec: SuctionScene, shapes: Shapes) -> None:
        """See System."""
        from palpo.app.build.shapes import add_body

        for body in (*spec.cups, spec.partner):
            add_body(shapes, body, smooth=False)

    def rehearse(self, scenes: Iterable[str]) -> None:
        """See System."""
        from palpo.app.systems.suction.rehearsal import rehearse

        for cups in (1, 2):
            rehearse(cups)
        super().rehearse(scenes)


def _pump_keys(gas: PumpedGas, led: bool) -> list[Live]:
    """Pump and vent; a pump that a table switches is not for the hand, unless that leads the cups."""
    pump, vent = gas.manifold.pump, gas.manifold.vent
    keys = [
        Live("gas.manifold.pump.speed", "air", "pump's speed", "m3/s", 0.0, max(1e-3, 2 * pump.speed),
             pump.speed),
    ]  # fmt: skip
    if led or not pump.table:
        keys.append(
            Live("gas.manifold.pump.state", "air", "pump", "", 0.0, 0.0, pump.state, choices=("on", "off"))
        )
    keys.append(
        Live(VALVE, "air", "vent", "", 0.0, 0.0, vent.state, choices=("shut", "open"),
             help="lets air into the manifold: the cups let go")
    )  # fmt: skip
    return keys


SYSTEM = SuctionSystem()
