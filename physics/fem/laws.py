"""The laws of materials beside Hooke's, a line each."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.neo_hookean import NeoHookean

Floats = NDArray[np.float64]


class Law(Protocol):
    """An elastic material by its energy as a function of the deformation gradient F (k, 3, 3).

    At F = 1 it is without stress, and has Hooke's stiffness of the Lame constants that it was made with.
    """

    def energy(self, f: Floats) -> Floats:
        """[J/m3], shape (k,)."""
        ...

    def stress(self, f: Floats) -> Floats:
        """P = dPsi/dF, first Piola-Kirchhoff's [Pa], shape (k, 3, 3)."""
        ...

    def tangent(self, f: Floats) -> Floats:
        """dP/dF [Pa], shape (k, 9, 9), symmetric, row by row of F."""
        ...


LINEAR = "linear"
"""Hooke's law in axes that turn with each element, which elements have by themselves."""

LAWS: dict[str, Callable[[float, float], Law]] = {"neo-hookean": NeoHookean}
"""By their names: made of Lame constants at rest [Pa]."""
