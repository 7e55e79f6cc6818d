"""The solution followed from where nothing touches: slow, and sure where W is regular.

Lifted far enough by s d, d > 0 along the normals, the contacts of u = W r + b + s d come apart, and no force
is the only solution. From there the path of the solutions (r, s) leads to s = 0. Alart & Curnier's equations
(as in `semi_smooth_newton`) are smooth while every contact stays open, stick or slip, so it is a chain of
smooth pieces, each from one change of a status to the next. Friction is not monotone: s falls and rises, and
at such a fold whatever only descends stalls. The sign of det dF/dr leads through all of them, at a change or
within a piece: ds times that sign is the same along the whole path (Allgower & Georg, Introduction to
Numerical Continuation Methods, 2003). Such a path has no other end, does not come back to where nothing
touches, as that is the only solution there, and W regular keeps forces bounded: so it gets to s = 0. It is to
Coulomb's cones what Lemke's method is to those with facets (Cottle, Pang & Stone, The Linear Complementarity
Problem, 1992).

A step goes along the tangent to where the first status changes, or less far where a slip turns, and back to
the path by Newton's method, across the tangent or to exactly that change. RIDGE, which adds no more than
itself to the relative residual, makes a singular W regular; but where forces are not unique, a path may go
very far.

From time to time Newton of the whole problem is tried from where the path is.
"""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetrf

from palpo.physics.contact.laws import OPEN, SLIP, STICK, relative_residual
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers import semi_smooth_newton
from palpo.physics.contact.solvers.path_following import follow
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force
from palpo.physics.numerics.kernels import kernel

Array = NDArray[np.float64]

RIDGE = 1e-10
"""Added to W's diagonal, over its mean."""

SPREAD, GOLDEN = 0.5, 0.6180339887498949
"""Lifts are from 1 to 1 + SPREAD, all different: contacts that came together would share their changes."""

WALKS = 3
"""Paths that are tried, of different lifts."""

BEND = 0.3
"""Most that a slip may turn in a step, in radians."""

NEAR, TURNS, STRAYED = 1e-8, 7, 0.5
"""Newton's correction over the greatest force that is the last; most of them; all of them together over the
step, at most: else the step is too long."""

TRUE, HARDLY, SHORTER, TRIES = 1e-9, 1e-6, 0.25, 14
"""How far over the greatest force a status may be wrong after a step; and where no shorter one of TRIES does
better, each SHORTER times as long."""

STANDS = 60
"""Changes of status at one point after which a path is lost."""


@kernel
def both_sides(w, mu, lift, right, a):
    """a.matrix over what bears; right (2, N) = the right-hand sides for dr/ds and for Newton's correction."""
    for j in range(2):
        for i in range(a.r.shape[0]):
            a.ahead[i] = a.u[i] + (lift[i] if j == 0 else 0.0)
        semi_smooth_newton.assemble(w, mu, a)
        for i in range(a.r.shape[0]):
            right[j, i] = a.right[i]
    for i in range(a.r.shape[0]):
        right[0, i] -= right[1, i]


class Walk:
    """A walk along the path of a problem lifted by lift, shape (n,), in all its normals [m]."""

    def __init__(self, problem: ContactProblem, lift: Array) -> None:
        n = problem.n_contacts
        diagonal = problem.w.diagonal()
        self.w = np.array(problem.w, order="C")
        self.w.flat[:: 3 * n + 1] += RIDGE * diagonal.mean()
        self.b, self.mu, self.n = problem.b, problem.mu, n
        self.moves = diagonal[0::3] > 0.0
        """Whether a contact yields along its normal; else no force could part it."""
        self.d = np.zeros(3 * n)
        self.d[0::3] = lift
        self.a = semi_smooth_newton.make_semi_smooth(n)
        semi_smooth_newton.begin(self.w, self.b, self.mu, np.zeros(3 * n), self.a)
        self.right = np.zeros((2, 3 * n))
        self.factors = self.flips = 0
        self.tried = np.inf
        self.s = max(0.0, float((-self.b[0::3] / lift)[self.moves].max(initial=0.0)))
        self.a.status[:] = OPEN
        self._place(self.a.r, self.s)
        self.sign = self._factor()
        self.way = -self.sign
        """ds times the sign of det dF/dr, all along the path."""

    @property
    def left(self) -> float:
        return self.s

    @property
    def ended(self) -> bool:
        return self.s <= 0.0

    @property
    def force(self) -> Array:
        """r, shape (3 n,), in the cones [N]."""
        r = self.a.r.copy()
        project_cones(self.mu, r)
        return r

    def _place(self, r: Array, s: float) -> None:
        r.reshape(-1, 3)[self.a.status == OPEN] = 0.0
        self.a.r[:], self.s = r, s
        self.a.u[:] = self.w @ r + self.b + s * self.d

    def _factor(self) -> int:
        """Factors dF/dr; the sign of its determinant, 0 where it has none."""
        a = self.a
        bears = np.flatnonzero(a.status != OPEN)
        self.rows, size = (3 * bears[:, None] + np.arange(3)).ravel(), 3 * len(bears)
        a.bearing[: len(bears)], a.state["bearing"] = bears, len(bears)
        a.state["ridge"] = 0.0
        both_sides(self.w, self.mu, self.d, self.right, a)
        if not size:
            return 1
        self.factors += 1
        self.lu = dgetrf(a.matrix[:size, :size])[:2]  # SciPy's lu_factor warns where it is singular
        diagonal = self.lu[0].diagonal()
        if not (np.isfinite(diagonal).all() and (diagonal != 0.0).all()):
            return 0
        crossed = np.count_nonzero(self.lu[1] != np.arange(size)) + np.count_nonzero(diagonal < 0.0)
        return -1 if crossed % 2 else 1

    def _solve(self, which: int) -> Array:
        """The force's slope by s (0), or Newton's correction (1), shape (3 n,)."""
        out, size = np.zeros(3 * self.n), len(self.rows)
        if size:
            out[self.rows] = lu_solve(self.lu, self.right[which, :size], check_finite=False)
        return out

    # ---- steps

    def step(self) -> bool:
        """On to the next change of a status, or less far, or to s = 0; whether that was found."""
        if not self._leave():
            return False
        a, length, contact = self.a, self.length, self.contact
        r, s, greatest = a.r.copy(), self.s, float(np.abs(a.r).max())
        last = self.ds < 0 and length >= s
        for tried in range(TRIES):
            length = min(length, s) if last else length
            changes = contact if length == self.length and not last else -1
            found = self._land(r, s, length, changes, last)
            if found and self.s < 0.0:  # past the end
                last = True
            elif found:
                wrong = self._wrong()
                if wrong <= TRUE * greatest or (tried > TRIES - 4 and wrong <= HARDLY * greatest):
                    if changes >= 0:
                        return self._change(contact, self.status)
                    self.sign = self._factor()
                    return self.sign != 0
                last = False
                length *= SHORTER
            else:
                last = False
                length *= SHORTER
            self._place(r.copy(), s)
        return False

    def _leave(self) -> bool:
        """The tangent and how far it is to go, once all statuses are such that it can be gone at all."""
        for _ in range(STANDS):
            self.ds = self.way * self.sign
            self.tangent = self.ds * self._solve(0)
            moved = self.w @ self.tangent + self.ds * self.d
            reach, status, turning = self._changes(moved)
            self.contact = int(np.argmin(reach))
            self.status = int(status[self.contact])
            self.length = float(reach[self.contact])
            if self.length > 0.0:
                if turning < self.length:
                    self.length, self.contact = turning, -1
                self.off = float(np.abs(self._solve(1)).max())  # a change beside the border has left that
                return np.isfinite(self.length) or self.ds < 0
            if not self._change(self.contact, self.status):
                return False
        return False

    def _measures(self, r: Array, u: Array) -> tuple[Array, Array]:
        """p_n (n,) and s (n, 2) of a force and an offset, or of what they change by [N]."""
        step = self.a.step
        tangential = r.reshape(-1, 3)[:, 1:] - step[:, 1:] * u.reshape(-1, 3)[:, 1:]
        return r[0::3] - step[:, 0] * u[0::3], tangential

    def _changes(self, moved: Array) -> tuple[Array, Array, float]:
        """How far along the tangent each status changes, to what, and how far a slip turns by BEND."""
        status = self.a.status
        p, s = self._measures(self.a.r, self.a.u)
        dp, ds = self._measures(self.tangent, moved)
        is_open, rubs = status == OPEN, self.mu > 0.0
        parts = np.where(is_open, dp > 0.0, dp < 0.0) & self.moves
        reach = np.where(parts, np.maximum(-p / np.where(parts, dp, 1.0), 0.0), np.inf)
        to = np.where(is_open, SLIP, OPEN)
        out = np.where(status == STICK, 1.0, -1.0)
        border = first_rise(
            out * ((ds**2).sum(axis=1) - (self.mu * dp) ** 2),
            out * ((s * ds).sum(axis=1) - self.mu**2 * p * dp),
            out * ((s**2).sum(axis=1) - (self.mu * p) ** 2),
        )
        border[is_open | ~rubs] = np.inf
        sooner = border < reach
        to = np.where(sooner, np.where(status == STICK, SLIP, STICK), to)
        slips = (status == SLIP) & rubs
        across = np.abs(ds[:, 0] * s[:, 1] - ds[:, 1] * s[:, 0])[slips]
        square = (s[slips] ** 2).sum(axis=1)
        turning = float((BEND * square / np.maximum(across, 1e-300)).min(initial=np.inf))
        return np.where(sooner, border, reach), to, turning

    def _change(self, contact: int, status: int) -> bool:
        """The contact's status becomes another; whether dF/dr is regular then."""
        self.a.status[contact] = status
        self.flips += 1
        if status == OPEN:
            r = self.a.r.copy()
            self._place(r, self.s)
        self.sign = self._factor()
        return self.sign != 0

    def _land(self, r: Array, s: float, length: float, contact: int, last: bool) -> bool:
        """Newton from so far along the tangent: at s = 0 (last), to that contact's change, or across."""
        a, gone = self.a, length * self.tangent
        self._place(r + gone, 0.0 if last else s + length * self.ds)
        most = STRAYED * float(np.abs(gone).max()) + 1e-7 * float(np.abs(r).max()) + 2.0 * self.off
        spent = 0.0
        for _ in range(TURNS):
            sign = self._factor()
            if sign == 0:
                return False
            change, slope, by = self._solve(1), self._solve(0), 0.0
            if not last:
                by = self._to_border(contact, change, slope) if contact >= 0 else 0.0
                if contact < 0:
                    along = float(self.tangent @ slope)
                    by = -float(self.tangent @ change) / along if along != 0.0 else 0.0
                change = change + by * slope
            size = float(np.abs(change).max())
            spent += size
            if not spent <= most:
                return False
            self._place(a.r + change, self.s + by)
            if size <= NEAR * float(np.abs(a.r).max()):  # another arm of the path comes the other way
                return self.way * sign * float(slope @ gone) >= 0.0
        return False

    def _to_border(self, contact: int, change: Array, slope: Array) -> float:
        """The change of s after which, Newton's correction made, the contact is where its status changes."""
        i, mu = 3 * contact, self.mu[contact]
        rho_n, rho_t = self.a.step[contact]
        values = []
        for r, u in (
            (self.a.r, self.a.u[i : i + 3]),
            (change, self.w[i : i + 3] @ change),
            (slope, self.w[i : i + 3] @ slope + self.d[i : i + 3]),
        ):
            values.append((r[i] - rho_n * u[0], r[i + 1 : i + 3] - rho_t * u[1:]))
        (p, s), (p_change, s_change), (p_slope, s_slope) = values
        if OPEN in (self.status, self.a.status[contact]):
            over, ahead, rate = p, p_change, p_slope
        else:
            size = float(np.hypot(*s))
            e = s / size if size > 0.0 else s
            over, ahead = size - mu * p, float(e @ s_change) - mu * p_change
            rate = float(e @ s_slope) - mu * p_slope
        return -(over + ahead) / rate if rate != 0.0 else 0.0

    def _wrong(self) -> float:
        """How far the force is from what any status says it is [N]."""
        status = self.a.status
        p, s = self._measures(self.a.r, self.a.u)
        over = np.hypot(s[:, 0], s[:, 1]) - self.mu * np.maximum(p, 0.0)
        bears = np.maximum(np.where(status == STICK, over, -over), -p)
        return float(np.where(status == OPEN, p, bears)[self.moves].max(initial=0.0))


def first_rise(a: Array, b: Array, c: Array) -> Array:
    """The least x >= 0 from which on a x^2 + 2 b x + c is positive; infinite where it never is."""
    with np.errstate(all="ignore"):
        under = b * b - a * c
        root = np.sqrt(np.maximum(under, 0.0))
        within = np.where(b > 0.0, -c / (b + root), (root - b) / a)  # of c < 0
        within = np.where((under >= 0.0) & ((a > 0.0) | (b > 0.0)), within, np.inf)
        beyond = np.where((b > 0.0) | ((b == 0.0) & (a > 0.0)), 0.0, np.inf)
        falls = (b < 0.0) & (a > 0.0)  # it goes back first
        beyond = np.where(falls, np.where(under > 0.0, (root - b) / a, 0.0), beyond)
    return np.where(c >= 0.0, beyond, within)


def lift_of(n_contacts: int, walk: int) -> Array:
    """The lift of a walk, by number: shape (n,), from 1 to 1 + SPREAD."""
    numbers = np.arange(1, n_contacts + 1) + float(walk * n_contacts)
    return np.asarray(1.0 + SPREAD * (GOLDEN * numbers % 1.0), dtype=np.float64)


def solve(problem: ContactProblem, stop: Stop, *, first: int = 0, walks: int = WALKS) -> ContactResult:
    """Follow the path until the residual is at most `stop.tolerance`; an iteration is a factorisation.

    Where a walk is lost, others of another lift are begun, `walks` of them, from number `first` on. The warm
    start is only given back where no force on the way is better.
    """
    started, best = perf_counter(), starting_force(problem)
    least = relative_residual(problem, best)
    nothing = relative_residual(problem, np.zeros_like(best))
    if nothing < least:  # a path from where nothing touches may begin at its end
        least, best = nothing, np.zeros_like(best)
    lifts = [lift_of(problem.n_contacts, number) for number in range(first, first + walks)]
    begin = [lambda _, lift=lift: Walk(problem, lift) for lift in lifts]
    return follow(problem, stop, started, best, least, begin)
