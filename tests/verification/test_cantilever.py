"""A cantilever with two cells across, by the elements that bend: its droop and its first frequency."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh, splu

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles

LENGTH, SIDE, CELLS = 0.1, 0.005, (40, 2, 2)
DENSITY, GRAVITY, LOAD = 1000.0, 9.81, 3.0
"""LOAD: weight times length^2 over the bending stiffness, of which a quarter of the length droops."""
INERTIA, AREA = SIDE**4 / 12.0, SIDE**2
YOUNG = DENSITY * GRAVITY * AREA * LENGTH**3 / (LOAD * INERTIA)
BENDING = [("hex8", "linear"), ("tet10", "linear"), ("tet10", "neo-hookean")]
WITHIN = 0.02
"""Of which the beam's theory leaves a part: its shear, of (SIDE / LENGTH)^2, and the contraction that a clamp
hinders, 1.1% of the droop on cells of half the edge at 0.45."""


def cantilever(elements: str, law: str, nu: float) -> SoftBody:
    kind = ELEMENTS[elements].mesh
    mesh = (hex_block if kind is HexMesh else block)((LENGTH, SIDE, SIDE), CELLS)
    if kind is QuadraticTetMesh:
        mesh = with_middles(mesh)[1]
    clamped = np.flatnonzero(mesh.nodes[:, 0] < -0.5 * LENGTH + 1e-9)
    material = Material(YOUNG, nu, DENSITY, law=law)
    return SoftBody("cantilever", mesh, material, clamped, (0.0, -GRAVITY, 0.0), elements=elements)


def droop(body: SoftBody) -> float:
    """Of the end's middle at rest under its own weight [m]: Newton's method with a line search."""
    for _ in range(60):
        force = body.undamped_force()
        step = splu(body.tangent()).solve(force)
        if force @ step < 0.0:
            step = splu(body.K).solve(force)
        at, energy, share = body.x.copy(), body.energy(), 1.0
        if np.abs(step).max() < 1e-10:
            break
        while share > 1e-4:
            body.x = at.copy()
            body.x[body.free] += share * step.reshape(-1, 3)
            if body.energy() <= energy - 1e-4 * share * (force @ step):
                break
            share *= 0.5
    rest = body.mesh.nodes
    end = np.linalg.norm(rest - [0.5 * LENGTH, 0.0, 0.0], axis=1).argmin()
    return float(rest[end, 1] - body.x[end, 1])


def elastica() -> float:
    """Droop over the length of a thin rod under its own weight: theta'' = LOAD (1 - s) cos(theta)."""

    def shoot(curvature: float) -> np.ndarray:
        return solve_ivp(
            lambda s, y: [y[1], -LOAD * (1.0 - s) * np.cos(y[0]), np.sin(y[0])],
            (0.0, 1.0), [0.0, curvature, 0.0], rtol=1e-10, atol=1e-12,
        ).y[:, -1]  # fmt: skip

    return float(shoot(brentq(lambda c: shoot(c)[1], 0.0, LOAD))[2])


@pytest.mark.parametrize("nu", [0.3, 0.45])
@pytest.mark.parametrize(("elements", "law"), BENDING)
def test_its_end_droops_as_the_elasticas(elements, law, nu):
    exact = elastica()
    assert 0.25 < exact < 0.4
    assert droop(cantilever(elements, law, nu)) == pytest.approx(exact * LENGTH, rel=WITHIN)


@pytest.mark.parametrize("nu", [0.3, 0.45])
@pytest.mark.parametrize(("elements", "law"), BENDING)
def test_its_first_frequency_is_that_of_a_beam(elements, law, nu):
    """Euler's and Bernoulli's: cos(k) cosh(k) = -1, omega = k^2 sqrt(E I / rho A) / L^2."""
    body = cantilever(elements, law, nu)
    k = brentq(lambda k: np.cos(k) * np.cosh(k) + 1.0, 1.8, 2.0)
    exact = k**2 * np.sqrt(YOUNG * INERTIA / (DENSITY * AREA)) / LENGTH**2
    least = eigsh(body.rest_stiffness(), 1, M=body.M, sigma=0.0, return_eigenvectors=False)[0]
    assert np.sqrt(least) == pytest.approx(exact, rel=WITHIN)


def test_tetrahedra_of_four_nodes_droop_by_less_than_four_fifths():
    """Which is why a slender body is of others where nothing is said; sharing volumes does not mend it."""
    exact = elastica() * LENGTH
    for elements in ("tet4", "tet4-patch"):
        assert droop(cantilever(elements, "linear", 0.45)) < 0.8 * exact
