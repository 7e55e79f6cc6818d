"""The contacts of a problem that bear, as a problem of their own: a few sweeps tell them from the others.

A contact that stays open exerts nothing, so that what the others do is the same without it, and sweeps cost
the square and factorisations the cube of the share that is left. Taken along is what bears after the plain
sweeps, and what is open by less than MARGIN of the greatest free offset. Whether the guess was right is for
the residual of all contacts to say; those that it has left out and that are parted too little join then.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import asked_force, relative_natural_map
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.numerics.kernels import kernel

Array = NDArray[np.float64]

MARGIN = 0.02
"""Share of the greatest free normal offset by which a contact must be open to be left out: of those that bear
in the end, sweeps then miss one in 6% of our problems with open contacts."""

WORTH = 0.8
"""Share of the contacts up to which a part is worth taking out."""


@kernel
def choose(b, r, u, chosen):
    """Adds to `chosen` (n,), 0 or 1, what bears or is open by too little; how many it has now."""
    greatest, count = 0.0, 0
    for k in range(chosen.shape[0]):
        greatest = max(greatest, abs(b[3 * k]))
    for k in range(chosen.shape[0]):
        if r[3 * k] > 0.0 or u[3 * k] <= MARGIN * greatest:
            chosen[k] = 1
        count += chosen[k]
    return count


@kernel
def take_out(w, b, mu, r, chosen, part_w, part_b, part_mu, part_r):
    """The part of the chosen contacts, in their order, into room for so many."""
    rows, n = 0, chosen.shape[0]
    for k in range(n):
        if not chosen[k]:
            continue
        part_mu[rows // 3] = mu[k]
        for i in range(3 * k, 3 * k + 3):
            part_b[rows], part_r[rows] = b[i], r[i]
            row, from_row, column = part_w[rows], w[i], 0
            for o in range(n):
                if chosen[o]:
                    for c in range(3):
                        row[column + c] = from_row[3 * o + c]
                    column += 3
            rows += 1


@kernel
def put_back(w, b, mu, chosen, part_r, r, u, scratch):
    """r of all contacts from that of the chosen, and u = W r + b; its relative residual."""
    rows = 0
    for i in range(b.shape[0]):
        u[i] = b[i]
        r[i] = 0.0
    for k in range(chosen.shape[0]):
        if not chosen[k]:
            continue
        for i in range(3 * k, 3 * k + 3):
            force, row = part_r[rows], w[i]  # W is symmetric
            rows += 1
            r[i] = force
            if force != 0.0:
                for j in range(b.shape[0]):
                    u[j] += force * row[j]
    error, _ = relative_natural_map(w, b, mu, r, u, 0, mu.shape[0], scratch)
    return error


@kernel
def tighter(w, b, part_w, part_b):
    """Share of all contacts' relative residual that the part has to come down to, if the others stay open.

    Both are of the same force, but over other offsets and with another rho, with which the natural map grows,
    though no faster than it (Gafni & Bertsekas, SIAM J. Control Optim. 22, 1984).
    """
    whole, part = 0.0, 0.0
    for i in range(b.shape[0]):
        whole += w[i, i] / b.shape[0]
    for i in range(part_b.shape[0]):
        part += part_w[i, i] / part_b.shape[0]
    rho = whole / part if part > whole else 1.0  # it is one over the mean
    asked = asked_force(w, b, 0, b.shape[0] // 3)
    of_part = asked_force(part_w, part_b, 0, part_b.shape[0] // 3)
    return rho * asked / of_part if of_part > asked else rho


class BearingPart:
    """The part of a problem that a force r and its offset u, shape (3 n,), show to bear."""

    def __init__(self, problem: ContactProblem, w: Array) -> None:
        n = problem.n_contacts
        self.problem, self.w, self.chosen = problem, w, np.zeros(n, np.int8)
        self.status = np.empty((2, n), np.int32)
        """Room for `sweep_first`."""
        self.count = 0
        self.r, self.u, self.scratch = np.zeros(3 * n), np.zeros(3 * n), np.zeros((2, 3))

    def put_back(self, part_r: Array) -> float:
        """Sets r and u to those of all contacts where the part's force is part_r; the relative residual."""
        p = self.problem
        return float(put_back(self.w, p.b, p.mu, self.chosen, part_r, self.r, self.u, self.scratch))

    def grow(self) -> bool:
        """Take along what its force calls for; whether that is any, and a part is worth it yet."""
        before, self.count = self.count, int(choose(self.problem.b, self.r, self.u, self.chosen))
        return before < self.count <= WORTH * self.problem.n_contacts

    def taken_out(self, tolerance: float) -> tuple[ContactProblem, float]:
        """The part, to start from its share of r, and the tolerance that leaves `tolerance` to all."""
        p, m = self.problem, self.count
        w, b, mu, r = np.empty((3 * m, 3 * m)), np.empty(3 * m), np.empty(m), np.empty(3 * m)
        take_out(self.w, p.b, p.mu, self.r, self.chosen, w, b, mu, r)
        return unchecked(w, b, mu, r), tolerance * float(tighter(self.w, p.b, w, b))


def unchecked(w: Array, b: Array, mu: Array, warm: Array) -> ContactProblem:
    """A part of a problem that has been checked."""
    part = object.__new__(ContactProblem)
    for name, value in (("w", w), ("b", b), ("mu", mu), ("warm", warm)):
        object.__setattr__(part, name, value)
    return part
