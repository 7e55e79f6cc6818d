"""Grooves and viscosity of a surface: Coulomb's coefficient by place and speed, felt as it is written."""

import numpy as np
import pytest

import palpo
from palpo.physics.collision.surface_feel import BALL, BOX, make_surfaces, surface_at

MU, SPEED, STEP = 0.3, 0.02, 1e-3
BALL_ON_FLOOR = {
    "title": "a ball on a floor",
    "bodies": [
        {
            "name": "floor",
            "kind": "mesh",
            "geometry": {"kind": "box", "size": [0.2, 0.02, 0.2]},
            "placement": {"position": [0, -0.01, 0]},
        },
        {
            "name": "ball",
            "kind": "rigid",
            "rate": "high",
            "geometry": {"kind": "sphere", "radius": 0.01},
            "placement": {"position": [0, 0.012, 0]},
            "mass": 0.03,
        },
    ],
    "friction": {"default": MU},
    "tool": {"body": "ball", "hold": {"stiffness": 500, "damping": 1}},
}


def dragged(ticks=1000, speed=SPEED, **scene):
    """Force on the hand (n, 3) [N] and where the ball is (n, 3) [m], dragged along x after it was pressed."""
    state = palpo.load(BALL_ON_FLOOR | scene).build().start()
    state.step(hand=[0.0, 0.006, 0.0], ticks=400)
    ticks = state.step(hand=[speed * STEP * ticks, 0.006, 0.0], ticks=ticks)
    return ticks.force, ticks.held, ticks.work


def drag(force):
    """Friction over the normal force."""
    return -force[:, 0] / force[:, 1]


def plane(**scene):
    """The same floor as an endless plane."""
    _floor, ball = BALL_ON_FLOOR["bodies"]
    return {"bodies": [{"name": "floor", "kind": "plane"}, ball]} | scene


@pytest.mark.parametrize("speed", [0.01, 0.02, 0.04])
def test_friction_rises_with_the_sliding_speed_by_the_viscosity(speed):
    viscosity = 2.5
    force, _, _ = dragged(speed=speed, surfaces=[{"body": "floor", "viscosity": viscosity}])
    # what still moves of the start of the drag decays as exp(-t / 30 ms) in the coupling
    assert drag(force)[600:] == pytest.approx(MU + viscosity * speed, rel=1e-6)


@pytest.mark.parametrize("scene", [{}, plane()], ids=["mesh", "plane"])
def test_grooves_are_where_they_are_on_the_body(scene):
    # shallow enough that the hand's spring is stiffer than friction falls, or it would stick and slip
    pitch, depth = 0.004, 0.2
    surface = {"body": "floor", "texture": depth, "pitch": pitch}
    force, held, _ = dragged(surfaces=[surface], **scene)
    wave = MU * (1.0 + depth * np.cos(2.0 * np.pi * held[:, 0] / pitch))
    # the contact is found a tick before the ball is there
    late = MU * depth * 2.0 * np.pi / pitch * 2.0 * SPEED * STEP
    sliding = slice(300, None)
    assert np.abs(drag(force) - wave)[sliding].max() < late
    assert np.ptp(drag(force)[sliding]) == pytest.approx(2.0 * MU * depth, rel=0.05)


def test_across_the_grooves_only_is_felt():
    surface = {"body": "floor", "texture": 0.5, "pitch": 0.004, "along": [0, 0, 1]}
    force, _, _ = dragged(surfaces=[surface])
    assert drag(force)[600:] == pytest.approx(1.5 * MU, rel=1e-6)


def test_a_surface_holds_within_its_region_and_the_last_of_several_does():
    half = {"body": "floor", "viscosity": 2.5, "box": [[-1, -1, -1], [0.01, 1, 1]]}
    force, held, _ = dragged(surfaces=[{"body": "floor", "viscosity": 1.0}, half])
    inside, outside = held[:, 0] < 0.0095, held[:, 0] > 0.0105
    inside[:300] = False
    # the ball takes up its new speed as in the drag's start
    outside &= np.arange(len(held)) > 900
    assert inside.any() and outside.any()
    assert drag(force)[inside] == pytest.approx(MU + 2.5 * SPEED, rel=1e-3)
    assert drag(force)[outside] == pytest.approx(MU + 1.0 * SPEED, rel=1e-2)


def test_a_round_surface_ends_at_its_radius():
    spot = {"body": "floor", "viscosity": 2.5, "sphere": {"centre": [0, 0, 0], "radius": 0.01}}
    force, held, _ = dragged(surfaces=[spot])
    inside, outside = held[:, 0] < 0.0095, held[:, 0] > 0.0105
    inside[:300] = False
    # the ball takes up its new speed as in the drag's start
    outside &= np.arange(len(held)) > 900
    assert inside.any() and outside.any()
    assert drag(force)[inside] == pytest.approx(MU + 2.5 * SPEED, rel=1e-3)
    assert drag(force)[outside] == pytest.approx(MU, rel=1e-2)


def test_the_hand_pays_for_all_of_it():
    whole = {"body": "ball", "feedback": "reaction", "hold": {"stiffness": 500, "damping": 1}}
    for surface in ({"viscosity": 10.0}, {"texture": 1.0, "pitch": 0.002}):
        scene = BALL_ON_FLOOR | {"tool": whole, "surfaces": [{"body": "floor", **surface}]}
        state = palpo.load(scene).build().start()
        state.step(hand=[0.0, 0.006, 0.0], ticks=400)
        rng, given = np.random.default_rng(4), 0.0
        for there in rng.uniform(-0.02, 0.02, (8, 2)):
            for goal in ([there[0], 0.006, there[1]], [0.0, 0.006, 0.0]):
                # from rest on: whatever is stored sideways was paid before
                given += state.step(hand=goal, ticks=150).work
                assert given < 0.0


def test_the_coefficient_is_never_negative_and_regions_are_what_they_say():
    surfaces = make_surfaces(3)
    surfaces.texture[:], surfaces.wave[:] = 1.0, [100.0, 0.0, 0.0]
    surfaces.viscosity[:] = 0.0, 1.0, 2.0
    surfaces.where[1], surfaces.where[2] = BOX, BALL
    surfaces.lower[1], surfaces.upper[1] = [0, 0, 0], [1, 1, 1]
    surfaces.lower[2], surfaces.upper[2] = [0.5, 0.5, 0.5], 0.1
    at = np.linspace(-0.4, 0.4, 400)[:, None] * [1.0, 0.0, 0.0]
    assert all(surface_at(surfaces, 0, x)[0] >= 0.0 for x in at)
    for place, viscosity in (([-0.1, 0.5, 0.5], 0.0), ([0.2, 0.5, 0.5], 1.0), ([0.5, 0.58, 0.5], 2.0)):
        factor, found = surface_at(surfaces, 0, np.array(place))
        assert found == viscosity and factor == pytest.approx(1.0 + np.cos(100.0 * place[0]))
    assert surface_at(surfaces, 1, np.zeros(3)) == (1.0, 0.0)


def test_what_stands_behind_the_surfaces_in_memory_is_none_of_them():
    more = make_surfaces(6)
    more.viscosity[:] = np.arange(6.0)
    for n in range(4):
        surfaces = type(more)(*(array[:n] for array in more))
        assert surface_at(surfaces, 0, np.zeros(3)) == (1.0, max(0.0, n - 1.0))


def test_a_surface_of_no_body_is_refused_in_words():
    with pytest.raises(palpo.Refusal, match=r"surfaces.*flor.*no such body"):
        palpo.load(BALL_ON_FLOOR | {"surfaces": [{"body": "flor", "viscosity": 1.0}]})
