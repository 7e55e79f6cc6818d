"""The force of a round probe on a block by another program (scikit-fem): where meshes go as they are refined.

A quarter of the block of the scene `probe` (60 x 30 x 60 mm, E 15 kPa, bonded below), a rigid ball of 10 mm
pressed into its middle without friction, small strains, triquadratic hexahedra whose edges grow away from the
ball; contact at nodes, of which none pulls: a linear complementarity problem, solved by its active set. Under
an even pressure all nodes of such elements bear, so that they may stand for the surface.
`python -m palpo.studies.reference.indentation` writes curves/indentation.csv, of two meshes: what they differ
by is what the reference leaves.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

Floats = NDArray[np.float64]

RADIUS, SIDE, HEIGHT, YOUNG = 0.010, 0.030, 0.030, 15e3
"""Of the ball, of the quarter, of the block [m]; Young's modulus [Pa]."""
DEPTHS = (0.001, 0.002, 0.003, 0.005)
RATIOS = (0.30, 0.40, 0.45, 0.49)
MESHES = ((8, 6), (11, 8))
"""Elements along a side and through the height."""


def graded(length: float, count: int, growth: float) -> Floats:
    """Places from 0 to length [m], the last cell `growth` times the first."""
    steps = growth ** (np.arange(count) / (count - 1))
    return np.asarray(length * np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum())


def without_pull(compliance: Floats, gap: Floats) -> Floats:
    """Forces p >= 0 (k,) with gap + C p >= 0 and p (gap + C p) = 0."""
    acts = gap < 0.0
    while True:
        p, i = np.zeros(len(gap)), np.flatnonzero(acts)
        p[i] = np.linalg.solve(compliance[np.ix_(i, i)], -gap[i])
        left = gap + compliance @ p
        now = (acts & (p > 0.0)) | (~acts & (left < -1e-12))
        if np.array_equal(now, acts):
            return p
        acts = now


def forces(nu: float, mesh: tuple[int, int]) -> Floats:
    """Force of the whole ball [N] at DEPTHS."""
    from skfem import Basis, ElementHex2, ElementVector, MeshHex, asm
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    side = graded(SIDE, mesh[0], 6.0)
    height = HEIGHT - graded(HEIGHT, mesh[1], 4.0)[::-1]
    basis = Basis(MeshHex.init_tensor(side, height, side), ElementVector(ElementHex2()), intorder=4)
    k = asm(linear_elasticity(*lame_parameters(YOUNG, nu)), basis)
    x, axis = basis.doflocs, np.zeros(basis.N, int)
    for freedoms in (basis.nodal_dofs, basis.edge_dofs, basis.facet_dofs, basis.interior_dofs):
        for row in range(len(freedoms)):
            axis[freedoms[row]] = row % 3
    held = (x[1] < 1e-9) | ((x[0] < 1e-9) & (axis == 0)) | ((x[2] < 1e-9) & (axis == 2))
    free = np.flatnonzero(~held)
    place = np.full(basis.N, -1)
    place[free] = np.arange(len(free))
    r = np.hypot(x[0], x[2])
    top = np.flatnonzero((x[1] > HEIGHT - 1e-9) & (axis == 1) & (r < 0.98 * RADIUS))
    load = np.zeros((len(free), len(top)))
    load[place[top], np.arange(len(top))] = 1.0
    factor = splu(
        k.tocsc()[free][:, free],
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    yielding = factor.solve(load)[place[top]]
    yielding = 0.5 * (yielding + yielding.T)
    under = RADIUS - np.sqrt(RADIUS**2 - r[top] ** 2)
    return np.array([4.0 * without_pull(yielding, under - depth).sum() for depth in DEPTHS])


def stored() -> dict[tuple[float, float], float]:
    """Force [N] by Poisson's ratio and depth [m], of the finer mesh."""
    text = (files("palpo.studies") / "curves/indentation.csv").read_text("utf-8")
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return {(float(nu), float(depth)): float(fine) for nu, depth, _, fine in rows}


def main(path: Path = Path(__file__).parents[1] / "curves/indentation.csv") -> None:
    """Compute and write the figures."""
    lines: Sequence[str] = ["poisson_ratio,depth_m,coarse_N,fine_N"]
    for nu in RATIOS:
        coarse, fine = (forces(nu, mesh) for mesh in MESHES)
        lines = [
            *lines,
            *(f"{nu},{d},{a:.5f},{b:.5f}" for d, a, b in zip(DEPTHS, coarse, fine, strict=True)),
        ]
        print(*lines[-len(DEPTHS) :], sep="\n", flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
