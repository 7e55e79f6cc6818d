"""Borders that move within a step: suction that pulls harder on a rim as it lifts.

With the border frozen at the step's start, suction pulls a lifting rim with the area of before. Where what
the lift would open is stiff against the cup (10 kPa on a border of 126 mm, towards which the gap falls by a
quarter of a millimetre per millimetre, are 5 kN/m) one step lifts the rim off and the next slams it back, for
ever. Of the border's second derivative (palpo.physics.suction.border_growth) a step takes the mode in which
the whole border lifts, exact for one that lifts evenly and too soft for any other:

    (q . u)^2 / Q,    q = sum a_c dgap_c/dx = dA/dx [m],    Q = sum a_c [m],    A the wall's area

so that suction s is a spring s / Q on the row q, which acts on cup and partner alike. It is taken out of the
step's problem before that is solved: with W_q = H A^-1 q and the row of its own,

    W - W_q G W_q^T,    b - W_q G b_q,    G = (W_qq + Q / s)^-1.

Of several cups on one rigid partner W has blocks, and so has what is taken out (`cup_blocks`).

Over-pressure would be a spring of negative stiffness, with which a rim bursts open; it has none: such a
border is that of the step's start, and what its lift opens presses on it from the next step on.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from palpo.physics.suction.cavity_rows import Walls
from palpo.physics.suction.cup_blocks import CupBlocks, Springs, make_blocks
from palpo.physics.suction.enclosure import Enclosure
from palpo.physics.suction.sides import Motion, RigidSide, Side, SoftSide

Array = NDArray[np.float64]


def springs_under_suction(
    enclosures: Sequence[Enclosure], gauge: Array, cups: Sequence[SoftSide], partner: Side, h: float
) -> "BorderSprings | None":
    """Springs of the cavities under suction, of gauge (k,) [Pa]; None without one."""
    turn, j = partner.axes[1], 0
    cup_of, pulls, stiffness = [], [], []
    for i, (cup, enclosure) in enumerate(zip(cups, enclosures, strict=True)):
        for k in enclosure.active:
            suction, lift = -gauge[j], enclosure.lift[k]
            j += 1
            if suction > 0.0 and lift > 0.0:
                cup_of.append(i)
                own = cup.force_of_wall(enclosure.growth[k] @ turn.T)
                pulls.append((own, partner.force_of_wall(enclosure.partner_growth[k])))
                stiffness.append(suction / lift)
    return BorderSprings(cup_of, pulls, stiffness, [*cups, partner], h) if cup_of else None


class BorderSprings:
    """The borders of a step's m cavities under suction as springs between their cups and the partner.

    cup_of (m,): whose they are. pulls: dA/dx on cup and partner [m]. stiffness (m,): s / Q [Pa/m].
    """

    def __init__(
        self, cup_of: Sequence[int], pulls: Walls, stiffness: Sequence[float], sides: Sequence[Side], h: float
    ) -> None:
        self.cup_of, self.pulls = cup_of, pulls
        self._yields = [
            (sides[i].respond(own, h), sides[-1].respond(other, h))
            for i, (own, other) in zip(cup_of, pulls, strict=True)
        ]
        mutual = [[self._shared(c, d, h) for d in range(len(cup_of))] for c in range(len(cup_of))]
        give = 0.5 * (np.array(mutual) + np.array(mutual).T) + np.diag(1.0 / np.asarray(stiffness))
        self._factor = np.linalg.cholesky(give)
        self._half, self._offset = np.zeros((0, len(cup_of))), np.zeros(len(cup_of))
        self._own = np.zeros((0, len(cup_of)))

    def _shared(self, c: int, d: int, h: float) -> float:
        """h q_c . v [m3/N] of what border d yields to its own pull."""
        (own, other), (own_yield, other_yield) = self.pulls[c], self._yields[d]
        near = (own * own_yield).sum() if self.cup_of[c] == self.cup_of[d] else 0.0
        return h * float((other * other_yield).sum() + near)

    def grown(self, motions: Sequence[Motion], h: float) -> Array:
        """h q . v (m,) [m2]: by how much the borders grow in these motions of the sides."""
        return np.array(
            [
                h * float((own * motions[i]).sum() + (other * motions[-1]).sum())
                for i, (own, other) in zip(self.cup_of, self.pulls, strict=True)
            ]
        )

    def take_out(
        self, w: Array, b: Array, walls: Walls, cavity_cup: NDArray[np.int64], sides: Sequence[Side],
        free: Sequence[Motion], h: float, span: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Change w (n + k, n + k) and b (n + k,), whose rows the sides have taken, as the module says.

        walls, cavity_cup: of the k cavities, see `cavity_rows.fill_cavity_rows`. free: the sides' motions.
        span (m + 1,): of the blocks of contacts between which w holds nothing.
        """
        k, m = len(walls), len(self.cup_of)
        n = len(b) - k
        columns, self._own = np.zeros((n + k, m)), np.zeros((n, m))
        for c, (i, (own, other)) in enumerate(zip(self.cup_of, self._yields, strict=True)):
            column = np.zeros(n)
            sides[i].add_displacement(own, h, column)
            self._own[:, c] = column
            sides[-1].add_displacement(other, h, column)
            columns[:n, c] = column
            for j, (wall, far) in enumerate(walls):
                shared = (far * other).sum() + ((wall * own).sum() if cavity_cup[j] == i else 0.0)
                columns[n + j, c] = h * float(shared)
        self._half = self._weighed(columns.T).T
        self._offset = self._weighed(self.grown(free, h))
        # a product with its own transpose is symmetric to the bit
        for first, past in pairwise((3 * span).tolist()):
            w[first:past, first:past] -= self._half[first:past] @ self._half[first:past].T
        w[n:, :n] -= self._half[n:] @ self._half[:n].T
        w[:n, n:] = w[n:, :n].T
        w[n:, n:] -= self._half[n:] @ self._half[n:].T
        b -= self._half @ self._offset

    def between_blocks(self, partner: RigidSide, h: float) -> Springs:
        """What the springs do between blocks of contacts, after `take_out`."""
        pulls = np.stack([other for _, other in self.pulls], axis=1)
        weight = self._weighed(np.eye(len(self.cup_of)))
        return Springs(
            np.asarray(self.cup_of, np.int64), self._own, partner.half_motion(pulls, h), weight.T @ weight
        )

    def _weighed(self, rows: Array) -> Array:
        return np.asarray(solve_triangular(self._factor, rows, lower=True, check_finite=False))

    def forces(self, x: Array) -> Array:
        """What each spring pulls with (m,) [N/m], times its `pulls`, under a solution x (n + k,) [N, Pa]."""
        return np.asarray(
            -solve_triangular(
                self._factor, self._offset + self._half.T @ x, lower=True, trans="T", check_finite=False
            )
        )

    def held(self, momentum: Array, rows: Array) -> tuple[Array, Array, Array]:
        """What the springs add to a handle not yet led: to its stiffness (6, 6), load and load by momentum.

        momentum (m,), rows (m, 6): by how much the borders grow by the start's momentum and by the handle's
        twist [m2]. `passed_on` is what the problem's own rows lose.
        """
        ahead, carried = self._weighed(momentum), self._weighed(rows)
        return carried.T @ carried, -carried.T @ self._offset, -carried.T @ ahead

    def passed_on(self, growth: Array) -> Array:
        """What the problem's rows lose (n + k, ...) where the borders would grow by (m, ...)."""
        return self._half @ self._weighed(growth)


def joined_blocks(
    span: NDArray[np.int64], partner: Side, springs: BorderSprings | None, h: float
) -> CupBlocks:
    """What joins the blocks of W of several cups, whose rows begin at `span`, by their partner.

    A rigid one by its six motions and by the springs between borders, one that is fixed not at all.
    """
    if not isinstance(partner, RigidSide):
        return make_blocks(span, np.zeros((3 * int(span[-1]), 6)))
    return make_blocks(span, partner.half, None if springs is None else springs.between_blocks(partner, h))
