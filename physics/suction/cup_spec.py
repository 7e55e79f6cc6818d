"""What a cup of a suction scene is."""

from dataclasses import dataclass

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.suction.folds import Folds
from palpo.physics.suction.roughness import SealTable
from palpo.physics.suction.wall_regions import Walls


@dataclass(frozen=True, eq=False)
class CupSpec:
    """One soft body with cups. mu: of it on the partner. roughness [m]: depth of the pockets between both.

    seed: node on its outside, None to find one. cavities: most of them that are kept. seal: how high a gap
    rough contact leaves by its pressure (palpo.physics.suction.roughness.seal_of), from which the flow of air
    under the rim follows; None for a rim that is tight up to the sealing distance. walls: in place of the
    seal, what the other surface lets by and through place by place. folds: where its
    surface may touch itself, of nodes that may touch; None for a cup that never does.
    """

    body: HeldBody
    mu: float = 0.6
    roughness: float = 1e-5
    seed: int | None = None
    cavities: int = 8
    seal: SealTable | None = None
    walls: Walls | None = None
    folds: Folds | None = None
