"""Suction cups as solids of revolution: an independent model to hold the program's cups against.

A cup's section in quadratic elements of a neo-Hookean material (palpo.physics.fem.axisymmetric), on a rigid
wall with Coulomb friction, with the gas law p V = const from the moment that it is sealed. It shares neither
mesh, nor elements, nor contact with the program's cups. What a cup holds is decided by its rim: where it
sticks to the wall, the limit is set by the push; where it slides outward, it is not.

Thesis 000, figure 5.14: pushed by 1 mm, the small cup lifts 50 and 100 g and not 200 g, the large one all.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.linalg import solve

from palpo.physics.fem.axisymmetric import GAUSS, GAUSS_WEIGHTS, Solid, edge_shapes, enclosed
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO, CupShape, meridian
from palpo.studies.claims import Line, Reported, at_least, at_most, close_to
from palpo.studies.suction_runs import GRAVITY, PUSH, THESIS, spread
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]

ATMOSPHERE = 101325.0
STIFF, SOFT = 2e9, 5e-7
"""Pressure of the contact over its penetration [Pa/m], which stays at some micrometres, and the gap [m] over
which it comes on smoothly: k s ln(1 + exp(-z / s))."""
FAINT = 1e-3
"""Pressure below which there is no contact [Pa]."""
SEALINGS = (3e-6, 1e-4, 5e-4)
"""Gaps of the rim [m] up to which no air passes: the contact's own give, and two that scenes have."""
BONDED = np.inf
"""Coefficient of friction of a rim whose nodes are tied to the radius at which they touched the wall."""
MOST, NEAREST = 5e-4, 1e-9
"""Largest motion of a node in one iteration, and that of the last one [m]."""
ITERATIONS, SHORTER, BORDERS = 60, 6, 20
SHALLOW, DEEP = 1e-4, 3e-3
"""Other push depths [m]."""
PUSH_STEP, PULL_STEP, LEAST_STEP, LONGEST = 1e-4, 2e-4, 1e-5, 25e-3
"""Of the stem [m]: while pushed, while pulled and at the least, and how far it is pulled at most."""


class State(NamedTuple):
    """Of a cup in equilibrium, with the stem at `height` [m] over where the rim just touched."""

    height: float
    force: float  # upward on the stem [N]
    suction: float  # atmosphere less the cavity's pressure [Pa]
    pressed: float  # normal force on the rim [N]
    sheared: float  # friction on the rim, outward positive [N]
    volume: float  # of the cavity [m3]
    border: float  # rim edges, from inside, that the air has got under
    slides: bool


class Wall(NamedTuple):
    """What the wall does to each Gauss point of the rim, (edges, 3).

    Friction comes up to Coulomb's bound smoothly, T = mu p x / (1 + x^4)^(1/4) with x = k_t s / (mu p).
    """

    radius: Floats  # [m]
    pressure: Floats  # [Pa]
    rise: Floats  # its derivative by the penetration [Pa/m]
    shear: Floats  # outward on the wall [Pa]
    by_radius: Floats  # its derivatives [Pa/m]
    by_pressure: Floats  # [-]
    slides: NDArray[np.bool_]


class Forces(NamedTuple):
    """What is out of balance at a displacement, and its derivative."""

    residual: Floats  # (2 n,) [N]
    matrix: Floats  # (2 n, 2 n) [N/m]
    suction: float
    volume: float
    pressed: float
    sheared: float
    slides: bool


class Lost(Exception):
    """There is no equilibrium near: the cup has let go."""


class WalledCup:
    """A cup on the wall z = 0, moved by its stem in small steps."""

    def __init__(
        self, shape: CupShape, youngs_modulus: float, mu: float, sealing: float = SEALINGS[0], finer: int = 1
    ) -> None:
        """sealing: gap of the rim that no air passes [m]. finer: elements as small as 1 / finer."""
        through = 3 * finer
        self.mesh = mesh = meridian(shape, 12 * finer, through, 2 * finer, 3 * finer)
        self.solid = Solid(mesh.nodes, mesh.elements, youngs_modulus, POISSON_RATIO)
        self.mu, self.sealing, self.through = mu, sealing, through
        self.u = np.zeros(self.solid.freedoms)
        rim = mesh.curve[2 * mesh.border :]
        held = np.concatenate([mesh.axis, mesh.held, rim if np.isinf(mu) else []]).astype(int)
        self._lifted = 2 * mesh.held + 1
        self._given = np.concatenate([2 * np.unique(held), self._lifted])
        self._free = np.setdiff1d(np.arange(self.solid.freedoms), self._given)
        self._edges = np.stack([rim[2 * e : 2 * e + 3] for e in range(through)])
        self._value, slope = edge_shapes(GAUSS)
        rest = mesh.nodes[self._edges]
        along_r = np.einsum("ga,ea->eg", slope, rest[:, :, 0])
        radius = np.einsum("ga,ea->eg", self._value, rest[:, :, 0])
        self._area = 2 * np.pi * radius * along_r * GAUSS_WEIGHTS
        self._anchor = radius.copy()
        self._on = np.zeros_like(radius, bool)

    def step(self, height: float, suction: float, sealed: float) -> State:
        """Equilibrium with the stem at that height; raises Lost where there is none near.

        suction: of an open cavity [Pa]. sealed: p V [J] of a closed one; 0 for an open one.
        """
        before = self.u.copy()
        border = self._border(self.u)
        try:
            for turn in range(BORDERS):
                state = self._balance(height, suction, sealed, border)
                found = self._border(self.u)
                if abs(found - border) < 1e-3:
                    return self._keep(state)
                border = found if turn < 3 else 0.5 * (border + found)
        except Lost:
            self.u = before
            raise
        self.u = before
        raise Lost

    def _border(self, u: Floats) -> float:
        """Edges of the rim, from inside, before the first place that is sealed; Lost where none is."""
        s = np.linspace(-1.0, 1.0, 21)
        value, _ = edge_shapes(s)
        gap = (self.mesh.nodes[:, 1] + u[1::2])[self._edges] @ value.T
        at = (np.arange(self.through)[:, None] + 0.5 * (s + 1)).ravel()
        gap = gap.ravel()
        shut = np.flatnonzero(gap <= self.sealing)
        if not shut.size:
            raise Lost
        k = int(shut[0])
        if k == 0:
            return 0.0
        return float(at[k - 1] + (at[k] - at[k - 1]) * (gap[k - 1] - self.sealing) / (gap[k - 1] - gap[k]))

    def _contact(self, u: Floats) -> Wall:
        """What the wall does to the rim."""
        place = self.mesh.nodes + u.reshape(-1, 2)
        r, z = (np.einsum("ga,ea->eg", self._value, place[self._edges, i]) for i in (0, 1))
        pressure = STIFF * SOFT * np.logaddexp(0.0, -z / SOFT)
        rise = STIFF * -np.expm1(-pressure / (STIFF * SOFT))
        if np.isinf(self.mu) or self.mu == 0.0:
            none = np.zeros_like(r)
            return Wall(r, pressure, rise, none, none, none, (pressure > FAINT) & (self.mu == 0.0))
        stick = 0.5 * STIFF * self._on
        over = stick * (r - self._anchor) / (self.mu * np.maximum(pressure, FAINT))
        saturated = 1.0 + over**4
        shear = self.mu * pressure * over * saturated**-0.25
        by_radius = stick * saturated**-1.25
        by_pressure = self.mu * over**5 * saturated**-1.25
        return Wall(r, pressure, rise, shear, by_radius, by_pressure, np.abs(over) > 1.0)

    def _balance(self, height: float, suction: float, sealed: float, border: float) -> State:
        """Newton's method with the border where it is, its moves shortened until the residual falls."""
        until = self.mesh.border + border
        before = self._forces(self.u, suction, sealed, until)
        if before is None:
            raise Lost
        move = np.zeros_like(self.u)
        move[self._lifted] = height - self.u[self._lifted]
        load = before.matrix[np.ix_(self._free, self._given)] @ move[self._given]
        move[self._free] = self._solved(before, load)
        u = self.u + move
        now = self._forces(u, suction, sealed, until)
        for _ in range(ITERATIONS):
            if now is None:
                raise Lost
            move = np.zeros_like(u)
            move[self._free] = self._solved(now, 0.0)
            largest = float(np.abs(move).max())
            if not largest < np.inf:
                raise Lost
            if largest < NEAREST:
                self.u = u
                force = float(now.residual[self._lifted].sum())
                return State(
                    height, force, now.suction, now.pressed, now.sheared, now.volume, border, now.slides
                )
            size = np.linalg.norm(now.residual[self._free])
            share = min(1.0, MOST / largest)
            for _ in range(SHORTER):
                tried = self._forces(u + share * move, suction, sealed, until)
                if tried is not None and np.linalg.norm(tried.residual[self._free]) < size:
                    break
                share *= 0.5
            u, now = u + share * move, tried
        raise Lost

    def _solved(self, at: Forces, load: Floats | float) -> Floats:
        """Motion of the free freedoms against the residual and a load."""
        rest = at.residual[self._free] + load
        return np.asarray(solve(at.matrix[np.ix_(self._free, self._free)], -rest, check_finite=False))

    def _forces(self, u: Floats, suction: float, sealed: float, until: float) -> Forces | None:
        """What is out of balance at u; None where an element is inside out."""
        parts = self.solid.elastic(u)
        if parts is None:
            return None
        _, residual, tangent = parts
        cavity = enclosed(self.mesh.nodes + u.reshape(-1, 2), self.mesh.curve, until)
        give = 0.0
        if sealed > 0.0:
            suction = ATMOSPHERE - sealed / cavity.volume
            give = sealed / cavity.volume**2
        matrix = (tangent + suction * cavity.hessian).toarray()
        matrix += give * np.outer(cavity.gradient, cavity.gradient)
        residual = residual + suction * cavity.gradient
        return Forces(residual, matrix, suction, cavity.volume, *self._add_contact(u, residual, matrix))

    def _add_contact(self, u: Floats, residual: Floats, matrix: Floats) -> tuple[float, float, bool]:
        """The wall's forces and their derivatives; the sums of pressure and shear, and whether any slides."""
        wall = self._contact(u)
        on = wall.pressure > FAINT
        for edge, nodes in enumerate(self._edges):
            up, out = 2 * nodes + 1, 2 * nodes
            for g in np.flatnonzero(on[edge]):
                value, area, at = self._value[g], self._area[edge, g], (edge, g)
                block = area * np.outer(value, value)
                residual[up] -= area * wall.pressure[at] * value
                residual[out] += area * wall.shear[at] * value
                matrix[np.ix_(up, up)] += wall.rise[at] * block
                matrix[np.ix_(out, out)] += wall.by_radius[at] * block
                matrix[np.ix_(out, up)] -= wall.by_pressure[at] * wall.rise[at] * block
        pressed, sheared = (float((self._area * part).sum()) for part in (wall.pressure, wall.shear))
        return pressed, sheared, bool((wall.slides & on).any())

    def _keep(self, state: State) -> State:
        """Remember where the rim sticks."""
        wall = self._contact(self.u)
        self._on = wall.pressure > FAINT
        self._anchor = np.where(self._on, wall.radius - 2.0 * wall.shear / STIFF, wall.radius)
        return state

    def saved(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """What a step changes."""
        return self.u.copy(), self._anchor.copy(), self._on.copy()

    def restore(self, saved: tuple[Floats, Floats, NDArray[np.bool_]]) -> None:
        """Back to what was saved."""
        u, anchor, on = saved
        self.u, self._anchor, self._on = u.copy(), anchor.copy(), on.copy()


class Case(NamedTuple):
    """What is pulled off the wall."""

    cup: str
    push: float  # [m]
    mu: float = BONDED
    sealing: float = SEALINGS[0]  # [m]
    finer: int = 1


class Pull(NamedTuple):
    """A cup pushed, sealed and pulled until it lets go: its states while it is pulled."""

    case: Case
    states: list[State]

    @property
    def limit(self) -> State:
        """The state with the largest force."""
        return max(self.states, key=lambda state: state.force)

    @property
    def mass(self) -> float:
        """What the cup holds [kg]."""
        return self.limit.force / GRAVITY


def pull(case: Case) -> Pull:
    """Push a cup with its air free to go, seal it, and pull it until there is no equilibrium."""
    design = CUPS[case.cup]
    cup = WalledCup(design.shape, design.youngs_modulus, case.mu, case.sealing, case.finer)
    steps = max(2, round(case.push / PUSH_STEP))
    for k in range(1, steps + 1):
        state = cup.step(-case.push * k / steps, 0.0, 0.0)
    sealed, height, step, states = ATMOSPHERE * state.volume, -case.push, PULL_STEP, [state]
    while step >= LEAST_STEP and height < LONGEST:
        before = cup.saved()
        try:
            states.append(cup.step(height + step, 0.0, sealed))
            height += step
        except Lost:
            cup.restore(before)
            step /= 4
    return Pull(case, states)


def linear_limit(case: Case) -> float:
    """The bonded limit for small motions [kg]: with push s, stiffness k, alpha = dV/ds, c = -dV/dp, area A

        m g = A k s / (k (V0 / P0 + c) / alpha - (A - alpha)),

    where the wall no longer presses. It takes the rim to touch all along as it does when it is pushed.
    """
    design, small = CUPS[case.cup], 1e-4
    rest, lifted, sucked = (
        WalledCup(design.shape, design.youngs_modulus, BONDED).step(height, suction, 0.0)
        for height, suction in ((-2 * small, 0.0), (-small, 0.0), (-2 * small, 10.0))
    )
    stiffness = (lifted.force - rest.force) / small
    alpha = (lifted.volume - rest.volume) / small
    give = (rest.volume - sucked.volume) / 10.0
    area = np.pi * design.shape.inner**2
    air = stiffness * (rest.volume / ATMOSPHERE + give) / alpha
    return float(area * stiffness * case.push / (air - (area - alpha)) / GRAVITY)


def run(out: Path, quick: bool) -> list[Line]:
    """Limits as CSV, hold curves and maps, and the verdict."""
    bonded = [Case(cup, PUSH) for cup in ("small", "large")]
    depths = [Case("small", push) for push in (SHALLOW, DEEP)]
    finer = [Case("small", PUSH, finer=2)]
    mus = (0.6,) if quick else (0.0, 0.3, 0.6, 1.0, 2.0)
    sliding = [Case("small", PUSH, mu, sealing) for mu, sealing in product(mus, SEALINGS)]
    pushed = [] if quick else [Case("small", push, 0.6, SEALINGS[-1]) for push in (SHALLOW, 3e-4, DEEP)]
    cases = [*bonded, *depths, *finer, *sliding, *pushed]
    pulls = dict(zip(cases, spread(pull, cases, "pulled off the wall", quick), strict=True))
    estimates = {case: linear_limit(case) for case in bonded}
    write_csv(out / "limits.csv", [_row(p) for p in pulls.values()])
    write_csv(
        out / "curves.csv",
        [p.case._asdict() | state._asdict() for p in pulls.values() for state in p.states],
    )
    save_figure(out / "hold.png", 3.6, partial(_draw_hold, pulls=pulls))
    return [*_bonded_claims(pulls, bonded, finer[0], estimates), *_sliding_lines(pulls, sliding)]


def _row(p: Pull) -> dict[str, float | str | bool]:
    at = p.limit
    return p.case._asdict() | {
        "limit_kg": p.mass, "height_m": at.height, "suction_Pa": at.suction, "rim_N": at.pressed,
        "border": at.border, "slides": at.slides,
    }  # fmt: skip


def _bonded_claims(
    pulls: dict[Case, Pull], bonded: list[Case], finer: Case, estimates: dict[Case, float]
) -> list[Line]:
    small, large = (pulls[case].mass for case in bonded)
    shown = f"{THESIS}, figure 5.14, {1e3 * PUSH:g} mm"
    lines: list[Line] = [
        at_least("bonded rim: the small cup holds", 1e3 * small, 100.0, "g", f"{shown}: lifts 100 g"),
        at_most("bonded rim: the small cup holds", 1e3 * small, 200.0, "g", f"{shown}: does not lift 200 g"),
        at_least("bonded rim: the large cup holds", 1e3 * large, 200.0, "g", f"{shown}: lifts 200 g"),
        close_to(
            "bonded limit, elements half as long over these", pulls[finer].mass / small, 1.0, 3.0, "",
            "the mesh does not decide it",
        ),
    ]  # fmt: skip
    shallow = Case("small", SHALLOW)
    per_mm = {case: pulls[case].mass / case.push for case in (shallow, bonded[0], Case("small", DEEP))}
    lines += [
        Reported(
            f"bonded limit of the {case.cup} cup for small motions at {1e3 * case.push:g} mm",
            1e3 * estimates[case], "g", f"computed, with a rim that may roll: {1e3 * pulls[case].mass:.0f} g",
        )
        for case in estimates
    ]  # fmt: skip
    lines += [
        Reported(f"bonded limit per mm of push at {1e3 * case.push:g} mm", value, "g/mm", "not proportional")
        for case, value in per_mm.items()
    ]
    return lines


def _sliding_lines(pulls: dict[Case, Pull], sliding: list[Case]) -> list[Line]:
    return [
        Reported(
            f"small cup, {1e3 * case.push:g} mm, mu {case.mu:g}, airtight to {1e3 * case.sealing:g} mm",
            1e3 * pulls[case].mass, "g",
            f"rim {'slides' if pulls[case].limit.slides else 'sticks'}, "
            f"{1e-3 * pulls[case].limit.suction:.1f} kPa",
        )
        for case in sliding
    ]  # fmt: skip


def _draw_hold(figure: Figure, pulls: dict[Case, Pull]) -> None:
    left, right = figure.subplots(1, 2)
    for case in (Case("small", PUSH), Case("large", PUSH)):
        _curve(left, pulls[case], case.cup)
    for mass in (50, 100, 200):
        left.axhline(mass, color=COLOURS["faint"], lw=0.8, ls=":")
    for width, sealing in zip((3.4, 2.2, 1.2), SEALINGS[::-1], strict=True):
        p = pulls[Case("small", PUSH, 0.6, sealing)]
        _curve(right, p, f"mu 0.6, airtight to {1e3 * sealing:g} mm", lw=width)
    _curve(right, pulls[Case("small", PUSH)], "bonded", color=COLOURS["monolithic"])
    for axes, title in ((left, "Rim bonded"), (right, "Small cup, rim free to slide")):
        axes.set(
            title=f"{title}, {1e3 * PUSH:g} mm of push", xlabel="stem over the wall [mm]", ylabel="holds [g]"
        )
        axes.legend(fontsize=8)


def _curve(axes: Axes, p: Pull, label: str, **look: Any) -> None:
    height, held = [1e3 * s.height for s in p.states], [1e3 * s.force / GRAVITY for s in p.states]
    axes.plot(height, held, label=label, marker="o", markevery=[-1], ms=5, **look)
