"""Pump, lines, valves and cups as a network of air: who is pumped down how fast, and who shares a line.

Nodes hold air in a volume, at one temperature; each line between two nodes, or from a node to the atmosphere
(a leak), conducts G: dn/dt = G (p_a^2 - p_b^2) / (R T), laminar flow of an ideal gas
(palpo.physics.suction.flow), at a valve's closing 0. A pump takes a volume of air per second at the pressure
of its node, the less the nearer that is to the lowest it reaches:

    dV/dt = S (1 - p_end / p)  above p_end, nothing below                                     (its flow curve)

so that a single volume falls as p = p_end + (P - p_end) exp(-S t / V).

A step is backward Euler on the amounts, each pressure positive whatever the step; what leaves one node
arrives at another to the last bit but one, since both take the same flow.
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
    Written from outside between steps: `open` (lines,), whether a valve lets air through; `volume`, of cups
    that move, which keeps their amount of air. Read: pressure (n,) [Pa]; flow (lines,) p V [W] of the last
    step, from start to end; pumped [W].
    """

    def __init__(self, volume: Sequence[float], lines: Sequence[Line], pumps: Sequence[Pump] = ()) -> None:
        self._held = np.zeros(len(volume))
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
            if not (0 <= pump.node < n and pump.speed > 0.0 and 0.0 <= pump.lowest < STANDARD_ATMOSPHERE):
                raise InputError(
                    f"{pump}: give a node, a speed above 0 and a pressure below the atmosphere's"
                )
        self.pumps = tuple(pumps)
        ends = np.array([[line.start, line.end] for line in lines], np.int64).reshape(-1, 2)
        # the atmosphere is one node more, whose pressure stays
        self._ends = np.where(ends == OUTSIDE, n, ends)
        self._conductance = np.array([line.conductance for line in lines])
        self.open = np.ones(len(lines), bool)
        self._held[:] = STANDARD_ATMOSPHERE * self.volume
        self.flow, self.pumped = np.zeros(len(lines)), np.zeros(len(self.pumps))

    @property
    def pressure(self) -> Floats:
        """(n,) [Pa]."""
        return self._held / self.volume

    def step(self, h: float) -> None:
        """One step of h [s]."""
        p, held = self.pressure, self._held
        for _ in range(ITERATIONS):
            flow, pumped, slope = self._flows(p)
            gained = self._gained(flow, pumped)
            error = self.volume * p - held - h * gained
            move = np.linalg.solve(np.diag(self.volume) - h * slope, -error)
            # a pressure stays positive: at most nine tenths of it go in an iteration
            p = np.maximum(p + move, 0.1 * p)
            if np.abs(move).max() <= CLOSE * STANDARD_ATMOSPHERE:
                break
        self.flow, self.pumped, _ = self._flows(p)
        self._held = held + h * self._gained(self.flow, self.pumped)

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
        all_p = np.append(p, STANDARD_ATMOSPHERE)
        g = self._conductance * self.open
        a, b = self._ends.T
        flow = g * (all_p[a] ** 2 - all_p[b] ** 2)
        slope = np.zeros((n + 1, n + 1))
        for sign, end in ((-1.0, a), (1.0, b)):
            np.add.at(slope, (end, a), sign * 2.0 * g * all_p[a])
            np.add.at(slope, (end, b), -sign * 2.0 * g * all_p[b])
        pumped = np.zeros(len(self.pumps))
        for k, pump in enumerate(self.pumps):
            if p[pump.node] > pump.lowest:
                pumped[k] = pump.speed * (p[pump.node] - pump.lowest)
                slope[pump.node, pump.node] -= pump.speed
        return flow, pumped, slope[:n, :n]
