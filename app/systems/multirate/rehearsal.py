"""Small scenes that no tick moves, whose slow loops call every compiled function that a run may need."""

from collections.abc import Sequence

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.physics.systems.multirate.lock_step import LockStep

REHEARSED = "wire"
SHARED = 'bodies.cylinder.elements="tet4-patch"'
"""Elements of it that call all that plain ones do, and more."""
AIR_REHEARSED = (
    "mixed-cup",
    ("bodies.cylinder.placement.position=[0, 0.0211, 0]", "air.sealing=0.001"),
)
"""A cup that stands so close to its partner from the start, and seals so easily, that it shuts in air."""

BESIDE = ("stiffening", "fold", "biopsy", "incision", "cut")
"""Scenes of a law that is summed over points of integration, of hexahedra that bend, of a needle, of
Neo-Hookean tetrahedra along a cut, and of a blade."""

FEW = "interface.max_columns=8"
"""So few columns that some points have none, and are displaced by themselves."""

PERIODS = 3


def rehearse(name: str = REHEARSED, changes: Sequence[str] = ()) -> LockStep:
    """Three slow periods of a scene; what was run, its loops closed."""
    lock = LockStep(build_scene(load_scene(name, [FEW, *changes])), "krylov")
    made = lock.high.ticks["done"]

    def count(n: int) -> None:
        made[0] += n

    lock.advance(PERIODS * lock.ratio, count)
    lock.low.check()
    lock.low.in_force()
    lock.close()
    return lock


def rehearse_air() -> LockStep:
    """The same of a scene whose first frame has a cavity."""
    return rehearse(*AIR_REHEARSED)
