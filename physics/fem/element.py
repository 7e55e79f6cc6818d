"""What a kind of element is, and what the steps of a body ask of a mesh of them."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, NodeGroups
from palpo.physics.fem.material import Material

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]


class Elements(Protocol):
    """m elements of c corners. Rotations are quaternions `quats` (m, 4), where the search for them starts and
    what it finds; positions x (n, 3) [m] are those of all nodes."""

    cells: Cells
    """Corners, ascending in each element, so that every local pair is a lower block; shape (m, c)."""
    gradients: Floats
    """Mean of the shape functions' gradients over the element [1/m], shape (m, c, 3)."""

    @property
    def groups(self) -> NodeGroups:
        """Nodes that they couple beside those of each element."""
        ...

    @property
    def shares(self) -> Floats:
        """Volume of each corner [m3], shape (m, c)."""
        ...

    def part(self, which: NDArray[np.int64]) -> "Elements":
        """Some of the elements."""
        ...

    def apart(self) -> "Elements":
        """The same, each with corners of its own: those of element e are c e to c e + c - 1."""
        ...

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """force (n, 3) += f_int(x) [N]."""
        ...

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """force (n, 3) += scale (K - K_0) v of a field v (n, 3), K and K_0 at rotations quats and `since`."""
        ...

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """force (n, 3) += scale K v of a field v (n, 3), K at rotations quats."""
        ...

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """blocks (b, 9) = what implicit steps are made with [N/m], never negative, in the lower blocks
        of the pattern."""
        ...

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """blocks (b, 9) += what `assemble` leaves out of the exact tangent -df_int/dx [N/m]."""
        ...

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """Largest angle [rad] of an element's turn from its rotation `since` (m, 4)."""
        ...

    def energy(self, x: Floats, quats: Floats) -> float:
        """Elastic energy [J]."""
        ...


class Element(NamedTuple):
    """A kind of element, by functions of nodes (n, 3) [m] and cells (m, c) in the order of their mesh.

    Each of them raises InputError for the first element without positive volume.
    """

    mesh: type
    """The meshes that are made of it."""
    stiffness: Callable[[Floats, Cells, float, float], Floats]
    """(nodes, cells, lam, mu): at rest [N/m], shape (m, 3 c, 3 c), of Lame constants [Pa]."""
    volumes: Callable[[Floats, Cells], Floats]
    """What each corner has of an element's volume [m3], shape (m, c), all positive: its lumped mass."""
    products: Callable[[Floats, Cells], Floats]
    """Integrals of N_a N_b [m3], shape (m, c, c): its consistent mass."""
    gradients: Callable[[Floats, Cells], Floats]
    """Means of grad N_a [1/m], shape (m, c, 3)."""
    moving: Callable[["Element", Any, Material], Elements]
    """(element, mesh, material): all of a mesh's elements, as they turn and deform by Hooke's law."""
    missed: float
    """c of palpo.physics.fem.facet_yield: what a surface of them does not yield by between its nodes."""
    points: Callable[[Floats, Cells], tuple[Floats, Floats]] | None = None
    """Weights [m3], shape (m, q), and grad N_a [1/m], shape (m, q, c, 3), of the points where any other law
    is integrated; None of an element that has Hooke's alone."""
