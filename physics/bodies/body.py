"""What the systems may ask of a body that is simulated at low rate."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Factor(Protocol):
    """A factorised A_h = M + h C + h^2 K of one body at one step size."""

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n_dof,)."""
        ...

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n_dof, k), C-contiguous; written to out, which may be b, and returned."""
        ...

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray:
        """A_h^-1 (push + momentum) where `momentum` is M v, each (n_dof,); v is near it."""
        ...

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y (n_dof, k) with Y^T Y = b^T A_h^-1 b: half a solve is enough for a compliance matrix."""
        ...


@runtime_checkable
class SteppedBody(Protocol):
    """A deformable or rigid body integrated by backward Euler (EQUATIONS.md, section 1).

    Freedoms are those of the free nodes only: 3 a node for tetrahedra (velocity [m/s]), 6 a frame for
    beams and rigid bodies (velocity [m/s], angular velocity [rad/s], world axes). Forces are [N] and [N m].

    The order of one step is: `linearise`, `factor(h)`, `free_velocity`, corrections, `advance`.
    """

    name: str
    n_dof: int
    mass: float
    """Total mass [kg], fixed nodes included."""
    floating: bool
    """True if no node is fixed."""
    x: NDArray[np.float64]
    """Positions of all nodes or frames [m], shape (n, 3)."""
    v: NDArray[np.float64]
    """Velocities of the free freedoms, shape (n_dof,)."""
    gravity: NDArray[np.float64]
    """[m/s2], shape (3,); may be written between two steps."""

    def linearise(self) -> None:
        """Refresh the tangent stiffness at the present state."""
        ...

    def force(self) -> NDArray:
        """f_ext + f_int(x) - C v at the present state, shape (n_dof,), with C of the last `linearise`."""
        ...

    def factor(self, h: float) -> Factor:
        """Factor of A_h from the last `linearise`; the object of an equal h is refreshed in place.

        Factors of two step sizes may be built in two threads at once.
        Raises FloatingPointError when the state is not finite.
        """
        ...

    def free_velocity(self, factor: Factor, h: float, f: NDArray | None = None) -> NDArray:
        """v + dv with A_h dv = h (force - h K v + f), shape (n_dof,)."""
        ...

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f of contact forces f = J^T lambda, shape (n_dof,)."""
        ...

    def advance(self, v_new: NDArray, h: float) -> None:
        """v = v_new; x += h v (orientations by the exponential of h w)."""
        ...

    def substeps(self, factor: Factor, h: float, forces: NDArray, slots: NDArray) -> None:
        """Integrate n_steps of size h in one compiled call.

        forces (n_steps, n_slots, 3 or 6): load at each step of the nodes or frames listed in slots
        (n_slots,).
        """
        ...

    def energy(self) -> float:
        """Kinetic + elastic + gravity potential [J]; gravity is measured from the world's origin."""
        ...

    def momentum(self) -> tuple[NDArray, NDArray]:
        """Linear [kg m/s] and angular momentum about the origin [kg m2/s], each shape (3,)."""
        ...

    def invalid(self) -> bool:
        """True if a position or velocity is not finite."""
        ...
