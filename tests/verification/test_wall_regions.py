"""A wall that is rough or porous in places: what gets through it, and that other places do not know."""

import numpy as np
import pytest

from palpo.app.systems.suction.build import build
from palpo.app.systems.suction.picture import SuctionVisual
from palpo.config.load import load_scene
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.fem.material import Material
from palpo.physics.gas.cavity import RIBBON, WALL_B
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import VISCOSITY, OutsideAir
from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.gas.wall_regions import WallPart, permeance_of, walls_of_regions
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, cup
from palpo.physics.mesh.partners import slab
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.sides import FixedSide
from palpo.physics.systems.suction.step import Suction

AIR = OutsideAir(largest=np.inf)
SMOOTH, ROUGH = (seal_of(RoughSurface(rms, 50 * rms), 3e5) for rms in (1e-6, 20e-6))
PERMEABILITY, THICKNESS = 1e-11, 5e-3
PERMEANCE = permeance_of(PERMEABILITY, THICKNESS)
PRESSED = 1e3
"""Force on each vertex [N] that shuts a rim altogether."""

TURNED = "bodies.cube.placement.rotation="


@pytest.fixture(scope="module")
def pushed():
    """The small cup on the inner edge of its rim, pushed by 1 mm onto a plane of many cells."""
    made = cup(CUPS["small"].shape, GRIDS[203])
    mesh = made.mesh.with_nodes(made.mesh.nodes + np.array([0.0, 2e-3, 0.0]))
    material = Material(CUPS["small"].youngs_modulus, POISSON_RATIO, 1070.0, 0.0, 1e-3)
    body = HeldBody("cup", mesh, material, made.held, np.union1d(made.underside, made.rim))
    limits = thresholds(contact=1e-4, sealing=5e-4, alarm=2e-3)
    suction = Suction([CupSpec(body, seal=SMOOTH)], FixedSide(slab(0.1, 40, 0.02)), limits, AIR)
    handle = suction.cups[0].body.handle
    centre = handle.centre.copy()
    for depth in np.minimum(np.arange(100) * 5e-5, 2.9e-3):  # and rests
        handle.drive(centre - np.array([0.0, depth, 0.0]))
        suction.step()
    yield suction
    suction.close()


def conductance(suction, regions=(), seal=SMOOTH, force=PRESSED):
    """G between the cup's cavity and the outside [m3/(Pa s)]."""
    enclosure, x = suction.enclosures[0], suction.cups[0].local
    enclosure.take_walls(walls_of_regions(suction.partner.local, seal, regions))
    enclosure.find_flow(x, np.full(len(x), force), AIR)
    return enclosure.conductance[enclosure.active[0], -1]


def wall_area(suction):
    """Of the cavity's wall on the plane [m2]."""
    cavities, c = suction.enclosures[0].cavities, suction.enclosures[0].active[0]
    corners = cavities.points[cavities.triangles[cavities.span[c, WALL_B] : cavities.span[c, RIBBON]]]
    return (
        0.5
        * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    )


def test_a_porous_wall_under_a_rim_that_is_shut_conducts_as_darcy_s_law_has_it(pushed):
    through = conductance(pushed, [WallPart(permeance=PERMEANCE)])
    left = conductance(pushed)  # by contacts of which some are not at rest yet
    assert left < 1e-3 * through
    exact = PERMEABILITY * wall_area(pushed) / (2 * VISCOSITY * THICKNESS)
    assert exact <= through <= exact + 2.0 * left


def test_half_of_the_wall_that_is_porous_lets_half_through(pushed):
    whole = conductance(pushed, [WallPart(permeance=PERMEANCE)])
    half = [WallPart(low=(-np.inf, -np.inf, 1e-9), permeance=PERMEANCE)]
    # triangles that the border of the region cuts count by their corners: a strip of half a cell
    strip = 0.5 * 2.5e-3 * 36e-3 / wall_area(pushed)
    assert conductance(pushed, half) / whole == pytest.approx(0.5, abs=strip)


def test_air_goes_through_a_porous_wall_under_the_rim_as_well_where_some_gets_there(pushed):
    """As much as through two resistances in a row at most; none where the rim shuts it off."""
    everywhere = [WallPart(permeance=PERMEANCE)]
    radius = 16.4e-3  # all of the cavity's wall on the plane is inside
    ring = [*everywhere, WallPart(radius=radius)]
    assert conductance(pushed, ring) < 1e-3 * conductance(pushed, everywhere)
    loose, tight = (conductance(pushed, ring, force=force) for force in (0.01, PRESSED))
    assert tight < loose
    assert loose > conductance(pushed, force=0.01)


def test_a_region_everywhere_is_the_wall_s_own_seal_and_one_elsewhere_is_none(pushed):
    rough, smooth = (conductance(pushed, seal=seal, force=0.02) for seal in (ROUGH, SMOOTH))
    assert rough > 10.0 * smooth > 0.0
    assert conductance(pushed, [WallPart(seal=ROUGH)], force=0.02) == rough
    beside = WallPart(low=(0.03, -1.0, -1.0), seal=ROUGH, permeance=PERMEANCE)
    assert conductance(pushed, [beside], force=0.02) == smooth
    last = [WallPart(seal=ROUGH, permeance=PERMEANCE), WallPart(seal=SMOOTH)]
    assert conductance(pushed, last, force=0.02) == smooth


def test_a_scratch_across_the_rim_lets_by_what_it_alone_would(pushed):
    """Rough in a strip across one side, the rim lets more by than where it is smooth, and less than rough."""
    scratch = [WallPart(low=(0.0, -1.0, -3e-3), high=(1.0, 1.0, 3e-3), seal=ROUGH)]
    both = [conductance(pushed, seal=seal, force=0.02) for seal in (SMOOTH, ROUGH)]
    share = conductance(pushed, scratch, force=0.02) / both[1]
    # 6 mm of the 115 around at the rim's middle; a cell on either side joins in, 7 mm wide
    assert 6e-3 / 115e-3 * 0.3 < share < 20e-3 / 115e-3


def test_regions_stay_where_they_are_on_a_partner_that_was_turned():
    """Places are the scene's as it begins, whatever axes a rigid body computes in."""
    angle = 0.5
    built = [build(load_scene("suction-mass", keys)) for keys in ([], [f"{TURNED}[0,1,0,{angle}]"])]
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    np.testing.assert_allclose(built[1].rest, built[0].rest @ turn.T, atol=1e-12)
    for one in built:
        one.suction.close()


def test_the_picture_has_each_triangle_of_the_partner_once_in_the_colour_of_its_region():
    porous = '{box=[["0 mm","-1 mm","-60 mm"],["60 mm","1 mm","60 mm"]],permeability=1e-13,thickness="5 mm"}'
    rough = '{sphere={centre=["-30 mm",0,0],radius="20 mm"},seal={rms="9 um"}}'
    spec = load_scene("suction-mass", [f"bodies.cube.regions=[{porous},{rough}]"])
    built = build(spec)
    drawn = SuctionVisual(spec, built, None).geometry.drawables
    parts = [one for one in drawn if one.name.startswith("cube")]
    assert [one.name for one in parts] == ["cube", "cube, region 1", "cube, region 2"]
    assert len({one.colour for one in parts}) == 3
    whole = np.vstack([one.triangles for one in parts])
    np.testing.assert_array_equal(
        np.unique(whole, axis=0), np.unique(built.suction.partner.surface.triangles, axis=0)
    )
    middles = [built.rest[one.triangles].mean(axis=1) for one in parts]
    assert (middles[1][:, 0] > 0.0).all() and (np.abs(middles[1][:, 1]) < 1e-3).all()
    assert (np.linalg.norm(middles[2] - [-0.03, 0.0, 0.0], axis=1) < 0.02).all()
    built.suction.close()
