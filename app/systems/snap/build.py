"""From a snap scene to how its connector is computed, and to the values that may change while it runs."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.cli.train_distance import obtain_network, require_accurate
from palpo.app.systems.snap.connector import admittance_of, connector_of
from palpo.config.schema.snap import ExactDistanceSpec, GridDistanceSpec, LearnedDistanceSpec, SnapScene
from palpo.physics.bodies.admittance import make_plug
from palpo.physics.bodies.io import content_key, load_cached, store_cached
from palpo.physics.collision.distance_field import DistanceField, exact_field, grid_field, learned_field
from palpo.physics.collision.io import read_network
from palpo.physics.exchange.snap_frame import ANDERSON, GAUSS_SEIDEL, MAXIMAL_DISSIPATION
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.cache import cache_folder
from palpo.physics.reduction.linear_model import Basis
from palpo.physics.systems.snap.connectors.connector import Connector, Prong
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import (
    Numerics,
    as_touched,
    default_settings,
    reduced_bases,
    segment_models,
)
from palpo.physics.systems.snap.servo import gains_of

SOLVERS = {
    "anderson": ANDERSON,
    "maximal-dissipation": MAXIMAL_DISSIPATION,
    "gauss-seidel": GAUSS_SEIDEL,
}
KEPT = "kept"
"""Method of a basis that was found again."""

NETWORK_BAND = 1e-3
"""Distance up to which a network is trained [m]; the shorter, the sharper it is near the surface."""
CELLS = 150
"""Of a grid along the plug's longest side, where a scene does not give its spacing."""


def numerics_of(spec: SnapScene) -> Numerics:
    """How the scene's connector is computed."""
    model, contact, solver = spec.model, spec.contact, spec.solver
    return Numerics(
        step=spec.rates.dt / spec.integration.substeps,
        segments=model.segments,
        orders=model.orders,
        error=model.error,
        static=model.static,
        coupling_stiffness=model.coupling_stiffness,
        coupling_damping=model.coupling_damping,
        alpha=spec.damping.alpha,
        beta=spec.damping.beta,
        settling=spec.damping.settling,
        spacing=contact.spacing,
        margin=contact.margin,
        clusters=contact.clusters,
        capacity=contact.capacity,
        meridians=contact.meridians,
        edges=contact.edges,
        friction=spec.friction.default,
        restitution=contact.restitution,
        correction=contact.correction,
        solver=SOLVERS[solver.name],
        tolerance=solver.tolerance,
        sweeps=solver.sweeps,
    )


def build_model(spec: SnapScene, progress: Progress) -> SnapModel:
    """The connector ready to be stepped, bases and network computed or loaded; raises InputError, Refusal."""
    with progress.stage("connector"):
        connector = connector_of(spec, progress)
    return model_of(spec, connector, progress)


def model_of(spec: SnapScene, connector: Connector, progress: Progress) -> SnapModel:
    """`build_model` of another connector than the scene's own."""
    return models_of(spec, connector, progress)()


def models_of(spec: SnapScene, connector: Connector, progress: Progress) -> Callable[[], SnapModel]:
    """What makes models of a connector, each with a state of its own; they share distance and bases."""
    numerics = numerics_of(spec)
    connector = as_touched(connector, numerics)
    with progress.stage("distance of the plug, or loading it"):
        field = field_of(spec, connector)
    with progress.stage("bases, or loading them" if numerics.reduced else "segments"):
        bases = [_bases(prong, connector, numerics) for prong in connector.prongs]
    return lambda: SnapModel(connector, numerics, field, bases)


def field_of(spec: SnapScene, connector: Connector) -> DistanceField:
    """Signed distance of the plug; InputError for a network of another mesh, or not accurate enough."""
    told, plug = spec.distance, connector.plug
    band = connector.interference + 2.0 * spec.contact.spacing
    match told:
        case ExactDistanceSpec():
            return exact_field(plug, band)
        case GridDistanceSpec():
            return sampled_field(plug, band, told.spacing)
        case LearnedDistanceSpec(weights=None):
            known, keep = known_networks(), cache_folder("distance")
            return learned_field(plug, obtain_network(known, keep, plug, NETWORK_BAND, told.accuracy))
        case _:
            network, errors = read_network(str(told.weights), plug)
            require_accurate(errors, told.accuracy, str(told.weights))
            return learned_field(plug, network)


def sampled_field(plug: SurfaceMesh, band: float, spacing: float | None = None) -> DistanceField:
    """Grid of a plug's distance up to `band` [m], kept by content; without spacing [m], CELLS decide it."""
    if spacing is None:
        spacing = float(np.ptp(plug.vertices, axis=0).max()) / CELLS
    folder = cache_folder("grids")
    if folder is None:
        return grid_field(plug, band, spacing)
    key = content_key(plug.vertices, plug.triangles, band, spacing)

    def kept(n: int, sample: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        found = load_cached(folder, key, {"distance": (n,)})
        if found is None:
            found = {"distance": sample()}
            store_cached(folder, key, found)
        return found["distance"]

    return grid_field(plug, band, spacing, kept=kept)


def shipped_networks() -> list[Path]:
    """Networks that come with the program."""
    return sorted(Path(str(files("palpo.config"))).joinpath("weights").glob("*.npz"))


def known_networks() -> list[Path]:
    """Networks that come with the program, and those that were trained on this machine."""
    folder = cache_folder("distance")
    return shipped_networks() + ([] if folder is None else sorted(folder.glob("*.npz")))


def _bases(prong: Prong, connector: Connector, numerics: Numerics) -> list[Basis | None]:
    """Bases of a prong's segments, kept by content; None for those that are not reduced."""
    models = segment_models(prong, connector, numerics)
    folder = cache_folder("bases")
    if not numerics.reduced or folder is None:
        return reduced_bases(prong, models, numerics)
    m, orders = connector.material, numerics.orders or ()
    key = content_key(
        prong.body.nodes, prong.body.cells, prong.clamped, prong.contact, numerics.segments, orders,
        numerics.error or 0.0, numerics.static or 0.0, numerics.meridians or 0,
        (m.youngs_modulus, m.poisson_ratio, m.density, numerics.alpha, numerics.beta),
    )  # fmt: skip
    found = _kept(folder, key, [model.n_dof for model in models])
    if found is None:
        found = [basis for basis in reduced_bases(prong, models, numerics) if basis is not None]
        _keep(folder, key, found)
    return list(found)


def _keep(folder: Path, key: str, bases: list[Basis]) -> None:
    arrays = {"sizes": np.array([[b.order, b.rigid, b.hankel.size] for b in bases], float)}
    for i, b in enumerate(bases):
        arrays |= {f"vectors{i}": b.vectors, f"stiffness{i}": b.stiffness, f"hankel{i}": b.hankel}
    store_cached(folder, key, arrays)


def _kept(folder: Path, key: str, dofs: list[int]) -> list[Basis] | None:
    found = load_cached(folder, key, {"sizes": (len(dofs), 3)})
    if found is None:
        return None
    sizes = found["sizes"].astype(int).tolist()
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (n, (order, _, values)) in enumerate(zip(dofs, sizes, strict=True)):
        shapes |= {f"vectors{i}": (n, order), f"stiffness{i}": (order,), f"hankel{i}": (values,)}
    arrays = load_cached(folder, key, shapes)
    if arrays is None:
        return None
    return [
        Basis(arrays[f"vectors{i}"], arrays[f"stiffness{i}"], KEPT, rigid, arrays[f"hankel{i}"])
        for i, (_, rigid, _) in enumerate(sizes)
    ]


def settings_of(spec: SnapScene, connector: Connector) -> NDArray[np.void]:
    """Values (1,) of palpo.physics.exchange.snap_frame.VALUES."""
    return default_settings(connector, numerics_of(spec))


def matrices_of(spec: SnapScene, connector: Connector) -> NDArray[np.float64]:
    """Matrices of the hold as palpo.physics.exchange.snap_frame has them, shape (GAINS, 6, 6)."""
    a = admittance_of(spec, connector)
    plug, _ = make_plug(a.mass, a.damping, a.stiffness, spec.rates.dt / spec.integration.substeps)
    return gains_of(plug)
