"""The force of a cube pressed flat by another program (FElupe): where meshes go as they are refined.

A cube of 20 mm, E 20 kPa, between two plates that hold its ends; its sides do not go beyond the plates, along
which they slide. The material is FElupe's own compressible neo-Hookean one. An eighth is computed, of
triquadratic hexahedra that shorten towards the plate and the sides, where the edge of an end leaves a
singular stress.

Each figure stands with that of a coarser mesh: where the two differ, there is no converged force.
`python -m palpo.studies.reference.compression` writes curves/compression.csv. FElupe is under the GPL: this
script alone asks for it, and it is no part of Palpo.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem.material import Material
from palpo.studies.reference.at_rest import BodyAtRest, RestingBody, Unbalanced, free_ways
from palpo.studies.reference.indentation import graded

Floats = NDArray[np.float64]

HALF, YOUNG = 0.010, 20e3
"""Half the cube's side [m]; Young's modulus [Pa]."""
RATIOS = (0.30, 0.40, 0.45, 0.49)
SHARES = (0.2, 0.4, 0.6)
"""Of its height that are taken from it."""
MESHES = ((5, 3.0), (6, 4.0))
"""Elements along each side of an eighth; length of the first, in the middle, over that of the last."""
PART = 0.025
"""Share of the height from one equilibrium to the next."""
PLATE = 4e3
"""Stiffness of the plate under a node of the sides [N/m]."""


def press(body: RestingBody, bonded: bool, shares: tuple[float, ...] = SHARES) -> Iterator[float]:
    """Forces on the whole plate [N] at shares of the height, one after the other; NaN once no rest is found.

    body: at rest between 0 and HALF along each axis, the plate above it.
    """
    x = body.x
    top, held = x[:, 1] > HALF - 1e-9, x < 1e-9
    held[top] |= [bonded, True, bonded]
    plate = PressingPlate(top)
    still, rests = BodyAtRest(body, free_ways(held), YOUNG, plate), True
    for part in range(1, round(max(shares) / PART) + 1):
        way = np.zeros_like(x)
        way[top, 1] = -PART * HALF
        plate.height = HALF * (1.0 - part * PART)
        if rests:
            try:
                still.move(way)
            except Unbalanced:
                rests = False
        if any(abs(part * PART - wanted) < 1e-9 for wanted in shares):
            yield 4.0 * float(still.force()[top, 1].sum() - plate(body.x)[1].sum()) if rests else np.nan


class PressingPlate:
    """What keeps nodes below a height [m], but those that it holds anyway; an `Outside`."""

    def __init__(self, held: NDArray[np.bool_]) -> None:
        self.held, self.height = held, HALF

    def __call__(self, x: Floats) -> tuple[float, Floats, sp.csc_matrix]:
        beyond = np.where(self.held, 0.0, np.maximum(x[:, 1] - self.height, 0.0))
        force, stiffness = np.zeros_like(x), np.zeros_like(x)
        force[:, 1], stiffness[:, 1] = -PLATE * beyond, PLATE * (beyond > 0.0)
        energy = 0.5 * PLATE * float(beyond @ beyond)
        return energy, force.ravel(), sp.diags_array(stiffness.ravel()).tocsc()


class Hexahedra:
    """An eighth by FElupe, an `RestingBody`; mesh: one of MESHES."""

    def __init__(self, nu: float, mesh: tuple[int, float]) -> None:
        import felupe as fem

        places = HALF - graded(HALF, *mesh)[::-1]
        grid = fem.Grid(places, places, places)
        grid = grid.add_midpoints_edges().add_midpoints_faces().add_midpoints_volumes()
        self.region = fem.RegionTriQuadraticHexahedron(grid)
        self.field = fem.FieldContainer([fem.Field(self.region, dim=3)])
        lam, mu = Material(YOUNG, nu, 1e3).lame()
        self.law, self.positive = fem.NeoHookeCompressible(mu, lam), False
        self.solid = fem.SolidBody(fem.Material(self.law.gradient, self._tangent), self.field)
        self.rest = np.array(grid.points)
        self.x = self.rest.copy()

    def _gradients(self) -> Floats:
        self.field[0].values[:] = self.x - self.rest
        return np.asarray(self.field.extract()[0])

    def _tangent(self, x: Any, **_: Any) -> list[Any]:
        """dP/dF [Pa] as the law has it, or without its negative part."""
        d = np.array(self.law.hessian(x)[0])
        if self.positive:
            values, axes = np.linalg.eigh(np.moveaxis(d.reshape(9, 9, -1), 2, 0))
            kept = (axes * np.maximum(values, 0.0)[:, None]) @ axes.transpose(0, 2, 1)
            d = np.moveaxis(kept, 0, 2).reshape(d.shape)
        return [d]

    def energy(self) -> float:
        """See RestingBody; without bound where an element is flat or inside out."""
        f = self._gradients()
        if not np.linalg.det(np.moveaxis(f, (0, 1), (-2, -1))).min() > 0.0:
            return np.inf
        return float((self.law.function([f, None])[0] * self.region.dV).sum())

    def undamped_force(self) -> Floats:
        """See RestingBody."""
        self._gradients()
        with np.errstate(invalid="ignore"):
            return -np.asarray(self.solid.assemble.vector(self.field).toarray().ravel())

    def tangent(self) -> Any:
        """See RestingBody."""
        self._gradients()
        self.positive = False
        return sp.csc_matrix(self.solid.assemble.matrix(self.field))

    @property
    def K(self) -> Any:
        """See RestingBody."""
        self._gradients()
        self.positive = True
        return sp.csc_matrix(self.solid.assemble.matrix(self.field))


def stored() -> dict[tuple[float, float], tuple[float, float]]:
    """Forces [N] with bonded ends of the coarse and the fine mesh, by nu and share."""
    text = (files("palpo.studies") / "curves/compression.csv").read_text("utf-8")
    rows = [[float(number) for number in line.split(",")] for line in text.splitlines()[1:]]
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


def main(path: Path = Path(__file__).parents[1] / "curves/compression.csv") -> None:
    """Compute and write the figures."""
    lines = ["poisson_ratio,share,coarse_N,fine_N"]
    for nu in RATIOS:
        coarse, fine = (press(Hexahedra(nu, mesh), True) for mesh in MESHES)
        for share, *two in zip(SHARES, coarse, fine, strict=True):
            lines.append(f"{nu},{share}," + ",".join(f"{force:.5f}" for force in two))
            print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
