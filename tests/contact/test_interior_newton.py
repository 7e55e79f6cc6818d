"""Directions of the interior point: Newton's on Coulomb's cones, and Mehrotra's predictor and corrector."""

import numpy as np
import pytest

from palpo.physics.contact.solvers.interior_point import (
    BACK,
    CONTINUE,
    LONG,
    advance,
    begin,
    make_interior,
)
from tests.contact.stored import stored

pytestmark = pytest.mark.portable

RIDGE = 0.1
ROUNDING = 1e-8
"""Of a factorisation, against the largest term that is cancelled."""


def product(x, y):
    """The cones' Jordan product x o y = (x . y, x_n y_t + y_n x_t), contact by contact."""
    x, y = x.reshape(-1, 3), y.reshape(-1, 3)
    along = (x * y).sum(axis=1)
    return np.column_stack([along, x[:, :1] * y[:, 1:] + y[:, :1] * x[:, 1:]])


def longest(x, d):
    """The longest step t at most 1 / BACK with x + t d in all unit cones, by bisection: they are convex."""
    x, d, low, high = x.reshape(-1, 3), d.reshape(-1, 3), 0.0, 1.0 / BACK

    def inside(t):
        return (x[:, 0] + t * d[:, 0] >= np.hypot(*(x + t * d)[:, 1:].T)).all()

    for _ in range(0 if inside(high) else 60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low if not inside(high) else high


@pytest.mark.parametrize("name", ["easy.npz", "soft_on_soft.npz", "high_friction.npz"])
def test_steps_are_newtons_and_are_centred_by_the_cube_of_what_the_predictor_leaves(name):
    """x o dy + dx o y + x o y = target, less dx o dy of the predictor; dy is what the displacement with its
    shift becomes, to first order, plus the ridge; target = gap (gap after the predictor / gap)^3 (Mehrotra).
    """
    problem, corrected = stored(name), 0
    n, mu = problem.n_contacts, problem.mu
    assert (mu > 0.0).all()
    a = make_interior(problem.w, n)
    begin(problem.w, problem.b, mu, RIDGE, False, a)
    scale, unit = a.scale.copy(), a.state["unit"].item()

    def shifted(x, gap):
        u = (scale * (problem.w @ (scale * x) + problem.b) / unit).reshape(-1, 3)
        u[:, 0] += (u[:, 1] ** 2 + u[:, 2] ** 2 + gap * gap) ** 0.5
        return u.ravel()

    for _ in range(100):
        x, y = a.x.copy(), a.y.copy()
        gap = x @ y / n
        if advance(problem.w, problem.b, mu, 1e-6, np.inf, 1, a) != CONTINUE:
            break
        first, second = zip(a.dx[:2].copy(), a.dy[:2].copy(), strict=True)
        parts = [product(x, y), product(x, first[1]), product(first[0], y)]
        np.testing.assert_allclose(sum(parts), 0.0, atol=ROUNDING * np.abs(parts).max())
        # the derivative along dx, exact to rounding by a step of 1e-30 along the imaginary axis
        slope = shifted(x + 1e-30j * first[0], gap).imag / 1e-30
        lack = shifted(x, gap) - y
        expected = slope + RIDGE * gap**0.5 * first[0] + lack
        np.testing.assert_allclose(first[1], expected, atol=ROUNDING * np.abs(slope).max())
        step = (a.x - x) @ second[0] / (second[0] @ second[0])
        if step < LONG or not np.allclose(
            a.x - x, step * second[0], rtol=0.0, atol=1e-12 * np.abs(a.x).max()
        ):
            continue  # what was taken is no plain corrector
        corrected += 1
        parts = [product(x, y), product(x, second[1]), product(second[0], y), product(*first)]
        target = sum(parts)
        predicted = BACK * min(longest(x, first[0]), longest(y, first[1]))
        after = (x + predicted * first[0]) @ (y + predicted * first[1]) / n
        size = ROUNDING * np.abs(parts).max()
        np.testing.assert_allclose(target[:, 1:], 0.0, atol=size)
        np.testing.assert_allclose(target[:, 0], gap * (after / gap) ** 3, atol=size)
        assert gap * (after / gap) ** 3 > 10.0 * size or gap < 1e-3, "or rounding hides the target"
    assert corrected > 0
