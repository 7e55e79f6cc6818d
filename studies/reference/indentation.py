"""The force of a round probe on a block by another program (scikit-fem): where meshes go as they are refined.

A quarter of the block of the scene `probe` (60 x 30 x 60 mm, E 15 kPa, bonded below), a rigid ball of 10 mm
pressed into its middle without friction, triquadratic hexahedra whose edges grow away from the ball; contact
at nodes, of which none pulls: a linear complementarity problem, solved by its active set. Under an even
pressure all nodes of such elements bear, so that they may stand for the surface.

Of two laws: small strains, the ball pushing upright, which a stiffness matrix is held against; and what a
scene computes, strains that are small in axes that turn with the material (P = 2 mu (F - R) + lambda tr(R^T F
- 1) R, R the rotation nearest to F), the ball pushing along its own normals, where the surface has come to.
At 5 mm, half the ball's radius, the two differ by a quarter.
`python -m palpo.studies.reference.indentation` writes curves/indentation.csv, each law of two meshes: what
they differ by is what the reference leaves.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

Floats = NDArray[np.float64]

RADIUS, SIDE, HEIGHT, YOUNG = 0.010, 0.030, 0.030, 15e3
"""Of the ball, of the quarter, of the block [m]; Young's modulus [Pa]."""
DEPTHS = (0.001, 0.002, 0.003, 0.005)
RATIOS = (0.30, 0.40, 0.45, 0.49)
MESHES = ((8, 6), (11, 8))
"""Elements along a side and through the height, of small strains."""
TURNING_MESHES = ((4, 3), (6, 4))
"""The same of axes that turn: each depth takes some ten solutions."""
STEPS, SETTLED = 60, 1e-7
"""Most steps to the equilibrium at a depth; the largest displacement in the last [m]."""


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


class IndentedBlock:
    """The quarter: its freedoms, which of them are free, and those of the top's nodes near the ball."""

    def __init__(self, mesh: tuple[int, int]) -> None:
        from skfem import Basis, ElementHex2, ElementVector, MeshHex

        side = graded(SIDE, mesh[0], 6.0)
        height = HEIGHT - graded(HEIGHT, mesh[1], 4.0)[::-1]
        self.basis = Basis(MeshHex.init_tensor(side, height, side), ElementVector(ElementHex2()), intorder=4)
        x, axis = self.basis.doflocs, np.zeros(self.basis.N, int)
        self.axis = axis
        """Which way each freedom goes, (n,)."""
        for freedoms in (
            self.basis.nodal_dofs, self.basis.edge_dofs, self.basis.facet_dofs, self.basis.interior_dofs
        ):  # fmt: skip
            for row in range(len(freedoms)):
                axis[freedoms[row]] = row % 3
        held = (x[1] < 1e-9) | ((x[0] < 1e-9) & (axis == 0)) | ((x[2] < 1e-9) & (axis == 2))
        self.free = np.flatnonzero(~held)
        near = (x[1] > HEIGHT - 1e-9) & (np.hypot(x[0], x[2]) < 1.1 * RADIUS)
        each = [np.flatnonzero(near & (axis == a)) for a in range(3)]
        order = [np.lexsort((x[2, dofs], x[0, dofs])) for dofs in each]
        self.top = np.stack([dofs[i] for dofs, i in zip(each, order, strict=True)], axis=1)
        """Freedoms of its nodes, (k, 3)."""
        self.places = x[:, self.top[:, 1]].T

    def solve(self, stiffness: Any, loads: Floats) -> Floats:
        """Displacements of all freedoms (n, k) under loads (n, k)."""
        factor = splu(
            stiffness.tocsc()[self.free][:, self.free],
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        out = np.zeros_like(loads)
        out[self.free] = factor.solve(np.ascontiguousarray(loads[self.free]))
        return out


def forces(nu: float, mesh: tuple[int, int]) -> Floats:
    """Force of the whole ball [N] at DEPTHS, of small strains."""
    from skfem import asm
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    block = IndentedBlock(mesh)
    r = np.hypot(block.places[:, 0], block.places[:, 2])
    dofs = block.top[r < 0.98 * RADIUS, 1]
    r = r[r < 0.98 * RADIUS]
    load = np.zeros((block.basis.N, len(dofs)))
    load[dofs, np.arange(len(dofs))] = 1.0
    stiffness = asm(linear_elasticity(*lame_parameters(YOUNG, nu)), block.basis)
    yielding = block.solve(stiffness, load)[dofs]
    yielding = 0.5 * (yielding + yielding.T)
    under = RADIUS - np.sqrt(RADIUS**2 - r**2)
    return np.array([4.0 * without_pull(yielding, under - depth).sum() for depth in DEPTHS])


def turning_forces(nu: float, mesh: tuple[int, int]) -> Floats:
    """The same where axes turn and the ball pushes along its normals."""
    from skfem.models.elasticity import lame_parameters

    lame, block = lame_parameters(YOUNG, nu), IndentedBlock(mesh)
    grads, weights, dofs = elements_of(block)
    u, out = np.zeros(block.basis.N), []
    for depth in DEPTHS:
        centre = np.array([0.0, HEIGHT + RADIUS - depth, 0.0])
        for _ in range(STEPS):
            r, inner = inner_force(u[dofs], grads, weights, *lame)
            apart = block.places + u[block.top] - centre
            away = np.linalg.norm(apart, axis=1)
            near = np.flatnonzero(away < RADIUS + 0.003)
            normal = apart[near] / away[near, None]
            load = np.zeros((block.basis.N, len(near) + 1))
            load[block.top[near], np.arange(len(near))[:, None]] = normal
            np.subtract.at(load[:, -1], dofs, inner)
            load[np.setdiff1d(np.arange(block.basis.N), block.free)] = 0.0
            moved = block.solve(turned_stiffness(r, grads, weights, dofs, *lame), load)
            across = load[:, :-1].T @ moved
            yielding = 0.5 * (across[:, :-1] + across[:, :-1].T)
            push = without_pull(yielding, away[near] - RADIUS + across[:, -1])
            step = moved[:, -1] + moved[:, :-1] @ push
            u += step
            if np.abs(step).max() < SETTLED:
                break
        out.append(-4.0 * float(push @ normal[:, 1]))
    return np.array(out)


def elements_of(block: IndentedBlock) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Gradients of the shape functions (elements, points, 27, 3), weights (elements, points) and freedoms
    (elements, 27, 3) of the block's elements."""
    from skfem import Basis, ElementHex2

    scalar = Basis(block.basis.mesh, ElementHex2(), intorder=4)
    grads = np.stack([part[0].grad for part in scalar.basis])
    weights = np.asarray(scalar.dx)
    dofs = block.basis.element_dofs.T.reshape(len(weights), 27, 3)
    return np.ascontiguousarray(np.moveaxis(grads, (2, 3, 0, 1), (0, 1, 2, 3))), weights, dofs


def inner_force(
    moved: Floats, grads: Floats, weights: Floats, first: float, second: float
) -> tuple[Floats, Floats]:
    """Rotations R (elements, points, 3, 3) and forces (elements, 27, 3) [N] at displacements like the
    latter [m], by Lame's numbers [Pa]."""
    f = np.einsum("eai,eqaj->eqij", moved, grads) + np.eye(3)
    left, _, right = np.linalg.svd(f)
    r = left @ right
    volume = np.einsum("eqij,eqij->eq", r, f) - 3.0
    stress = 2.0 * second * (f - r) + first * volume[..., None, None] * r
    return r, np.einsum("eq,eqij,eqaj->eai", weights, stress, grads)


def turned_stiffness(
    r: Floats, grads: Floats, weights: Floats, dofs: NDArray[np.int64], first: float, second: float
) -> sp.csr_array:
    """That of strains in axes r (elements, points, 3, 3), which are taken to stand still."""
    elements, points, corners, _ = grads.shape
    turned = np.einsum("eqij,eqaj->eqai", r, grads)
    wide = (weights[..., None, None] * grads).reshape(elements, points, corners, 3)
    alike = np.einsum("eqai,eqbi->eab", wide, grads, optimize=True)
    flat = turned.reshape(elements, points, -1)
    outer = np.swapaxes(weights[..., None] * flat, 1, 2) @ flat  # (elements, 81, 81)
    outer = outer.reshape(elements, corners, 3, corners, 3)
    block = first * outer + second * outer.transpose(0, 1, 4, 3, 2)
    for i in range(3):
        block[:, :, i, :, i] += second * alike
    rows = np.broadcast_to(dofs.reshape(elements, -1, 1), (elements, 3 * corners, 3 * corners))
    size = int(dofs.max()) + 1
    values = block.reshape(rows.shape)
    places = rows.ravel(), rows.transpose(0, 2, 1).ravel()
    return sp.coo_array((values.ravel(), places), (size, size)).tocsr()


def stored(turning: bool = False) -> dict[tuple[float, float], float]:
    """Force [N] of the finer mesh by Poisson's ratio and depth [m]; of small strains or axes that turn."""
    text = (files("palpo.studies") / "curves/indentation.csv").read_text("utf-8")
    rows = [[float(number) for number in line.split(",")] for line in text.splitlines()[1:]]
    return {(row[0], row[1]): row[5 if turning else 3] for row in rows}


def main(path: Path = Path(__file__).parents[1] / "curves/indentation.csv") -> None:
    """Compute and write the figures."""
    lines: Sequence[str] = ["poisson_ratio,depth_m,coarse_N,fine_N,turning_coarse_N,turning_fine_N"]
    for nu in RATIOS:
        each = [forces(nu, mesh) for mesh in MESHES]
        each += [turning_forces(nu, mesh) for mesh in TURNING_MESHES]
        rows = np.column_stack([DEPTHS, *each])
        lines = [*lines, *(f"{nu},{row[0]}," + ",".join(f"{f:.5f}" for f in row[1:]) for row in rows)]
        print(*lines[-len(DEPTHS) :], sep="\n", flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
