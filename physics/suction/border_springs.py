"""Borders that move within a step: suction that pulls harder on a rim as it lifts.

With the border frozen at the step's start, suction pulls a lifting rim with the area of before. Where what
the lift would open is stiff against the cup (10 kPa on a border of 126 mm, towards which the gap falls by a
quarter of a millimetre per millimetre, are 5 kN/m) one step lifts the rim off and the next slams it back, for
ever. Of the border's second derivative (palpo.physics.gas.enclosed) a step takes the mode in which
the whole border lifts, exact for one that lifts evenly and too soft for any other:

    (q . u)^2 / Q,    q = sum a_c dgap_c/dx = dA/dx [m],    Q = sum a_c [m],    A the wall's area

so that suction s is a spring s / Q on the row q, which acts on cup and partner alike. It is taken out of the
step's problem before that is solved: with W_q = H A^-1 q and the row of its own,

    W - W_q G W_q^T,    b - W_q G b_q,    G = (W_qq + Q / s)^-1.

Of several cups on one rigid partner W has blocks, and so has what is taken out (`joined_blocks`).

Over-pressure would be a spring of negative stiffness, with which a rim bursts open; it has none: such a
border is that of the step's start, and what its lift opens presses on it from the next step on.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from palpo.physics.contact.lower_triangle import add_lower_products
from palpo.physics.contact.solvers.joined_blocks import JoinedBlocks, Springs, make_blocks
from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.suction.cavity_rows import Field
from palpo.physics.suction.sides import ContactSide, RigidSide, SoftSide

Array = NDArray[np.float64]


def springs_under_suction(
    enclosures: Sequence[Enclosure], gauge: Array, cups: Sequence[SoftSide], partner: ContactSide
) -> "BorderSprings":
    """Springs of the cavities under suction, of gauge (k,) [Pa]."""
    turn, j = partner.axes[1], 0
    fields, give = [], []
    for i, (cup, enclosure) in enumerate(zip(cups, enclosures, strict=True)):
        for k in enclosure.active:
            suction, lift = -gauge[j], enclosure.lift[k]
            j += 1
            if suction > 0.0 and lift > 0.0:
                own = cup.force_of_wall(enclosure.growth[k] @ turn.T)
                fields.append(Field(i, own, partner.force_of_wall(enclosure.partner_growth[k])))
                give.append(lift / suction)
    return BorderSprings(fields, np.array(give))


class BorderSprings:
    """The borders of a step's s cavities under suction as springs between their cups and the partner.

    fields: dA/dx on cup and partner [m], rows of the step's problem after those of the cavities. give (s,):
    Q / s [m/Pa].
    """

    def __init__(self, fields: Sequence[Field], give: Array) -> None:
        self.fields, self._give = fields, give
        self._factor: Array = np.zeros((0, 0))
        self._half_rows: Array = np.zeros((0, 0))
        self._half: Array = np.zeros((0, 0))
        self._offset: Array = np.zeros(0)

    def take_out(self, w: Array, b: Array, lines: Array, grown: Array, n: int) -> None:
        """Change b (n + k,), and of w (n + k, n + k) what is of the k cavities, as the module says.

        lines (s, n + k + s): how all rows yield to the springs'; grown (s,): by how much the borders grow in
        the bodies' free motion [m2].
        """
        if not len(lines):
            return
        mutual = lines[:, len(b) :]
        self._factor = np.asarray(np.linalg.cholesky(0.5 * (mutual + mutual.T) + np.diag(self._give)), float)
        self._half_rows = np.ascontiguousarray(self._weighed(lines[:, : len(b)]))
        self._half = self._half_rows.T
        self._offset = self._weighed(grown)
        w[n:, :n] -= self._half[n:] @ self._half[:n].T
        w[:n, n:] = w[n:, :n].T
        w[n:, n:] -= self._half[n:] @ self._half[n:].T
        b -= self._half @ self._offset

    def take_out_of(self, w: Array, span: NDArray[np.int64]) -> None:
        """After `take_out`, the lower triangles of blocks of w, whose rows begin at span (m + 1,)."""
        if self.fields:
            add_lower_products(w, span, self._half_rows, -1.0)

    def between_blocks(self, own: Array, half: Array) -> Springs:
        """What the springs do between blocks of contacts, after `take_out`.

        own (s, n): how the cups' contacts yield to them; half (s, 6): Y of the partner.
        """
        block, weight = np.array([f.cup for f in self.fields], np.int64), self._weighed(np.eye(len(half)))
        return Springs(block, own.T, half.T, weight.T @ weight)

    def _weighed(self, rows: Array) -> Array:
        return np.asarray(solve_triangular(self._factor, rows, lower=True, check_finite=False))

    def forces(self, x: Array) -> Array:
        """What each spring pulls with (s,) [N/m], times its field, under a solution x (n + k,) [N, Pa]."""
        if not self.fields:
            return np.zeros(0)
        return np.asarray(
            -solve_triangular(
                self._factor, self._offset + self._half.T @ x, lower=True, trans="T", check_finite=False
            )
        )

    def held(self, momentum: Array, rows: Array) -> tuple[Array, Array, Array]:
        """What the springs add to a handle not yet led: to its stiffness (6, 6), load and load by momentum.

        momentum (s,), rows (s, 6): by how much the borders grow by the start's momentum and by the handle's
        twist [m2]. `passed_on` is what the problem's own rows lose.
        """
        ahead, carried = self._weighed(momentum), self._weighed(rows)
        return carried.T @ carried, -carried.T @ self._offset, -carried.T @ ahead

    def passed_on(self, growth: Array) -> Array:
        """What the problem's rows lose (n + k, ...) where the borders would grow by (s, ...)."""
        return self._half @ self._weighed(growth)


def joined_blocks(
    span: NDArray[np.int64],
    partner: ContactSide,
    springs: BorderSprings,
    own: Array,
    single: NDArray[np.float32] | None = None,
) -> JoinedBlocks:
    """What joins the blocks of W of several cups, whose rows begin at `span`, by their partner.

    A rigid one by its six motions and by the springs between borders, one that is fixed not at all. own: see
    `BorderSprings.between_blocks`; single: see `make_blocks`.
    """
    n = 3 * int(span[-1])
    if not isinstance(partner, RigidSide):
        return make_blocks(span, np.zeros((n, 6)), None, single)
    between = springs.between_blocks(own, partner.half[-len(own) :]) if len(own) else None
    return make_blocks(span, partner.half[:n], between, single)
