"""How far an approximate signed distance is off near the surface, measured on random points."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.distance_field import DistanceField, signed_distance
from palpo.physics.mesh.surface import SurfaceMesh


class DistanceErrors(NamedTuple):
    """Figures over points near the surface."""

    shell: float
    """Distance from the surface up to which the points lie, on both sides [m]."""
    largest: float
    """|d - d_exact| [m]; so are the next two."""
    percentile_99: float
    rms: float
    normal_median: float
    """Angle between the normals [deg]; they differ most around edges, where the exact one jumps."""
    normal_rms: float


def shell_points(surface: SurfaceMesh, shell: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random points [m], (n, 3): uniform over the surface, then off it by up to `shell` [m] either way."""
    areas = surface.triangle_areas
    triangle = rng.choice(len(areas), n, p=areas / areas.sum())
    weights = rng.dirichlet((1.0, 1.0, 1.0), n)
    on = np.einsum("nc,nci->ni", weights, surface.vertices[surface.triangles[triangle]])
    return on + shell * rng.uniform(-1.0, 1.0, (n, 1)) * surface.triangle_normals[triangle]


def distance_errors(
    field: DistanceField, exact: DistanceField, points: NDArray[np.float64], shell: float
) -> DistanceErrors:
    """Errors of a field against the exact one at points within `shell` [m] of the surface, (n, 3) [m]."""
    (d, n), (d_exact, n_exact) = signed_distance(field, points), signed_distance(exact, points)
    off = np.abs(d - d_exact)
    # from the chord: the cosine of a small angle has no digits left
    angle = np.degrees(2.0 * np.arcsin(np.minimum(0.5 * np.linalg.norm(n - n_exact, axis=1), 1.0)))
    return DistanceErrors(
        shell,
        float(off.max()),
        float(np.percentile(off, 99.0)),
        _rms(off),
        float(np.median(angle)),
        _rms(angle),
    )


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
