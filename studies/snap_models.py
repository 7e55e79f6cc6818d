"""The four models of a snap connector (002, V-B, figure 5) along one insertion; what their studies share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.snap.build import known_networks, numerics_of, sampled_field
from palpo.app.systems.snap.connector import connector_of
from palpo.config.load import load_scene
from palpo.config.schema.connector import FilesConnector
from palpo.config.schema.snap import SnapScene
from palpo.physics.collision.distance_field import DistanceField, exact_field, learned_field
from palpo.physics.collision.field_search import MOST_CLUSTERS
from palpo.physics.collision.io import find_network
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.connector import GIVE, Connector
from palpo.physics.systems.snap.insertion import Insertion, Series
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import Numerics

Row = dict[str, Any]

STEP = 1e-3
"""T of the paper [s]."""
SPEED = 0.05
"""Of the plug's target along the push [m/s]."""
REST = 0.05
"""How long the target then stands still [s]."""
BAND = 2e-3
"""Beyond the interference, up to where the distance is computed [m]."""

PAPER_DIMENSIONS = {"coarse": (663, (165, 84), (6, 25)), "fine": (1266, (876, 465), (6, 96))}
"""002, table I: freedoms of the socket, of its segments, and of these reduced."""


@dataclass(frozen=True)
class SocketModel:
    """One of the paper's four."""

    name: str
    what: str
    colour: str
    segments: int = 1
    reduced: bool = False
    distance: str = "grid"
    """A key of DISTANCES; 002 has a learned one where these have a grid; scenes have the exact one."""


MODELS = (
    SocketModel("model 1", "whole, exact distance", "#8a97a8", distance="exact"),
    SocketModel("model 2", "+ grid distance", "#e08a2e"),
    SocketModel("model 3", "+ segments", "#3f9b57", segments=2),
    SocketModel("model 4", "+ reduction", "#2f6fc0", segments=2, reduced=True),
)


ORDERS = {"lan": (48, 60), "cap": (60, 60), "buckle": (24, 60)}
"""Of model 4 of the connectors that the paper has no table of: at rest a contact node of the LAN latch yields
as the whole one's within 1%, of the buckle within 9%. The cap's is hardly held, and would be with any 60."""
SCENES = {"two-prong": "snap", "lan": "snap-lan", "cap": "snap-cap", "buckle": "snap-buckle"}


@dataclass(frozen=True, eq=False)
class ModelCase:
    """A connector at a mesh, with its scene's hold, contacts and solver.

    numerics: of the scene, but for the paper's reduction: two balanced segments, of the two-prong connector
    with the orders of table I for each prong: the contact segment keeps its six rigid motions, which is
    little even for a hook. A ring's contacts are clusters all around.
    """

    kind: str
    mesh: str
    connector: Connector
    numerics: Numerics

    @property
    def name(self) -> str:
        """As tables and figures call it."""
        return f"{self.kind}, {self.mesh}"


def case_of(kind: str, mesh: str = "coarse") -> ModelCase:
    """A connector of `SCENES`, the cap's target led as far beyond the stroke as its plug lags behind."""
    spec = load_scene(SCENES[kind], [f'connector.mesh="{mesh}"'])
    assert isinstance(spec, SnapScene)
    numerics = numerics_of(spec)
    orders = PAPER_DIMENSIONS[mesh][2] if kind == "two-prong" else ORDERS[kind]
    if numerics.meridians is not None:
        numerics = replace(numerics, meridians=None, clusters=MOST_CLUSTERS)
    numerics = replace(numerics, segments=2, orders=orders, static=None, edges=False, settling=0.0)
    connector = connector_of(spec)
    if kind == "cap":
        connector = replace(connector, stroke=connector.stroke + GIVE)
    return ModelCase(kind, mesh, connector, numerics)


def shipped(kind: str, mesh: str | None = None) -> ModelCase:
    """A connector as its scene computes it, mesh and reduction too; or on another mesh."""
    spec = load_scene(SCENES[kind], [] if mesh is None else [f'connector.mesh="{mesh}"'])
    assert isinstance(spec, SnapScene) and not isinstance(spec.connector, FilesConnector)
    case = case_of(kind, spec.connector.mesh)
    return replace(case, numerics=numerics_of(spec))


def exact_distance(connector: Connector) -> DistanceField:
    """The exact distance of a plug, as scenes have it."""
    return exact_field(connector.plug, connector.interference + BAND)


def grid_distance(connector: Connector) -> DistanceField:
    """The grid of a plug."""
    return sampled_field(connector.plug, connector.interference + BAND)


def learned_distance(connector: Connector) -> DistanceField:
    """The learned distance of a plug; InputError where no network of it is at hand."""
    found = find_network(known_networks(), connector.plug)
    if found is None:
        raise InputError(
            "plug: no network of it is at hand; a scene with distance.kind = learned trains one."
        )
    return learned_field(connector.plug, found[0])


DISTANCES = {"exact": exact_distance, "grid": grid_distance, "learned": learned_distance}


def build(case: ModelCase, model: SocketModel, field: DistanceField, **changes: Any) -> SnapModel:
    """A model of the connector on this distance; changes: to the numerics."""
    orders = case.numerics.orders if model.reduced else None
    own: dict[str, Any] = {"step": STEP, "segments": model.segments, "orders": orders} | changes
    return SnapModel(case.connector, replace(case.numerics, **own), field)


def path_of(
    connector: Connector, step: float, speed: float = SPEED, rest: float = REST
) -> NDArray[np.float64]:
    """Targets at the ends of the steps, from zero travel on, (n, 3) [m]: one way for all step lengths."""
    n = round((connector.stroke / speed + rest) / STEP) * round(STEP / step)
    travel = np.minimum(speed * step * np.arange(1, n + 1), connector.stroke)
    return travel[:, None] * connector.push


def insert(model: SnapModel, speed: float = SPEED, rest: float = REST) -> Series:
    """The whole way in; RuntimeError where the run breaks down."""
    run = Insertion(model)
    path = run.origin + path_of(model.connector, model.numerics.step, speed, rest)
    series = run.follow(path)
    if len(series.time) < len(path):
        raise RuntimeError(f"the insertion broke down after {len(series.time)} of {len(path)} steps")
    return series


def push_force(series: Series, connector: Connector) -> NDArray[np.float64]:
    """Force on the floor along the push, mean over each millisecond [N], shape (n,)."""
    force = series.floor @ connector.push
    return force.reshape(-1, round(STEP / float(series.time[0]))).mean(axis=1)


def dimensions(model: SnapModel) -> str:
    """Coordinates of all prongs, segment by segment."""
    return " + ".join(str(sum(parts)) for parts in zip(*model.orders, strict=True))


def percent_rms(error: NDArray, size: float) -> float:
    """Root mean square of an error over `size` [%]."""
    return 100.0 * float(np.sqrt(np.mean(error**2)) / size)


def text(value: Any) -> str:
    """A cell of a printed table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns(rows: Sequence[Row], *names: str) -> list[list[str]]:
    """The named cells of each row, to be printed."""
    return [[text(row[name]) for name in names] for row in rows]
