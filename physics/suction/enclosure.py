"""The air between one soft body and its partner: cavities found, paired, measured and followed (000, 3.2).

Living cavities are closed surfaces (physics/suction/cavity.py) and the pockets around them
(physics/suction/pockets.py); a flattened one, its wall sealed altogether, is its pockets.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.errors import InputError
from palpo.physics.kernels import kernel
from palpo.physics.suction.border import whole_patch
from palpo.physics.suction.border_growth import border_growth
from palpo.physics.suction.cavity import WALL_A, WALL_B
from palpo.physics.suction.connectivity import connectivity
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.detection import Detector
from palpo.physics.suction.flood import OUTSIDE, renumber
from palpo.physics.suction.flow import slot_conductance
from palpo.physics.suction.gaps import make_gaps, measure
from palpo.physics.suction.gas import Air
from palpo.physics.suction.labels import Thresholds
from palpo.physics.suction.pairing import add_wall, clear_walls, make_pairing, pair_walls
from palpo.physics.suction.patch import loop_length, place_points, wall_area
from palpo.physics.suction.pockets import Pockets
from palpo.physics.suction.rim_flow import contact_pressures, rim_conductances, sheets_of
from palpo.physics.suction.roughness import Seal
from palpo.physics.suction.sides import SoftSide, Wall
from palpo.physics.suction.tracking import ABSENT, BORN_SEALED, LIVING, Tracker, Tracks
from palpo.physics.suction.volume import kept_volume, volume_gradient
from palpo.physics.suction.winding import NONE


def enclosure_of(cup: SoftSide, spec: CupSpec, partner: Wall, limits: Thresholds, exact: bool) -> "Enclosure":
    """The cavities of a cup of a scene; `exact` as in `Enclosure`."""
    seed = cup.vertex_of(spec.seed)
    return Enclosure(cup, partner, limits, spec.roughness, spec.cavities, seed, exact, spec.seal)


class Enclosure:
    """The cavities of one body against its partner, up to c of them: twice the detector's capacity.

    limits: the three distances. roughness [m]: depth of the pockets between surfaces pressed together.
    capacity: most living cavities. seed: vertex of the body's surface that is outside, None to find one.
    exact: borders on the sealing iso-line. seal: gaps of rough contact for `find_flow`, None for tight rims.

    gaps: of the surface's vertices, in the partner's axes. volume (c,) [m3], gradient (c, n, 3) and
    partner_gradient (c, m, 3) [m2], in the partner's axes: dV/dx of both surfaces' vertices. lift (c,),
    growth, partner_growth [m]: Q and q of palpo.physics.suction.border_springs. tracks: see
    palpo.physics.suction.tracking. active (k,): numbers of the cavities that have walls. conductance
    (c + 1, c + 1) [m3/(Pa s)]: between the cavities and, last, the outside.
    """

    def __init__(
        self, body: Wall, partner: Wall, limits: Thresholds, roughness: float,
        capacity: int = 8, seed: int | None = None, exact: bool = True, seal: Seal | None = None,
    ) -> None:  # fmt: skip
        n, m, c = len(body.local), len(partner.local), 2 * capacity
        self.detector = Detector(body.surface, limits, capacity, seed, exact)
        self.limits = limits
        self.gaps = make_gaps(n)
        self._partner = partner
        self._partner_connectivity = connectivity(partner.surface)
        self.pairing, self.cavities = make_pairing(
            self.detector.connectivity, self._partner_connectivity, 2 * capacity
        )
        self.tracker = Tracker(self.detector.connectivity, self.detector.flood)
        self.volume, self.gradient = np.zeros(c), np.zeros((c, n, 3))
        self.partner_gradient = np.zeros((c, m, 3))
        self.lift, self.growth, self.partner_growth = np.zeros(c), np.zeros((c, n, 3)), np.zeros((c, m, 3))
        self.active = np.zeros(0, np.int64)
        self._exact = exact
        self._number = np.full(capacity, OUTSIDE, np.int64)
        self.pockets = Pockets(self.detector.connectivity, partner, limits, roughness)
        self._region = whole_patch(self.detector.connectivity)
        self._points = np.zeros((len(self._region.parents), 3))
        self.seal, self.conductance = seal, np.zeros((c + 1, c + 1))
        joints = n + c + 1
        self._flow = np.zeros(joints**2), np.zeros((3, joints), np.int64)
        self._holder, self._pressing, self._sheet = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)

    @property
    def tracks(self) -> Tracks:
        """The cavities of this step."""
        return self.tracker.now

    def find(self, x: NDArray[np.float64], air: Air) -> None:
        """Find, measure and recognise the cavities at positions x (n, 3) [m] in the partner's axes.

        gaps.distance has to hold the vertices within the alarm distance. Hands on the air.
        """
        detector, partner, flood = self.detector, self._partner, self.detector.flood
        wanted = detector.wanted(self.gaps.distance)
        measure(partner.target, partner.local, x, wanted, partner.odometer, self.gaps)
        count = detector.find(x, self.gaps.distance)
        clear_walls(self.pairing)
        walls = [add_wall(self.pairing, patch) for patch in detector.patches[:count]]
        pair_walls(
            self.pairing, self._partner_connectivity, partner.target.boxes, x, partner.local, self.cavities
        )
        if count:
            self._number[:] = OUTSIDE
            for k, wall in enumerate(walls):
                if wall != NONE and self.pairing.cavity[wall] != NONE:
                    self._number[k] = self.pairing.cavity[wall]
            renumber(detector.connectivity, flood, self._number)
        self.tracker.follow(x)
        self._measure(x)
        self.tracker.share(self.volume, self._room(), air.atmosphere / air.rt)

    def _measure(self, x: NDArray[np.float64]) -> None:
        """Volumes and gradients of the cavities, with their pockets."""
        tracks, flood, partner = self.tracks, self.detector.flood, self._partner
        self.volume[:] = 0.0
        self.lift[:] = 0.0
        for i in np.flatnonzero(tracks.state != ABSENT).tolist():
            if tracks.state[i] == LIVING:
                volume_gradient(self.cavities, i, self.gradient[i], self.partner_gradient[i])
                # surfaces that touch are the contact distance apart, and hold the air of their valleys
                kept = kept_volume(
                    self.cavities, i, self.limits.contact - self.pockets.roughness, self.partner_gradient[i]
                )
                self.volume[i] = max(self.cavities.volume[i] - kept, 0.0)
                self.lift[i] = 0.0 if not self._exact else border_growth(
                    self.detector.connectivity, flood.cavity, i, self.detector.label, self.gaps,
                    self.limits, x, partner.target.surface.triangles, partner.local, self.growth[i],
                    self.partner_growth[i],
                )  # fmt: skip
            else:
                self.gradient[i], self.partner_gradient[i] = 0.0, 0.0
        for i in self.pockets.mark(flood.cavity, tracks).tolist():
            self.volume[i] += self.pockets.add(
                i, x, self.detector.label, self.gaps.distance, self.gradient[i], self.partner_gradient[i]
            )
        self.active = np.flatnonzero((tracks.state != ABSENT) & (self.volume > 0.0))

    def _room(self) -> NDArray[np.float64]:
        """What a sealed contact holds (c,) [m3] in the place of cavities that came up in it."""
        room = np.zeros_like(self.volume)
        for i in np.flatnonzero(self.tracker.links.origin == BORN_SEALED):
            room[i] = self.pockets.roughness * _area_of(self.cavities, i)
        return room

    def commit(self, amount: NDArray[np.float64], volume: NDArray[np.float64]) -> None:
        """Keep air [mol] and volumes [m3] (k,) of the active cavities at the end of a step."""
        self.tracks.air[self.active] = amount
        self.tracks.volume[self.active] = np.maximum(volume, 0.0)

    def find_flow(self, x: NDArray[np.float64], force: NDArray[np.float64], air: Air) -> None:
        """The conductance under the rims at x (n, 3) [m], where vertices press with forces (n,) [N].

        After `find`. A pocket has its cavity's air, which is as thin as the mean of all cavities and outside.
        """
        self.conductance[:] = 0.0
        active = self.active
        if not len(active):
            return
        if self.seal is None:
            if air.leak > 0.0:
                self._find_slots(x, air)
            return
        flood, tracks, pockets = self.detector.flood, self.tracks, self.pockets.of
        self._holder[:] = np.where(pockets >= 0, pockets, flood.cavity)
        within = tracks.air[active] * air.rt / self.volume[active]
        thin = 0.5 * (air.atmosphere + float(within.mean()))
        triangles = self.detector.connectivity.triangles
        contact_pressures(triangles, x, force, self._pressing)
        sheets_of(
            self.gaps.distance, self.limits.contact, self._pressing, self.seal, thin, air.rt, self._sheet
        )
        rim_conductances(triangles, x, self._holder, self._sheet, self._flow, self.conductance)

    def _find_slots(self, x: NDArray[np.float64], air: Air) -> None:
        """The conductance of a slot of the given height under the rims of all cavities.

        A living cavity's rim begins at its wall, a flattened one's at its pockets.
        """
        tracks = self.tracks
        for i in self.active.tolist():
            if tracks.state[i] == LIVING:
                area, length = _area_of(self.cavities, i), _border_length(self.pairing, i)
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
def _area_of(cavities, c):
    """Area [m2] of cavity c's wall on body A."""
    points, total = cavities.points, 0.0
    for t in range(cavities.span[c, WALL_A], cavities.span[c, WALL_B]):
        corners = cavities.triangles[t]
        a, b, d = points[corners[0]], points[corners[1]], points[corners[2]]
        u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        v0, v1, v2 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
        total += 0.5 * ((u1 * v2 - u2 * v1) ** 2 + (u2 * v0 - u0 * v2) ** 2 + (u0 * v1 - u1 * v0) ** 2) ** 0.5
    return total


@kernel
def _border_length(pairing, c):
    """Length [m] of the borders on body A of cavity c."""
    total = 0.0
    for loop in range(pairing.walls.size[0].loops):
        if pairing.cavity[pairing.of_loop[loop]] == c:
            total += loop_length(pairing.walls, pairing.points, loop)
    return total
