"""The body file (HDF5), and the cache of inverses.

Layout of a body file, after figure 4.23 of 001, N. Talbi's thesis; SI units, nodes counted from 0:
  /                 attributes format = "palpo-body", version = 1
  /material         attributes youngs_modulus [Pa], poisson_ratio, density [kg/m3] (1000 if absent)
  /nodes            float (n, 3): positions at rest [m]
  /elements         integer (m, 4) tetrahedra or (m, 8) hexahedra in the order of VTK
  /clamped          integer (c,), optional: clamped nodes
  /triangles        integer (k, 3), optional: what is drawn; the boundary of the elements if absent
  /stiffness        optional: K [N/m], symmetric, over all freedoms 3 node + axis, before clamping: a group
                    with data, indices, indptr (compressed rows), or a dense dataset (3 n, 3 n)
  /inverse          optional: K^-1 [m/N], symmetric, a group with nodes (b,) and values (3 b, 3 b); zero
                    where clamped; it must hold every boundary node and may hold all nodes
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem.material import Material
from palpo.physics.mesh.checks import as_cells, as_points
from palpo.physics.mesh.hex import HexMesh, orient_hexes, validate_hexes
from palpo.physics.mesh.tet import TetMesh, orient_tets, validate_tets
from palpo.physics.numerics.arithmetic import arithmetic
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.own import keep, kept
from palpo.physics.numerics.stored import check_hdf5, read_archive

FORMAT, VERSION = "palpo-body", 1
DEFAULT_DENSITY = 1000.0
"""Of a file without one, which 001's format does not have [kg/m3]."""
UNSYMMETRIC = 1e-8
"""Largest |A - A^T| over the largest |A| that rounding excuses [-]."""


@dataclass(frozen=True, eq=False)
class StoredBody:
    """What a body file holds; `stiffness` and `inverse` are arguments of QuasistaticBody.

    clamped (c,). triangles (k, 3) or None. stiffness (3 n, 3 n) [N/m] or None. inverse: K^-1 on the mesh's
    boundary nodes [m/N], shape (3 s, 3 s), or None.
    """

    mesh: TetMesh | HexMesh
    material: Material
    clamped: NDArray[np.int32]
    triangles: NDArray[np.int32] | None = None
    stiffness: sp.csr_array | None = None
    inverse: NDArray[np.float64] | None = None


def write_body(path: str | PathLike[str], body: StoredBody) -> None:
    """Write a body file, replacing an old one whole. Raises InputError where it cannot be written."""
    import h5py  # late: a tenth of a second that generated scenes need not pay

    def fill(temporary: Path) -> None:
        with h5py.File(temporary, "w") as file:
            file.attrs.update({"format": FORMAT, "version": VERSION})
            m = body.material
            constants = {
                "youngs_modulus": m.youngs_modulus,
                "poisson_ratio": m.poisson_ratio,
                "density": m.density,
            }
            file.create_group("material").attrs.update(constants)
            file["nodes"], file["elements"] = body.mesh.nodes, body.mesh.cells
            file["clamped"] = np.asarray(body.clamped, dtype=np.int32)
            if body.triangles is not None:
                file["triangles"] = body.triangles
            if body.stiffness is not None:
                group = file.create_group("stiffness")
                for key in ("data", "indices", "indptr"):
                    group[key] = getattr(body.stiffness, key)
            if body.inverse is not None:
                group = file.create_group("inverse")
                group["nodes"], group["values"] = body.mesh.boundary_nodes, body.inverse

    try:
        _replace(Path(path), fill)
    except OSError as error:
        raise InputError(f"{path}: the body file cannot be written ({error.strerror or error}).") from error


def read_body(path: str | PathLike[str]) -> StoredBody:
    """Read a body file. Raises InputError, one sentence that names the file and what is wrong in it."""
    import h5py

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such body file.")
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                held = ", ".join(list(file)[:5]) or "nothing"
                raise InputError(
                    f"{path}: an HDF5 file of another kind (it holds {held}); a body file has the attribute "
                    f"format = {FORMAT!r}."
                )
            check_hdf5(file)
            return _read(file, str(path))
    except InputError:
        raise
    # h5py reports damage as OSError, KeyError, RuntimeError or ValueError, by where it strikes.
    except Exception as error:
        reason = " ".join(str(error).split())[:120].rstrip(".")
        raise InputError(f"{path}: not a complete HDF5 body file ({reason}).") from error


def _read(file: Any, source: str) -> StoredBody:
    version = int(file.attrs.get("version", 0))
    if version != VERSION:
        raise InputError(
            f"{source}: body file of version {version}, but this program reads version {VERSION}."
        )
    for key in ("material", "nodes", "elements"):
        if key not in file:
            raise InputError(f"{source}: /{key} is missing; a body file needs material, nodes and elements.")
    material = _material(file["material"].attrs, source)
    nodes = as_points(_numbers(file, "nodes", source), source)
    mesh = _mesh(nodes, file["elements"][()], source)
    clamped = np.zeros(0, dtype=np.int32)
    if "clamped" in file and file["clamped"].size:
        clamped = as_cells(file["clamped"][()].reshape(-1, 1), 1, len(nodes), "clamped node", source)[:, 0]
    triangles = None
    if "triangles" in file:
        triangles = as_cells(file["triangles"][()], 3, len(nodes), "triangle", source)
    stiffness = _stiffness(file, 3 * len(nodes), source) if "stiffness" in file else None
    inverse = _inverse(file["inverse"], mesh, source) if "inverse" in file else None
    return StoredBody(mesh, material, np.unique(clamped), triangles, stiffness, inverse)


def _material(constants: Any, source: str) -> Material:
    for key in ("youngs_modulus", "poisson_ratio"):
        if key not in constants:
            raise InputError(f"{source}: /material has no attribute {key}.")
    density = constants.get("density", DEFAULT_DENSITY)
    try:
        return Material(float(constants["youngs_modulus"]), float(constants["poisson_ratio"]), float(density))
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _mesh(nodes: NDArray, elements: NDArray, source: str) -> TetMesh | HexMesh:
    width = elements.shape[1] if elements.ndim == 2 else 0
    if width == 4:
        tets = orient_tets(nodes, as_cells(elements, 4, len(nodes), "element", source))
        validate_tets(nodes, tets, source)
        return TetMesh(nodes, tets)
    if width == 8:
        hexes = orient_hexes(nodes, as_cells(elements, 8, len(nodes), "element", source))
        validate_hexes(nodes, hexes, source)
        return HexMesh(nodes, hexes)
    raise InputError(
        f"{source}: /elements has shape {elements.shape}, expected (m, 4) for tetrahedra or (m, 8) for "
        "hexahedra."
    )


def _stiffness(file: Any, size: int, source: str) -> sp.csr_array:
    held = file["stiffness"]
    if hasattr(held, "keys"):
        parts = [held[key][()] for key in ("data", "indices", "indptr")]
        k = _compressed(parts, size, source)
    else:
        dense = _numbers(file, "stiffness", source)
        if dense.shape != (size, size):
            raise InputError(f"{source}: /stiffness has shape {dense.shape}, expected {(size, size)}.")
        k = sp.csr_array(dense)
    _require_symmetric(k.data, k - k.T, "stiffness", source)
    return k


def _compressed(parts: list[NDArray], size: int, source: str) -> sp.csr_array:
    data, indices, indptr = parts
    if indptr.shape != (size + 1,) or data.shape != indices.shape or data.ndim != 1:
        raise InputError(
            f"{source}: /stiffness has {len(indptr) - 1} rows and {data.size} values at {indices.size} "
            f"columns, expected {size} rows and as many columns as values."
        )
    ordered = indptr[0] == 0 and indptr[-1] == data.size and (np.diff(indptr) >= 0).all()
    if not ordered or (data.size and not 0 <= indices.min() <= indices.max() < size):
        raise InputError(
            f"{source}: /stiffness is no matrix in compressed rows: indices must lie in 0 to {size - 1} and "
            f"indptr rise from 0 to {data.size}."
        )
    return sp.csr_array((data.astype(np.float64), indices, indptr), shape=(size, size))


def _inverse(group: Any, mesh: TetMesh | HexMesh, source: str) -> NDArray[np.float64]:
    nodes = as_cells(group["nodes"][()].reshape(-1, 1), 1, len(mesh.nodes), "inverse's node", source)[:, 0]
    values = _numbers(group, "values", source)
    if values.shape != (3 * nodes.size, 3 * nodes.size):
        raise InputError(
            f"{source}: /inverse/values has shape {values.shape}, expected {(3 * nodes.size,) * 2} for its "
            f"{nodes.size} nodes."
        )
    missing = np.setdiff1d(mesh.boundary_nodes, nodes)
    if missing.size:
        raise InputError(f"{source}: /inverse lacks node {missing[0]}, which lies on the boundary.")
    _require_symmetric(values, values - values.T, "inverse", source)
    order = np.argsort(nodes)
    kept = order[np.searchsorted(nodes, mesh.boundary_nodes, sorter=order)]
    freedoms = (3 * kept[:, None] + np.arange(3)).ravel()
    return np.ascontiguousarray(values[np.ix_(freedoms, freedoms)])


def _numbers(group: Any, key: str, source: str) -> NDArray[np.float64]:
    values = group[key][()]
    if not np.issubdtype(getattr(values, "dtype", type(values)), np.number):
        raise InputError(f"{source}: /{key} does not hold numbers.")
    return np.asarray(values, dtype=np.float64)


def _require_symmetric(values: NDArray, difference: Any, key: str, source: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(f"{source}: /{key} holds NaN or infinity.")
    largest = np.abs(values).max(initial=0.0)
    error = abs(difference).max()
    if error > UNSYMMETRIC * largest:
        raise InputError(
            f"{source}: /{key} is not symmetric: an entry and its mirror image differ by {error:.3g} where "
            f"the largest entry is {largest:.3g}."
        )


def content_key(*parts: Any) -> str:
    """Name for what is computed from arrays and values: equal for equal content and arithmetic only.

    On another processor, or with other libraries, nothing is found, and what is computed anew has their bits.
    """
    digest = hashlib.sha256(repr(arithmetic()).encode())
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


def load_cached(
    folder: str | PathLike[str], key: str, shapes: dict[str, tuple[int, ...]]
) -> dict[str, NDArray[np.float64]] | None:
    """The arrays kept under a key, or None where there are none of these finite shapes."""
    file = kept(Path(folder), f"{key}.npz")
    if file is None:
        return None
    try:
        with file:
            held = read_archive(file)
        # copies own their memory, as computed arrays do: a file gives views of what it read
        found = {name: held[name].copy() for name in shapes}
    except (KeyError, ValueError, EOFError, BadZipFile):
        return None
    sound = all(found[name].shape == shapes[name] and np.isfinite(found[name]).all() for name in shapes)
    return found if sound else None


def store_cached(folder: str | PathLike[str], key: str, arrays: dict[str, NDArray[np.float64]]) -> bool:
    """Keep arrays under a key; False where the folder cannot be written, which costs only time."""
    return keep(Path(folder), f"{key}.npz", lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def _replace(path: Path, fill: Callable[[Path], None]) -> None:
    """Write a file beside `path` and move it there, so that no reader ever sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        fill(Path(name))
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
