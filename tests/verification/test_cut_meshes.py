"""Laws of a mesh that is cut: nothing is lost, nothing opens that was not cut, pieces are as one cut them."""

import itertools

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.crossings import NEAREST, crossings, mesh_edges
from palpo.physics.mesh.cutting import CutMesh, cut_mesh
from palpo.physics.mesh.generate import block, sphere
from palpo.physics.mesh.tet import TetMesh

SIZE = (0.06, 0.02, 0.04)


def _block() -> TetMesh:
    return block(SIZE, (6, 3, 4))


def _plane(at: float, tilt: float = 0.0, until: float = 1.0) -> np.ndarray:
    """Two triangles across the block about x = at, turned about z, from its top down to y = until."""
    low, high, z = (until, 1.0, 1.0) if until < 1.0 else (-1.0, 1.0, 1.0)
    corners = np.array([[at + tilt * y, y, s] for y, s in itertools.product((low, high), (-z, z))])
    return corners[[[0, 1, 2], [3, 2, 1]]]


def _cut(mesh: TetMesh, *surfaces: np.ndarray, before: CutMesh | None = None) -> CutMesh:
    edges, _ = mesh_edges(mesh.tets)
    return cut_mesh(mesh, crossings(mesh.nodes, edges, np.concatenate(surfaces)), before)


def _pieces(cut: CutMesh) -> np.ndarray:
    """Volumes of what hangs together, ascending."""
    rows = np.repeat(cut.tets[:, 0], 3)
    graph = coo_array((np.ones(len(rows)), (rows, cut.tets[:, 1:].reshape(-1))), shape=(len(cut.nodes),) * 2)
    of = connected_components(graph, directed=False)[1]
    return np.sort(np.bincount(of[cut.tets[:, 0]], cut.volumes))


def _enclosed(cut: CutMesh) -> float:
    a, b, c = (cut.vertices(cut.nodes)[cut.triangles[:, i]] for i in range(3))
    return float(np.einsum("ti,ti->", a, np.cross(b, c)) / 6.0)


def _is_closed(triangles: np.ndarray) -> bool:
    """Whether each edge is met as often one way as the other; more than once where sides touch in it."""
    sides = np.concatenate([triangles[:, [i, (i + 1) % 3]] for i in range(3)]).astype(np.int64)
    forth, back = sides[:, 0] << 32 | sides[:, 1], sides[:, 1] << 32 | sides[:, 0]
    return bool(np.array_equal(np.sort(forth), np.sort(back)))


@pytest.mark.parametrize(("at", "tilt"), [(0.003, 0.0), (-0.0123, 0.4), (0.0, 0.0), (0.011, -1.3)])
def test_a_plane_parts_a_block_in_two_of_the_volumes_that_geometry_says(at: float, tilt: float) -> None:
    cut = _cut(_block(), _plane(at, tilt))
    height, across = SIZE[1], SIZE[1] * SIZE[2]
    left = across * (at + SIZE[0] / 2.0)
    want = np.sort([left, np.prod(SIZE) - left])
    # a crossing too near to a node is moved to the least distance
    room = NEAREST * across * SIZE[0] / 6.0 * (1.0 + abs(tilt)) * 1.5
    assert abs(tilt) * height / 2.0 < SIZE[0] / 2.0 - abs(at)
    np.testing.assert_allclose(_pieces(cut), want, atol=room)
    assert _pieces(cut).size == 2


def test_a_plane_through_no_node_parts_exactly() -> None:
    cut = _cut(_block(), _plane(0.005))
    np.testing.assert_allclose(_pieces(cut), np.prod(SIZE) * np.array([25.0, 35.0]) / 60.0, rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_cuts_of_any_kind_lose_no_volume_and_leave_a_closed_surface(seed: int) -> None:
    random = np.random.default_rng(seed)
    mesh = sphere(0.03, 5) if seed % 2 else _block()
    surfaces = []
    for _ in range(1 + seed % 4):
        corners = random.normal(0.0, 0.025, (4, 3))
        corners[3] = corners[1] + corners[2] - corners[0]
        surfaces.append(corners[[[0, 1, 2], [3, 2, 1]]])
    cut = _cut(mesh, *surfaces)
    assert (cut.volumes > 0.0).all()
    assert cut.volumes.sum() == pytest.approx(mesh.volume, rel=1e-12)
    assert np.bincount(cut.element, cut.volumes) == pytest.approx(mesh.volumes, rel=1e-10)
    assert _enclosed(cut) == pytest.approx(mesh.volume, rel=1e-12)
    assert _is_closed(cut.triangles)
    np.testing.assert_allclose(cut.weights.sum(axis=1), 1.0, atol=1e-14)


def test_three_planes_make_six_pieces_and_four_of_a_corner_more() -> None:
    mesh = block((0.03, 0.03, 0.03), (5, 5, 5))
    turned = [_plane(0.0021)[:, :, order] for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0])]
    assert len(_pieces(_cut(mesh, *turned))) == 8
    assert len(_pieces(_cut(mesh, *turned[:2]))) == 4


def test_a_cut_that_ends_inside_leaves_one_piece_without_a_hole() -> None:
    mesh = _block()
    cut = _cut(mesh, _plane(0.003, until=0.001))
    assert len(_pieces(cut)) == 1 and len(cut.copies) > 0
    used = len(np.unique(cut.triangles))
    assert used - len(cut.triangles) // 2 == 2  # Euler's number of a ball's surface
    inner = _cut(mesh, _plane(0.003)[:, :, :] * [1.0, 0.003, 0.003])
    assert len(inner.copies) == 0  # within one element nothing comes apart


def test_both_sides_move_apart_and_only_they() -> None:
    cut = _cut(_block(), _plane(0.003))
    # push all copies and nodes of the right piece: the surface opens by as much, and nowhere else
    rows = np.repeat(cut.tets[:, 0], 3)
    graph = coo_array((np.ones(len(rows)), (rows, cut.tets[:, 1:].reshape(-1))), shape=(len(cut.nodes),) * 2)
    of = connected_components(graph, directed=False)[1]
    right = of == of[np.argmax(cut.nodes[:, 0])]
    moved = cut.nodes + np.where(right[:, None], [0.01, 0.0, 0.0], 0.0)
    shift = (cut.vertices(moved) - cut.vertices(cut.nodes))[:, 0]
    used = np.unique(cut.triangles)
    assert set(np.round(shift[used], 12)) == {0.0, 0.01}
    sides = shift[cut.triangles]
    assert (np.ptp(sides, axis=1) < 1e-12).all()
    assert (sides[:, 0] > 0.005).sum() > 0


def test_a_cut_that_goes_on_keeps_its_nodes() -> None:
    mesh = _block()
    some = _cut(mesh, _plane(0.003, until=0.002))
    more = _cut(mesh, _plane(0.003, until=-0.004), before=some)
    whole = _cut(mesh, _plane(0.003, until=-0.004))
    assert len(more.copies) > len(some.copies) > 0
    np.testing.assert_array_equal(more.copies[: len(some.copies)], some.copies)
    # what was cut is the same cut: copies of elements that were split already have the nodes that they had
    at = np.searchsorted(more.split, some.split)
    np.testing.assert_array_equal(more.split[at], some.split)
    front = some.numbers != more.numbers[at]
    assert not (front & (some.numbers >= len(mesh.nodes))).any()
    assert _is_closed(more.triangles)
    np.testing.assert_allclose(_pieces(more), _pieces(whole), rtol=1e-12)
    assert len(more.copies) == len(whole.copies)
