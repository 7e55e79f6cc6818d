"""A suction cup as a solid of revolution on a flat rigid wall: an independent model of a cup in contact.

A cup's section in quadratic elements of a neo-Hookean material (palpo.physics.fem.axisymmetric), on a rigid
wall with Coulomb friction, with the gas law p V = const from the moment that it is sealed. It shares neither
mesh, nor elements, nor contact with the program's cups.

Where air gets to under the rim is either said by a distance, up to which a gap counts as airtight, or follows
from flow: each ring of the rim conducts as its gap, or where it touches as the rough contact under its
pressure (palpo.physics.gas.law and roughness), and the pressure falls over the rings in series. What a
rim bears is then no parameter: it leaks where it is pressed too little.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from palpo.physics.fem.axisymmetric import GAUSS, GAUSS_WEIGHTS, SolidOfRevolution, edge_shapes, enclosed
from palpo.physics.gas.law import GAS_CONSTANT, STANDARD_ATMOSPHERE, leak, ring_conductance, sheet_conductance
from palpo.physics.gas.roughness import SealTable, contact_gap
from palpo.physics.mesh.cups import POISSON_RATIO, CupShape, meridian

Floats = NDArray[np.float64]

ATMOSPHERE, RT = STANDARD_ATMOSPHERE, GAS_CONSTANT * 293.15
STIFF, SOFT = 2e9, 5e-7
"""Pressure of the contact over its penetration [Pa/m], which stays at some micrometres, and the gap [m] over
which it comes on smoothly: k s ln(1 + exp(-z / s))."""
FAINT = 1e-3
"""Pressure below which there is no contact [Pa]."""
AIRTIGHT = 3e-6
"""Gap of the rim [m] up to which no air passes, unless flow is computed: the contact's own give."""
BONDED = np.inf
"""Coefficient of friction of a rim whose nodes are tied to the radius at which they touched the wall."""
MOST, NEAREST = 5e-4, 1e-9
"""Largest motion of a node in one iteration, and that of the last one [m]."""
ITERATIONS, SHORTER, BORDERS = 25, 6, 20
ALONG = 21
"""Points along an edge of the rim at which gap and pressure are asked."""
LEAKS = 0.02
"""Share of a cavity's gauge pressure that may leak in a step before the step is solved for what leaks."""
HALVINGS = 14
"""Of the bracket around a pressure that is looked for."""
PRECISE, CLOSE = 0.5, 0.01
"""To which a pressure is found [Pa], or of what it differs from the atmosphere."""


class CupEquilibrium(NamedTuple):
    """Of a cup in equilibrium, with the stem at `height` [m] over where the rim just touched."""

    height: float
    force: float  # upward on the stem [N]
    suction: float  # atmosphere less the cavity's pressure [Pa]
    pressed: float  # normal force on the rim [N]
    sheared: float  # friction on the rim, outward positive [N]
    volume: float  # of the cavity [m3]
    border: float  # rim edges, from inside, that the air has got under
    slides: bool
    conductance: float  # of the rim [m3/(Pa s)]; 0 where a distance says what is airtight


class CupWall(NamedTuple):
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
        self, shape: CupShape, youngs_modulus: float, mu: float, sealing: float = AIRTIGHT, finer: int = 1,
        seal: SealTable | None = None,
    ) -> None:  # fmt: skip
        """mu may be BONDED. sealing: gap of the rim that no air passes [m], or `seal`: its flow is computed.

        finer: elements as small as 1 / finer.
        """
        through = 3 * finer
        self.mesh = mesh = meridian(shape, 12 * finer, through, 2 * finer, 3 * finer)
        self.solid = SolidOfRevolution(mesh.nodes, mesh.elements, youngs_modulus, POISSON_RATIO)
        self.mu, self.sealing, self.seal, self.through = mu, sealing, seal, through
        self._conductance = 0.0
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

    def step(self, height: float, suction: float, sealed: float) -> CupEquilibrium:
        """Equilibrium with the stem at that height; raises Lost where there is none near.

        suction: of an open cavity [Pa]. sealed: p V [J] of a closed one; 0 for an open one.
        """
        before = self.u.copy()
        pressure = ATMOSPHERE - suction
        border = self._border(self.u, pressure)
        try:
            for turn in range(BORDERS):
                state = self._balance(height, suction, sealed, border)
                found = self._border(self.u, ATMOSPHERE - state.suction)
                if abs(found - border) < 1e-3:
                    return self._keep(state._replace(conductance=self._conductance))
                border = found if turn < 3 else 0.5 * (border + found)
        except Lost:
            self.u = before
            raise
        self.u = before
        raise Lost

    def breathe(self, height: float, held: float, seconds: float) -> tuple[CupEquilibrium, float]:
        """As `step` with p V = held [J] at its start, while air leaks for so long; returns p V at its end.

        Where much leaks, or no rim bears that pressure, the pressure is the one at which what has leaked by
        then through the rim as it is then leaves p V.
        """
        before = self.saved()
        start, bound = ATMOSPHERE, 0.0
        try:
            state = self.step(height, 0.0, held)
            after = self._leaked(held, state, seconds)
            start, bound = ATMOSPHERE - state.suction, after - held
            if abs(bound) <= LEAKS * abs(held - ATMOSPHERE * state.volume) + PRECISE * state.volume:
                return state, after
        except Lost:
            start = 2.0 * ATMOSPHERE if held > ATMOSPHERE * self._volume() else 0.0
        # what is too little at one end and too much at the other: p V less what leaking leaves
        ends, values = [ATMOSPHERE, start], [float("nan"), -bound if bound else float("nan")]
        kept = None
        for _ in range(HALVINGS):
            if abs(ends[0] - ends[1]) <= max(PRECISE, CLOSE * abs(ends[0] - ATMOSPHERE)):
                break
            pressure = _between(ends, values)
            self._anchor, self._on = before[1].copy(), before[2].copy()
            try:
                state = self.step(height, ATMOSPHERE - pressure, 0.0)
            except Lost:
                self.restore(before if kept is None else kept[2])
                ends[1], values[1] = pressure, float("nan")
                continue
            excess = pressure * state.volume - self._leaked(held, state, seconds)
            kept = state, pressure * state.volume, self.saved()
            if abs(excess) <= PRECISE * state.volume:
                break
            # beyond the atmosphere's own pressure more leaks the farther off it is
            far = int((excess > 0.0) == (start > ATMOSPHERE))
            ends[far], values[far] = pressure, excess
            values[1 - far] *= 0.5
        if kept is None:
            self.restore(before)
            raise Lost
        self.restore(kept[2])
        return kept[0], kept[1]

    def _leaked(self, held: float, state: CupEquilibrium, seconds: float) -> float:
        """p V [J] after leaking for so long at the state's volume."""
        return RT * leak(held / RT, state.volume, state.conductance, ATMOSPHERE, RT, seconds)

    def _volume(self) -> float:
        """Of the cavity as it is, up to the rim [m3]."""
        return enclosed(self.mesh.nodes + self.u.reshape(-1, 2), self.mesh.curve, self.mesh.border).volume

    def largest_pressure(self, height: float, most: float = 1e5) -> float:
        """How far the cavity's pressure may exceed the atmosphere [Pa] before the rim no longer bears it.

        height: of the stem [m]. A rim that only a distance makes airtight lifts; one whose flow is computed
        counts as lifted where less than FAINT presses it. Up to `most`. The state is the last one borne.
        """
        low, high, kept = 0.0, most, None
        for _ in range(HALVINGS):
            if high - low <= max(PRECISE, CLOSE * low):
                break
            before = self.saved()
            pressure = 0.5 * (low + high)
            try:
                self.step(height, -pressure, 0.0)
                low, kept = pressure, self.saved()
            except Lost:
                high = pressure
                self.restore(kept or before)
        return low

    def _border(self, u: Floats, pressure: float) -> float:
        """Edges of the rim, from inside, that the cavity's pressure [Pa] has got under; Lost where all are.

        Of a rim that leaks: up to where the same pressure as a step would press as the falling one does.
        """
        radius, gap, at = self._rim(u)
        if self.seal is None:
            shut = np.flatnonzero(gap <= self.sealing)
            if not shut.size:
                raise Lost
            k = int(shut[0])
            if k == 0:
                return 0.0
            return float(
                at[k - 1] + (at[k] - at[k - 1]) * (gap[k - 1] - self.sealing) / (gap[k - 1] - gap[k])
            )
        if not (_contact_pressure(gap) > FAINT).any():
            raise Lost
        self._conductance, share = _flow(radius, gap, self.seal, pressure)
        gauge = np.sqrt(pressure**2 + share * (ATMOSPHERE**2 - pressure**2)) - ATMOSPHERE
        part = gauge / (pressure - ATMOSPHERE) if abs(pressure - ATMOSPHERE) > 1.0 else 1.0 - share
        area = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(radius**2) * (part[1:] + part[:-1]))])[-1]
        return float(np.interp(radius[0] ** 2 + area, radius**2, at))

    def _rim(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Radius and gap [m] along the rim, from inside, and how many edges lie inside each of its points."""
        s = np.linspace(-1.0, 1.0, ALONG)
        value, _ = edge_shapes(s)
        place = self.mesh.nodes + u.reshape(-1, 2)
        radius, gap = ((place[self._edges, i] @ value.T).ravel() for i in (0, 1))
        return radius, gap, (np.arange(self.through)[:, None] + 0.5 * (s + 1)).ravel()

    def conductance(self, seal: SealTable, suction: float) -> float:
        """What the rim as it is now would conduct on another wall [m3/(Pa s)], at that suction [Pa]."""
        radius, gap, _ = self._rim(self.u)
        return _flow(radius, gap, seal, ATMOSPHERE - suction)[0]

    @property
    def radius(self) -> float:
        """Of where the rim is pressed, weighed by its pressure [m]."""
        wall = self._contact(self.u)
        weight = self._area * wall.pressure
        return float((weight * wall.radius).sum() / weight.sum())

    def _contact(self, u: Floats) -> CupWall:
        """What the wall does to the rim."""
        place = self.mesh.nodes + u.reshape(-1, 2)
        r, z = (np.einsum("ga,ea->eg", self._value, place[self._edges, i]) for i in (0, 1))
        pressure = _contact_pressure(z)
        rise = STIFF * -np.expm1(-pressure / (STIFF * SOFT))
        if np.isinf(self.mu) or self.mu == 0.0:
            none = np.zeros_like(r)
            return CupWall(r, pressure, rise, none, none, none, (pressure > FAINT) & (self.mu == 0.0))
        stick = 0.5 * STIFF * self._on
        over = stick * (r - self._anchor) / (self.mu * np.maximum(pressure, FAINT))
        saturated = 1.0 + over**4
        shear = self.mu * pressure * over * saturated**-0.25
        by_radius = stick * saturated**-1.25
        by_pressure = self.mu * over**5 * saturated**-1.25
        return CupWall(r, pressure, rise, shear, by_radius, by_pressure, np.abs(over) > 1.0)

    def _balance(self, height: float, suction: float, sealed: float, border: float) -> CupEquilibrium:
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
                return CupEquilibrium(
                    height, force, now.suction, now.pressed, now.sheared, now.volume, border, now.slides, 0.0
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
        n = self._edges
        up, out = 2 * n + 1, 2 * n
        weight, value = self._area * on, self._value
        blocks = {
            name: np.einsum("eg,ga,gb->eab", weight * part, value, value)
            for name, part in (
                ("up", wall.rise), ("out", wall.by_radius), ("mixed", wall.by_pressure * wall.rise),
            )
        }  # fmt: skip
        np.subtract.at(residual, up, (weight * wall.pressure) @ value)
        np.add.at(residual, out, (weight * wall.shear) @ value)
        for edge in range(len(n)):
            matrix[np.ix_(up[edge], up[edge])] += blocks["up"][edge]
            matrix[np.ix_(out[edge], out[edge])] += blocks["out"][edge]
            matrix[np.ix_(out[edge], up[edge])] -= blocks["mixed"][edge]
        pressed, sheared = (float((self._area * part).sum()) for part in (wall.pressure, wall.shear))
        return pressed, sheared, bool((wall.slides & on).any())

    def _keep(self, state: CupEquilibrium) -> CupEquilibrium:
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


def _contact_pressure(gap: Floats) -> Floats:
    """[Pa] at gaps [m] of either sign."""
    return np.asarray(STIFF * SOFT * np.logaddexp(0.0, -gap / SOFT))


def _flow(radius: Floats, gap: Floats, seal: SealTable, pressure: float) -> tuple[float, Floats]:
    """Conductance of a rim [m3/(Pa s)] and the shares of its resistance inside its points."""
    mean, pressed = 0.5 * (pressure + ATMOSPHERE), _contact_pressure(gap)
    sheet = [
        sheet_conductance(max(g, 0.0) + contact_gap(seal, p), mean, RT)
        for g, p in zip(gap, pressed, strict=True)
    ]
    conductance, share = ring_conductance(radius, np.array(sheet))
    return float(conductance), share


def _between(ends: list[float], values: list[float]) -> float:
    """Where a function of these values at both ends may be 0; the middle where one is not known."""
    if np.isfinite(values).all() and values[0] * values[1] < 0.0:
        return ends[0] + (ends[1] - ends[0]) * values[0] / (values[0] - values[1])
    return 0.5 * (ends[0] + ends[1])
