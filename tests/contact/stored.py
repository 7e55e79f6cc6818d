"""The contact problems that the solvers' tests share: our own, stored beside this file, and those of
../shared.
"""

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from palpo.physics.contact.problem import ContactProblem
from palpo.physics.contact.solvers.registry import find_solver, solver_names

OWN = Path(__file__).parent / "problems"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "friction"

PERIO_BOX = "LMGC_100_PR_PerioBox-i00361-60-03000.hdf5"
HARD = sorted(f"hard/{path.name}" for path in (OWN / "hard").glob("*.npz"))
"""Reduced wedges near jamming, on which Uzawa's methods take up to a hundred thousand sweeps."""
NAMED = [
    *sorted(path.name for path in OWN.glob("*.npz")), *HARD, "delassus_36.npz", "delassus_66.npz", PERIO_BOX
]  # fmt: skip
"""The set on which no consistent solver may fail."""

CONSISTENT = [name for name in solver_names() if find_solver(name).consistent and find_solver(name).sure]


def stored(name: str) -> ContactProblem:
    """The problem of this name; skips the test where the shared data are not there."""
    path = OWN / name if (OWN / name).exists() else SHARED / name
    if not path.exists():
        pytest.skip(f"the problem {name} is not kept with the project: {path} is not there")
    if path.suffix == ".npz":
        data = np.load(path)
        return ContactProblem(data["W"], data["q"], data["mu"])
    with h5py.File(path) as file:
        group = file["fclib_local"]
        parts = {key: group["W"][key][()] for key in group["W"]}
        shape = (int(parts["m"][0]), int(parts["n"][0]))
        nz, x = int(parts["nz"][0]), parts["x"]
        if nz == -1:
            w = sp.csc_matrix((x, parts["i"], parts["p"]), shape)
        elif nz == -2:
            w = sp.csr_matrix((x, parts["i"], parts["p"]), shape)
        else:
            w = sp.coo_matrix((x[:nz], (parts["i"][:nz], parts["p"][:nz])), shape)
        return ContactProblem(w.toarray(), group["vectors/q"][()], group["vectors/mu"][()])


def offsets(problem: ContactProblem, r: np.ndarray) -> np.ndarray:
    """u = W r + b, shape (n, 3)."""
    return (problem.w @ r + problem.b).reshape(-1, 3)


def in_cones(problem: ContactProblem, r: np.ndarray) -> bool:
    """Whether r is finite and, to a few roundings, in the product of the cones."""
    n, t = r[0::3], np.hypot(r[1::3], r[2::3])
    return bool(
        np.isfinite(r).all() and (n >= 0.0).all() and (t <= problem.mu * n * (1.0 + 1e-12) + 1e-300).all()
    )
