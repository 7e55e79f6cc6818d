"""Newton-Raphson increments of any bodies around any contact solver (001, N. Talbi's thesis, figure 2.12).

The contact solver sees of each body only its free displacement and its compliance at the contact nodes
(2.62); whether these are the body itself or its tangent at this increment, it cannot tell.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from numpy.typing import ArrayLike, NDArray

NodalForces = tuple[ArrayLike, ArrayLike]
"""Nodes (k,) and the forces on them [N], shape (k, 3), world axes."""


@runtime_checkable
class IncrementalBody(Protocol):
    """A body linearised at its present state; a linear body is its own linearisation."""

    def linearise(self) -> None:
        """Take K_T and the residual at the present state and pose."""
        ...

    def free_displacement(self, nodes: ArrayLike) -> NDArray:
        """Displacements [m] (k, 3) of nodes at the linearised equilibrium without contact, world axes."""
        ...

    def compliance(self, nodes: ArrayLike) -> NDArray:
        """K_T^-1 between nodes (k,) [m/N], shape (3 k, 3 k), world axes."""
        ...

    def advance(self, nodes: ArrayLike, forces: ArrayLike) -> float:
        """Move to the linearised equilibrium, or less far, under contact forces; returns sum |dX_j| [m].

        The sum is that of the whole step, however far of it was gone.
        """
        ...


class Increments(NamedTuple):
    """How a Newton-Raphson loop ended."""

    increments: int
    change: float
    """Sum of |dX_j| in the last increment, all bodies [m]."""
    converged: bool


def newton_raphson(
    bodies: Sequence[IncrementalBody],
    contact: Callable[[], Sequence[NodalForces]],
    tolerance: float,
    max_increments: int = 50,
) -> Increments:
    """Equilibrium of the bodies under the forces that `contact` finds at each linearisation.

    contact(): reads the bodies and returns the nodal forces on each of them, in their order.
    tolerance: bound on the sum of |dX_j| [m] (2.59).
    """
    change = float("inf")
    for count in range(1, max_increments + 1):
        for body in bodies:
            body.linearise()
        loads = contact()
        change = sum(body.advance(*load) for body, load in zip(bodies, loads, strict=True))
        if change <= tolerance:
            return Increments(count, change, True)
    return Increments(max_increments, change, False)
