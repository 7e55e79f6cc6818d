"""What a contact solver without the Delassus operator may ask of a body: one question."""

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class DisplacementSolver(Protocol):
    """A black box that knows how a body yields (004, section 2; 001, N. Talbi's thesis, 4.2)."""

    def displacements(self, nodes: ArrayLike, forces: ArrayLike, at: ArrayLike) -> NDArray:
        """Displacements [m], shape (k, 3), of the nodes `at` (k,) under forces [N] (j, 3) at `nodes` (j,).

        World axes, measured from the undeformed shape that moves with the clamped nodes; the body's own
        weight is included. Forces on a node given twice add up; on a clamped node they do nothing.
        """
        ...
