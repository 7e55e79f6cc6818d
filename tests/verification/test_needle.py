"""A needle in a block of gel: what friction, cutting and puncture do to the hand, and what is left behind."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse.linalg import splu

import palpo
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.physics.systems.multirate.needle_paths import MaterialPlaces, line_yields

PUNCTURE, CUTTING, FRICTION = 0.15, 0.1, 20.0
"""[N], [N], [N/m]"""

SPEED = 0.02
"""Of the hand [m/s]."""

GEL = f"""
title = "Needle into gel"
[[bodies]]
name = "gel"
kind = "tets"
geometry = {{ kind = "block", size = ["50 mm", "40 mm", "50 mm"], divisions = [6, 5, 6] }}
placement = {{ position = [0, "20 mm", 0] }}
material = {{ youngs_modulus = "15 kPa", poisson_ratio = 0.45, density = "1000 kg/m3" }}
fixed = [{{ box = [[-0.1, -0.001, -0.1], [0.1, 0.001, 0.1]] }}]
[[bodies]]
name = "needle"
kind = "beam"
rate = "high"
material = "steel"
[bodies.geometry]
kind = "line"
start = [0.003, 0.042, 0.002]
end = [0.003, 0.142, 0.002]
elements = 10
radius = "0.5 mm"
[[needles]]
body = "needle"
tissue = "gel"
puncture = {PUNCTURE}
cutting = {CUTTING}
friction = {FRICTION}
[tool]
body = "needle"
[tool.hold]
end = "last"
orientation = true
stiffness = "0.5 N/mm"
damping = "2 N s/m"
rotational_stiffness = "5 N m/rad"
rotational_damping = "0.005 N m s/rad"
"""

TOP = np.array([0.003, 0.142, 0.002])
"""Where the hand holds the needle at rest [m]."""


def lead(state, *heights, speed=SPEED, rest=0.2):
    """The hand to so far below where it began [m], one after another; the force (ticks, 3) that it felt."""
    forces = []
    for height in heights:
        now = state.hand.position[1]
        ticks = max(1, round(abs(TOP[1] - height - now) / speed / 1e-3))
        goal = TOP - np.array([0.0, height, 0.0])
        forces += [
            state.step(hand=goal, ticks=ticks).force,
            state.step(hand=goal, ticks=round(1e3 * rest)).force,
        ]
    return np.concatenate(forces)


@cache
def model(low_hz=50):
    return palpo.load(f"{GEL}\n[rates]\nlow_hz = {low_hz}").build()


def channel(state):
    """Length [m] of the channel, and the needle's path."""
    [needle] = state.needles
    return needle.depth, needle


def test_force_is_cutting_and_friction_over_the_length_that_is_in():
    state = model().start()
    lead(state, 0.012, rest=0.0)
    lengths, forces = [], []
    for height in np.arange(0.013, 0.030, 0.001):
        forces.append(lead(state, height, speed=0.01, rest=0.0)[-1, 1])
        lengths.append(channel(state)[0])
    slope, start = np.polyfit(lengths, forces, 1)
    assert slope == pytest.approx(FRICTION, rel=0.01)
    # the youngest part of the shaft has not slid far enough yet to be rubbed with all of its friction
    assert start == pytest.approx(CUTTING, rel=0.06)


def test_drawn_out_it_is_held_back_by_friction_alone_and_nothing_is_left_behind():
    state = model().start()
    lead(state, 0.030)
    for height in np.arange(0.012, 0.002, -0.001):
        force = lead(state, height, speed=0.01, rest=0.0)[-1, 1]
        assert -force == pytest.approx(FRICTION * state.needles[0].inside, rel=0.02)
    lead(state, -0.020)
    state.step(hand=state.hand.position, ticks=1500)
    assert state.needles[0].depth == 0.0
    assert len(state.contacts.points) == 0
    assert np.abs(state.force).max() < 1e-3
    untouched = model().start()
    untouched.step(hand=TOP, ticks=1500)  # it sags under its own weight
    assert np.abs(state.positions["gel"] - untouched.positions["gel"]).max() < 2e-5


def test_in_its_own_channel_a_needle_need_not_cut():
    """Toughness from the difference of two insertions (Azar & Hayward, ISBMS 2008)."""
    state = model().start()
    lead(state, 0.028)
    lead(state, 0.014)
    deep, needle = channel(state)
    again = lead(state, 0.022, rest=0.0)[-1, 1]
    assert needle.inside < deep - 0.004  # the tip is still behind the channel's end
    _, needle = channel(state)
    assert again == pytest.approx(FRICTION * needle.inside, rel=0.05)


def test_the_force_drops_when_the_surface_gives_way():
    state = model().start()
    forces = lead(state, 0.010, rest=0.0)[:, 1]
    inside = state.needles[0].depth
    assert inside > 0.0
    peak = int(np.argmax(forces[:-1] - forces[1:]))
    assert forces[peak] > 0.8 * PUNCTURE


def test_two_rates_feel_what_one_does():
    path = (0.024, -0.010)
    two, one = (lead(model(hz).start(), *path) for hz in (50, 1000))
    error = np.linalg.norm(two - one, axis=1)
    assert np.sqrt((error**2).mean()) < 0.01 * np.abs(one).max()


def test_what_the_hand_does_is_what_cutting_and_friction_take():
    state = model().start()
    held, work = [state.hand.position[1]], 0.0
    for height in (0.024, -0.020):
        goal = TOP - np.array([0.0, height, 0.0])
        ticks = round(abs(goal[1] - held[-1]) / 0.01 / 1e-3)
        run = state.step(hand=goal, ticks=ticks)
        steps = np.diff(np.concatenate([[held[-1]], run.hand[:, 1]]))
        work -= float(run.force[:, 1] @ steps)
        if height > 0.0:
            length = channel(state)[0]
        held.append(run.hand[-1, 1])
    # in: cutting and friction up to the length; out: friction again. The tissue is pressed together on the
    # way in and pulled apart on the way out, by which the lengths that friction has differ from this one
    taken = CUTTING * length + FRICTION * length**2
    assert work == pytest.approx(taken, rel=0.04)


@pytest.mark.parametrize(("ratio", "elements"), [(0.3, None), (0.3, "tet4-patch"), (0.45, "tet4-patch")])
def test_a_shaft_that_is_moved_pulls_as_a_line_load_does(ratio, elements):
    """Rigid shaft through a square block that is held all around: along it 2 pi G / ln(R/r) a length, with
    R = 1.0787 a the conformal radius of the square of sides 2 a; across by the plane strain of a disc in a
    rigid ring (Baguelin, Frank & Said, Geotechnique 27, 1977). In the mean over oblique lines, whose distance
    from the nodes varies; of two lengths the difference, which has no ends."""
    rng, half, radius, shear = np.random.default_rng(3), 0.02, 5e-4, 5e3
    material = Material(2.0 * shear * (1.0 + ratio), ratio, 1000.0, 0.0, 0.0)
    outer, q = 1.0787 * half, 3.0 - 4.0 * ratio
    along = 2.0 * np.pi * shear / np.log(outer / radius)
    across = 8.0 * np.pi * shear * (1.0 - ratio) * q / (q * q * np.log(outer / radius) - 1.0)
    found = []
    for n in (5, 7):
        for _ in range(3):
            offset, tilt = rng.uniform(-0.1, 0.1, 2) * half, rng.uniform(-0.08, 0.08, 2)
            short, long = (
                pull(n, length, half, radius, material, elements, offset, tilt) for length in (0.04, 0.06)
            )
            found.append((long - short) / 0.02)
    mean = np.mean(found, axis=0)
    assert mean == pytest.approx((across, along), rel=0.05)


def pull(n, length, half, radius, material, elements, offset, tilt):
    """Force [N/m] on a rigid shaft moved by a unit, across and along."""
    mesh = block([2 * half, length, 2 * half], [n, round(n * length / (2 * half)), n])
    x, count = mesh.nodes, round(length / 0.002)
    held = np.flatnonzero((np.abs(x[:, [0, 2]]) > half - 1e-9).any(axis=1))
    body = SoftBody("block", mesh, material, held, (0, 0, 0), elements=elements)
    body.add_inner(count, 4)
    places, logs = MaterialPlaces(body), np.zeros(count)
    line = np.array([tilt[0], 1.0, tilt[1]])
    for k in range(count):
        place = np.array([offset[0], 0.0, offset[1]]) + ((k + 0.5) / count - 0.5) * length * line
        cell, weights = places.find(place)
        body.inner[k], body.inner_weights[k] = places.cells[cell], weights
        logs[k] = places.unresolved(cell, weights, line / np.linalg.norm(line), radius)
    jacobian = body.columns(body.first_inner + np.arange(count))
    compliance = jacobian.T @ splu(body.K).solve(jacobian)
    return np.array([
        np.linalg.solve(compliance[d::3, d::3] + np.diag(logs) * give * count / length, np.ones(count)).sum()
        for d, give in enumerate(line_yields(material))
    ])  # fmt: skip


def bevelled(degrees, towards=(1.0, 0.0, 0.0)):
    """A thin needle in firm gel, 25 mm deep, and the end of its path against its beginning [m]."""
    text = GEL.replace('radius = "0.5 mm"', 'radius = "0.3 mm"').replace("15 kPa", "60 kPa")
    text = text.replace(
        "friction = 20.0", f'friction = 20.0\nbevel = "{degrees} deg"\nbevel_towards = {list(towards)}'
    )
    state = palpo.load(text).build().start()
    lead(state, 0.030)
    path = state.needles[0].path
    return state, path[-1] - path[0]


def test_a_bevel_steers_the_tip_and_turned_round_it_steers_the_other_way():
    straight, one, other, aside = (
        bevelled(*given)[1] for given in ((0,), (30,), (30, (-1.0, 0.0, 0.0)), (30, (0.0, 0.0, 1.0)))
    )
    assert np.abs(straight[[0, 2]]).max() < 1e-4
    assert one[0] > 0.1 * -one[1]
    assert abs(one[2]) < 0.02 * one[0]
    # the needle stands 3 mm off the block's middle, so that its two sides differ a little
    assert other[0] == pytest.approx(-one[0], rel=0.1)
    assert aside[2] == pytest.approx(one[0], rel=0.15)


@pytest.mark.parametrize("degrees", [10, 20, 40])
def test_a_bevelled_tip_cuts_at_half_its_angle_into_the_material(degrees):
    """Along the bisector of its wedge, while a stout needle has not yet dragged the gel aside."""
    text = GEL.replace('radius = "0.5 mm"', 'radius = "1 mm"').replace("cutting = 0.1", "cutting = 0.05")
    text = text.replace("friction = 20.0", f'friction = 1.0\nbevel = "{degrees} deg"')
    state = palpo.load(text).build().start()
    lead(state, 0.014)
    [needle], [plan] = state.needles, state.rig.scene.needles
    weights, nodes = plan.body.inner_weights[:3], plan.body.inner[:3]
    rest, now = (np.einsum("mw,mwi->mi", weights, x[nodes]) for x in (plan.body.mesh.nodes, plan.body.x))
    cut = np.diff(rest + needle.path[:3] - now, axis=0)[0]
    assert np.degrees(np.arctan2(cut[0], -cut[1])) == pytest.approx(0.5 * degrees, abs=1.0)


def test_a_copy_goes_on_as_its_original_while_the_needle_is_inside(tmp_path):
    state = model().start()
    lead(state, 0.016, rest=0.0)
    copies = [state.copy(), palpo.restore(state.save(tmp_path / "inside.palpo"))]
    first = lead(state, 0.024, 0.010)
    for copy in copies:
        np.testing.assert_array_equal(lead(copy, 0.024, 0.010), first)


SKIN = """
[[bodies]]
name = "skin"
kind = "tets"
elements = "tet10"
geometry = { kind = "block", size = ["50 mm", "8 mm", "50 mm"], divisions = [5, 2, 5] }
placement = { position = [0, "48 mm", 0] }
material = { youngs_modulus = "40 kPa", poisson_ratio = 0.45, density = "1000 kg/m3" }
fixed = [{ box = [[-0.026, 0, -0.1], [-0.024, 0.1, 0.1]] }, { box = [[0.024, 0, -0.1], [0.026, 0.1, 0.1]] }]
[[needles]]
body = "needle"
tissue = "skin"
puncture = "0.3 N"
cutting = "0.2 N"
friction = "40 N/m"
[tool]
"""


def test_through_a_layer_into_the_next_each_rubs_over_its_own_thickness():
    text = (
        GEL.replace("[tool]\n", SKIN)
        .replace("0.003, 0.042", "0.003, 0.060")
        .replace("0.003, 0.142", "0.003, 0.160")
    )
    state = palpo.load(text).build().start()
    top, first = np.array(state.model.held), []
    for depth in np.arange(0.002, 0.044, 0.002):
        force = state.step(hand=top - [0.0, depth, 0.0], ticks=200).force[-1, 1]
        gel, skin = state.needles
        assert skin.inside <= 0.0085  # 8 mm, a little pulled apart
        if skin.inside > 0.0 and not first:
            first = [depth]
            assert gel.inside == 0.0
    assert gel.inside > 0.010
    assert skin.inside > 0.0075
    rubbed = CUTTING + FRICTION * gel.inside + 40.0 * skin.inside
    assert force == pytest.approx(rubbed, rel=0.05)
