"""Pump, lines, valves and cups as a network of air: who is pumped down how fast, and who shares a line.

Nodes hold air in a volume, at one temperature; each line between two nodes, or from a node to the atmosphere
(a leak), conducts G: dn/dt = G (p_a^2 - p_b^2) / (R T), laminar flow of an ideal gas
(palpo.physics.suction.flow), at a valve's closing 0. A pump takes a volume of air per second at the pressure
of its node, the less the nearer that is to the lowest it reaches:

    dV/dt = S (1 - p_end / p)  above p_end, nothing below                                     (its flow curve)

so that a single volume falls as p = p_end + (P - p_end) exp(-S t / V).

A step is backward Euler on the amounts, each pressure positive whatever the step; what leaves one node
arrives at another to the last bit but one, since both take the same flow.

`PumpedCups` is the network of a gripper: a manifold with the pump, and a line with a valve to each cup. It
takes its turn with the cups' own step (palpo.physics.systems.suction), which moves the walls with the amounts
held, while here air moves with the volumes held: of first order in h, as both steps are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.errors import InputError
from palpo.physics.suction.flow import VISCOSITY
from palpo.physics.suction.gas import STANDARD_ATMOSPHERE

Floats = NDArray[np.float64]

OUTSIDE = -1
"""In the place of a node: the atmosphere."""
ITERATIONS, CLOSE = 60, 1e-12
"""Of Newton's method for a step, and the error of the pressures relative to the atmosphere's that ends it."""


def pipe_conductance(diameter: float, length: float) -> float:
    """G = pi d^4 / (256 eta L) [m3/(Pa s)] of a round line [m], by Hagen and Poiseuille for an ideal gas."""
    for name, value in (("diameter", diameter), ("length", length)):
        if not 0.0 < value < math.inf:
            raise InputError(f"a line's {name} = {value} m: give one above 0")
    return math.pi * diameter**4 / (256.0 * VISCOSITY * length)


@dataclass(frozen=True)
class Line:
    """Between two nodes, or from one to OUTSIDE."""

    start: int
    end: int
    conductance: float  # [m3/(Pa s)]


@dataclass(frozen=True)
class Pump:
    """At a node: takes S = `speed` [m3/s] less S p_end / p, down to p_end = `lowest` [Pa]."""

    node: int
    speed: float
    lowest: float


class Network:
    """The air of a gripper. Raises InputError for a volume, conductance or pump that cannot be, and no node.

    volume (n,) [m3] of each node: lines, manifolds, cups. Pressures start at the atmosphere's.
    Written from outside between steps: `open` (lines,), whether a valve lets air through; `running` (pumps,);
    `volume`, of cups that move, which keeps what they hold; `held` (n,) p V [J]. Read: pressure (n,) [Pa];
    flow (lines,) p V [W] of the last step, from start to end; pumped [W].
    """

    def __init__(
        self, volume: Sequence[float], lines: Sequence[Line], pumps: Sequence[Pump] = (),
        atmosphere: float = STANDARD_ATMOSPHERE,
    ) -> None:  # fmt: skip
        self.volume = np.array(volume, float)
        if not (self.volume > 0.0).all() or not np.isfinite(self.volume).all():
            raise InputError(f"volumes {self.volume.tolist()} m3: give each node one above 0")
        n = len(volume)
        for line in lines:
            if line.start == line.end or not all(OUTSIDE <= end < n for end in (line.start, line.end)):
                raise InputError(
                    f"{line}: its ends are two of the nodes 0 to {n - 1}, or {OUTSIDE} for outside"
                )
            if not 0.0 <= line.conductance < math.inf:
                raise InputError(f"{line}: give a conductance of 0 or more")
        for pump in pumps:
            if not (0 <= pump.node < n and pump.speed >= 0.0 and 0.0 <= pump.lowest < atmosphere):
                raise InputError(
                    f"{pump}: give a node, a speed of 0 or more and a pressure below the atmosphere's"
                )
        self.pumps = tuple(pumps)
        ends = np.array([[line.start, line.end] for line in lines], np.int64).reshape(-1, 2)
        # the atmosphere is one node more, whose pressure stays
        self._ends = np.where(ends == OUTSIDE, n, ends)
        self._conductance = np.array([line.conductance for line in lines])
        self.open, self.running = np.ones(len(lines), bool), np.ones(len(pumps), bool)
        self.atmosphere = atmosphere
        self.held = atmosphere * self.volume
        self.flow, self.pumped = np.zeros(len(lines)), np.zeros(len(self.pumps))

    @property
    def pressure(self) -> Floats:
        """(n,) [Pa]."""
        return self.held / self.volume

    def step(self, h: float) -> None:
        """One step of h [s]."""
        p, held = self.pressure, self.held
        for _ in range(ITERATIONS):
            flow, pumped, slope = self._flows(p)
            gained = self._gained(flow, pumped)
            error = self.volume * p - held - h * gained
            move = np.linalg.solve(np.diag(self.volume) - h * slope, -error)
            # a pressure stays positive: at most nine tenths of it go in an iteration
            p = np.maximum(p + move, 0.1 * p)
            if np.abs(move).max() <= CLOSE * self.atmosphere:
                break
        self.flow, self.pumped, _ = self._flows(p)
        self.held = held + h * self._gained(self.flow, self.pumped)

    def _gained(self, flow: Floats, pumped: Floats) -> Floats:
        """What each node gains [W]."""
        gained = np.zeros(len(self.volume) + 1)
        np.subtract.at(gained, self._ends[:, 0], flow)
        np.add.at(gained, self._ends[:, 1], flow)
        for pump, taken in zip(self.pumps, pumped, strict=True):
            gained[pump.node] -= taken
        return gained[:-1]

    def _flows(self, p: Floats) -> tuple[Floats, Floats, Floats]:
        """Flow of lines and pumps [W] at pressures p [Pa]; what each node gains, by each pressure (n, n)."""
        n = len(p)
        all_p = np.append(p, self.atmosphere)
        g = self._conductance * self.open
        a, b = self._ends.T
        flow = g * (all_p[a] ** 2 - all_p[b] ** 2)
        slope = np.zeros((n + 1, n + 1))
        for sign, end in ((-1.0, a), (1.0, b)):
            np.add.at(slope, (end, a), sign * 2.0 * g * all_p[a])
            np.add.at(slope, (end, b), -sign * 2.0 * g * all_p[b])
        pumped = np.zeros(len(self.pumps))
        for k, pump in enumerate(self.pumps):
            if self.running[k] and p[pump.node] > pump.lowest:
                pumped[k] = pump.speed * (p[pump.node] - pump.lowest)
                slope[pump.node, pump.node] -= pump.speed
        return flow, pumped, slope[:n, :n]


@dataclass(frozen=True, eq=False)
class PumpedCups:
    """Cups on one pump: a line with a valve from each to the manifold, and a vent that lets air into it.

    A cup without a cavity is torn off: its line then ends in the open. Raises InputError as `Network`.
    """

    network: Network
    """Nodes: the manifold, then the cups. Lines: of each cup, the same in the open, the vent."""
    cups: int

    @staticmethod
    def of(
        manifold: float, lines: Sequence[float], vent: float, pump: Pump, atmosphere: float
    ) -> "PumpedCups":
        """manifold [m3]; conductances [m3/(Pa s)] of the cups' lines and of the vent; the pump, at node 0."""
        ends = [
            *(Line(1 + i, 0, conductance) for i, conductance in enumerate(lines)),
            *(Line(OUTSIDE, 0, conductance) for conductance in lines),
            Line(OUTSIDE, 0, vent),
        ]
        return PumpedCups(Network([manifold] * (1 + len(lines)), ends, [pump], atmosphere), len(lines))

    @property
    def pressure(self) -> float:
        """Of the manifold [Pa]."""
        return float(self.network.pressure[0])

    def switch(self, running: bool, vented: bool, valves: Sequence[bool]) -> None:
        """Pump, vent and the valve of each cup, until they are switched again."""
        n, network = self.cups, self.network
        network.running[:] = running
        network.open[:n] = network.open[n : 2 * n] = valves
        network.open[2 * n] = vented

    def step(self, pressure: Floats, volume: Floats, attached: NDArray[np.bool_], h: float) -> Floats:
        """Let air flow for h [s]; what the cups hold then, p V (cups,) [J].

        pressure [Pa] and volume [m3] (cups,) of their cavities; attached (cups,) whether they have one: else
        the values count for nothing, and the result is 0.
        """
        n, network = self.cups, self.network
        valves = network.open[:n] | network.open[n : 2 * n]
        network.open[:n], network.open[n : 2 * n] = valves & attached, valves & ~attached
        network.volume[1:] = np.where(attached, volume, network.volume[0])
        network.held[1:] = np.where(attached, pressure * volume, network.atmosphere * network.volume[1:])
        network.step(h)
        return np.where(attached, network.held[1:], 0.0)

    def draw(self, cup: NDArray[np.int64], pressure: Floats, volume: Floats, h: float) -> NDArray[np.int64]:
        """Let air flow for h [s] between k cavities and the pump, each cup by its roomiest; which these are.

        cup (k,): whose each is; volume (k,) [m3]. pressure (k,) [Pa] becomes that of the end.
        """
        mouth = np.full(self.cups, -1)
        for j in np.argsort(volume, kind="stable"):
            if volume[j] > 0.0:
                mouth[cup[j]] = j
        attached = mouth >= 0
        its = mouth[attached]
        held, room = np.zeros(self.cups), np.zeros(self.cups)
        held[attached], room[attached] = pressure[its], volume[its]
        pressure[its] = self.step(held, room, attached, h)[attached] / volume[its]
        return its
