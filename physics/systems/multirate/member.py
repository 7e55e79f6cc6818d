"""A low-rate body in its place among a scene's points."""

from dataclasses import dataclass

from palpo.physics.bodies.low_body import LowBody


@dataclass(frozen=True, eq=False)
class Member:
    """Local numbers of its points and rotations count from `first`."""

    body: LowBody
    number: int
    """Of the body in the topology."""
    first: int

    @property
    def count(self) -> int:
        """Points and rotations."""
        return self.body.count

    @property
    def span(self) -> slice:
        """Its points among the scene's."""
        return slice(self.first, self.first + self.body.count)
