"""Cups of hexahedra: topology, volumes in closed form, symmetry, and what a grid may be."""

import math

import numpy as np
import pytest

from palpo.physics.fem.rest_stiffness import node_volumes
from palpo.physics.mesh.cups import CUPS, cup, require_opening
from palpo.physics.mesh.cups import GRIDS as OF_TETRAHEDRA
from palpo.physics.mesh.hex import validate_hexes
from palpo.physics.mesh.hex_cups import GRIDS, HexGrid, hex_cup
from palpo.physics.numerics.errors import InputError
from tests.properties.test_cups import cavity_volume, enclosed, genus, solid_volume

SHAPES = ("small", "large", "round", "asymmetric", "S20", "B20", "dart")
LIP = HexGrid(2, (8, 16, 16, 16), 2, 2, lip=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("grid", [*GRIDS.values(), LIP], ids=[*map(str, GRIDS), "lip"])
def test_a_cup_is_a_ball_with_one_opening_whatever_its_grid(shape, grid):
    made = hex_cup(CUPS[shape].shape, grid)
    validate_hexes(made.mesh.nodes, made.mesh.hexes, shape)
    surface = made.mesh.surface()
    assert surface.closed and genus(surface) == 0
    require_opening(surface, 1e-4, shape)
    assert enclosed(surface, made.underside, made.border) > 0.0
    assert not np.isin(made.seed, made.underside) and made.seed in made.mesh.boundary_nodes


@pytest.mark.parametrize("resolution", [r for r in GRIDS if r not in (125, 141)])
def test_a_grid_has_about_as_many_nodes_as_that_of_tetrahedra_of_its_name(resolution):
    """Counts that double leave few numbers to choose from among small ones."""
    count = len(hex_cup(CUPS["small"].shape, GRIDS[resolution]).mesh.nodes)
    assert count == pytest.approx(resolution, rel=0.1)
    assert GRIDS.keys() == OF_TETRAHEDRA.keys()


@pytest.mark.parametrize("lip", [False, True])
@pytest.mark.parametrize("name", ["small", "round", "S20"])
def test_volumes_of_wall_and_cavity_converge_to_pappus_at_second_order(name, lip):
    shape = CUPS[name].shape
    solid, hollow = [], []
    for n in (2, 4, 8):
        grid = HexGrid(n, (4 * n, 8 * n, *(2 * n) * [8 * n]), 2, 1, lip)
        made = hex_cup(shape, grid)
        solid.append(solid_volume(shape) - made.mesh.volume)
        hollow.append(cavity_volume(shape) - enclosed(made.mesh.surface(), made.underside, made.border))
        assert node_volumes(made.mesh).sum() == pytest.approx(made.mesh.volume, rel=1e-12)
    for errors in (solid, hollow):
        assert abs(errors[2]) < 0.02 * solid_volume(shape)
        # the ring that doubles grows shorter with the others, and adds a term of third order
        assert math.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("name", SHAPES)
def test_groups_lie_where_those_of_the_tetrahedra_do(name):
    shape = CUPS[name].shape
    for grid in (GRIDS[576], LIP):
        made, other = hex_cup(shape, grid), cup(shape, OF_TETRAHEDRA[576])
        nodes, theirs = made.mesh.nodes, other.mesh.nodes
        top = nodes[:, 1].max()
        assert top == pytest.approx(theirs[:, 1].max(), rel=1e-12)
        assert nodes[made.held, 1].min() == top and nodes[made.seed, 1] == top
        assert np.abs(nodes[made.rim, 1]).max() == 0.0 == nodes[:, 1].min()
        assert set(made.border) == set(made.underside) & set(made.rim)
        assert nodes[made.stem, 1].min() == pytest.approx(theirs[other.stem, 1].min(), rel=1e-12)
        edges = {frozenset(edge) for edge in made.mesh.surface().edges.tolist()}
        pairs = list(zip(made.border, np.roll(made.border, -1), strict=True))
        assert all(frozenset(pair) in edges for pair in pairs)
        # counter-clockwise seen from above, where z points down the page
        x, z = nodes[made.border][:, [0, 2]].T
        assert np.sum(np.roll(x, -1) * z - x * np.roll(z, -1)) > 0.0


def test_a_lip_has_four_cells_across_the_rim_and_two_through_the_wall_above():
    with_lip, without = (hex_cup(CUPS["small"].shape, LIP._replace(lip=lip)) for lip in (True, False))
    around = LIP.around[-1]
    assert len(without.rim) == 3 * around and len(with_lip.rim) == 5 * around
    roof = [np.isclose(made.mesh.nodes[:, 1], 9e-3, atol=1e-9).sum() for made in (with_lip, without)]
    assert roof[0] == roof[1]


@pytest.mark.parametrize("name", ["small", "round"])
def test_a_quarter_turn_maps_the_cells_onto_themselves(name):
    made = hex_cup(CUPS[name].shape, GRIDS[1200])
    turned = made.mesh.nodes @ [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    distance = np.linalg.norm(turned[:, None] - made.mesh.nodes, axis=2)
    onto = distance.argmin(axis=1)
    assert distance.min(axis=1).max() < 1e-12
    cells = {frozenset(cell) for cell in made.mesh.hexes.tolist()}
    assert cells == {frozenset(cell) for cell in onto[made.mesh.hexes].tolist()}


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (HexGrid(2, (8, 8), 1, 1), "it needs 3 rings"),
        (HexGrid(2, (8, 24, 24), 1, 1), "24 cells cannot follow 8"),
        (HexGrid(2, (8, 16, 16), 3, 1, True), "an even number of layers"),
        (HexGrid(2, (8, 16, 16), 1, 0), "does not cut it"),
    ],
)
def test_a_grid_that_does_not_cut_a_cup_is_refused(grid, said):
    with pytest.raises(InputError, match=said):
        hex_cup(CUPS["B20"].shape, grid)
