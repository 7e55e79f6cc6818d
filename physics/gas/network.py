"""Pump, lines, valves and cups as a network of air: who is pumped down how fast, and who shares a line.

Nodes hold air in a volume, at one temperature; each line between two nodes, or from a node to the atmosphere
(a leak), conducts G: dn/dt = G (p_a^2 - p_b^2) / (R T), laminar flow of an ideal gas
(palpo.physics.gas.law), at a valve's closing 0. A pump takes a volume of air per second at the pressure
of its node, the less the nearer that is to the lowest it reaches:

    dV/dt = S (1 - p_end / p)  above p_end, nothing below                                     (its flow curve)

so that a single volume falls as p = p_end + (P - p_end) exp(-S t / V).

A step is backward Euler on the amounts, each pressure positive whatever the step; what leaves one node
arrives at another to the last bit but one, since both take the same flow.

`PumpedCups` is the network of a gripper: a manifold with the pump, and a line with a valve to each cup. Walls
and air move together, in the solution of the cups' step (palpo.physics.systems.suction.step): in turns, a
vented cup that is pulled would grow in a step by no more than thins its air by the pull, and its load would
fall after some thirty steps, however long. The lines there are flow between cavities and to the outside, as
what gets by under rims is (`couple`), and the manifold is eliminated. With s = h G and q = p^2 of a cup's
line, s_o of all that leads from the manifold to the outside, and its own p about a p* that is foretold,

    (V + h S) p + sum s_i (q - q_i) + s_o (q - P^2) = held + h S p_end,    p = p* / 2 + q / (2 p*)

is linear in q: the flow s_i (q_i - q) is one between cups, s_i s_j / D, one to the outside, and an amount.
What the cups took is then taken from the manifold, with its own law solved as it stands (`settle`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.law import STANDARD_ATMOSPHERE, VISCOSITY, pressure_root
from palpo.physics.numerics.errors import InputError

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
class Pipe:
    """Between two nodes, or from one to OUTSIDE."""

    start: int
    end: int
    conductance: float  # [m3/(Pa s)]


@dataclass(frozen=True)
class NodePump:
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
        self, volume: Sequence[float], lines: Sequence[Pipe], pumps: Sequence[NodePump] = (),
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

    @property
    def open_conductance(self) -> Floats:
        """(lines,) G [m3/(Pa s)], 0 where a valve is shut."""
        return self._conductance * self.open

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
        g = self.open_conductance
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
        manifold: float, lines: Sequence[float], vent: float, pump: NodePump, atmosphere: float
    ) -> "PumpedCups":
        """manifold [m3]; conductances [m3/(Pa s)] of the cups' lines and of the vent; the pump, at node 0."""
        ends = [
            *(Pipe(1 + i, 0, conductance) for i, conductance in enumerate(lines)),
            *(Pipe(OUTSIDE, 0, conductance) for conductance in lines),
            Pipe(OUTSIDE, 0, vent),
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

    def couple(self, cup: NDArray[np.int64], pressure: Floats, volume: Floats, h: float) -> "Lines":
        """What the lines do in a step of h [s] to k cavities, each cup's by its roomiest.

        cup (k,): whose each is; pressure [Pa], volume [m3] (k,) at the step's start.
        """
        k, network = len(cup), self.network
        mouth = np.full(self.cups, -1)
        for j in np.argsort(volume, kind="stable"):
            if volume[j] > 0.0:
                mouth[cup[j]] = j
        attached = mouth >= 0
        its = mouth[attached]
        room, thin = np.ones(self.cups), np.ones(self.cups)
        room[attached], thin[attached] = volume[its], pressure[its]
        kept = network.held[0]
        self.step(thin, room, attached, h)
        foretold = network.pressure[0]
        network.held[0] = kept

        s = h * network.open_conductance
        own = s[: self.cups][attached]
        outside = float(s[self.cups :].sum())
        taken, end = self._pumping(foretold, h)
        give = (network.volume[0] + taken) / (2.0 * foretold)
        given = kept + end - (network.volume[0] + taken) * 0.5 * foretold
        share = own / (give + outside + own.sum())
        seeping, amount = np.zeros((k + 1, k + 1)), np.zeros(k)
        between = np.outer(share, own)
        np.fill_diagonal(between, 0.0)
        seeping[np.ix_(its, its)] = between
        seeping[its, k] = seeping[k, its] = share * (give + outside)
        amount[its] = share * (given - give * network.atmosphere**2)
        return Lines(its, seeping, amount)

    def settle(self, gained: float, h: float) -> None:
        """End a step of h [s] in which the cups gained so much p V [J] from the manifold."""
        network = self.network
        kept, volume = network.held[0] - gained, network.volume[0]
        s = h * network.open_conductance
        outside = float(s[self.cups :].sum())
        for taken, end in (self._pumping(np.inf, h), (0.0, 0.0)):
            come = max(0.0, kept + end + outside * network.atmosphere**2)
            p = pressure_root(outside, volume + taken, come)
            if not taken or p > self.network.pumps[0].lowest:
                break
        network.held[0] = p * volume

    def _pumping(self, pressure: float, h: float) -> tuple[float, float]:
        """h S [m3] and h S p_end [J] of the pump at that pressure [Pa]."""
        pump = self.network.pumps[0]
        if not self.network.running[0] or pressure <= pump.lowest:
            return 0.0, 0.0
        return h * pump.speed, h * pump.speed * pump.lowest


class Lines(NamedTuple):
    """What lines do to k cavities in a step, as palpo.physics.gas.pressure takes flow under rims."""

    mouths: NDArray[np.int64]
    """(m,) cavities that have one."""
    seeping: Floats
    """(k + 1, k + 1) s = h G [m3/Pa] between the cavities and, last, the outside."""
    amount: Floats
    """(k,) p V [J] that comes besides."""
