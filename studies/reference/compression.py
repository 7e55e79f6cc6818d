"""The force of a cube pressed flat by another program (FElupe): where meshes go as they are refined.

A cube of 20 mm, E 20 kPa, between two plates that hold its ends (bonded) or let them slide (frictionless);
its sides do not go beyond the plates, along which they slide. The material is the neo-Hookean one of
palpo.physics.fem.neo_hookean, its energy written anew here, so that no difference of form enters. An eighth
is computed, of triquadratic hexahedra that shorten towards the plate and the sides, where the edge of a
bonded end leaves a singular stress.

That energy is finite where a volume vanishes. At the bonded edge, where pressure is without bound, material
is crushed in the end, the more of it the smaller Poisson's ratio, and meshes differ. So each figure stands
with that of a coarser mesh and the least J of the finer: where it is negative, or the two differ, there is
no converged force. `python -m palpo.studies.reference.compression` writes curves/compression.csv. FElupe is
under the GPL: this script alone asks for it, and it is no part of Palpo.
"""

from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from palpo.physics.fem.material import Material
from palpo.studies.reference.indentation import graded

Floats = NDArray[np.float64]

HALF, YOUNG = 0.010, 20e3
"""Half the cube's side [m]; Young's modulus [Pa]."""
RATIOS = (0.30, 0.40, 0.45, 0.49)
SHARES = (0.2, 0.4, 0.6)
"""Of its height that are taken from it."""
MESHES = ((4, 2.0), (5, 3.0))
"""Elements along each side of an eighth; length of the first, in the middle, over that of the last."""
PART = 0.025
"""Share of the height from one equilibrium to the next."""
PLATE = 4e3
"""Stiffness of the plate under a node of the sides [N/m]."""
STEPS, SETTLED = 100, 1e-8
"""Most steps to an equilibrium; the largest displacement in the last [m]."""


class PressedEighth:
    """What is pressed: nodes at rest (n, 3) [m] between 0 and HALF along each axis, the plate above them.

    Who derives from it answers energy(x) [J], slope(x) (n, 3) [N] and stiffness(x, positive) of all freedoms
    [N/m] at positions x (n, 3); if asked for, without its negative part.
    """

    def __init__(self, rest: Floats, bonded: bool) -> None:
        self.rest, self.x = rest, rest.copy()
        self.top = rest[:, 1] > HALF - 1e-9
        held = rest < 1e-9
        held[self.top, :] |= (True, True, True) if bonded else (False, True, False)
        self.free = np.flatnonzero(~held.ravel())

    def energy(self, x: Floats) -> float:
        raise NotImplementedError

    def slope(self, x: Floats) -> Floats:
        raise NotImplementedError

    def stiffness(self, x: Floats, positive: bool) -> Any:
        raise NotImplementedError

    def press(self, shares: tuple[float, ...] = SHARES) -> Iterator[float]:
        """Forces on the whole plate [N] at shares of the height, one after the other."""
        share = 0.0
        for part in range(1, round(max(shares) / PART) + 1):
            before, share = share, part * PART
            self.x[:, 1] *= (1.0 - share) / (1.0 - before)
            self._settle(HALF * (1.0 - share))
            if any(abs(share - wanted) < 1e-9 for wanted in shares):
                plate = PLATE * self._beyond(self.x, HALF * (1.0 - share)).sum()
                yield 4.0 * float(plate - self.slope(self.x)[self.top, 1].sum())

    def _beyond(self, x: Floats, plate: float) -> Floats:
        """How far nodes are beyond the plate's height [m], but those that it holds, (n,)."""
        return np.where(self.top, 0.0, np.maximum(x[:, 1] - plate, 0.0))

    def _energy(self, x: Floats, plate: float) -> float:
        return self.energy(x) + 0.5 * PLATE * float((self._beyond(x, plate) ** 2).sum())

    def _settle(self, plate: float) -> None:
        """Go to the equilibrium under a plate of that height: Newton's method, with a line search."""
        energy, n = self._energy(self.x, plate), len(self.x)
        for _ in range(STEPS):
            beyond, slope = self._beyond(self.x, plate), self.slope(self.x)
            slope[:, 1] += PLATE * beyond
            diagonal = np.zeros((n, 3))
            diagonal[:, 1] = PLATE * (beyond > 0.0)
            load, step = slope.ravel()[self.free], np.zeros(3 * n)
            for positive in (False, True):
                whole = sp.csc_array(self.stiffness(self.x, positive)) + sp.diags_array(diagonal.ravel())
                factor = splu(
                    sp.csc_matrix(sp.csc_array(whole)[self.free][:, self.free]),
                    permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True},
                )  # fmt: skip
                step[self.free] = -factor.solve(load)
                down = float(load @ step[self.free])
                if down <= 0.0:
                    break
            way = step.reshape(n, 3)
            if np.abs(way).max() < SETTLED:
                self.x = self.x + way
                return
            share, most = 1.0, 1e-14 * abs(energy)
            while (
                share > 1e-4
                and self._energy(self.x + share * way, plate) > energy + 1e-4 * share * down + most
            ):
                share *= 0.5
            self.x = self.x + share * way
            energy = self._energy(self.x, plate)


class SmithsEnergy:
    """mu'/2 (I - 3 - ln((I + 1) / 4)) + lam'/2 ((J - a)^2 - (1 - a)^2), of gradients f (3, 3, points,
    cells)."""

    def __init__(self, nu: float) -> None:
        lam, mu = Material(YOUNG, nu, 1e3).lame()
        self.mu, self.lam = 4.0 / 3.0 * mu, lam + 5.0 / 6.0 * mu
        self.rest, self.positive = 1.0 + 0.75 * self.mu / self.lam, False

    def energy(self, f: Floats) -> Floats:
        """[J/m3], (points, cells)."""
        square = (f * f).sum(axis=(0, 1))
        volume = (determinant(f) - self.rest) ** 2 - (1.0 - self.rest) ** 2
        return 0.5 * self.mu * (square - 3.0 - np.log(0.25 * (square + 1.0))) + 0.5 * self.lam * volume

    def stress(self, x: Any, **_: Any) -> list[Any]:
        """P [Pa], as FElupe asks for it."""
        f = x[0]
        shear = self.mu * (1.0 - 1.0 / (1.0 + (f * f).sum(axis=(0, 1))))
        return [shear * f + self.lam * (determinant(f) - self.rest) * cofactor(f), None]

    def tangent(self, x: Any, **_: Any) -> list[Any]:
        """dP/dF [Pa], as FElupe asks for it."""
        f = x[0]
        beyond, c = 1.0 + (f * f).sum(axis=(0, 1)), cofactor(f)
        d = 2.0 * self.mu / beyond**2 * np.einsum("ij...,kl...->ijkl...", f, f)
        d += self.lam * np.einsum("ij...,kl...->ijkl...", c, c)
        pressure = self.lam * (determinant(f) - self.rest)
        for i in range(3):
            for j in range(3):
                d[i, j, i, j] += self.mu * (1.0 - 1.0 / beyond)
                for k in range(1, 3):
                    for m in range(1, 3):
                        # dcof_ij / dF_kl is plus or minus the entry of F in the rows and columns left
                        sign = 1.0 if k == m else -1.0
                        across = f[(i - k) % 3, (j - m) % 3]
                        d[i, j, (i + k) % 3, (j + m) % 3] += sign * pressure * across
        if self.positive:
            values, axes = np.linalg.eigh(np.moveaxis(d.reshape(9, 9, -1), 2, 0))
            kept = (axes * np.maximum(values, 0.0)[:, None]) @ axes.transpose(0, 2, 1)
            d = np.moveaxis(kept, 0, 2).reshape(d.shape)
        return [d]


def cofactor(f: Floats) -> Floats:
    """det(F) F^-T of gradients (3, 3, ...)."""
    rows = [np.cross(f[(i + 1) % 3], f[(i + 2) % 3], axis=0) for i in range(3)]
    return np.stack(rows)


def determinant(f: Floats) -> Floats:
    """Of gradients (3, 3, ...)."""
    return np.asarray((f[0] * cofactor(f)[0]).sum(axis=0))


class Hexahedra(PressedEighth):
    """The eighth by FElupe; mesh: one of MESHES."""

    def __init__(self, nu: float, mesh: tuple[int, float], bonded: bool) -> None:
        import felupe as fem

        places = HALF - graded(HALF, *mesh)[::-1]
        grid = fem.Grid(places, places, places)
        grid = grid.add_midpoints_edges().add_midpoints_faces().add_midpoints_volumes()
        self.region = fem.RegionTriQuadraticHexahedron(grid)
        self.field = fem.FieldContainer([fem.Field(self.region, dim=3)])
        self.law = SmithsEnergy(nu)
        self.solid = fem.SolidBody(fem.Material(self.law.stress, self.law.tangent), self.field)
        super().__init__(np.array(grid.points), bonded)

    def _gradients(self, x: Floats) -> Floats:
        self.field[0].values[:] = x - self.rest
        return np.asarray(self.field.extract()[0])

    def energy(self, x: Floats) -> float:
        return float((self.law.energy(self._gradients(x)) * self.region.dV).sum())

    def slope(self, x: Floats) -> Floats:
        self._gradients(x)
        return np.asarray(self.solid.assemble.vector(self.field).toarray().reshape(-1, 3))

    def stiffness(self, x: Floats, positive: bool) -> Any:
        self._gradients(x)
        self.law.positive = positive
        return self.solid.assemble.matrix(self.field)

    def least_volume(self) -> float:
        """Least J of all points."""
        return float(determinant(self._gradients(self.x)).min())


def stored() -> dict[tuple[bool, float, float], tuple[float, float, float]]:
    """Forces [N] of the coarse and the fine mesh and the latter's least J by bonded, nu and share."""
    text = (files("palpo.studies") / "curves/compression.csv").read_text("utf-8")
    rows = [[float(number) for number in line.split(",")] for line in text.splitlines()[1:]]
    return {(bool(row[0]), row[1], row[2]): (row[3], row[4], row[5]) for row in rows}


def main(path: Path = Path(__file__).parents[1] / "curves/compression.csv") -> None:
    """Compute and write the figures."""
    lines = ["bonded,poisson_ratio,share,coarse_N,fine_N,fine_least_volume"]
    for bonded, nu in product((False, True), RATIOS):
        coarse, fine = (Hexahedra(nu, mesh, bonded) for mesh in MESHES)
        for share, *two in zip(SHARES, coarse.press(), fine.press(), strict=True):
            numbers = ",".join(f"{number:.5f}" for number in (*two, fine.least_volume()))
            lines.append(f"{int(bonded)},{nu},{share},{numbers}")
            print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
