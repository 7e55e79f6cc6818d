"""Orders of convergence: tetrahedral cantilever to beam theory, corotational beam to the elastica."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from palpo.physics.bodies.chain_body import BeamBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.mesh.beam import BeamLine

STILL = (0.0, 0.0, 0.0)


def tet_cantilever_tip(refinement: int) -> float:
    """Deflection [m] of the end of a block 0.4 x 0.1 x 0.1 m under a transverse end load of 1 N."""
    k = refinement
    mesh = generate.block((0.4, 0.1, 0.1), (4 * k, k, k))
    left, right = mesh.nodes[:, 0].min(), mesh.nodes[:, 0].max()
    # without lateral contraction the clamp adds no stress concentration of its own to beam theory
    body = SoftBody(
        "block", mesh, Material(1e6, 0.0, 1000.0), np.flatnonzero(mesh.nodes[:, 0] < left + 1e-9), STILL
    )
    faces = mesh.surface().triangles
    end = faces[(mesh.nodes[faces][:, :, 0] > right - 1e-9).all(axis=1)]
    areas = 0.5 * np.linalg.norm(
        np.cross(
            mesh.nodes[end[:, 1]] - mesh.nodes[end[:, 0]], mesh.nodes[end[:, 2]] - mesh.nodes[end[:, 0]]
        ),
        axis=1,
    )
    weights = np.bincount(end.ravel(), np.repeat(areas / 3.0, 3), minlength=len(mesh.nodes)) / areas.sum()
    load = np.zeros((len(mesh.nodes), 3))
    load[:, 1] = weights
    # A_h / h^2 = K + M / h^2 with a step so long that inertia is 1e-12 of it
    h = 1e6
    u = h * h * body.factor(h).solve(load[body.free].ravel())
    return float(u.reshape(-1, 3)[:, 1] @ weights[body.free])


def test_tet_cantilever_converges_to_beam_theory_at_second_order():
    length, side, e = 0.4, 0.1, 1e6
    shear_modulus, shear_factor = e / 2.0, 5.0 / 6.0
    theory = length**3 / (3 * e * side**4 / 12) + length / (shear_factor * shear_modulus * side**2)
    tips = np.array([tet_cantilever_tip(k) for k in (2, 4, 8)])
    # linear elements are too stiff, so the work of the load grows toward the limit
    assert np.all(np.diff(tips) > 0.0)
    errors = 1.0 - tips / theory
    orders = np.log2(errors[:-1] / errors[1:])
    # energy is second order; the edges of the clamp, where the stress is singular, and the coarse mesh take
    # from it
    assert orders[-1] > 1.6
    assert orders[-1] < 2.2
    # Richardson's limit against Timoshenko, itself an approximation of the order of (side / length)^2 / 10
    limit = tips[-1] + (tips[-1] - tips[-2]) / 3.0
    assert limit == pytest.approx(theory, rel=0.02)


def elastica_tip(alpha: float) -> tuple[float, float]:
    """End point (x, y) over L of an inextensible cantilever under a dead end load, alpha = P L^2 / E I."""

    def shoot(curvature: float):
        return solve_ivp(
            lambda s, y: [y[1], -alpha * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])],
            (0.0, 1.0), [0.0, curvature, 0.0, 0.0], rtol=1e-11, atol=1e-12,
        ).y[:, -1]  # fmt: skip

    end = shoot(brentq(lambda c: shoot(c)[1], 0.0, 1.5 * alpha, xtol=1e-13))
    return float(end[2]), float(end[3])


def beam_tip(n_elements: int, alpha: float) -> np.ndarray:
    length, radius = 1.0, 1e-3
    material = Material(1e9, 0.3, 1000.0)
    nodes = np.linspace(0.0, length, n_elements + 1)[:, None] * np.array([1.0, 0.0, 0.0])
    body = BeamBody("beam", BeamLine(nodes, radius), material, [0], STILL)
    load = np.zeros(body.n_dof)
    load[-5] = alpha * material.youngs_modulus * np.pi * radius**4 / 4.0 / length**2
    h = 0.05
    for k in range(5000):
        # dynamic relaxation: the velocity is dropped after every step
        body.linearise()
        v = body.free_velocity(body.factor(h), h, min(1.0, (k + 1) / 50) * load)
        body.advance(v, h)
        body.v = np.zeros(body.n_dof)
        if k > 50 and np.abs(h * v).max() < 1e-11:
            break
    return body.x[-1, :2]


@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_large_deflection_of_a_cantilever_converges_to_the_elastica_at_second_order(alpha):
    exact = np.array(elastica_tip(alpha))
    errors = np.array([np.linalg.norm(beam_tip(n, alpha) - exact) for n in (4, 8, 16)])
    orders = np.log2(errors[:-1] / errors[1:])
    # stretch and shear of so thin a beam are 1e-6, far below the finest error
    assert np.all(orders > 1.8)
    assert errors[-1] < 2e-3
