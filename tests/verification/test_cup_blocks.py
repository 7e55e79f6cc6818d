"""Several cups on one rigid partner: their blocks and its six motions are the whole problem, to rounding."""

import numpy as np
import pytest

from palpo.app.systems.suction.build import build
from palpo.config.load import load_scene
from palpo.physics.contact.solvers.joined_blocks import (
    Springs,
    make_blocks,
    offset_joined,
    pack,
    places_of,
    sweep_joined,
    whole,
)
from palpo.physics.systems.suction.loop import SLOWEST_HZ
from palpo.physics.systems.suction.step import STOP

rng = np.random.default_rng(5)
SPAN = np.array([0, 4, 4, 9, 12])
"""Cups of 4, 0 and 5 contacts, and 3 of the ground."""
K = 3


OF = np.array([2, 0, 2])
"""Blocks whose borders have a spring each."""


def springs(half):
    """Springs on borders, and what all rows yield to them (N, 3)."""
    own = np.zeros((len(half), len(OF)))
    for j, c in enumerate(OF):
        own[3 * SPAN[c] : 3 * SPAN[c + 1], j] = rng.standard_normal(3 * (SPAN[c + 1] - SPAN[c]))
    partner, a = rng.standard_normal((6, len(OF))), rng.standard_normal((len(OF), len(OF)))
    return Springs(OF, own, partner, 0.01 * a @ a.T), own + half @ partner


def problem(sprung):
    """W of blocks with the partner's six motions and springs between them, and of K cavities; b, mu, a force.

    The second W is made as one."""
    n = 3 * int(SPAN[-1])
    half = 0.1 * rng.standard_normal((n, 6))
    between, dense = None, np.zeros((n + K, n + K))
    for lo, hi in zip(3 * SPAN[:-1], 3 * SPAN[1:], strict=True):
        a = rng.standard_normal((hi - lo, hi - lo))
        dense[lo:hi, lo:hi] = a @ a.T
    dense[:n, :n] += half @ half.T
    if sprung:
        between, yields = springs(half)
        dense[:n, :n] -= yields @ between.weight @ yields.T
    dense[n:] = rng.standard_normal((K, n + K))
    dense[n:, n:] += dense[n:, n:].T.copy()
    dense[:n, n:] = dense[n:, :n].T
    w = dense.copy()
    for lo, hi in zip(3 * SPAN[:-1], 3 * SPAN[1:], strict=True):
        w[lo:hi, :lo] = w[lo:hi, hi:n] = np.nan
    blocks = make_blocks(SPAN, half, between)
    x = rng.standard_normal(n + K)
    x[:n:3] = np.abs(x[:n:3])
    return w, dense, rng.standard_normal(n + K), x, blocks


@pytest.mark.parametrize("sprung", [False, True])
def test_blocks_and_what_stands_between_them_are_the_whole(sprung):
    w, dense, _, _, blocks = problem(sprung)
    found = whole(w, blocks)
    np.testing.assert_allclose(found, dense, rtol=0, atol=1e-12 * np.abs(dense).max())


@pytest.mark.parametrize("sprung", [False, True])
def test_displacements_of_blocks_are_those_of_the_whole(sprung):
    w, dense, b, x, blocks = problem(sprung)
    u = np.empty_like(b)
    offset_joined(w, b, x, u, blocks)
    np.testing.assert_allclose(u, dense @ x + b, rtol=0, atol=1e-12 * np.abs(u).max())


def packed(w, blocks):
    """The same blocks in single precision; nothing of W may be read in their place."""
    place = places_of(blocks.span)
    single = np.empty(place[-1], np.float32)
    for c in range(len(place) - 1):
        pack(w, blocks.span[c : c + 2], single[place[c] : place[c + 1]])
        lo, hi = 3 * blocks.span[c], 3 * blocks.span[c + 1]
        w[lo:hi, lo:hi] = np.nan
    return blocks._replace(single=single)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("sprung", [False, True])
def test_a_sweep_over_blocks_visits_what_a_sweep_over_the_whole_visits(sprung, single):
    """Gauss-Seidel in plain NumPy on the whole matrix; a block that hands on late, or twice, is caught."""
    w, dense, b, x, blocks = problem(sprung)
    n, mu = 3 * int(SPAN[-1]), np.full(int(SPAN[-1]), 0.7)
    diagonal = dense.diagonal()[:n].reshape(-1, 3)
    step = np.stack([1.0 / diagonal[:, 0], 1.0 / diagonal[:, 1:].max(axis=1)], axis=1)
    expected = x.copy()
    for i in range(0, n, 3):
        u = dense[i : i + 3] @ expected + b[i : i + 3]
        normal = max(0.0, expected[i] - step[i // 3, 0] * u[0])
        u += dense[i : i + 3, i] * (normal - expected[i])
        slip = expected[i + 1 : i + 3] - step[i // 3, 1] * u[1:]
        slip *= min(1.0, mu[0] * normal / max(np.hypot(*slip), 1e-300))
        expected[i : i + 3] = normal, *slip
    u, before = np.empty_like(b), np.empty(n)
    offset_joined(w, b, x, u, blocks)
    sweep_joined(w, mu, x, u, step, before, packed(w, blocks) if single else blocks)
    # single precision has 6e-8 an entry, and a sweep goes through some ten contacts
    rounding = 1e-5 if single else 1e-10
    np.testing.assert_allclose(x, expected, rtol=0, atol=rounding * np.abs(expected).max())
    np.testing.assert_allclose(u, dense @ expected + b, rtol=0, atol=rounding * np.abs(u).max())


def gripper(whole_rows, steps=70):
    """A gripper after so many steps, its pump at work; its forces, pressures and place."""
    spec = load_scene("suction-gripper", [f"bodies.{i}.geometry.resolution=76" for i in range(4)])
    made = build(spec)
    suction = made.suction
    if whole_rows:
        suction.rows.spans = lambda: np.array([0, len(suction.solved)])
    for _ in range(steps):
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
    found = suction.r.copy(), suction.pressure.copy(), suction.partner.body.x.copy()
    w, b = suction.problem
    sprung = suction.rows.springs
    assert len(sprung.fields) == 3, "the borders of three cups move"
    suction.close()
    return *found, w.copy(), b.copy()


def test_a_step_of_a_gripper_is_the_same_by_blocks_and_as_one():
    by_blocks, as_one = gripper(False), gripper(True)
    assert len(by_blocks[1]) == 3, "three cups shut air in"
    assert (by_blocks[0][::3] > 0.0).sum() > 20, "and press"
    for of_blocks, of_one in zip(by_blocks, as_one, strict=True):
        # forces are solved to 1e-6
        np.testing.assert_allclose(of_blocks, of_one, rtol=0, atol=1e-5 * np.abs(of_one).max())


@pytest.mark.parametrize(("valve", "lifted"), [("[[0, true], [1.2, false]]", True), ("[[0, true]]", False)])
def test_a_gripper_lifts_only_once_what_leaks_is_shut(valve, lifted):
    """Against a line of 2 mm in the open, 6 l/min hold 0.27 kPa: 0.1 N on each cup, for a plate of 2 N."""
    spec = load_scene(
        "suction-gripper",
        [f"bodies.high.line.valve={valve}", *(f"bodies.{i}.geometry.resolution=76" for i in range(4))],
    )
    made = build(spec)
    suction = made.suction
    start = suction.partner.body.x[0, 1]
    while suction.time < 3.0:
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
    rise = suction.partner.body.x[0, 1] - start
    suction.close()
    assert (rise > 0.02) == lifted and (lifted or abs(rise) < 1e-3)


def test_a_step_of_the_longest_is_solved():
    """Sweeps alone leave one in four above the tolerance, some a thousand times: where they stop decided
    what a pump holds. Newton's method ends them; one in twenty may have contacts that change places."""
    made = build(load_scene("suction-gripper"))
    suction, left = made.suction, []
    suction.take_step(1.0 / SLOWEST_HZ)
    while suction.time < 3.0:
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
        left.append(suction.solver.told["residual"][0])
    suction.close()
    assert np.quantile(left, 0.95) <= STOP.tolerance


@pytest.mark.parametrize("lengths", [(0.05,), (0.08,), (0.1, 0.01, 0.032)])
def test_a_gripper_holds_its_plate_in_steps_of_any_length_until_it_is_vented(lengths):
    """With borders that stay where a step began it goes as it is lifted, in steps of 80 ms."""
    made = build(load_scene("suction-gripper"))
    suction, k = made.suction, 0
    start = suction.partner.body.x[0, 1]
    while suction.time < 3.3:
        suction.take_step(lengths[k % len(lengths)])
        for drive in made.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
        k += 1
    rise = suction.partner.body.x[0, 1] - start
    suction.close()
    # the frame rises by 23.5 mm and the cups give by what they were pressed, 3.5 mm, at most
    assert 0.02 < rise < 0.027
