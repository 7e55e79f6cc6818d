"""What a cup of a suction scene is, and the air that it shuts in."""

from dataclasses import dataclass

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.gas.flood import Thresholds
from palpo.physics.gas.roughness import SealTable
from palpo.physics.gas.wall_regions import Wall, Walls, walls_of_regions
from palpo.physics.suction.folds import Folds
from palpo.physics.suction.sides import SoftSide


@dataclass(frozen=True, eq=False)
class CupSpec:
    """One soft body with cups. mu: of it on the partner. roughness [m]: depth of the pockets between both.

    seed: node on its outside, None to find one. cavities: most of them that are kept. seal: how high a gap
    rough contact leaves by its pressure (palpo.physics.gas.roughness.seal_of), from which the flow of air
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


def enclosure_of(cup: SoftSide, spec: CupSpec, partner: Wall, limits: Thresholds, exact: bool) -> Enclosure:
    """The cavities of a cup of a scene; `exact` as in `Enclosure`."""
    walls = spec.walls
    if walls is None and spec.seal is not None:
        walls = walls_of_regions(partner.local, spec.seal)
    seed = cup.vertex_of(spec.seed)
    return Enclosure(cup, partner, limits, spec.roughness, spec.cavities, seed, exact, walls)
