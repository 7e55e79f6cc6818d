"""Air of cavities from step to step: conserved in merges and splits, kept flattened, lost when opened."""

import numpy as np
import pytest

from palpo.physics.gas.flood import OUTSIDE, RING, renumber, thresholds
from palpo.physics.gas.patch import place_points
from palpo.physics.gas.tracking import (
    ABSENT,
    BORN_OPEN,
    BORN_SEALED,
    FLAT,
    LIVING,
    TRACKS_SIZE,
    CavityTracker,
)
from palpo.physics.mesh.generate import box_surface
from tests.verification.cavity_detector import CavityDetector

LIMITS = thresholds(contact=1e-4, sealing=5e-4, alarm=4e-3)
OPEN, SEAL = 2e-3, 2e-4
MOL = 41.0
"""Air at atmospheric pressure [mol/m3]."""

MESH = box_surface((0.4, 0.1, 0.4), (20, 4, 20))
px, py, pz = np.round(MESH.vertices / 0.02).T  # lattice places
UNDER = py == py.min()


class Contact:
    """The underside of a box, on a lattice of 20 mm, sealed or open as each step says."""

    def __init__(self, capacity=8):
        self.detector = CavityDetector(MESH, LIMITS, capacity=capacity)
        self.tracker = CavityTracker(self.detector.connectivity, self.detector.flood)
        self.capacity = 2 * capacity

    def step(self, sealed, volume=None, pockets=None, x=MESH.vertices):
        """Volumes [m3] by cavity; without them, 1e-6 a vertex."""
        self.distance = np.where(sealed & UNDER, SEAL, OPEN)
        self.detector.find(x, self.distance)
        self.tracker.follow(x)
        wall = self.now.wall
        counted = np.bincount(wall[wall >= 0], minlength=self.capacity) * 1e-6
        for given, values in ((counted, volume or {}), (pocket := np.zeros(self.capacity), pockets or {})):
            for number, value in values.items():
                given[number] = value
        self.tracker.share(counted, pocket, MOL)
        return self.now

    @property
    def now(self):
        return self.tracker.now

    @property
    def vented(self):
        return self.tracker.links.vented[0]

    def at(self, x, z):
        """The cavity whose wall has the vertex at lattice place x, z of the underside."""
        return int(self.now.wall[np.flatnonzero(UNDER & (px == x) & (pz == z))[0]])


def square(x, z, reach):
    return np.maximum(np.abs(px - x), np.abs(pz - z)) <= reach


def ring(x=0, z=0, inner=2, outer=4):
    return square(x, z, outer) & ~square(x, z, inner)


def test_a_cavity_that_closes_over_open_ground_holds_air_at_atmospheric_pressure():
    contact = Contact()
    now = contact.step(ring(), volume={0: 3e-5})
    assert contact.tracker.links.origin[0] == BORN_OPEN
    assert now.air[0] == pytest.approx(MOL * 3e-5, rel=1e-15)


def test_a_cavity_that_comes_up_in_a_sealed_contact_holds_its_pockets_air():
    contact = Contact()
    contact.step(square(0, 0, 4))
    assert (contact.now.state == ABSENT).all()
    now = contact.step(ring(inner=1), volume={0: 3e-5}, pockets={0: 2e-8})
    assert contact.tracker.links.origin[0] == BORN_SEALED
    assert now.air[0] == pytest.approx(MOL * 2e-8, rel=1e-15)


def test_a_cavity_keeps_its_air_and_name_while_its_ring_creeps_and_its_volume_changes():
    contact = Contact()
    air, name = contact.step(ring()).air[0], contact.now.identity[0]
    for step, (shift, reach) in enumerate([(0, 2), (1, 2), (1, 3), (2, 2), (3, 1), (2, 1)]):
        now = contact.step(ring(shift, 0, reach, reach + 2), volume={0: 1e-5 * (step + 1)})
        assert (now.state[0], now.identity[0], now.air[0]) == (LIVING, name, air)
        assert not any(now.size[0].item()[:-1])


def walls(middle):
    """A sealed frame of 13 by 7 around two chambers, with a wall between them or not."""
    frame = (np.abs(px) <= 6) & (np.abs(pz) <= 3) & ~((np.abs(px) <= 4) & (np.abs(pz) <= 1))
    return frame | (middle & (np.abs(px) <= 1) & (np.abs(pz) <= 1))


def test_a_merge_adds_the_air():
    contact = Contact()
    contact.step(walls(True), volume={0: 1e-5, 1: 7e-5})
    before = contact.now.air.copy()
    now = contact.step(walls(False))
    assert now.size[["merged", "split", "born", "opened"]].tolist() == [(1, 0, 0, 0)]
    assert now.air[contact.at(0, 0)] == before.sum()
    assert contact.vented == 0.0


def test_a_split_divides_the_air_by_volume_at_equal_pressure():
    contact = Contact()
    contact.step(walls(False))
    now = contact.step(walls(True), volume={0: 1e-5, 1: 3e-5})
    assert now.size[["merged", "split", "born", "opened"]].tolist() == [(0, 1, 0, 0)]
    assert now.air[1] / 3e-5 == pytest.approx(now.air[0] / 1e-5, rel=1e-15)
    assert len(set(now.identity[:2])) == 2


def test_merges_and_splits_conserve_the_air_to_the_last_bit():
    contact = Contact()
    total = contact.step(walls(False)).air[0]
    for small in np.random.default_rng(1).uniform(1e-6, 1e-5, 30):
        now = contact.step(walls(True), volume={0: small, 1: 2e-5})
        assert now.air[0] + now.air[1] == total
        assert contact.step(walls(False)).air[0] == total


def test_the_parts_of_a_split_without_volume_share_by_their_vertices():
    contact = Contact()
    total = contact.step(walls(False)).air[0]
    now = contact.step(walls(True), volume={0: -1e-6, 1: 0.0})
    np.testing.assert_allclose(now.air[:2], 0.5 * total, rtol=1e-15)


def two_chambers(wall):
    """A sealed frame of 15 by 15 around 11 by 11 vertices, which the wall at px = wall parts."""
    return (square(0, 0, 7) & ~square(0, 0, 5)) | (square(0, 0, 5) & (px == wall))


def test_two_cavities_that_trade_a_row_of_vertices_over_a_thin_wall_do_not_trade_air():
    contact = Contact()
    contact.step(two_chambers(0), volume={0: 1e-5, 1: 9e-5})
    air = {side: contact.now.air[contact.at(side, 0)] for side in (-4, 4)}
    contact.step(two_chambers(2))
    assert contact.now.size[["merged", "split"]].tolist() == [(0, 0)]
    assert {side: contact.now.air[contact.at(side, 0)] for side in (-4, 4)} == air


def test_a_merge_and_a_split_in_one_step_pass_on_the_air_of_what_went_over():
    contact = Contact()
    contact.step(two_chambers(-1), volume={0: 4e-5, 1: 4e-5})
    air, right = contact.now.air[0], contact.at(4, 0)
    assert contact.now.air[right] == air
    # two of the right chamber's six rows are now in the left one
    contact.step(two_chambers(2), volume={contact.at(-4, 0): 6e-5, right: 2e-5})
    assert contact.now.size[["merged", "split"]].tolist() == [(1, 1)]
    assert contact.now.air[contact.at(4, 0)] == pytest.approx(0.25 * air, rel=1e-15)
    assert contact.now.air[contact.at(-4, 0)] == pytest.approx(1.75 * air, rel=1e-15)


def test_air_is_conserved_but_for_births_and_openings_over_any_history():
    rng = np.random.default_rng(5)
    contact = Contact(capacity=40)
    seen = dict.fromkeys(TRACKS_SIZE.names, 0)
    field = rng.normal(size=len(px))
    air = 0.0
    for step in range(150):
        field += 0.25 * rng.normal(size=len(px))
        calm = step % 15 < 12
        sealed = (field > (-0.6 if calm else 1.0) * field.std()) & (calm | (np.abs(px) < 9))
        now = contact.step(sealed & UNDER & ~(np.maximum(np.abs(px), np.abs(pz)) > 9))
        links = contact.tracker.links
        born = now.air[links.origin != 0].sum()
        assert now.air.min() >= 0.0
        assert (now.air[now.state == ABSENT] == 0.0).all()
        # some eighty sums of positive terms
        assert now.air.sum() + contact.vented == pytest.approx(air + born, rel=1e-13, abs=1e-20)
        air = now.air.sum()
        present = now.identity[now.state != ABSENT]
        assert len(set(present)) == len(present)
        assert set(now.wall[now.wall >= 0]) == set(np.flatnonzero(now.state != ABSENT))
        seen = {name: count + int(now.size[0][name]) for name, count in seen.items()}
    assert all(seen[name] > 0 for name in ("born", "merged", "split", "flattened", "opened"))
    assert seen["lost"] == 0


def test_a_flattened_cavity_keeps_its_air_and_becomes_all_that_is_inside_the_outermost_ring():
    contact = Contact()
    air = contact.step(ring()).air[0]
    now = contact.step(square(0, 0, 4))
    slot = contact.at(0, 0)
    assert (now.state[slot], now.air[slot], now.size[0].flattened) == (FLAT, air, 1)
    np.testing.assert_array_equal(now.region == slot, contact.detector.flood.footprint == 0)
    # its patch is bounded by the outer border: the iso-line on the edges to the vertices around
    patch = contact.detector.patches[0]
    contact.detector.cut(now.region, slot, contact.distance, patch)
    assert patch.size[0].loops == 1
    points = np.zeros((len(patch.parents), 3))
    place_points(patch, MESH.vertices, points)
    border = points[patch.border[: patch.size[0].border]]
    part = (LIMITS.sealing - SEAL) / (OPEN - SEAL)
    assert np.abs(border[:, [0, 2]]).max() == pytest.approx(0.02 * (4 + part), rel=1e-12)
    # it comes up again, elsewhere under the cup, with the same air
    now = contact.step(square(0, 0, 4) & ~square(2, 2, 0))
    assert now.air[contact.at(2, 2)] == air
    assert now.size[0].born == 0


def test_a_pocket_that_jumps_within_its_sealed_ring_takes_its_air_along():
    contact = Contact()
    air = contact.step(square(0, 0, 4) & ~square(-2, 0, 0)).air[0]
    now = contact.step(square(0, 0, 4) & ~square(2, 0, 0))
    assert (now.air[0], now.size[0].born) == (air, 0)


def test_a_flattened_cavity_lives_until_its_ring_is_peeled_off():
    contact = Contact()
    air = contact.step(ring()).air[0]
    for reach in (4, 3, 2, 1, 0):
        now = contact.step(square(0, 0, reach))
        assert now.air[contact.at(0, 0)] == air
    now = contact.step(square(20, 20, 0))
    assert (now.size[0].opened, contact.vented, now.air.sum()) == (1, air, 0.0)


def test_a_body_that_rests_on_another_never_becomes_a_cavity():
    contact = Contact()
    for reach in (0, 4, 9, 2):
        assert (contact.step(square(0, 0, reach)).state == ABSENT).all()


def test_cavities_in_one_footprint_part_its_sealed_vertices_between_them():
    contact = Contact()
    contact.step(walls(True))
    # one of the two is pressed flat, the other lives on
    flat = walls(True) | ((px > 1) & (px <= 4) & (np.abs(pz) <= 1))
    now = contact.step(flat)
    left, right = contact.at(-3, 0), contact.at(3, 0)
    assert (now.state[left], now.state[right]) == (LIVING, FLAT)
    inside = contact.detector.flood.cavity != OUTSIDE
    assert set(now.region[inside]) == {left, right}
    assert (now.region[~inside] == -1).all()
    assert (now.region[inside & (px <= -1)] == left).all()
    assert (now.region[inside & (px >= 2)] == right).all()


def test_an_opened_cavity_loses_its_air_to_the_atmosphere():
    contact = Contact()
    air = contact.step(ring()).air[0]
    now = contact.step(ring() & ~((px > 0) & (pz == 0)))
    assert (now.size[0].opened, contact.vented, now.air.sum()) == (1, air, 0.0)


def test_what_stays_closed_of_an_opened_cavity_keeps_its_pressure():
    contact = Contact()
    contact.step(walls(False), volume={0: 8e-5})
    contact.now.air[0] *= 0.5
    # a wall comes down and the right chamber opens
    now = contact.step(walls(True) & ~((px > 2) & (pz == 0)), volume={0: 2e-5})
    assert now.air[0] == pytest.approx(0.5 * MOL * 2e-5, rel=1e-15)
    assert contact.vented == pytest.approx(0.5 * MOL * 6e-5, rel=1e-15)


def test_a_cavity_that_crosses_its_own_size_in_a_step_is_found_along_its_way():
    contact = Contact()
    contact.step(ring(-7, 0, 1, 2))
    air = contact.step(ring(-5, 0, 1, 2), volume={0: 9e-6}).air[0]
    name = contact.now.identity[0]
    # three lattice steps on from where two would have taken it, with no vertex in common
    now = contact.step(ring(-1, 0, 1, 2))
    assert now.size[["swept", "born", "opened"]].tolist() == [(1, 0, 0)]
    assert (now.air[0], now.identity[0]) == (air, name)
    # one that appears far off its way is another
    now = contact.step(ring(6, 7, 1, 2))
    assert now.size[["swept", "born", "opened"]].tolist() == [(0, 1, 1)]


@pytest.mark.parametrize("z", [6, -6])
def test_a_cavity_is_sought_along_its_own_way_whatever_another_does(z):
    """The other one turns back, further than its size, and is new there."""
    contact = Contact()
    for own, other in ((-7, 3), (-5, 1)):
        contact.step(ring(own, z, 1, 2) | ring(other, -z, 1, 2))
    name = contact.now.identity[contact.at(-5, z)]
    now = contact.step(ring(-1, z, 1, 2) | ring(5, -z, 1, 2))
    assert now.size[["swept", "born", "opened"]].tolist() == [(1, 1, 1)]
    assert now.identity[contact.at(-1, z)] == name


def test_walls_that_the_other_body_joins_are_one_cavity_and_one_that_it_opens_is_none():
    contact = Contact()
    flood, connectivity = contact.detector.flood, contact.detector.connectivity
    sealed = ring(-6, 0, 1, 2) | ring(0, 0, 1, 2) | ring(6, 0, 1, 2)
    contact.step(sealed)
    assert flood.size[0].cavities == 3
    first, middle, last = (contact.at(x, 0) for x in (-6, 0, 6))
    air = contact.now.air.sum()
    contact.detector.find(MESH.vertices, contact.distance)
    number = np.zeros(8, np.int64)
    number[[first, middle, last]] = 0, OUTSIDE, 0
    renumber(connectivity, flood, number)
    contact.tracker.follow(MESH.vertices)
    contact.tracker.share(np.full(16, 1.8e-5), np.zeros(16), MOL)
    assert flood.size[0].cavities == 1
    assert contact.now.size[["merged", "opened"]].tolist() == [(1, 1)]
    assert contact.now.air[0] == pytest.approx(2 / 3 * air, rel=1e-15)
    assert contact.vented == pytest.approx(air / 3, rel=1e-15)
    # the ring about the opened one holds nothing
    assert (contact.now.region[(flood.cavity == RING) & square(0, 0, 2)] == -1).all()
