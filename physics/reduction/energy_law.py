"""What a body of tetrahedra may keep of a shape that a linear model has brought it to.

A model is linear about the shape of its frame, and knows the energy of the body only as far as the shape has
not changed much: where elements turn or are crushed within a frame, the shape that it ends with may hold a
hundred times the energy that there was. Only forces can give a body energy; so it keeps of that shape, and of
its motion, what the energy before and the work of the forces allow.

The states between are x_T + s (x - x_T), v_T + s (v - v_T), where T is the body as at rest but for its rigid
motion. Centre, momentum and angular momentum are those of the whole state for every s. With s falls all
energy that is not that of T, elastic as well as kinetic. This is energy projection (Dinev et al., FEPR: Fast
Energy Projection for Real-time Simulation of Deformable Objects, ACM TOG 37, 2018) along a line on which a
solution always exists.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.reduction.rational_krylov import best_rotation

Floats = NDArray[np.float64]

MOST_TRIALS = 20
"""Shares s that are tried; the energy is almost quadratic in s, so two or three do. Each aims four times as
far below the bound as the one before, from a rounding on: of a body that rests, whose energy is a little too
much, that little is taken and nothing that a hand could feel."""

ROUNDING = 1e-9
"""Share of an energy, potential and all, by which it may exceed its bound."""


def keep_energy(body: SoftBody, rest: Floats, most: float) -> float:
    """The share s of its present state that a body keeps so that its energy [J] does not exceed `most`.

    rest (free nodes, 3) [m]: positions at rest, about their centre of mass where the body floats. 1.0 where
    the energy is within the bound. Not even s = 0 brings it below that of the rigid motion alone.
    """
    now = body.energy()
    rounding = ROUNDING * (abs(now) + abs(most))
    if now <= most + rounding:
        return 1.0
    _, _, spin, inertia = body.rigid_state() if body.rides else (np.zeros((3, 3)),) * 4
    momentum = inertia @ spin
    start = _State(body.x[body.free], body.v.reshape(-1, 3))
    aim = _at_rest(body, rest)
    _put(body, start, aim, 0.0, momentum)
    least, share = body.energy(), 1.0
    for trial in range(MOST_TRIALS):
        aim_at = most - 4.0**trial * rounding
        share *= float(np.sqrt(max(0.0, aim_at - least) / max(now - least, 1e-300)))
        _put(body, start, aim, share, momentum)
        now = body.energy()
        if now <= max(most, least) + rounding:
            break
    return share


class _State(NamedTuple):
    x: Floats  # (free nodes, 3) [m]
    v: Floats  # (free nodes, 3) [m/s]


def _at_rest(body: SoftBody, rest: Floats) -> _State:
    """The body undeformed, in the rigid motion that it has: `_put` adds the spin."""
    if not body.rides:
        return _State(rest, np.zeros_like(rest))
    centre, velocity = body.rigid_state()[:2]
    axes = best_rotation(rest, body.x[body.free] - centre, body.mass_free)
    return _State(centre + rest @ axes.T, np.tile(velocity, (len(rest), 1)))


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
