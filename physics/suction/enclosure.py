"""The air between one soft body and its partner: cavities found, paired, measured and followed (000, 3.2).

Living cavities are closed surfaces (physics/suction/cavity.py) and the pockets around them
(physics/suction/pockets.py); a flattened one, its wall sealed altogether, is its pockets.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.suction.border import make_border_work, whole_patch
from palpo.physics.suction.cavity import area_of_wall
from palpo.physics.suction.connectivity import connectivity
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.detection import CavityDetector
from palpo.physics.suction.enclosed import EnclosedCavities, find_air, find_rim_flow
from palpo.physics.suction.flow import slot_conductance
from palpo.physics.suction.gaps import make_gaps
from palpo.physics.suction.gas import OutsideAir
from palpo.physics.suction.labels import Thresholds
from palpo.physics.suction.pairing import make_pairing
from palpo.physics.suction.patch import loop_length, place_points, wall_area
from palpo.physics.suction.pockets import make_pockets
from palpo.physics.suction.sides import SoftSide, Wall
from palpo.physics.suction.tracking import ABSENT, LIVING, CavityTracker, Tracks
from palpo.physics.suction.wall_regions import Walls, walls_of_regions


def enclosure_of(cup: SoftSide, spec: CupSpec, partner: Wall, limits: Thresholds, exact: bool) -> "Enclosure":
    """The cavities of a cup of a scene; `exact` as in `Enclosure`."""
    seed = cup.vertex_of(spec.seed)
    walls = spec.walls
    if walls is None and spec.seal is not None:
        walls = walls_of_regions(partner.local, spec.seal)
    return Enclosure(cup, partner, limits, spec.roughness, spec.cavities, seed, exact, walls)


class Enclosure:
    """The cavities of one body against its partner, up to c of them: twice the detector's capacity.

    limits: the three distances. roughness [m]: depth of the pockets between surfaces pressed together.
    capacity: most living cavities. seed: vertex of the body's surface that is outside, None to find one.
    exact: borders on the sealing iso-line. walls: see `take_walls`.

    gaps: of the surface's vertices, in the partner's axes. volume (c,) [m3], gradient (c, n, 3) and
    partner_gradient (c, m, 3) [m2], in the partner's axes: dV/dx of both surfaces' vertices. lift (c,),
    growth, partner_growth [m]: Q and q of palpo.physics.suction.border_springs. tracks: see
    palpo.physics.suction.tracking. active (k,): numbers of the cavities that have walls. conductance
    (c + 1, c + 1) [m3/(Pa s)]: between the cavities and, last, the outside.
    """

    def __init__(
        self, body: Wall, partner: Wall, limits: Thresholds, roughness: float,
        capacity: int = 8, seed: int | None = None, exact: bool = True, walls: Walls | None = None,
    ) -> None:  # fmt: skip
        n, m, c = len(body.local), len(partner.local), 2 * capacity
        self.detector = CavityDetector(body.surface, limits, capacity, seed, exact)
        self.limits, self.roughness = limits, roughness
        self.gaps = make_gaps(n)
        self._partner, self._target = partner, Handle(partner.target)
        surface, other = self.detector.connectivity, connectivity(partner.surface)
        self.pairing, self.cavities = make_pairing(surface, other, c)
        self.tracker = CavityTracker(surface, self.detector.flood)
        self.volume, self.gradient = np.zeros(c), np.zeros((c, n, 3))
        self.partner_gradient = np.zeros((c, m, 3))
        self.lift, self.growth, self.partner_growth = np.zeros(c), np.zeros((c, n, 3)), np.zeros((c, m, 3))
        self.active = np.zeros(0, np.int64)
        self.pockets = make_pockets(surface, m, c)
        self._region = whole_patch(surface)
        self._points = np.zeros((len(self._region.parents), 3))
        self.conductance = np.zeros((c + 1, c + 1))
        self.take_walls(walls)
        joints = n + c + 1
        self._known = Handle(
            EnclosedCavities(
                surface, other, limits, -1 if seed is None else seed, int(exact), self.gaps,
                self.detector.label, np.zeros(n, np.int64), self.detector.flood, self.detector.patches[0],
                make_border_work(surface), self.pairing, np.zeros(capacity, np.int64),
                np.zeros(capacity, np.int64), self.cavities, self.tracker.links, self.pockets, self.volume,
                self.gradient, self.partner_gradient, self.lift, self.growth, self.partner_growth,
                np.zeros(c), np.zeros(joints**2), np.zeros((3, joints), np.int64), np.zeros(n, np.int64),
                np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, np.int64),
            )
        )  # fmt: skip

    def take_walls(self, walls: Walls | None) -> None:
        """What the partner lets by and through, for `find_flow`; None for tight rims."""
        self._walls = None if walls is None else Handle(walls)

    @property
    def tracks(self) -> Tracks:
        """The cavities of this step."""
        return self.tracker.now

    def find(self, x: NDArray[np.float64], air: OutsideAir) -> None:
        """Find, measure and recognise the cavities at positions x (n, 3) [m] in the partner's axes.

        gaps.distance has to hold the vertices within the alarm distance. Hands on the air.
        """
        partner = self._partner
        before, now = self.tracker.turn_over()
        find_air(
            self._known, before, now, self._target, x, partner.local, partner.odometer, self.roughness,
            air.atmosphere / air.rt,
        )  # fmt: skip
        self.active = np.flatnonzero((self.tracks.state != ABSENT) & (self.volume > 0.0))

    def commit(self, amount: NDArray[np.float64], volume: NDArray[np.float64]) -> None:
        """Keep air [mol] and volumes [m3] (k,) of the active cavities at the end of a step."""
        self.tracks.air[self.active] = amount
        self.tracks.volume[self.active] = np.maximum(volume, 0.0)

    def find_flow(self, x: NDArray[np.float64], force: NDArray[np.float64], air: OutsideAir) -> None:
        """The conductance under the rims at x (n, 3) [m], where vertices press with forces (n,) [N].

        After `find`. The air is as thin as the mean of all cavities and outside.
        """
        self.conductance[:] = 0.0
        active = self.active
        if not len(active):
            return
        if self._walls is None:
            if air.leak > 0.0:
                self._find_slots(x, air)
            return
        within = self.tracks.air[active] * air.rt / self.volume[active]
        thin = 0.5 * (air.atmosphere + float(within.mean()))
        find_rim_flow(
            self._known, self.tracker.handle, self._target, x, force, self._walls, thin, air.rt,
            self.conductance,
        )  # fmt: skip

    def _find_slots(self, x: NDArray[np.float64], air: OutsideAir) -> None:
        """The conductance of a slot of the given height under the rims of all cavities.

        A living cavity's rim begins at its wall, a flattened one's at its pockets.
        """
        tracks = self.tracks
        for i in self.active.tolist():
            if tracks.state[i] == LIVING:
                area, length = area_of_wall(self.cavities, i), _border_length(self.pairing, i)
            else:
                area, length = self.pockets.extent[i]
            self.detector.cut(tracks.region, i, self.gaps.distance, self._region)
            place_points(self._region, x, self._points)
            rim = wall_area(self._region, self._points) - area
            if rim > 0.0 and length > 0.0:
                slot = slot_conductance(length, air.leak, rim / length, air.atmosphere, air.rt)
                self.conductance[i, -1] = self.conductance[-1, i] = slot

    def require_start(self, x: NDArray[np.float64]) -> None:
        """InputError where at x (n, 3) the seed is not outside, or the cup starts inside its partner."""
        self.detector.require_seed_outside(x, self.gaps.distance)
        deepest = int(self.gaps.distance.argmin())
        depth = -self.gaps.distance[deepest]
        if depth > self.limits.sealing:
            raise InputError(
                f"vertex {deepest} of the cup's surface starts {1e3 * depth:.3g} mm inside its partner; "
                "place them apart."
            )
        if self.cavities.count["clamped"][0]:
            raise InputError(
                "a cavity starts with a negative volume, its walls having passed each other; place the cup "
                "and its partner apart."
            )


@kernel
def _border_length(pairing, c):
    """Length [m] of the borders on body A of cavity c."""
    total = 0.0
    for loop in range(pairing.walls.size[0].loops):
        if pairing.cavity[pairing.of_loop[loop]] == c:
            total += loop_length(pairing.walls, pairing.points, loop)
    return total
