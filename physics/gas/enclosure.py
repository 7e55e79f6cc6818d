"""The air between one soft body and its partner: cavities found, paired, measured and followed (000, 3.2).

Living cavities are closed surfaces (physics/gas/cavity.py) and the pockets around them
(physics/gas/pockets.py); a flattened one, its wall sealed altogether, is its pockets.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.handle import Handle
from palpo.physics.gas.border import cut_patch, make_border_work, whole_patch
from palpo.physics.gas.cavity import area_of_wall
from palpo.physics.gas.enclosed import EnclosedCavities, find_air, find_rim_flow
from palpo.physics.gas.flood import Thresholds, connectivity, label_vertices, make_flood, require_outside
from palpo.physics.gas.gaps import look, make_gaps
from palpo.physics.gas.law import OutsideAir, slot_conductance
from palpo.physics.gas.pairing import make_pairing
from palpo.physics.gas.patch import loop_length, place_points, wall_area
from palpo.physics.gas.pockets import make_pockets
from palpo.physics.gas.tracking import ABSENT, LIVING, CavityTracker, Tracks
from palpo.physics.gas.wall_regions import Wall, Walls
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel


class Enclosure:
    """The cavities of one body against its partner, up to c of them: twice the capacity.

    limits: the three distances. roughness [m]: depth of the pockets between surfaces pressed together.
    capacity: most living cavities. seed: vertex of the body's surface that is outside, None to find one.
    exact: borders on the sealing iso-line. walls: see `take_walls`.

    gaps: of the surface's vertices, in the partner's axes. volume (c,) [m3], gradient (c, n, 3) and
    partner_gradient (c, m, 3) [m2], in the partner's axes: dV/dx of both surfaces' vertices. lift (c,),
    growth, partner_growth [m]: Q and q of palpo.physics.suction.border_springs. tracks: see
    palpo.physics.gas.tracking. active (k,): numbers of the cavities that have walls. conductance
    (c + 1, c + 1) [m3/(Pa s)]: between the cavities and, last, the outside.
    """

    def __init__(
        self, body: Wall, partner: Wall, limits: Thresholds, roughness: float,
        capacity: int = 8, seed: int | None = None, exact: bool = True, walls: Walls | None = None,
    ) -> None:  # fmt: skip
        n, m, c = len(body.local), len(partner.local), 2 * capacity
        if seed is not None and not 0 <= seed < n:
            raise InputError(f"The seed is vertex {seed}, but the vertices run from 0 to {n - 1}.")
        self.limits, self.roughness = limits, roughness
        self._seed, self._exact = -1 if seed is None else seed, exact
        self.gaps = make_gaps(n)
        self._gaps = Handle(self.gaps)
        self._partner, self._target = partner, Handle(partner.target)
        self._surface = surface = connectivity(body.surface)
        other = connectivity(partner.surface)
        self.flood, self._label = make_flood(n, capacity), np.zeros(n, np.int64)
        self.pairing, self.cavities = make_pairing(surface, other, c)
        self.tracker = CavityTracker(surface, self.flood)
        self.volume, self.gradient = np.zeros(c), np.zeros((c, n, 3))
        self.partner_gradient = np.zeros((c, m, 3))
        self.lift, self.growth, self.partner_growth = np.zeros(c), np.zeros((c, n, 3)), np.zeros((c, m, 3))
        self.active = np.zeros(0, np.int64)
        self.pockets = make_pockets(surface, m, c)
        self._region, self._work = whole_patch(surface), make_border_work(surface)
        self._points = np.zeros((len(self._region.parents), 3))
        self.conductance = np.zeros((c + 1, c + 1))
        self.take_walls(walls)
        joints = n + c + 1
        self._known = Handle(
            EnclosedCavities(
                surface, other, limits, self._seed, int(exact), self.gaps, self._label,
                np.zeros(n, np.int64), self.flood, self._region, self._work, self.pairing,
                np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), self.cavities,
                self.tracker.links, self.pockets, self.volume, self.gradient, self.partner_gradient,
                self.lift, self.growth, self.partner_growth, np.zeros(c), np.zeros(joints**2),
                np.zeros((3, joints), np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
                np.zeros(n), np.zeros(n, np.int64),
            )
        )  # fmt: skip

    def take_walls(self, walls: Walls | None) -> None:
        """What the partner lets by and through, for `find_flow`; None for tight rims."""
        self.walls, self._walls = walls, None if walls is None else Handle(walls)

    @property
    def tracks(self) -> Tracks:
        """The cavities of this step."""
        return self.tracker.now

    def look(self, x: NDArray[np.float64]) -> None:
        """The gaps of the vertices within the alarm distance at x (n, 3) [m], in the partner's axes."""
        partner = self._partner
        look(self._target, partner.local, x, self.limits.alarm, partner.odometer, self._gaps)

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

    def commit(
        self, identity: NDArray[np.int64], amount: NDArray[np.float64], volume: NDArray[np.float64]
    ) -> None:
        """Keep air [mol] and volumes [m3] (k,) of those of the active cavities at the end of a step."""
        tracks = self.tracks
        for i in self.active.tolist():
            for k in np.flatnonzero(identity == tracks.identity[i]).tolist():
                tracks.air[i], tracks.volume[i] = amount[k], max(float(volume[k]), 0.0)

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
            cut_patch(
                self._surface, tracks.region, i, self._label, self.gaps.distance, self.limits, self._exact,
                self._region, self._work,
            )  # fmt: skip
            place_points(self._region, x, self._points)
            rim = wall_area(self._region, self._points) - area
            if rim > 0.0 and length > 0.0:
                slot = slot_conductance(length, air.leak, rim / length, air.atmosphere, air.rt)
                self.conductance[i, -1] = self.conductance[-1, i] = slot

    def require_start(self, x: NDArray[np.float64]) -> None:
        """InputError where at x (n, 3) the seed is not outside, or the cup starts inside its partner."""
        if self._seed >= 0:
            label_vertices(self.gaps.distance, self.limits, self._label)
            require_outside(self._surface, x, self._label, self._seed, self.flood)
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
