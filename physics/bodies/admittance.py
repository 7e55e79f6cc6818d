"""A rigid plug held by admittance control, under the passive midpoint rule (002, II-B; EQUATIONS.md, 3).

The controller gives the plug a chosen mass, damping and stiffness against a target pose that moves:

    M_ad V' + D_ad (V - W) + K_ad e = F,   e = (p - p_t, log(q q_t^-1)),   e' = V - W

V and W are the velocities of plug and target, F every wrench besides the hold, all in world axes about the
plug's origin, like the constant M_ad, D_ad, K_ad. With W the target's mean velocity over the step,

    Mh V = F + 2 M_ad V_k / T - K_ad e_k + (D_ad + K_ad T / 2) W,   Mh = 2 M_ad / T + D_ad + K_ad T / 2   (5)

at the middle of the step, where (5) as printed leaves out the K_ad T / 2 that makes it passive. The hold
pulls at the target with h = D_ad (V - W) + K_ad eh, eh = e_k + T (V - W) / 2, so that moving the target
costs -T h.W, and in each step

    E_k+1 - E_k = T F.V - T h.W - T (V - W).D_ad (V - W),   E = 1/2 V.M_ad V + 1/2 e.K_ad e              (6)

to rounding, at any step and turning. That is because the error e is what is integrated, and the pose
follows from it: e_k+1 = e_k + T (V - W), whose turning part is then turned along with plug and target by
T (V + W) / 2, at no cost where the hold is equally stiff about all axes; p = p_t + e, q = exp(e) q_t.

What is approximate is how the plug turns: e' = V - W + (V + W) x e / 2 is log(q q_t^-1)' but for
e x (e x (V - W)) / 12. The plug's angular velocity is V to second order in the angle of the error, which a
hold keeps small, and an angle beyond pi is wound up and not lost. M_ad does not turn with the plug.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.passive_midpoint import refined_inverse, require_step
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_difference, quat_normalise, rotate_by, turn_vector

WORK = np.dtype([("forces", np.float64), ("target", np.float64), ("damping", np.float64)])
"""[J] since the start: done on the plug by F, on the hold by the target, dissipated in D_ad."""


class PlugModel(NamedTuple):
    """Constants of the hold; freedoms are (x, y, z, turns about x, y, z), world axes."""

    step: float  # T [s]
    mass: NDArray[np.float64]  # (6, 6) M_ad [kg, kg m2]
    damping: NDArray[np.float64]  # (6, 6) D_ad [N s/m, N m s]
    stiffness: NDArray[np.float64]  # (6, 6) K_ad [N/m, N m]
    inverse: NDArray[np.float64]  # (6, 6) Mh^-1: velocity at the middle per wrench
    follow: NDArray[np.float64]  # (6, 6) D_ad + K_ad T / 2


class PlugState(NamedTuple):
    """Pose and motion of the plug and of its target, and the books of a run."""

    position: NDArray[np.float64]  # (3,) [m]
    orientation: NDArray[np.float64]  # (4,) body to world
    velocity: NDArray[np.float64]  # (6,) V_k [m/s, rad/s]
    target_position: NDArray[np.float64]  # (3,) at the end of the present step
    target_orientation: NDArray[np.float64]  # (4,)
    target_velocity: NDArray[np.float64]  # (6,) W of the present step
    error: NDArray[np.float64]  # (6,) e_k [m, rad]
    load: NDArray[np.float64]  # (6,) F given to plug_free [N, N m]
    free: NDArray[np.float64]  # (6,) V at the middle under that load alone
    middle: NDArray[np.float64]  # (6,) V at the middle, contact included
    work: NDArray[np.void]  # (1,) of WORK


def make_plug(
    mass: ArrayLike,
    damping: ArrayLike,
    stiffness: ArrayLike,
    step: float,
    position: ArrayLike = (0.0, 0.0, 0.0),
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
) -> tuple[PlugModel, PlugState]:
    """A plug at rest on its target. mass, damping, stiffness: (6,) diagonals or (6, 6); step: T [s].

    Raises InputError unless the mass is positive definite, damping and stiffness are semidefinite, and the
    stiffness against turning is the same about all axes.
    """
    require_step(step)
    M, D, K = _gain("mass", mass, True), _gain("damping", damping), _gain("stiffness", stiffness)
    if K[3:, :3].any() or not np.array_equal(K[3:, 3:], K[3, 3] * np.eye(3)):
        raise InputError(
            f"the plug's stiffness against turning is {K[3:].tolist()}, expected the same about all axes."
        )
    T = np.longdouble(step)
    Mh = 2 / T * M.astype(np.longdouble) + D + T / 2 * K.astype(np.longdouble)
    model = PlugModel(float(step), M, D, K, refined_inverse(Mh), D + 0.5 * step * K)
    p, q = np.array(position, dtype=np.float64), np.array(orientation, dtype=np.float64)
    quat_normalise(q)
    six = [np.zeros(6) for _ in range(6)]
    velocity, target_velocity, error, load, free, middle = six
    return model, PlugState(
        p, q, velocity, p.copy(), q.copy(), target_velocity, error, load, free, middle, np.zeros(1, WORK)
    )


@kernel
def _multiply(a, x, out):
    for i in range(6):
        out[i] = 0.0
        for j in range(6):
            out[i] += a[i, j] * x[j]


@kernel
def _form(a, x, y):
    """x.(a y)"""
    total = 0.0
    for i in range(6):
        for j in range(6):
            total += x[i] * a[i, j] * y[j]
    return total


@kernel
def plug_free(model, state, target_position, target_orientation, load):
    """`state.free`, the velocity at the middle of a step in which the target goes to the given pose.

    target_position (3,) [m], target_orientation (4,), load (6,): wrench besides contact [N, N m].
    """
    T, W, e = model.step, state.target_velocity, state.error
    quat_difference(target_orientation, state.target_orientation, W[3:])
    for i in range(3):
        W[i] = (target_position[i] - state.target_position[i]) / T
        W[3 + i] /= T
        state.target_position[i] = target_position[i]
    for i in range(4):
        state.target_orientation[i] = target_orientation[i]
    b = state.middle
    for i in range(6):
        state.load[i] = load[i]
        b[i] = load[i]
        for j in range(6):
            b[i] += 2.0 / T * model.mass[i, j] * state.velocity[j]
            b[i] += model.follow[i, j] * W[j] - model.stiffness[i, j] * e[j]
    _multiply(model.inverse, b, state.free)


@kernel
def plug_advance(model, state, wrench):
    """End the step that `plug_free` began, with the contact wrench (6,) [N, N m] about the plug's origin."""
    T = model.step
    V, W, e = state.middle, state.target_velocity, state.error
    _multiply(model.inverse, wrench, V)
    for i in range(6):
        V[i] += state.free[i]
        state.work[0].forces += T * V[i] * (state.load[i] + wrench[i])
    relative = state.free
    for i in range(6):
        relative[i] = V[i] - W[i]
        e[i] += 0.5 * T * relative[i]
    state.work[0].damping += T * _form(model.damping, relative, relative)
    state.work[0].target -= T * (_form(model.damping, W, relative) + _form(model.stiffness, W, e))
    for i in range(6):
        e[i] += 0.5 * T * relative[i]
        state.velocity[i] = 2.0 * V[i] - state.velocity[i]
    turn = relative[:3]
    for i in range(3):
        turn[i] = 0.5 * T * (V[3 + i] + W[3 + i])
    turn_vector(turn, e[3:])
    for i in range(3):
        state.position[i] = state.target_position[i] + e[i]
    for i in range(4):
        state.orientation[i] = state.target_orientation[i]
    rotate_by(e[3:], state.orientation)


@kernel
def plug_energy(model, state):
    """E of (6): kinetic energy of the plug plus energy of the hold [J]."""
    kinetic = 0.5 * _form(model.mass, state.velocity, state.velocity)
    return kinetic + 0.5 * _form(model.stiffness, state.error, state.error)


def _gain(name: str, value: ArrayLike, positive: bool = False) -> NDArray[np.float64]:
    """A (6, 6) matrix from its diagonal or itself."""
    a = np.array(value, dtype=np.float64)
    a = np.diag(a) if a.shape == (6,) else a
    expected = "positive definite" if positive else "positive semidefinite"
    if a.shape != (6, 6) or not np.isfinite(a).all() or not np.array_equal(a, a.T):
        raise InputError(f"the plug's {name} must be six numbers or a symmetric {expected} (6, 6) matrix.")
    least = np.linalg.eigvalsh(a)[0]
    if least < 0.0 or (positive and least == 0.0):
        raise InputError(f"the plug's {name} has the eigenvalue {least:.3g} but must be {expected}.")
    return a
