"""The benches of HapCo: two blocks, their materials, and the paths along which the mobile one is led.

001 is N. Talbi's thesis, sections 3.2, 3.9 and 4.2.2; 004, the paper of GRAPP 2008. What they leave out is
chosen here and said where it is. There is no gravity, as in both, and every vertex of the mobile block's
lower face is a contact, so that a bench has one number of contacts on all of its paths.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.systems.hapco.detection import Detection
from palpo.studies.reference.interaction import Interaction, StepResult

Side = Literal["left", "right", "bottom", "top"]

CM, MPA = 1e-2, 1e6
P = 0.1 * CM
"""One step of every path [m]."""

DENSITY = 1000.0
"""[kg/m3]; without gravity nothing depends on it."""

MATERIALS = {
    "aluminium": Material(69000 * MPA, 0.33, DENSITY),
    "tissue": Material(0.02 * MPA, 0.40, DENSITY),
    # 001 gives no ratio; a modulus of 2350 MPa is that of ebonite, whose ratio is 0.4
    "rubber": Material(2350 * MPA, 0.40, DENSITY),
    # 004 gives no unit; both solvers only know the ratio of the two
    "red-2008": Material(3000 * MPA, 0.30, DENSITY),
    "green-2008": Material(80000 * MPA, 0.30, DENSITY),
}
"""001, sections 3.4 and 3.7; 004, section 3.3.3."""

PAIRS = {
    "aluminium-tissue": ("aluminium", "tissue"),
    "aluminium-rubber": ("aluminium", "rubber"),
    "tissue-tissue": ("tissue", "tissue"),
}
"""Materials of the mobile and of the fixed block (001, section 3.7)."""


@dataclass(frozen=True)
class BenchBlock:
    """A block of hexahedra and the sides at which it is clamped."""

    size: tuple[float, float, float]
    """L, H and l along x, y and z [m]."""
    cells: tuple[int, int, int]
    clamped: tuple[Side, ...]

    def mesh(self, height: float = 0.0) -> HexMesh:
        """Centred at x = z = 0, its middle at y = height [m]."""
        mesh = hex_block(self.size, self.cells)
        return mesh.with_nodes(mesh.nodes + np.array([0.0, height, 0.0]))


@dataclass(frozen=True)
class Bench:
    """The fixed block, and the mobile one, which touches it in the middle."""

    fixed: BenchBlock
    mobile: BenchBlock

    @property
    def n_contacts(self) -> int:
        """Vertices of the mobile block's lower face."""
        return (self.mobile.cells[0] + 1) * (self.mobile.cells[2] + 1)


def _cm(*sizes: float) -> tuple[float, float, float]:
    x, y, z = (CM * s for s in sizes)
    return x, y, z


_MAIN = BenchBlock(_cm(8, 2.5, 3.5), (10, 5, 10), ("left",))
_DELASSUS = BenchBlock(_cm(6.7, 1.5, 6.7), (10, 5, 10), ("bottom",))
_TIP, _FINE_TIP = (5, 8, 5), (3, 10, 3)

BENCHES = {
    "main": Bench(_MAIN, BenchBlock(_cm(1, 4, 1), _TIP, ("top",))),
    "main-16": Bench(_MAIN, BenchBlock(_cm(1, 4, 1), _FINE_TIP, ("top",))),
    "66": Bench(
        BenchBlock(_cm(5, 2.5, 3.2), (10, 5, 10), ("bottom",)),
        BenchBlock(_cm(1.425, 2.4, 1.425), (5, 10, 10), ("top",)),
    ),
    "delassus": Bench(_DELASSUS, BenchBlock(_cm(1.425, 2.4, 1.425), _TIP, ("top",))),
    "delassus-16": Bench(_DELASSUS, BenchBlock(_cm(1.425, 2.4, 1.425), _FINE_TIP, ("top",))),
    "2008-both": Bench(
        BenchBlock(_cm(10, 2, 2), (10, 5, 10), ("left", "right")), BenchBlock(_cm(1, 4, 1), _TIP, ("top",))
    ),
    "2008-left": Bench(
        BenchBlock(_cm(10, 2, 2), (10, 5, 10), ("left",)), BenchBlock(_cm(1, 4, 1), _TIP, ("top",))
    ),
}
"""001's sections 3.2, 3.9 (66 contacts) and 4.2.2, and 004's two clampings.

The pictures that show the clamps are lost. Main: at one end, for "from the clamped end to the free one" rho
falls there from 25 to 11 (001, 3.4), as a cantilever's stiffness does. 66 and Delassus: from below, which
keeps 66 contacts and both paths on the face. 004 says nothing of the mobile block: it is that of main.
"""


def make_interaction(
    bench: str, mobile: str, fixed: str, mu: float = 0.3, tolerance: float = math.inf, **options: Any
) -> Interaction:
    """The two blocks of BENCHES[bench], of MATERIALS[mobile] and [fixed], undeformed and just touching.

    tolerance: gap up to which a vertex is a contact [m]; all of them as it is. options: see Interaction.
    """
    blocks = BENCHES[bench]
    height = 0.5 * (blocks.fixed.size[1] + blocks.mobile.size[1])
    upper, lower = blocks.mobile.mesh(height), blocks.fixed.mesh()
    detection = Detection(vertices=side_nodes(upper, "bottom"), tolerance=tolerance, edges=False)
    return Interaction(
        _body("mobile", blocks.mobile, upper, mobile), _body("fixed", blocks.fixed, lower, fixed), detection,
        mu, **options,
    )  # fmt: skip


def side_nodes(mesh: SolidMesh, side: Side) -> NDArray[np.intp]:
    """Nodes of one side of a block."""
    x = mesh.nodes[:, 0 if side in ("left", "right") else 1]
    at = x.min() if side in ("left", "bottom") else x.max()
    return np.flatnonzero(np.abs(x - at) < 1e-9)


def _body(name: str, block: BenchBlock, mesh: HexMesh, material: str) -> QuasistaticBody:
    clamped = np.concatenate([side_nodes(mesh, side) for side in block.clamped])
    return QuasistaticBody(name, mesh, MATERIALS[material], clamped, gravity=(0.0, 0.0, 0.0))


# ---- paths: displacements (k, 3) of the mobile block's clamped nodes from where it just touches [m]


def penetration(steps: int = 15) -> NDArray[np.float64]:
    """`steps` P along -y from touching (001, 3.2; 5 in 4.2.2)."""
    return _legs((steps, 0, -1))


def sliding(steps: int = 20, depth: int = 5) -> NDArray[np.float64]:
    """`depth` P along -y, then `steps` P along x (001, 3.2).

    001's 4.2.2 prints a depth of 2 cm, more than its block is high; 2 steps are 0.2 cm.
    """
    return _legs((depth, 0, -1), (steps, 1, 0))


def path_2008() -> NDArray[np.float64]:
    """5P 20P 7P 4P 1P: down, along x, back, up, and along x again (004, figure 5).

    The figure's directions are lost. Each leg here turns the motion, and all of them stay in contact.
    """
    return _legs(*zip(LEGS_2008, (0, 1, -1, 0, 1), (-1, 0, 0, 1, 0), strict=True))


LEGS_2008 = (5, 20, 7, 4, 1)
"""Steps of the five legs."""


def _legs(*legs: tuple[int, int, int]) -> NDArray[np.float64]:
    """Positions after each step of legs (steps, along x, along y)."""
    steps = np.concatenate([np.tile((x, y, 0.0), (count, 1)) for count, x, y in legs])
    return P * np.cumsum(steps, axis=0)


def lead(interaction: Interaction, displacement: NDArray[np.float64]) -> StepResult:
    """One step to a displacement (3,) [m] from where the mobile block just touches."""
    return interaction.step(interaction.mobile.centre + displacement)
