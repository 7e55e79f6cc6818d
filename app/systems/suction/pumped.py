"""From a scene's pump, lines and valves to the network that its cups share."""

from palpo.config.schema.gas import Gas, PumpedGas
from palpo.config.schema.pump import CupLine, LineSpec
from palpo.config.schema.suction import SuctionScene
from palpo.physics.gas.network import NodePump, PumpedCups, pipe_conductance
from palpo.physics.systems.suction.drives import Lead, Switches


def pump_of(gas: PumpedGas) -> NodePump:
    """The pump at the manifold."""
    told = gas.manifold.pump
    return NodePump(0, told.speed, gas.atmosphere + told.lowest)


def pumped_of(spec: SuctionScene) -> PumpedCups | None:
    """What the cups share, at the atmosphere's pressure; None without a pump. Raises InputError."""
    gas = spec.gas
    if not isinstance(gas, PumpedGas):
        return None
    manifold = gas.manifold
    lines = [_conductance(cup.line or CupLine()) for cup in spec.cups]
    return PumpedCups.of(manifold.volume, lines, _conductance(manifold.vent), pump_of(gas), gas.atmosphere)


def switches_of(spec: SuctionScene, pumped: PumpedCups, lead: Lead | None) -> Switches:
    """Pump, vent and valves over time, or by the hand that leads."""
    gas = spec.gas
    assert isinstance(gas, PumpedGas)
    lines = [cup.line or CupLine() for cup in spec.cups]
    return Switches(
        pumped, gas.manifold.pump.runs, gas.manifold.vent.lets_in, [line.lets_by for line in lines],
        gas.manifold.by_hand, lead,
    )  # fmt: skip


def change_pump(gas: Gas, switches: Switches) -> None:
    """Bring what may change while it runs to the values of `gas`."""
    if isinstance(gas, PumpedGas):
        switches.pumped.network.pumps = (pump_of(gas),)
        switches.running, switches.vented = gas.manifold.pump.runs, gas.manifold.vent.lets_in
        switches.by_hand = gas.manifold.by_hand


def _conductance(line: LineSpec) -> float:
    return pipe_conductance(line.diameter, line.length)
