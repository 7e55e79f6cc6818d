"""Force over travel of a connector: pushed in, pulled back out, slowly; what a designer of one looks at.

The socket is reduced to what it does at rest, exactly (`physics.reduction.static_modes`); the plug is led on
a rail, by a hold so stiff that it is where it is led. Forces are those of the contacts on the plug, along the
push. What inertia and damping add at `SPEED` is below a percent of a peak.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from palpo.physics.collision.distance_field import DistanceField
from palpo.physics.fem.stress import NodalLoad
from palpo.physics.reduction.static_modes import static_shapes
from palpo.physics.systems.snap.connectors.connector import RESPONSE, Admittance, Connector, Prong
from palpo.physics.systems.snap.insertion import Insertion
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import Numerics, segment_models

SPEED = 0.02
"""Of the plug [m/s]."""
STIFFER = 50.0
"""The hold, beside that of the scene: its lag at the peak is a 50th."""
SIDEWAYS = 1000.0
"""And beside that in all other directions: a rail."""
BETA = 3e-4
"""Of the socket's damping [s]: what rings after the click dies out in a millimetre."""
SAMPLES = 120
"""Of loads along the way, in each direction."""
REST = 0.05
"""Before it is pulled back [s]."""
WINDOW = 5
"""Steps over which a force is the median, a tenth of a millimetre: what a slow push feels where points that
pass an edge chatter."""
GONE, BESIDE = 0.5, 0.9
"""Shares of the peak: below the one the force is over, the click; above the other it belongs to the top."""
ARRIVED = 0.1
"""Share of the peak that a latched plug may feel."""
CAPACITY, TOLERANCE, SWEEPS = 200, 1e-4, 300
"""Contacts of a prong, all that there are: a few chosen ones let a hook slip that all of them hold. And how
well they are solved."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TravelDirection:
    """One direction of travel."""

    travel: Floats
    """Of the plug from its rest pose [m], (n,)."""
    force: Floats
    """Against the plug's motion [N], (n,)."""
    at: Floats
    """Travel of each sample of the loads [m], (k,)."""
    stress: Floats
    """Largest equivalent stress there in the socket [Pa], (k,), away from where it is touched (`bearing`)."""
    strain: Floats
    """Largest principal strain there [-], (k,)."""
    worst: list[Floats]
    """Displacement of each prong where the stress is largest [m], (n, 3) each."""

    @property
    def peak(self) -> float:
        """Largest force [N]."""
        return float(self.force.max())

    @property
    def at_peak(self) -> float:
        """Travel there [m]."""
        return float(self.travel[self.force.argmax()])

    @property
    def plateau(self) -> float:
        """Mean force from where it first nears the peak up to the click [N]."""
        high, on = np.flatnonzero(self.force >= BESIDE * self.peak), self.force > GONE * self.peak
        off = np.flatnonzero(~on[self.force.argmax() :])
        end = self.force.argmax() + off[0] if off.size else len(on)
        return float(self.force[high[0] : end].mean())

    @property
    def sliding(self) -> float:
        """Median force after the click while it is positive [N]; 0 where nothing drags."""
        after = self.force[self.force.argmax() :]
        after = after[_first(after <= GONE * self.peak) :]
        after = after[: _first(after <= 0.0)]
        return float(np.median(after)) if after.size else 0.0


@dataclass(frozen=True, eq=False)
class Travel:
    """In and back out."""

    model: SnapModel
    insertion: TravelDirection
    retention: TravelDirection
    latched: bool
    """Whether the plug felt hardly anything when it had arrived."""

    @property
    def released(self) -> bool:
        """Whether the plug came loose when it was pulled."""
        return bool(self.retention.force[-1] < GONE * self.retention.peak)


def push_and_pull(
    connector: Connector,
    numerics: Numerics,
    field: DistanceField,
    back: float,
    tell: Callable[[float], None] = lambda share: None,
) -> Travel:
    """A plug pushed along its stroke, and pulled back by `back` [m].

    numerics: how contacts are found and solved. tell: is told the share that is done.
    Raises InputError as its parts do, RuntimeError where the computation breaks down.
    """
    model = model_on_a_rail(connector, numerics, field)
    connector = model.connector
    gauges = [NodalLoad(p.mesh.nodes, p.mesh.tets, connector.material) for p in connector.prongs]
    run = Insertion(model, SPEED)
    ends = np.linspace(0.0, connector.stroke, SAMPLES + 1)[1:]
    told = _Told(tell, 2 * SAMPLES)
    insertion = _go(run, gauges, ends, 1.0, told)
    run.run(connector.stroke, REST)
    ends = connector.stroke - np.linspace(0.0, back, SAMPLES + 1)[1:]
    retention = _go(run, gauges, ends, -1.0, told)
    last = insertion.force[-max(1, len(insertion.force) // SAMPLES) :]
    return Travel(model, insertion, retention, bool(np.abs(last).mean() < ARRIVED * insertion.peak))


def model_on_a_rail(connector: Connector, numerics: Numerics, field: DistanceField) -> SnapModel:
    """A connector as it is at rest, with all its contacts, its plug where it is led."""
    numerics = replace(
        numerics, segments=1, orders=None, error=None, static=None, beta=BETA,
        clusters=0, meridians=None, capacity=CAPACITY, tolerance=TOLERANCE, sweeps=SWEEPS,
    )  # fmt: skip
    connector = replace(connector, admittance=rail_of(connector))
    bases = [
        [static_shapes(model, prong.contact) for model in segment_models(prong, connector, numerics)]
        for prong in connector.prongs
    ]
    return SnapModel(connector, numerics, field, bases)


def push_in(connector: Connector, numerics: Numerics, field: DistanceField) -> tuple[Floats, Floats]:
    """Travel (n,) [m] of a plug along its stroke and the force against it [N], (n,), as `push_and_pull`.

    Raises InputError as its parts do, RuntimeError where the computation breaks down.
    """
    model = model_on_a_rail(connector, numerics, field)
    series = Insertion(model, SPEED).run()
    if series.time.size < round(connector.stroke / (SPEED * numerics.step)):
        raise RuntimeError("the connector's computation broke down")
    force = -(series.wrench[:, :3] @ connector.push)
    return series.travel, median_filter(force, WINDOW, mode="nearest")


def bearing(prong: Prong) -> NDArray[np.bool_]:
    """Nodes (n,) that loads are judged by: of no element that the plug can touch.

    A contact is a force at a point, near which stress grows without bound as a mesh gets finer.
    """
    touched = np.isin(prong.mesh.tets, prong.contact).any(axis=1)
    kept = np.ones(len(prong.mesh.nodes), bool)
    kept[prong.mesh.tets[touched]] = False
    return kept if kept.any() else ~kept


def rail_of(connector: Connector) -> Admittance:
    """A hold that leads the plug along the push, and gives nowhere."""
    a, push = connector.admittance, connector.push
    held = STIFFER * float(push @ _square(a.stiffness)[:3, :3] @ push)
    turning = SIDEWAYS * STIFFER * float(_square(a.stiffness)[3, 3])
    along = np.outer(push, push)
    shape = np.zeros((6, 6))
    shape[:3, :3] = held * (along + SIDEWAYS * (np.eye(3) - along))
    shape[3:, 3:] = turning * np.eye(3)
    return Admittance(shape / RESPONSE**2, 2.0 * shape / RESPONSE, shape)


class _Told:
    def __init__(self, tell: Callable[[float], None], n: int) -> None:
        self._tell, self._n, self._k = tell, n, 0

    def __call__(self) -> None:
        self._k += 1
        self._tell(self._k / self._n)


def _go(run: Insertion, gauges: list[NodalLoad], ends: Floats, sign: float, told: _Told) -> TravelDirection:
    """The way to each of `ends`, loads at each."""
    model = run.model
    travel, force, stress, strain = [], [], [], []
    worst: list[Floats] = []
    kept = [bearing(prong) for prong in model.connector.prongs]
    for end in ends:
        before = run.steps
        series = run.run(float(end))
        if run.steps == before:
            raise RuntimeError(f"the connector's computation broke down at a travel of {1e3 * end:.3g} mm")
        travel.append(series.travel)
        force.append(-sign * (series.wrench[:, :3] @ model.connector.push))
        moved = [x - p.mesh.nodes for x, p in zip(model.positions(), model.connector.prongs, strict=True)]
        loads = [gauge.at(u) for gauge, u in zip(gauges, moved, strict=True)]
        stress.append(max(load.stress[k].max() for load, k in zip(loads, kept, strict=True)))
        strain.append(max(load.strain[k].max() for load, k in zip(loads, kept, strict=True)))
        if stress[-1] == max(stress):
            worst = moved
        told()
    slow = median_filter(np.concatenate(force), WINDOW, mode="nearest")
    return TravelDirection(np.concatenate(travel), slow, ends, np.array(stress), np.array(strain), worst)


def _first(holds: NDArray[np.bool_]) -> int:
    """Place of the first that holds, or how many there are."""
    return int(np.argmax(holds)) if holds.any() else len(holds)


def _square(gain: Floats) -> Floats:
    return np.diag(gain) if gain.ndim == 1 else gain
