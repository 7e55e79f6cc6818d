"""The file of a learned distance: NumPy's .npz with the network, its errors and the key of its mesh."""

from os import PathLike
from pathlib import Path

import numpy as np

from physics.bodies.io import content_key
from physics.collision.distance_errors import DistanceErrors
from physics.collision.learned_distance import LearnedDistance, learned_distance
from physics.errors import InputError
from physics.mesh.surface import SurfaceMesh

NETWORK = ("centre", "size", "scale", "band", "w1", "b1", "w2", "b2", "w3", "b3")


def surface_key(surface: SurfaceMesh) -> str:
    """Equal for surfaces of equal vertices and triangles only."""
    return content_key(surface.vertices, surface.triangles)


def write_network(
    path: str | PathLike[str], surface: SurfaceMesh, learned: LearnedDistance, errors: DistanceErrors
) -> None:
    """Write a network trained on a surface. Raises InputError where the file cannot be written."""
    path = Path(path)
    arrays = {name: getattr(learned, name) for name in NETWORK}
    half = path.with_name(f"{path.name}.half")
    try:
        with half.open("wb") as file:
            np.savez(file, surface=surface_key(surface), errors=errors, **arrays)
        half.replace(path)
    except OSError as error:
        raise InputError(f"{path}: the network cannot be written ({error.strerror or error}).") from error


def read_network(path: str | PathLike[str], surface: SurfaceMesh) -> tuple[LearnedDistance, DistanceErrors]:
    """The network of a file and its errors.

    Raises InputError, one sentence that names the file, if it is damaged or was trained on another mesh.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            key, errors = str(file["surface"]), DistanceErrors(*file["errors"].tolist())
            arrays = {name: file[name] for name in NETWORK}
    # NumPy reports damage as OSError, ValueError, KeyError, EOFError or BadZipFile, by where it strikes.
    except Exception as error:
        reason = " ".join(str(error).split())[:120].rstrip(".")
        raise InputError(f"{path}: not the file of a learned distance ({reason}).") from error
    if key != surface_key(surface):
        raise InputError(
            f"{path}: the network was trained on another mesh than this one of {len(surface.vertices)} "
            f"vertices and {len(surface.triangles)} triangles; train it anew, or give its own mesh."
        )
    return learned_distance(**arrays), errors
