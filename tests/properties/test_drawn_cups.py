"""Cups whose sections are drawn, and bellows: the thesis's cups again, volumes in closed form, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from palpo.physics.mesh import cups, hex_cups
from palpo.physics.mesh.cups import CUPS, cup, meridian, require_opening
from palpo.physics.mesh.drawn_cups import DrawnShape, bellows_points
from palpo.physics.mesh.hex import validate_hexes
from palpo.physics.mesh.hex_cups import HexGrid, drawn_grid, hex_cup
from palpo.physics.numerics.errors import InputError
from tests.properties.test_cups import enclosed, genus, revolved

MM = 1e-3
BELLOWS = DrawnShape(
    bellows_points(13e-3, 8e-3, 14e-3, 2, 8e-3, 5e-3, 1e-3), (1e-3,) * 11, 1.5e-3, 7e-3, 8e-3
)
BENT = DrawnShape(
    tuple((r * MM, y * MM) for r, y in ((15, 0), (11, 4), (12, 9), (6, 12))),
    (1e-3, 1.2e-3, 2e-3, 2.5e-3), 2e-3, 6e-3, 5e-3,
)  # fmt: skip
CROSSED = ((15e-3, 0.0), (11e-3, 8e-3), (15e-3, 6e-3), (11e-3, 5e-3), (6e-3, 12e-3))
NARROW = ((15e-3, 0.0), (10e-3, 2e-3), (10e-3, 3e-3), (15e-3, 5e-3), (6e-3, 12e-3))
FOLDED = ((16e-3, 0.0), (12e-3, 10e-3), (17e-3, 8e-3), (10e-3, 12e-3))


def drawn(name):
    """A straight cup of the thesis by its points."""
    s = CUPS[name].shape
    return s, DrawnShape(((s.inner, 0.0), (s.top, s.height)), (s.wall, s.wall), s.rim, s.stem, s.stem_length)


@pytest.mark.parametrize("name", ["small", "large", "S20"])
def test_the_points_of_a_straight_cup_draw_its_own_mesh_to_rounding(name):
    own, points = drawn(name)
    for resolution in (203, 576, 1200):
        a, b = (hex_cup(shape, hex_cups.GRIDS[resolution]) for shape in (own, points))
        assert np.array_equal(a.mesh.hexes, b.mesh.hexes)
        assert np.abs(a.mesh.nodes - b.mesh.nodes).max() < 1e-15
        c, d = (cup(shape, cups.GRIDS[resolution]) for shape in (own, points))
        assert np.array_equal(c.mesh.tets, d.mesh.tets)
        assert np.abs(c.mesh.nodes - d.mesh.nodes).max() < 1e-15
    assert np.abs(meridian(own).nodes - meridian(points).nodes).max() < 1e-15


@pytest.mark.parametrize("shape", [BELLOWS, BENT], ids=["bellows", "bent"])
@pytest.mark.parametrize(("around", "layers"), [(16, 1), (32, 2), (64, 1)])
def test_a_drawn_cup_is_a_ball_with_one_opening_and_has_its_points_for_nodes(shape, around, layers):
    made = hex_cup(shape, drawn_grid(shape, 2.5e-3, around, layers))
    validate_hexes(made.mesh.nodes, made.mesh.hexes, "drawn")
    surface = made.mesh.surface()
    assert surface.closed and genus(surface) == 0
    require_opening(surface, 1e-4, "drawn")
    assert len(made.border) == around
    nodes = made.mesh.nodes[made.underside]
    section = np.stack([np.hypot(nodes[:, 0], nodes[:, 2]), nodes[:, 1]], axis=1)
    for point in shape.points:
        assert (np.linalg.norm(section - point, axis=1) < 1e-12).sum() >= 8
    for point in shape.outer:
        at = made.mesh.nodes
        far = np.hypot(np.hypot(at[:, 0], at[:, 2]) - point[0], at[:, 1] - point[1])
        assert (far < 1e-12).sum() >= 8


@pytest.mark.parametrize("shape", [BELLOWS, BENT], ids=["bellows", "bent"])
def test_volumes_of_wall_and_cavity_converge_to_pappus_at_second_order(shape):
    top, points, outer = shape.points[-1][1], np.array(shape.points), shape.outer
    hollow = revolved([[0, 0], *points, [0, top]])
    solid = revolved([[0, 0], *outer, [0, outer[-1, 1]]]) - hollow
    solid += math.pi * shape.stem**2 * shape.stem_length
    errors = []
    for n in (2, 4, 8):
        along = 1 + int(shape.stem < 0.95 * shape.roof) + 2 * n * (len(points) - 1)
        made = hex_cup(shape, HexGrid(n, (4 * n, *(along - 1) * [8 * n]), 2, 1))
        cavity = enclosed(made.mesh.surface(), made.underside, made.border)
        errors.append([solid - made.mesh.volume, hollow - cavity])
    errors = np.abs(errors)
    assert (errors[2] < 0.02 * solid).all()
    assert np.log2(errors[1] / errors[2]) == pytest.approx([2.0, 2.0], abs=0.25)


def distance(p, line):
    """From points (n, 2) to a line of points (k, 2), shape (n,)."""
    a, d = line[:-1], np.diff(line, axis=0)
    t = np.clip(((p[:, None] - a) * d).sum(axis=2) / (d * d).sum(axis=1), 0.0, 1.0)
    return np.linalg.norm(p[:, None] - a - t[..., None] * d, axis=2).min(axis=1)


def test_the_wall_of_bellows_is_nowhere_thinner_than_told_and_as_thick_on_all_slopes():
    inner, outer = np.array(BELLOWS.points), BELLOWS.outer
    share = np.linspace(0.0, 1.0, 21)[:, None, None]
    along = ((1.0 - share) * inner[1:-1] + share * inner[2:]).reshape(-1, 2)
    thick = distance(along, np.vstack([outer, outer[-1:] * [[0.0, 1.0]]]))
    assert thick.min() == pytest.approx(1e-3, rel=1e-9) and (np.abs(thick - 1e-3) < 1e-9).mean() > 0.5
    height = np.diff(outer[:, 1])
    upright = height[np.abs(np.diff(outer[:, 0])) < 1e-12]
    # half the wall at each neck; at bellies the outer side is the longer one
    assert upright.min() == pytest.approx(0.5e-3, rel=1e-9)
    assert inner[6, 1] - inner[2, 1] == pytest.approx(8e-3, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"points": BENT.points[::-1]}, "point 0 is 0.012 m high: points begin at the rim"),
        ({"points": BENT.points[:1], "walls": (1e-3,)}, "has 1 points"),
        ({"walls": (1e-3, 1e-3)}, "4 points and 2 thicknesses"),
        ({"points": (*BENT.points[:3], (6e-3, 8e-3))}, "others are higher: points go from the rim up"),
        ({"points": (*BENT.points[:3], (0.0, 12e-3))}, r"point 3 is \[0, 0.012\] m: expected a radius above"),
        ({"points": (*BENT.points[:2], BENT.points[1], BENT.points[3])}, "points 1 and 2 are the same"),
        (
            {"points": CROSSED, "walls": 5 * (1e-4,)},
            "crosses itself between points 0 and 1 and points 2 and 3",
        ),
        ({"points": NARROW, "walls": 5 * (2e-3,)}, "thicker than the room there is from point 1 to 2; give"),
        ({"points": FOLDED, "walls": 4 * (4e-3,)}, "thicker than the room"),
        ({"stem": 12e-3}, "the stem's radius is 0.012 m, but the roof it stands on has"),
        ({"rim": 0.0}, "rim is 0.0 m, expected a positive length"),
        ({"walls": (1e-3, 1e-3, -1e-3, 1e-3)}, "is -0.001 m thick"),
    ],
)  # fmt: skip
def test_what_draws_no_cup_is_refused_in_words(change, said):
    with pytest.raises(InputError, match=said):
        hex_cup(replace(BENT, **change), HexGrid(2, (8, 16, 16, 16, 16), 1, 1))


def test_bellows_without_folds_or_room_are_refused_in_words():
    with pytest.raises(InputError, match=r"no room for a wall of 0.003 m"):
        bellows_points(13e-3, 8e-3, 14e-3, 2, 8e-3, 5e-3, 3e-3)
    with pytest.raises(InputError, match=r"the neck's radius is 0.014 m"):
        bellows_points(13e-3, 14e-3, 14e-3, 2, 8e-3, 5e-3, 1e-3)
