"""Laws of a blade in gel: what it bears and takes, what it leaves alone, and what is cut stays one body."""

import numpy as np
import pytest

import palpo
from palpo.physics.collision.growing_surface import GrowingSurface
from palpo.physics.collision.topology import LOW, CollisionShape, join_shapes
from palpo.physics.mesh.crossings import crossings, mesh_edges
from palpo.physics.mesh.cut_surface import CutRoom, CutSurface
from palpo.physics.mesh.cutting import cut_mesh
from palpo.physics.mesh.generate import block

TOUGHNESS, LENGTH = 20.0, 9e-3
GEL = f"""
title = "A blade pressed into gel"
[[bodies]]
name = "gel"
kind = "tets"
geometry = {{ kind = "block", size = [0.03, 0.016, 0.03], divisions = [9, 5, 9] }}
placement = {{ position = [0, 0.008, 0] }}
material = {{ youngs_modulus = "12 kPa", poisson_ratio = 0.45, density = "1000 kg/m3", alpha = 20.0 }}
fixed = [{{ box = [[-0.04, -0.001, -0.03], [0.04, 0.001, 0.03]] }}]
[[bodies]]
name = "knife"
kind = "rigid"
rate = "high"
geometry = {{ kind = "block", size = [0.0004, 0.016, {LENGTH}], divisions = [1, 1, 1] }}
placement = {{ position = [0, 0.026, 0] }}
mass = 0.02
[[blades]]
body = "knife"
tissue = "gel"
edge = [[0, 0.018, {-LENGTH / 2}], [0, 0.018, {LENGTH / 2}]]
towards = [0, -1, 0]
depth = 0.006
puncture = 0.2
toughness = {TOUGHNESS}
[tool]
body = "knife"
[tool.hold]
orientation = true
stiffness = 500.0
damping = 2.0
rotational_stiffness = 1.0
rotational_damping = 0.002
"""
"""The edge begins 2 mm above the gel."""


def lead(state: palpo.State, path: list[tuple[float, float, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Forces on the hand [N] and the edge's height [m], each 5 ms along rows of seconds and x, y, z [mm]."""
    way, found, begun = np.array(path), [], state.time
    for k in range(round(way[-1, 0] / 0.005)):
        hand = [np.interp((k + 1) * 0.005, way[:, 0], way[:, i]) * 1e-3 for i in (1, 2, 3)]
        state.step(hand=[hand[0], 0.026 + hand[1], hand[2]], ticks=5)
        height = float(state.rig.high.held.tool.x[0, 1]) - 0.008
        found.append([*state.force, height])
    assert state.time > begun
    table = np.array(found)
    return table[:, :3], table[:, 3]


def work(state: palpo.State) -> float:
    """What cutting has taken [J]."""
    return float(state.rig.high.incised[0]["work"])


IN = [(0.0, 0, 0, 0), (0.2, 0, -1.5, 0), (2.2, 0, -12.0, 0)]


@pytest.fixture(scope="module")
def model() -> palpo.Model:
    return palpo.load(GEL).build()


def test_an_edge_bears_its_toughness_times_its_length_and_takes_it_times_the_area(model: palpo.Model) -> None:
    state = model.start()
    force, _ = lead(state, IN)
    cutting = force[round(1.4 / 0.005) : round(2.1 / 0.005)]
    assert np.linalg.norm(cutting, axis=1) == pytest.approx(TOUGHNESS * LENGTH, rel=0.01)
    blade = state.rig.scene.blades[0]
    a, b, c = np.moveaxis(blade.swept, 1, 0)
    below = ((a + b + c)[:, 1] / 3.0) < 0.016
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)[below].sum()
    assert work(state) == pytest.approx(TOUGHNESS * area, rel=0.1)
    assert np.isfinite(blade.body.x).all() and len(blade.body.cut.copies) > 0
    # all of the surface is closed: each edge has two triangles, wound alike
    triangles = blade.body.surface.triangles
    half = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert {tuple(row) for row in half.tolist()} == {tuple(row) for row in half[:, ::-1].tolist()}


def test_drawn_back_it_is_free_and_pushed_in_again_it_cuts_from_where_it_had_come(model: palpo.Model) -> None:
    state = model.start()
    lead(state, [*IN, (2.6, 0, -12.0, 0)])
    taken, front = work(state), state.rig.scene.blades[0].edge[:, 1].mean()
    force, _ = lead(state, [(0.0, 0, -12.0, 0), (0.5, 0, -9.0, 0), (0.8, 0, -9.0, 0)])
    assert np.linalg.norm(force[-20:], axis=1).max() < 0.02 * TOUGHNESS * LENGTH
    assert work(state) == pytest.approx(taken, rel=1e-6)
    lead(state, [(0.0, 0, -9.0, 0), (0.5, 0, -11.0, 0)])
    assert work(state) < taken + 0.02 * TOUGHNESS * LENGTH * 0.016
    lead(state, [(0.0, 0, -11.0, 0), (0.5, 0, -14.0, 0)])
    blade = state.rig.scene.blades[0]
    assert blade.edge[:, 1].mean() < front - 0.5e-3
    assert work(state) - taken == pytest.approx(
        TOUGHNESS * LENGTH * (front - blade.edge[:, 1].mean()), rel=0.15
    )


def test_out_it_touches_nothing_and_leaves_the_gel_as_heavy_and_at_rest(model: palpo.Model) -> None:
    state = model.start()
    body = state.rig.scene.members[0].body
    mass, before = body.mass, body.x.copy()
    lead(state, [(0.0, 0, 0, 0), (1.0, 0, 0, 0)])
    sunk = body.x[: len(body.cut.mesh.nodes)].copy()
    assert np.abs(sunk - before[: len(sunk)]).max() < 1e-3
    lead(state, [*IN, (2.7, 0, 0.0, 0), (5.0, 0, 2.0, 0)])
    assert state.rig.high.incised[0]["inside"] == 0
    np.testing.assert_allclose(state.force, 0.0, atol=1e-6)
    assert body.mass == pytest.approx(mass, rel=1e-9)
    # what is cut, but not cut out, hangs a little lower at most
    assert np.abs(body.x[: len(sunk)] - sunk).max() < 0.3e-3


def test_a_cut_that_gapes_presses_a_blade_from_one_side_at_most() -> None:
    """Each lip bears on its own side of the blade: taken for one another, they would be drawn together."""
    path = np.array([[0, 26, -1], [0.6, 12, -1], [1.8, 12, -14], [2.2, 12, -8], [3.0, 12, -8]]) * [
        1,
        1e-3,
        1e-3,
    ]
    state = palpo.load("cut").build().start()
    for k in range(600):
        hand = [-0.002, *(np.interp((k + 1) * 0.005, path[:, 0], path[:, i]) for i in (1, 2))]
        state.step(hand=hand, ticks=5)
    body, contacts = state.rig.scene.members[0].body, state.rig.high.engine.contacts
    found = contacts.count[0]["found"]
    opening = np.linalg.norm(body.x[body._pairs[:, 1]] - body.x[body._pairs[:, 0]], axis=1)
    assert state.rig.high.incised[0]["inside"] == 1 and opening.max() > 2e-4
    edge = state.rig.scene.blades[0].spec.edge
    pressed = contacts.identity[:found][np.linalg.norm(contacts.force[:found], axis=1) > 1e-5]
    places = (pressed[pressed >= edge] - edge) // 2
    assert len(places) == len(np.unique(places))


def test_two_rates_cut_as_everything_at_the_servos_rate_does() -> None:
    found = []
    for rate in (50.0, 1000.0):
        state = palpo.load(GEL, {"rates.low_hz": rate}).build().start()
        force, _ = lead(state, IN)
        found.append((force, work(state)))
    (two, took), (one, takes) = found
    off = np.linalg.norm(two - one, axis=1) / np.linalg.norm(one, axis=1).max()
    # the skin gives way some ticks apart, and the edge springs in before a slow loop knows of it
    assert np.sqrt((off[round(0.6 / 0.005) :] ** 2).mean()) < 0.01
    assert took == pytest.approx(takes, rel=0.05)


def test_a_copy_of_a_state_in_the_cut_goes_on_bit_for_bit(model: palpo.Model) -> None:
    state = model.start()
    lead(state, [*IN[:2], (1.2, 0, -8.0, 0)])
    other = state.copy()
    on = [(0.0, 0, -8.0, 0), (0.6, 1.0, -11.0, 1.0)]
    for one, two in zip(lead(state, on), lead(other, on), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(state.positions["gel"], other.positions["gel"])


def test_a_quick_stab_goes_in_and_comes_out(model: palpo.Model) -> None:
    """At 1 m/s, faster than frames are made."""
    state = model.start()
    lead(state, [(0.0, 0, 4.0, 0), (0.2, 0, 4.0, 0), (0.215, 0, -11.0, 0), (0.5, 0, -11.0, 0)])
    assert state.rig.high.incised[0]["inside"] == 1
    force, _ = lead(state, [(0.0, 0, -11.0, 0), (0.6, 0, 4.0, 0), (1.2, 0, 4.0, 0)])
    assert state.rig.high.incised[0]["inside"] == 0
    assert np.isfinite(force).all() and np.linalg.norm(force[-1]) < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_hand_does_the_gel_is_finite_and_the_blade_comes_out(
    model: palpo.Model, seed: int
) -> None:
    """Ways into the gel and about in it, at up to 0.1 m/s; cutting never gives anything back."""
    rng, state, taken = np.random.default_rng(seed), model.start(), 0.0
    at = np.zeros(3)
    for _ in range(6):
        to = rng.uniform([-6.0, -13.0, -8.0], [6.0, -4.0, 8.0])
        span = np.linalg.norm(to - at) / rng.uniform(20.0, 100.0)
        lead(state, [(0.0, *at), (span, *to)])
        assert work(state) >= taken
        at, taken = to, work(state)
    lead(state, [(0.0, *at), (0.6, at[0], 8.0, at[2]), (1.0, at[0], 8.0, at[2])])
    body = state.rig.scene.members[0].body
    assert np.isfinite(body.x).all() and state.rig.high.incised[0]["inside"] == 0
    assert taken > 0.0


def test_a_surface_that_grows_keeps_what_frames_name() -> None:
    """Rows that were taken never change; those that count are the surface with its edges and their sides."""
    mesh, rng = block((0.06, 0.02, 0.03), (6, 3, 3)), np.random.default_rng(3)
    edges, _ = mesh_edges(mesh.tets)
    shares, room = np.full(len(edges), np.nan), CutRoom(400, 2000, 4000)
    cut = cut_mesh(mesh, shares)
    surface = CutSurface(cut, room)
    count, spare = surface.nodes + room.points, room.triangles - len(surface.triangles)
    shape = CollisionShape(
        count, np.pad(surface.triangles, ((0, spare), (0, 0))), np.zeros((0, 2), np.int32), 0.0, LOW,
        spare_edges=3 * spare,
    )  # fmt: skip
    topology, _ = join_shapes([shape])
    growing = GrowingSurface(topology, 0)
    for _ in range(4):
        before = [part.copy() for part in topology[:4]]
        used = before[0][:, 0] != before[0][:, 1], before[2][:, 0] != before[2][:, 1]
        corner = rng.uniform([-0.03, -0.012, -0.02], [0.03, 0.012, 0.02], (3, 3))
        met = crossings(mesh.nodes, edges, corner[None] * 1.5)
        shares = np.where(np.isnan(shares), met, shares)
        cut = cut_mesh(mesh, shares, cut)
        assert surface.follow(cut, lambda triangles: growing.renew(triangles.astype(np.int64)))
        for part, old, rows in zip(topology[:4], before, (used[0], used[0], used[1], used[1]), strict=True):
            np.testing.assert_array_equal(part[rows], old[rows])
        live = np.setdiff1d(np.arange(len(topology.triangles)), growing.parted)
        assert {tuple(np.roll(t, -t.argmin())) for t in topology.triangles[live]} == {
            tuple(np.roll(t, -t.argmin())) for t in surface.triangles
        }
        for t in live:
            a, b, c = topology.triangles[t]
            for one, two, third, edge in zip(
                (a, b, c), (b, c, a), (c, a, b), topology.triangle_edges[t], strict=True
            ):
                side = 0 if tuple(topology.edges[edge]) == (one, two) else 1
                assert set(topology.edges[edge]) == {one, two}
                assert topology.edge_opposite[edge, side] == third
