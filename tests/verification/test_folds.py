"""Bellows: where a cup may touch itself, and that its folds stop each other without giving anything away."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.systems.suction.build import build
from palpo.config.load import parse_scene
from palpo.physics.collision.nearest import target
from palpo.physics.contract.contacts import make_contacts
from palpo.physics.mesh.cups import CUPS, GRIDS, cup
from palpo.physics.mesh.drawn_cups import DrawnShape, bellows_points
from palpo.physics.mesh.hex_cups import GRIDS as HEX_GRIDS
from palpo.physics.mesh.hex_cups import drawn_grid, hex_cup
from palpo.physics.suction.contacts import Pair
from palpo.physics.suction.folds import _distances, add_folds, find_folds, fold_vertices, look_at_folds
from palpo.physics.suction.sides import SoftSide
from palpo.physics.systems.suction.condensed import HeldProblem, grouped

SCENE = """
system = "suction"
title = "bellows on a plane"
gravity = [0, 0, 0]

[[bodies]]
name = "cup"
kind = "cup"
material = { youngs_modulus = 2.46e6, poisson_ratio = 0.45, density = 1100, alpha = 0.0, beta = 0.002 }
placement = { position = [0, 3e-4, 0] }
drive = { kind = "scripted", path = [[0, 0, 0, 0], [1.5, 0, -0.015, 0]] }

[bodies.geometry]
kind = "bellows"
opening = 0.026
neck = 0.016
belly = 0.028
pitch = 0.008
lip = 0.005
wall = 0.001
rim = 0.0015
stem = 0.014
stem_length = 0.004

[[bodies]]
name = "plane"
kind = "mesh"
geometry = { kind = "plate", side = 0.06, cells = 2 }

[gas]
kind = "active"
gauge = 0
"""
KEPT = 1e-4


def bellows(folds=2, cell=2.5e-3, around=16):
    points = bellows_points(13e-3, 8e-3, 14e-3, folds, 8e-3, 5e-3, 1e-3)
    shape = DrawnShape(points, (1e-3,) * len(points), 1.5e-3, 7e-3, 4e-3)
    return hex_cup(shape, drawn_grid(shape, cell, around, 1)).mesh.surface().compact()


def scene(folds=True):
    """The scene's step and drives; without folds, what touches itself is not looked for."""
    built = build(parse_scene(SCENE, "bellows.toml"))
    suction = built.suction
    if not folds:
        suction._search._folds = [None]
    return suction, built.drives


def pressed(depth, folds=True):
    """Pressed by so much [m] at 10 mm/s; the step, force on the stem [N] and least gap [m] of each step."""
    suction, drives = scene(folds)
    force, gaps = [], []
    side = suction.cups[0]
    for _ in range(round(depth / 1e-4)):
        for drive in drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
        side.place_surface()
        force.append(-suction.hold[0, 1])
        gaps.append(least_gap(side))
        assert suction.contacts.count["lost"][0] == 0
    return suction, np.array(force), np.array(gaps)


def least_gap(side: SoftSide):
    """Distance [m] of any vertex of the folds from any triangle that it may meet."""
    folds = side.folds
    of = np.repeat(folds.vertices, np.diff(folds.span))
    out = np.zeros(of.size)
    _distances(side.local, side.surface.triangles, of, folds.triangles, out)
    return out.min()


@pytest.mark.parametrize("name", CUPS)
def test_a_cup_without_folds_has_none_whatever_its_mesh(name):
    for resolution in (76, 576, 1200):
        for made in (
            hex_cup(CUPS[name].shape, HEX_GRIDS[resolution]),
            cup(CUPS[name].shape, GRIDS[resolution]),
        ):
            assert find_folds(made.mesh.surface().compact()) is None


@pytest.mark.parametrize(("cell", "around"), [(2.5e-3, 16), (1.5e-3, 32)])
def test_folds_are_slopes_that_face_each_other_over_air(cell, around):
    surface = bellows(2, cell, around)
    folds = find_folds(surface)
    x, normals = surface.vertices, surface.triangle_normals
    middle = x[surface.triangles].mean(axis=1)
    for k, v in enumerate(folds.vertices):
        # it sees one of its triangles' outer sides over air, nearer than a fold is high and a cell is long
        t = folds.triangles[folds.span[k] : folds.span[k + 1]]
        way = x[v] - middle[t]
        far = np.linalg.norm(way, axis=1)
        assert ((np.einsum("ki,ki->k", way, normals[t]) > 0.4 * far) & (far < 8e-3 + 2.5e-3)).any()
        assert not (surface.triangles[t] == v).any()
    # every ring of a slope is there, inside and outside, and all of its vertices alike
    height = np.round(x[folds.vertices, 1] * 1e6).astype(int)
    radius = np.round(np.hypot(*x[folds.vertices][:, [0, 2]].T) * 1e6).astype(int)
    rings = {}
    for key in zip(radius.tolist(), height.tolist(), strict=True):
        rings[key] = rings.get(key, 0) + 1
    points = bellows_points(13e-3, 8e-3, 14e-3, 2, 8e-3, 5e-3, 1e-3)
    for r, y in points[2:-1]:
        assert rings[round(r * 1e6), round(y * 1e6)] >= around // 2
    assert folds.upward.sum() < len(folds.vertices)
    assert np.isin(folds.vertices, fold_vertices(folds, surface.triangles)).all()


def test_folds_never_pass_each_other_and_do_where_they_are_not_looked_for():
    """A step of 0.1 mm, the contact distance, cannot leap over half of it unseen; gaps are linear within a
    step, and a surface that turns meanwhile may come nearer by less than that."""
    suction, _, gaps = pressed(12e-3)
    own = suction.rows.with_itself()
    assert (suction.r.reshape(-1, 3)[own, 0] > 0.0).sum() > 8, "or the test shows nothing"
    assert gaps.min() > 0.5 * KEPT
    _, _, free = pressed(12e-3, folds=False)
    assert free.min() < 0.2 * KEPT


def test_bellows_are_soft_until_their_folds_meet_and_stiffer_by_far_from_there():
    _, force, gaps = pressed(12e-3)
    _, without, _ = pressed(12e-3, folds=False)
    met = int(np.argmax(gaps < 1.5 * KEPT))
    assert 20 < met < 85
    # while nothing touches, what is looked for changes nothing
    assert np.abs(force[: met - 5] - without[: met - 5]).max() < 1e-6 * np.abs(without).max()
    soft = np.polyfit(np.arange(10), force[met - 15 : met - 5], 1)[0]
    hard = np.polyfit(np.arange(5), force[-5:], 1)[0]
    assert hard > 5.0 * soft
    assert force[-1] > 1.5 * without[-1]


def test_forces_of_folds_sum_to_zero_and_turn_nothing_but_by_the_gap_s_own_lever():
    suction, _, _ = pressed(12e-3)
    own, side, c = suction.rows.with_itself(), suction.cups[0], suction.contacts
    k = suction.solved[own]
    assert (c.body[k] == 0).all() and len(k) > 8
    x = np.zeros(len(suction.problem[1]))
    rows = (3 * np.flatnonzero(own)[:, None] + np.arange(3)).ravel()
    x[rows] = np.random.default_rng(1).standard_normal(rows.size)
    pushed = side.push(np.concatenate([x, np.zeros(len(suction.rows.springs.fields))]))
    size = np.abs(pushed).sum()
    assert np.abs(pushed.sum(axis=0)).max() < 1e-12 * size
    at = side.body.x
    force = np.einsum("ka,kai->ki", x[rows].reshape(-1, 3), c.frame[k])
    lever = sum(
        sign * np.einsum("kj,kji->ki", c.weights[k, s], at[c.slots[k, s]])
        for s, sign in ((0, 1.0), (1, -1.0))
    )
    turning = np.cross(at, pushed).sum(axis=0)
    np.testing.assert_allclose(turning, np.cross(lever, force).sum(axis=0), atol=1e-12 * size)
    # at the step's end they are the contact distance apart
    assert np.linalg.norm(lever, axis=1).min() > 0.5 * KEPT
    assert np.median(np.linalg.norm(lever, axis=1)) < 5.0 * KEPT


def test_w_of_contacts_with_itself_is_how_the_body_yields_to_their_forces():
    suction, drives = scene()
    for _ in range(110):
        for drive in drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
    suction.move_freely()
    suction.detect()
    w, _ = suction.assemble()
    own, side = suction.rows.with_itself(), suction.cups[0]
    assert own.sum() > 8
    np.testing.assert_allclose(w, w.T, atol=1e-12 * np.abs(w).max())
    rng = np.random.default_rng(2)
    x = np.zeros(len(w))
    x[: 3 * len(own)] = rng.standard_normal(3 * len(own))
    all_rows = np.concatenate([x, np.zeros(len(suction.rows.springs.fields))])
    moved = suction.rows.moved(side.answer(all_rows, suction.h), 0, suction.h)[: len(w)]
    np.testing.assert_allclose(
        (w @ x)[: 3 * len(own)], moved[: 3 * len(own)], atol=2e-4 * np.abs(moved).max()
    )


def test_a_contact_with_itself_lies_on_the_cup_and_others_on_the_partner():
    suction, _, _ = pressed(12e-3)
    own, places, side = suction.rows.with_itself(), suction.rows.places(), suction.cups[0]
    assert np.abs(places[~own, 1]).max() < 1e-9
    near = np.linalg.norm(places[own, None] - side.local[side.folds.vertices], axis=2).min(axis=1)
    assert near.max() < 2.5e-3 and places[own, 1].min() > 1e-3


def test_contacts_with_itself_share_no_force_with_others():
    n = 12
    itself = np.arange(n) % 3 == 0
    zero, axes = np.zeros(3 * n), np.tile(np.eye(3), (n, 1, 1))
    w = np.diag(np.repeat(np.where(itself, 2.0, 1.0), 3))
    held = HeldProblem(
        w, zero, zero, np.zeros((3 * n, 6)), np.eye(6), np.zeros(6), np.zeros(6), np.where(itself, 0.2, 0.6),
        np.random.default_rng(3).standard_normal((n, 3)) * 1e-2, axes, zero, np.zeros(0, bool), np.zeros(0),
        np.zeros(0), np.zeros((1, 1)), itself,
    )  # fmt: skip
    for most in (2, 4, 7):
        part = grouped(held, most)
        assert len(part.mu) <= most
        # a mean over both kinds would be neither
        assert np.isin(np.round(part.mu, 12), [0.2, 0.6]).all()
    assert len(set(np.round(grouped(replace(held, itself=None), 4).mu, 12)) - {0.2, 0.6}) > 0


@pytest.mark.parametrize("stretch", [1.0, 1.3, 1.6, 2.0, 3.0])
def test_bellows_that_are_drawn_apart_do_not_touch_themselves(stretch):
    """However far contacts are looked for: what a vertex may meet is seen from behind around corners."""
    surface = bellows()
    folds, n = find_folds(surface), np.arange(len(surface.vertices), dtype=np.int32)
    contacts = make_contacts(2 * len(n))
    look_at_folds(folds, target(surface).surface, surface.vertices * [1.0, stretch, 1.0], 1e-2)
    add_folds(folds, Pair(0, 0.6, 1e-2, KEPT, np.eye(3)), n, n, surface.triangles, 0, contacts)
    count = int(contacts.count["found"][0])
    assert count > 0 and contacts.gap[:count].min() > 0.0
