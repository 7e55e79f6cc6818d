"""The file of a learned distance: NumPy's .npz with the network, its errors and the mesh it was trained on.

A generated mesh has other last bits on another processor. So a file holds vertices and triangles themselves,
and belongs to any mesh of the same triangles whose coordinates are the same to SAME_MESH of its size.
"""

from collections.abc import Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.distance_errors import DistanceErrors
from palpo.physics.collision.learned_distance import LearnedDistance, learned_distance
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.stored import read_archive

SAME_MESH = 1e-9
"""Share of a mesh's longest side by which its coordinates may differ from those that a file holds."""
RECOGNISED = f"a mesh of these triangles, its coordinates within {SAME_MESH:g} of its longest side"
"""What a file says of the meshes that it belongs to."""
NETWORK = ("centre", "size", "scale", "band", "w1", "b1", "w2", "b2", "w3", "b3")


def same_surface(surface: SurfaceMesh, vertices: NDArray, triangles: NDArray) -> bool:
    """Whether a surface has these triangles (m, 3) and, to SAME_MESH of its size, vertices (n, 3) [m]."""
    if surface.vertices.shape != vertices.shape or not np.array_equal(surface.triangles, triangles):
        return False
    tolerance = SAME_MESH * float(np.ptp(surface.vertices, axis=0).max())
    return bool((np.abs(surface.vertices - vertices) <= tolerance).all())


def write_network(
    path: str | PathLike[str], surface: SurfaceMesh, learned: LearnedDistance, errors: DistanceErrors
) -> None:
    """Write a network trained on a surface. Raises InputError where the file cannot be written."""
    path = Path(path)
    arrays = {name: getattr(learned, name) for name in NETWORK}
    half = path.with_name(f"{path.name}.half")
    try:
        with half.open("wb") as file:
            np.savez(
                file, recognised=RECOGNISED, vertices=surface.vertices, triangles=surface.triangles,
                errors=errors, **arrays,
            )  # fmt: skip
        half.replace(path)
    except OSError as error:
        raise InputError(f"{path}: the network cannot be written ({error.strerror or error}).") from error


def read_network(path: str | PathLike[str], surface: SurfaceMesh) -> tuple[LearnedDistance, DistanceErrors]:
    """The network of a file and its errors.

    Raises InputError, one sentence that names the file, if it is damaged or was trained on another mesh.
    """
    try:
        file = read_archive(path)
        vertices, triangles = file["vertices"].astype(float), file["triangles"].astype(int)
        errors = DistanceErrors(*file["errors"].tolist())
        arrays: dict[str, Any] = {name: file[name] for name in NETWORK}
    # NumPy reports damage as OSError, ValueError, KeyError, EOFError or BadZipFile, by where it strikes.
    except Exception as error:
        reason = " ".join(str(error).split())[:120].rstrip(".")
        raise InputError(f"{path}: not the file of a learned distance ({reason}).") from error
    if not same_surface(surface, vertices, triangles):
        raise InputError(
            f"{path}: the network was trained on another mesh than this one of {len(surface.vertices)} "
            f"vertices and {len(surface.triangles)} triangles; train it anew, or give its own mesh."
        )
    try:
        return learned_distance(**arrays), errors
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def find_network(
    paths: Iterable[str | PathLike[str]], surface: SurfaceMesh
) -> tuple[LearnedDistance, DistanceErrors] | None:
    """The first network of these files that was trained on this surface, and its errors; None without one."""
    for path in paths:
        with suppress(InputError):
            return read_network(path, surface)
    return None
