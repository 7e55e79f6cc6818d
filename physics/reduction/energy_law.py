"""What a body of tetrahedra may keep of a shape that a linear model has brought it to.

A model is linear about the shape of its frame, and knows the energy of the body only as far as the shape has
not changed much: where elements turn or are crushed within a frame, the shape that it ends with may hold a
hundred times the energy that there was. Only forces can give a body energy; so it keeps of that shape, and of
its motion, what the energy before and the work of the forces allow.

It is led there by steps of statics: x + t d and v - t (v - v_T), with K d = f and T the rigid motion. Each
takes what is too much: the energy falls by G (t - t^2 / 2), G = f d + (v - v_T) M (v - v_T), where K and body
are linear. Of a body that is deformed a little, d leads to its shape at rest. Of one that is folded it does
not, nor would any straight way, on which elements that have turned are crushed. Where STEPS are not enough,
since they are crushed already, it is led back to the shape that it had before and goes on from there; and
from its shape at rest at last. Centre, momentum and angular momentum stay. This is energy projection (Dinev
et al., FEPR: Fast Energy Projection for Real-time Simulation of Deformable Objects, ACM TOG 37, 2018) along
lines on which a solution exists.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.bodies.soft_points import rigid_motions
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.reduction.rational_krylov import best_rotation

Floats = NDArray[np.float64]

MOST_TRIALS = 20
"""Points of a way that are tried; the energy is almost quadratic along it, so two or three do. Each aims four
times as far below the bound as the one before, from a rounding on: of a body that rests, whose energy is a
little too much, that little is taken and nothing that a hand could feel."""

STEPS = 8
"""Of statics, before a body is led to rest."""

ROUNDING = 1e-9
"""Share of an energy, potential and all, by which it may exceed its bound."""


class _State(NamedTuple):
    x: Floats  # (free nodes, 3) [m]
    v: Floats  # (free nodes, 3) [m/s]


def keep_energy(
    body: SoftBody, statics: Callable[[], Floats], shapes: Sequence[Floats], most: float
) -> float:
    """The share of its present state that a body keeps so that its energy [J] does not exceed `most`.

    statics: d = K^-1 f of its present shape (free nodes, 3) [m]. shapes, each (free nodes, 3) [m]: those that
    it may be led back to, about their centre of mass where the body floats; at rest the last. 1.0 where the
    energy is within the bound, else 1 - t or s, the product of all. Not even rest brings it below the energy
    of the rigid motion alone.
    """
    now, kept = body.energy(), 1.0
    rounding = ROUNDING * (abs(now) + abs(most))
    for shape in (None, *shapes):
        if shape is not None:
            kept *= _led_back(body, shape, now, most, rounding)
            now = body.energy()
        for step in range(STEPS):
            if now <= most + rounding:
                return kept
            now, share = _led_by_statics(body, statics(), now, most - 4.0**step * rounding)
            kept *= share
    return kept


def _led_by_statics(body: SoftBody, d: Floats, now: float, aim: float) -> tuple[float, float]:
    """A step that takes what the energy, now, is above `aim` [J], or less; the energy then, and 1 - t."""
    begun, motion, momentum = _State(body.x[body.free], body.v.reshape(-1, 3)), np.zeros((1, 3)), np.zeros(3)
    if body.rides:
        centre, velocity, spin, inertia = body.rigid_state()
        arm, momentum = begun.x - centre, inertia @ spin
        rigid = rigid_motions(arm)
        heavy = np.repeat(body.mass_free, 3)[:, None] * rigid
        d = d - (rigid @ np.linalg.solve(rigid.T @ heavy, heavy.T @ d.ravel())).reshape(-1, 3)
        motion = velocity + cross_rows(spin, arm)
    led = (begun.v - motion).ravel()
    slope = float(body.undamped_force() @ d.ravel() + led @ (body.M @ led))
    share = float(np.sqrt(max(0.0, 1.0 - 2.0 * (now - aim) / max(slope, 1e-300))))
    for _ in range(MOST_TRIALS):
        _put(body, begun, _State(begun.x + d, np.broadcast_to(motion, begun.v.shape)), share, momentum)
        energy = body.energy()
        if energy < now:
            return energy, share
        share = 1.0 - 0.25 * (1.0 - share)
    return now, share


def _led_back(body: SoftBody, shape: Floats, now: float, most: float, rounding: float) -> float:
    """The share of the way from a shape, in its rigid motion, where the energy is `most` [J] at most."""
    _, _, spin, inertia = body.rigid_state() if body.rides else (np.zeros((3, 3)),) * 4
    momentum = inertia @ spin
    begun, share = _State(body.x[body.free], body.v.reshape(-1, 3)), 1.0
    aim = _rigid(body, shape)
    _put(body, begun, aim, 0.0, momentum)
    least = body.energy()
    for trial in range(MOST_TRIALS):
        aim_at = most - 4.0**trial * rounding
        share *= float(np.sqrt(max(0.0, aim_at - least) / max(now - least, 1e-300)))
        _put(body, begun, aim, share, momentum)
        now = body.energy()
        if now <= max(most, least) + rounding:
            break
    return share


def _rigid(body: SoftBody, shape: Floats) -> _State:
    """The body in that shape, in the rigid motion that it has: `_put` adds the spin."""
    if not body.rides:
        return _State(shape, np.zeros_like(shape))
    centre, velocity = body.rigid_state()[:2]
    axes = best_rotation(shape, body.x[body.free] - centre, body.mass_free)
    return _State(centre + shape @ axes.T, np.tile(velocity, (len(shape), 1)))


def _put(body: SoftBody, state: _State, aim: _State, share: float, momentum: Floats) -> None:
    """The body where `share` of the way from `aim` to `state` leads, with that angular momentum (3,)."""
    x, v = (a + share * (b - a) for a, b in zip(aim, state, strict=True))
    body.x[body.free], body.v = x, v.ravel()
    if body.rides:
        spin_as(body, momentum)


def spin_as(body: SoftBody, momentum: Floats) -> None:
    """Turn a floating body so that its angular momentum about its centre is `momentum` (3,) [kg m2/s]."""
    centre, _, spin, inertia = body.rigid_state()
    more = np.asarray(np.linalg.solve(inertia, momentum - inertia @ spin), np.float64)
    body.v = body.v + cross_rows(more, body.x[body.free] - centre).ravel()
