"""Laws of soft bodies with cuts: apart they are in two, pressed together or not yet torn they are one."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse.linalg as sl

from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.crossings import crossings, mesh_edges
from palpo.physics.mesh.cut_surface import CutRoom
from palpo.physics.mesh.cutting import CutMesh, cut_mesh
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.tet import TetMesh

SIZE = (0.06, 0.02, 0.03)
GEL = Material(1e4, 0.3, 1000.0, 0.0, 0.0)
STILL = (0.0, 0.0, 0.0)


def _cut(mesh: TetMesh, normal: tuple[float, float, float], at: float, until: float = -1.0) -> CutMesh:
    """Cut by a plane of that normal, from above down to y = until."""
    n = np.array(normal) / np.linalg.norm(normal)
    across = np.array([0.0, 0.0, 1.0])
    down = np.cross(n, across)
    down *= np.sign(-down[1]) if abs(down[1]) > 1e-9 else 1.0
    top = at * n - 1.0 * down if until <= -1.0 else at * n + (0.05 - at * n[1]) / down[1] * down
    length = 2.0 if until <= -1.0 else (until - 0.05) / down[1]
    a, b, c, d = top - across, top + across, top + length * down - across, top + length * down + across
    edges, _ = mesh_edges(mesh.tets)
    return cut_mesh(mesh, crossings(mesh.nodes, edges, np.array([[a, b, c], [d, c, b]])))


def _mesh() -> TetMesh:
    return block(SIZE, (6, 3, 3))


def _solved(body: SoftBody, load: np.ndarray) -> np.ndarray:
    """Displacements (n, 3) [m] at rest under a load (n, 3) [N]."""
    out = np.zeros_like(load)
    u = sl.spsolve(body.rest_stiffness(), load[body.free].reshape(-1))
    out[body.free] = u.reshape(-1, 3)
    return out


def _at(mesh: TetMesh, x: float) -> np.ndarray:
    return np.flatnonzero(np.abs(mesh.nodes[:, 0] - x) < 1e-9)


@pytest.mark.parametrize("elements", ["tet4", "tet4-patch"])
def test_a_cut_keeps_mass_and_its_centre_and_each_part_of_the_volume(elements: str) -> None:
    mesh = _mesh()
    whole, cut = SoftBody("a", mesh, GEL), CutBody("b", _cut(mesh, (1.0, 0.4, 0.1), 0.004), GEL)
    assert elements and cut.mass == pytest.approx(whole.mass, rel=1e-12)
    # a share of an element is lumped in equal parts, so that the centre is off by less than an element
    centre = cut.node_mass @ cut.x / cut.mass
    np.testing.assert_allclose(centre, whole.node_mass @ whole.x / whole.mass, atol=2e-3)


@pytest.mark.parametrize("law", ["linear", "neo-hookean"])
@pytest.mark.parametrize("elements", ["tet4", "tet4-patch"])
def test_a_cut_along_the_pull_leaves_a_uniform_stretch_as_it_is(elements: str, law: str) -> None:
    mesh, nu = _mesh(), GEL.poisson_ratio
    cut = _cut(mesh, (0.0, 1.0, 0.2), 0.0013)
    body = CutBody("a", cut, replace(GEL, law=law), elements=elements)
    assert len(cut.copies) > 0
    body.x[:] = cut.nodes + 1e-6 * cut.nodes * [1.0, -nu, -nu]
    body.gravity[:] = 0.0
    force = np.zeros_like(body.x)
    force[body.free] = body.undamped_force().reshape(-1, 3)
    # what is left is on the two ends alone, and on the cut nothing; each piece is in balance
    total = np.zeros((len(mesh.nodes), 3))
    np.add.at(total, np.concatenate([np.arange(len(mesh.nodes)), cut.copies]), force)
    inside = np.abs(np.abs(mesh.nodes[:, 0]) - 0.03) > 1e-9
    scale = np.abs(total).max()
    assert np.abs(total[inside]).max() < 1e-5 * scale
    tension = total[_at(mesh, 0.03), 0].sum()
    assert tension == pytest.approx(-1e-6 * GEL.youngs_modulus * SIZE[1] * SIZE[2], rel=1e-5)


def test_what_is_cut_off_falls_and_the_rest_stays() -> None:
    mesh = _mesh()
    cut = _cut(mesh, (1.0, 0.0, 0.0), 0.004)
    body = CutBody("a", cut, Material(1e6, 0.3, 1000.0, 0.0, 0.0), _at(mesh, -0.03))
    h, steps = 1e-3, 40
    body.linearise()
    for _ in range(steps):
        v = body.free_velocity(body.factor(h), h)
        body.advance(v, h)
    fallen = (body.x - cut.nodes)[_at(mesh, 0.03), 1]
    np.testing.assert_allclose(fallen, -0.5 * 9.81 * h * h * steps * (steps + 1), rtol=1e-6)
    assert np.abs((body.x - cut.nodes)[_at(mesh, -0.01)]).max() < 1e-4


def test_in_two_loose_layers_a_strip_bends_four_times_as_far() -> None:
    """n loose layers are n^2 times as soft as one piece, I being b h^3 / 12; a finer mesh comes nearer."""
    off = []
    for finer in (1, 2):
        mesh = block((0.16, 0.016, 0.016), (24 * finer, 6 * finer - 1, 3 * finer))
        end, load = _at(mesh, 0.08), np.zeros((len(mesh.nodes), 3))
        load[end, 1] = -1e-4 / len(end)
        soft = Material(1e5, 0.0, 1000.0, 0.0, 0.0)
        cut = _cut(mesh, (0.0, 1.0, 0.0), 0.0)
        whole = _solved(SoftBody("a", mesh, soft, _at(mesh, -0.08), STILL, elements="tet4"), load)
        more = np.vstack([load, np.zeros((len(cut.copies), 3))])
        parted = _solved(CutBody("b", cut, soft, _at(mesh, -0.08), STILL, elements="tet4"), more)
        off.append(parted[end, 1].mean() / whole[end, 1].mean() / 4.0 - 1.0)
    assert off[0] < off[1] < 0.0  # linear elements bend too little
    assert abs(off[1]) < 0.5 * abs(off[0])


def test_pressed_together_open_sides_bear_as_if_whole_and_pulled_they_part() -> None:
    mesh, nu = _mesh(), GEL.poisson_ratio
    cut = _cut(mesh, (1.0, 0.0, 0.0), 0.004)
    ends = np.union1d(_at(mesh, -0.03), _at(mesh, 0.03))
    force = {}
    for way in (-1.0, 1.0):
        body = CutBody("a", cut, GEL, ends, STILL)
        body.x[:] = cut.nodes + way * 1e-4 * cut.nodes / 0.03 * [1.0, -nu, -nu]
        h = 0.01
        for _ in range(400):
            body.linearise()
            body.v *= 0.9
            body.advance(body.free_velocity(body.factor(h), h), h)
        total = np.zeros_like(body.x)
        body._add_internal(total, h)
        force[way] = (
            total[_at(mesh, 0.03), 0].sum()
            + total[len(mesh.nodes) :][np.isin(cut.copies, _at(mesh, 0.03)), 0].sum()
        )
    whole = GEL.youngs_modulus * SIZE[1] * SIZE[2] * 1e-4 / 0.03
    # ends that are held against widening add a little
    assert force[-1.0] == pytest.approx(whole, rel=0.1)
    assert abs(force[1.0]) < 1e-3 * whole


def test_the_nodes_of_points_come_in_the_order_of_these() -> None:
    """The likeliest contacts come first, and a model has columns for as many as there is room."""
    cut = _cut(_mesh(), (1.0, 0.0, 0.0), 0.004)
    body, first = CutBody("a", cut, GEL), len(cut.nodes)
    points = np.array([first + 7, 3, first + 2, 0])
    nodes = body.nodes_at(points).tolist()
    heaviest = [int(cut.corners[k][np.argmax(cut.weights[k])]) for k in (7, 2)]
    order = [nodes.index(node) for node in (heaviest[0], 3, heaviest[1], 0)]
    assert order == sorted(order) and order[0] == 0
    assert set(nodes) == {3, 0} | {int(n) for k in (7, 2) for n in cut.corners[k][cut.weights[k] > 0.0]}


def test_not_yet_torn_a_body_yields_as_one_without_a_cut() -> None:
    mesh = _mesh()
    fixed, pulled = _at(mesh, -0.03), _at(mesh, 0.03)
    cut = _cut(mesh, (1.0, 0.3, 0.0), 0.001)
    whole = SoftBody("a", mesh, GEL, fixed, STILL)
    bonded = CutBody("b", cut, GEL, fixed, STILL, toughness=np.full(len(cut.copies), 100.0))
    load = np.zeros((len(mesh.nodes), 3))
    load[pulled] = [0.01, -0.02, 0.003]
    u = _solved(whole, load)
    v = _solved(bonded, np.vstack([load, np.zeros((len(cut.copies), 3))]))
    # bonds are a thousand times as stiff as the elements' sides
    assert np.abs(v[: len(u)] - u).max() < 5e-3 * np.abs(u).max()
    assert np.abs(v[len(u) :] - v[cut.copies]).max() < 5e-3 * np.abs(u).max()


def _torn_beam(step: float, settling: int) -> tuple[float, float]:
    """A double cantilever, torn by its ends a step [m] at a time: energy that went by the area that was torn,
    over the toughness, and the area [m2]."""
    length, height, width, notch, toughness = 0.08, 0.024, 0.016, 0.03, 5.0
    mesh, h = block((length, height, width), (16, 4, 3)), 10.0
    cut, n = _cut(mesh, (0.0, 1.0, 0.0), 0.0007), len(mesh.nodes)
    end = _at(mesh, -length / 2.0)
    lips = [end[np.abs(mesh.nodes[end, 1] - way * height / 2.0) < 1e-9] for way in (1.0, -1.0)]
    held = cut.nodes[n:, 0] > notch - length / 2.0
    body = CutBody(
        "a", cut, Material(1e5, 0.3, 1000.0), np.concatenate([*lips, _at(mesh, length / 2.0)]), STILL, "tet4",
        np.where(held, toughness, 0.0),
    )  # fmt: skip

    def pull() -> float:
        force = np.zeros_like(body.x)
        body._add_internal(force, 0.0)
        return float(force[lips[1], 1].sum() - force[lips[0], 1].sum()) / 2.0

    work, before, told = -body.energy(), pull(), []
    while not told or told[-1][0] < 0.4 * width * (length - notch):
        for way, lip in zip((1.0, -1.0), lips, strict=True):
            body.x[lip, 1] += way * step / 2.0
        for _ in range(settling):
            body.linearise()
            body.v[:] = 0.0
            body.advance(body.free_velocity(body.factor(h), h), h)
        body.v[:] = 0.0
        work, before = work + 0.5 * (before + pull()) * step, pull()
        told.append((body.areas[held & ~body.bonded].sum(), work - body.energy()))
    areas, gone = np.array(told).T
    going = areas > 0.15 * areas[-1]
    return float(np.polyfit(areas[going], gone[going], 1)[0]) / toughness, float(areas[-1])


def test_to_tear_takes_toughness_times_area() -> None:
    rough, _ = _torn_beam(2.5e-4, 2)
    fine, area = _torn_beam(2.5e-4, 6)
    assert area > 0.0
    assert fine == pytest.approx(1.0, rel=0.1)
    assert abs(fine - 1.0) < abs(rough - 1.0)  # what a bond bears until the next step it bears too long


def test_a_shape_that_is_only_looked_at_tears_nothing() -> None:
    """A model's tangent is that of a shape ahead; bonds wear where a step has led."""
    cut = _cut(_mesh(), (1.0, 0.0, 0.0), 0.004)
    body = CutBody("a", cut, GEL, gravity=STILL, toughness=np.full(len(cut.copies), 1.0))
    body.linearise()
    stiffness, x = body.K.copy(), body.x.copy()
    body.x[len(cut.mesh.nodes) :] += 0.02
    body.linearise()
    body.x[:] = x
    body.linearise()
    assert abs(body.K - stiffness).max() < 1e-9 * abs(stiffness).max() and body.bonded.all()
    body.x[len(cut.mesh.nodes) :] += 0.02
    body.remember(0.01)
    assert not body.bonded.any()


def test_tearing_gives_no_energy() -> None:
    mesh = _mesh()
    cut = _cut(mesh, (1.0, 0.0, 0.0), 0.004)
    above = cut.nodes[len(mesh.nodes) :, 1] > 0.0
    body = CutBody(
        "a", cut, GEL, _at(mesh, -0.03), STILL, toughness=np.where(above, 0.0, 1.0),
    )  # fmt: skip
    body.v.reshape(-1, 3)[:] = [2.0, 1.0, 0.0] * np.maximum(0.0, body.x[body.free, :1] + 0.03) / 0.06
    energy, h = body.energy(), 1e-3
    for _ in range(120):
        body.linearise()
        body.advance(body.free_velocity(body.factor(h), h), h)
        assert body.energy() <= energy * (1.0 + 1e-9)
        energy = body.energy()
    assert not body.bonded.all() and (body.toughness[~body.bonded] > 0.0).any()


def test_a_cut_that_goes_on_leaves_a_moving_body_as_it_is() -> None:
    """Energy, momentum, and each node where it was; and it is the body that was cut so far at once."""
    mesh = _mesh()
    edges, _ = mesh_edges(mesh.tets)
    shares, cut, rng = np.full(len(edges), np.nan), None, np.random.default_rng(5)
    ends, room = _at(mesh, -0.03), CutRoom(400, 2000, 4000)
    body = CutBody("a", cut_mesh(mesh, shares), GEL, ends, STILL, room=room)
    body.x[body.free] += 2e-4 * rng.standard_normal((len(body.free), 3))
    body.v[:] = 0.1 * rng.standard_normal(body.n_dof)
    for deep in (0.02, 0.008, -0.004, -0.03):
        outline = [[0.03, -0.03], [deep, -0.03], [deep, 0.03], [0.03, 0.03]]
        corners = np.column_stack([np.full(4, 0.004), outline])
        met = crossings(mesh.nodes, edges, corners[[[0, 1, 2], [2, 3, 0]]])
        shares = np.where(np.isnan(shares), met, shares)
        cut, before, x, v = cut_mesh(mesh, shares, body.cut), body.energy(), body.x.copy(), body.momentum()
        points, there, mass = body.positions(), body.inner_weights.any(axis=1), body.mass
        was = body.cut_on(cut)
        assert was is not None and body.mass == pytest.approx(mass, rel=1e-12)
        assert body.energy() == pytest.approx(before, rel=1e-9)
        np.testing.assert_array_equal(body.x, x[was])
        np.testing.assert_allclose(body.momentum()[0], v[0], rtol=1e-9, atol=1e-12)
        assert len(points) == len(body.positions())
        assert body.inner_weights.any(axis=1)[there].all()
    assert cut is not None and len(cut.copies) > 0
    at_once = CutBody("b", cut, GEL, ends, STILL)
    at_once.x[:] = body.x[: len(at_once.x)]
    at_once.linearise()
    body.linearise()
    assert body.energy() == pytest.approx(body.energy())
    assert at_once.tangent().diagonal() == pytest.approx(body.tangent().diagonal(), rel=1e-9)


def test_a_cut_without_room_changes_nothing() -> None:
    mesh = _mesh()
    edges, _ = mesh_edges(mesh.tets)
    body = CutBody("a", cut_mesh(mesh, np.full(len(edges), np.nan)), GEL, room=CutRoom(3, 2000, 4000))
    before, faces = body.cut, body.surface.triangles.copy()
    assert body.cut_on(_cut(mesh, (1.0, 0.4, 0.1), 0.004)) is None
    assert body.cut is before
    np.testing.assert_array_equal(body.surface.triangles, faces)
