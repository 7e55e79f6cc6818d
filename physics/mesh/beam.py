"""Centre lines of beams: a chain of nodes with a round section."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.checks import as_points
from palpo.physics.numerics.errors import InputError

SHORTEST_SEGMENT = 1e-9
"""Length of a segment over that of the whole line, below which two nodes count as one [-]."""


@dataclass(frozen=True, eq=False)
class BeamLine:
    """A straight or bent chain of beam elements; element i joins nodes i and i + 1.

    nodes: [m], shape (n, 3), n >= 2. radius: of the round section [m]. source: names the line in messages.
    Raises InputError for non-finite nodes, fewer than two of them, a segment of no length, or a radius that
    is not positive.
    """

    nodes: NDArray[np.float64]
    radius: float
    source: str = "beam line"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", as_points(self.nodes, self.source))
        if len(self.nodes) < 2:
            raise InputError(f"{self.source}: a beam has {len(self.nodes)} node, expected at least 2.")
        if not (np.isfinite(self.radius) and self.radius > 0.0):
            raise InputError(f"{self.source}: the radius is {self.radius} m, expected a positive number.")
        short = np.flatnonzero(self.lengths <= SHORTEST_SEGMENT * self.length)
        if short.size:
            raise InputError(
                f"{self.source}: segment {short[0]} (counted from 0) has length "
                f"{self.lengths[short[0]]:.3g} m; its nodes {short[0]} and {short[0] + 1} must lie apart."
            )

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Segment lengths [m], shape (n - 1,)."""
        return np.linalg.norm(np.diff(self.nodes, axis=0), axis=1)

    @cached_property
    def length(self) -> float:
        """Length of the whole line [m]."""
        return float(self.lengths.sum())
