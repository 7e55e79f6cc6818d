"""Contact problems in files: FCLIB, local and global (HDF5), and NumPy archives.

FCLIB (V. Acary, M. Bremond, T. Koziara, F. Perignon, INRIA report RT-444) names the groups and keys; sparse
matrices carry nz = -1 for compressed columns, -2 for compressed rows, else the number of triplets.

    local     u = W r + q                                      fclib_local: W; q, mu
    mixed     V^T r + R l + s = 0,  u = W r + V l + q          also V, R; s
    global    M v = H r + G l + f,  G^T v + b = 0,             fclib_global: M, H, (G); f, w, (b), mu
              u = H^T v + w

Mixed and global problems are reduced to local ones by elimination. .npz archives hold W, q, mu.

Rows are (n, t1, t2) everywhere. Units are the file's: most FCLIB problems are of velocities and impulses
(u [m/s], r [N s]), Palpo's own of positions and forces (u [m], r [N]); no solver minds. Problems in the
plane, rows (n, t), get a second tangent that nothing moves along: its force is zero, the others are theirs.

Files come from assemblies in single precision or by formulas that are not quite symmetric, as one of the
public collection by 1.3e-3 of its largest entry. Such a W, M or R is read as its symmetric part, and one of
which a triangle alone is stored is mirrored; what is farther from symmetric than SKEW is another law, and so
is a W with an eigenvalue below zero by more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from palpo.physics.contact.fclib_arrays import matrix, numbers, vector
from palpo.physics.contact.problem import AnyProblem, ContactProblem, SparseProblem
from palpo.physics.contact.semidefinite import ROUNDED, require_semidefinite
from palpo.physics.contact.symmetry import SKEW, UNSYMMETRIC, mirrored, pair, stored_triangle, worst_skew
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.stored import check_hdf5, read_archive

HDF5 = (".hdf5", ".h5")
LOCAL, GLOBAL, SOLUTION = "fclib_local", "fclib_global", "solution"

LARGE, FULL, MOST = 600, 0.1, 4e9
"""Rows from which W is kept sparse if no more than this share of it is filled, and bytes of the largest dense
one."""

COLUMNS = 512
"""Columns that are eliminated at a time."""

Say = Callable[[str], object]
"""Hears a sentence about a file."""


def _nothing(words: str) -> None:
    pass


@dataclass
class _Told:
    """What is said of a file while it is read."""

    change: Say
    """What it needed to be solved."""
    kind: str = ""
    """What it is."""
    skewed: bool = False
    """Whether a matrix was read as its symmetric part, which moves eigenvalues by as much."""


def read_problem(path: str | PathLike[str], say: Say = _nothing, kind: Say = _nothing) -> AnyProblem:
    """The contact problem of an FCLIB file (.hdf5, .h5) or an archive (.npz), in the file's units.

    A large W of few entries stays sparse. say: is told what was changed in the problem, and by how much;
    kind: in one line, what kind of problem the file was taken for.
    Raises InputError, one sentence that names the file and the key that is wrong.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix not in (".npz", *HDF5):
        raise InputError(
            f"{path}: a contact problem is a .npz, .hdf5 or .h5 file, not {suffix or 'without suffix'}"
        )
    told = _Told(say)
    try:
        problem = _read_archive(path, told) if suffix == ".npz" else _read_fclib(path, told)
        require_semidefinite(problem.w, SKEW if told.skewed else ROUNDED)
        kind(f"{told.kind}; {_described(problem)}")
        return problem
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    # h5py and zipfile report damage as OSError, KeyError, ValueError and more, by where it strikes
    except Exception as error:
        reason = " ".join(str(error).split())[:120].rstrip(".")
        raise InputError(f"{path}: truncated or not a {suffix} file ({reason})") from error


def write_fclib(
    path: str | PathLike[str], problem: ContactProblem, title: str, description: str = ""
) -> None:
    """Write an FCLIB local problem that reads back bit for bit; a warm start is not kept.

    title: what it is; description: where it comes from, in units of m and N if it is Palpo's own. Raises
    InputError where the file cannot be written.
    """
    import h5py  # late: a tenth of a second that scenes need not pay

    w = sp.csr_array(problem.w)
    whole = {"nzmax": w.nnz, "m": w.shape[0], "n": w.shape[1], "nz": -2}
    try:
        with h5py.File(path, "w") as file:
            group = file.create_group(LOCAL)
            group["spacedim"] = np.array([3], np.int32)
            for key, value in whole.items():
                group[f"W/{key}"] = np.array([value], np.int32)
            group["W/p"], group["W/i"] = w.indptr.astype(np.int32), w.indices.astype(np.int32)
            group["W/x"] = w.data
            group["vectors/q"], group["vectors/mu"] = problem.b, problem.mu
            words = {
                "title": title,
                "description": description,
                "math_info": "W symmetric positive semidefinite",
            }
            for key, text in words.items():
                # C readers want the zero at the end within the string's length
                size = len(text.encode()) + 1
                group.create_dataset(f"info/{key}", data=text, dtype=h5py.string_dtype(length=size))
    except OSError as error:
        raise InputError(f"{path}: the problem cannot be written ({error.strerror or error})") from error


def write_solution(path: str | PathLike[str], r: NDArray[np.float64], u: NDArray[np.float64]) -> None:
    """Write FCLIB's group `solution` (u, r; v and l are none here) into an HDF5 file, new or with a problem.

    r and u: (3 n,). A solution that is there is replaced. Raises InputError where the file cannot be written.
    """
    import h5py

    try:
        with h5py.File(path, "a") as file:
            if SOLUTION in file:
                del file[SOLUTION]
            file[f"{SOLUTION}/u"], file[f"{SOLUTION}/r"] = u, r
    except OSError as error:
        raise InputError(f"{path}: the solution cannot be written ({error.strerror or error})") from error


def read_guess(path: str | PathLike[str], n_contacts: int) -> NDArray[np.float64]:
    """The force of FCLIB's group `solution`, or of its first guess, or the array r of an .npz archive.

    Shape (3 n,). Raises InputError, one sentence, where there is none that fits.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        if path.suffix.lower() in HDF5:
            import h5py

            with h5py.File(path, "r") as file:
                check_hdf5(file)
                key = next((k for k in (f"{SOLUTION}/r", "guesses/1/r") if k in file), f"{SOLUTION}/r")
                return vector(file, key, 3 * n_contacts)
        return vector(read_archive(path), "r", 3 * n_contacts)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        raise InputError(f"{path}: truncated, or neither an HDF5 file nor an .npz archive") from error


def _described(problem: AnyProblem) -> str:
    """A problem's size, how its W is kept and filled, and its friction, in words."""
    w, mu, rows = problem.w, problem.mu, problem.w.shape[0]
    entries = int((w != 0).sum())
    filled = 100.0 * entries / max(rows * rows, 1)
    least, most = (float(f(mu)) if len(mu) else 0.0 for f in (np.min, np.max))
    friction = f"mu {least:g}" if least == most else f"mu {least:g} to {most:g}"
    kept = "sparse" if sp.issparse(w) else "dense"
    return f"{len(mu)} contacts, W {rows} x {rows} {kept} and filled to {filled:.3g}%, {friction}"


def _read_archive(path: Path, told: _Told) -> AnyProblem:
    file = read_archive(path)
    for key in ("W", "q", "mu"):
        if key not in file:
            raise InputError(f"{key} is missing; the archive of a contact problem holds W, q and mu")
    w, q, mu = (numbers(file, key) for key in ("W", "q", "mu"))
    if w.ndim != 2:
        raise InputError(f"W has shape {w.shape} but must be square")
    told.kind = "a NumPy archive of W, q and mu, a local problem in space"
    return _problem(_symmetrised(w, "W", told), q, mu)


def _read_fclib(path: Path, told: _Told) -> AnyProblem:
    import h5py

    with h5py.File(path, "r") as file:
        check_hdf5(file)
        kind = LOCAL if LOCAL in file else GLOBAL
        if kind not in file:
            held = ", ".join(list(file)[:5]) or "nothing"
            raise InputError(
                f"an HDF5 file of another kind: it holds {held}, but neither {LOCAL} nor {GLOBAL}"
            )
        dimension = int(file[f"{kind}/spacedim"][0]) if f"{kind}/spacedim" in file else 3
        if dimension not in (2, 3):
            raise InputError(f"{kind}/spacedim is {dimension}; problems are in the plane (2) or in space (3)")
        form = _form(file)
        told.kind = f"FCLIB, {form} problem in {'the plane' if dimension == 2 else 'space'}"
        w, q, mu = _local(file, told) if kind == LOCAL else _global(file, told)
    _require_rows(w, mu, dimension)
    if dimension == 2:
        told.change("a problem in the plane: its contacts get a second tangent, along which no force acts")
        w, q = _in_space(w, q)
    return _problem(w, q, mu)


def _form(file: Any) -> str:
    """Which of FCLIB's problems a file holds, in words."""
    if LOCAL in file:
        return "a mixed (W, V, R; l eliminated)" if f"{LOCAL}/R" in file else "a local (W)"
    held = "M, H, G; v and l eliminated" if f"{GLOBAL}/G" in file else "M, H; v eliminated"
    return f"a global ({held})"


Local = tuple[Any, NDArray[np.float64], NDArray[np.float64]]
"""W, dense or sparse, q and mu."""


def _local(file: Any, told: _Told) -> Local:
    w: Any = _symmetrised(matrix(file, f"{LOCAL}/W"), f"{LOCAL}/W", told)
    size = w.shape[0]
    q, mu = vector(file, f"{LOCAL}/vectors/q", size), numbers(file, f"{LOCAL}/vectors/mu")
    if f"{LOCAL}/R" in file:
        v = matrix(file, f"{LOCAL}/V", size)
        r = _symmetrised(matrix(file, f"{LOCAL}/R"), f"{LOCAL}/R", told)
        _require_columns(v, r, f"{LOCAL}/V")
        solve = _factor(r, f"{LOCAL}/R")
        w = w - _eliminated(v.T, solve)
        q = q - v @ solve(vector(file, f"{LOCAL}/vectors/s", r.shape[0]))
        w = 0.5 * (w + w.T)
    return w, q, mu


def _global(file: Any, told: _Told) -> Local:
    m = _symmetrised(matrix(file, f"{GLOBAL}/M"), f"{GLOBAL}/M", told)
    size = m.shape[0]
    h = matrix(file, f"{GLOBAL}/H", size)
    f = vector(file, f"{GLOBAL}/vectors/f", size)
    free = vector(file, f"{GLOBAL}/vectors/w", h.shape[1])
    key = f"{GLOBAL}/M"
    if f"{GLOBAL}/G" in file:
        # (v, l) of the bilateral constraints in one system: M v - G l = H r + f, G^T v = -b
        g = matrix(file, f"{GLOBAL}/G", size)
        m = sp.block_array([[m, -g], [g.T, None]], format="csc")
        f = np.concatenate([f, -vector(file, f"{GLOBAL}/vectors/b", g.shape[1])])
        h = sp.vstack([h, sp.csc_array((g.shape[1], h.shape[1]))], format="csc")
        key = f"{GLOBAL}/M with G"
    solve = _factor(m, key)
    w = _eliminated(h, solve)
    return 0.5 * (w + w.T), h.T @ solve(f) + free, numbers(file, f"{GLOBAL}/vectors/mu")


def _eliminated(h: Any, solve: Any) -> sp.csc_array:
    """H^T A^-1 H by its columns; what bodies that no contact joins leave is zero, and stays so."""
    h = sp.csc_array(h)
    parts = [
        sp.csc_array(h.T @ solve(h[:, first : first + COLUMNS].toarray()))
        for first in range(0, h.shape[1], COLUMNS)
    ]
    return sp.hstack(parts, format="csc") if parts else sp.csc_array((0, 0))


def _in_space(w: Any, q: NDArray[np.float64]) -> tuple[sp.csc_array, NDArray[np.float64]]:
    """The problem of rows (n, t) as one of rows (n, t1, t2).

    Nothing couples t2, and its offset is zero; W_t2t2 = W_t1t1, or the mean of the diagonal where that is
    zero, makes zero its only force.
    """
    n = w.shape[0] // 2
    own, idle = 3 * np.arange(n)[:, None] + np.arange(2), 3 * np.arange(n) + 2
    diagonal = w.diagonal()
    tangent = np.where(diagonal[1::2] > 0.0, diagonal[1::2], max(diagonal.mean(), 0.0) if n else 0.0)
    flat = sp.coo_array(w)
    i, j = (own.ravel()[index] for index in flat.coords)
    values = np.concatenate([flat.data, tangent])
    where = np.concatenate([i, idle]), np.concatenate([j, idle])
    b = np.zeros(3 * n)
    b[own.ravel()] = q
    return sp.csc_array((values, where), (3 * n, 3 * n)), b


def _require_rows(w: Any, mu: NDArray[np.float64], dimension: int) -> None:
    if mu.ndim != 1:
        raise InputError(f"mu has shape {mu.shape}, expected one number a contact")
    if w.shape[0] != dimension * mu.size:
        count = {2: "two", 3: "three"}[dimension]
        raise InputError(
            f"W has {w.shape[0]} rows but mu {mu.size} contacts; {count} rows a contact are needed"
        )


def _problem(w: Any, q: NDArray[np.float64], mu: NDArray[np.float64]) -> AnyProblem:
    """The problem of a symmetric W, dense or sparse as it is worth."""
    _require_rows(w, mu, 3)
    rows = w.shape[0]
    if sp.issparse(w):
        if rows > LARGE and w.nnz <= FULL * rows * rows:
            return SparseProblem(sp.csr_array(w), q, mu)
        if 8.0 * rows * rows > MOST:
            raise InputError(
                f"W of {mu.size} contacts is filled to {100.0 * w.nnz / rows**2:.0f}% and would take "
                f"{8e-9 * rows**2:.0f} GB"
            )
        w = w.toarray()
    return ContactProblem(np.ascontiguousarray(w), q, mu)


def _symmetrised(found: Any, key: str, told: "_Told") -> Any:
    """All of a matrix of which one triangle is stored, or the symmetric part of one that is nearly symmetric,
    dense or sparse; InputError for another."""
    if found.shape[0] != found.shape[1]:
        raise InputError(f"{key} has shape {found.shape} but must be square")
    share, i, j = worst_skew(found)
    if share <= UNSYMMETRIC:
        return found
    half = stored_triangle(found)
    if half:
        told.change(f"{key} holds its {half} triangle alone; it is mirrored")
        return mirrored(found)
    where = pair(found, key, i, j)
    if not share <= SKEW:
        raise InputError(
            f"{key} must be symmetric to {SKEW:g}, but {where}: {share:.2g} of sqrt({key}_ii {key}_jj) apart"
        )
    told.change(
        f"{key} is not symmetric, {where}: {share:.2g} of sqrt({key}_ii {key}_jj) apart; read as its "
        "symmetric part"
    )
    told.skewed = True
    return 0.5 * (found + found.T)


def _require_columns(v: Any, r: Any, key: str) -> None:
    if v.shape[1] != r.shape[0]:
        raise InputError(f"{key} has {v.shape[1]} columns, expected {r.shape[0]}")


def _factor(matrix: sp.csc_array, key: str) -> Any:
    """The solve of a factor; InputError where the matrix is singular."""
    try:
        return splu(sp.csc_matrix(matrix)).solve
    except RuntimeError as error:
        raise InputError(f"{key} is singular, so that it cannot be eliminated") from error
