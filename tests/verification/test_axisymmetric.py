"""Solids of revolution: derivatives, Lame's thick tube, the enclosed volume, and the sections of cups."""

import math

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from palpo.physics.fem.axisymmetric import SolidOfRevolution, enclosed
from palpo.physics.mesh.cups import CUPS, meridian
from palpo.physics.numerics.errors import InputError

INNER, OUTER, LENGTH = 0.01, 0.02, 0.006
E, NU = 1e5, 0.4


def tube(across, bulge=0.0):
    """A ring of across x 2 elements; with a bulge its edges are not straight."""
    r, z = np.linspace(INNER, OUTER, 2 * across + 1), np.linspace(0.0, LENGTH, 5)
    number, nodes, elements = {}, [], []

    def node(i, j):
        if (i, j) not in number:
            number[i, j] = len(nodes)
            nodes.append((r[i], z[j] + bulge * math.sin(300 * r[i]) * z[j] / LENGTH))
        return number[i, j]

    for i in range(0, 2 * across, 2):
        for j in (0, 2):
            corners = [(i, j), (i + 2, j), (i + 2, j + 2), (i, j + 2)]
            corners += [(i + 1, j), (i + 2, j + 1), (i + 1, j + 2), (i, j + 1)]
            elements.append([node(*at) for at in corners])
    inside = [number[0, j] for j in range(5)]
    top = np.array([number[i, 4] for i in range(2 * across + 1)])
    return SolidOfRevolution(np.array(nodes), np.array(elements), E, NU), np.array(inside), top


def test_forces_are_the_energys_derivative_and_the_tangent_theirs():
    solid, _, _ = tube(3, bulge=5e-4)
    rng = np.random.default_rng(1)
    u, way, h = 3e-4 * rng.standard_normal(solid.freedoms), rng.standard_normal(solid.freedoms), 1e-7
    _, force, tangent = solid.elastic(u)
    more, less = solid.elastic(u + h * way), solid.elastic(u - h * way)
    assert (more[0] - less[0]) / (2 * h) == pytest.approx(force @ way, rel=1e-5)
    np.testing.assert_allclose(
        (more[1] - less[1]) / (2 * h), tangent @ way, atol=1e-6 * abs(tangent @ way).max()
    )
    assert abs(tangent - tangent.T).max() <= 1e-12 * abs(tangent).max()


def lame_error(across):
    """Relative error of the bore's widening under inner pressure in plane strain."""
    solid, inside, _ = tube(across)
    pressure = 1.0
    _, _, k = solid.elastic(np.zeros(solid.freedoms))
    load = np.zeros(solid.freedoms)
    for edge in (inside[:3], inside[2:]):
        # consistent loads of a uniform pressure on a quadratic edge
        load[2 * edge] += pressure * 2 * np.pi * INNER * LENGTH / 2 * np.array([1, 4, 1]) / 6
    free = np.arange(0, solid.freedoms, 2)
    u = np.zeros(solid.freedoms)
    u[free] = spsolve(k[free][:, free], load[free])
    ratio = INNER**2 / (OUTER**2 - INNER**2)
    exact = pressure * (1 + NU) / E * ratio * ((1 - 2 * NU) * INNER + OUTER**2 / INNER)
    return abs(u[2 * inside].mean() / exact - 1)


def test_a_thick_tube_under_pressure_widens_as_lame_says_and_converges_as_quadratic_elements_do():
    errors = np.array([lame_error(n) for n in (2, 4, 8)])
    # a node's place converges by the fourth power in one dimension, by the third at least
    assert (np.log2(errors[:-1] / errors[1:]) > 3.0).all(), errors
    assert errors[-1] < 1e-4


def test_a_ring_moved_along_its_axis_feels_nothing_and_one_turned_inside_out_is_refused():
    solid, _, _ = tube(2)
    u = np.zeros(solid.freedoms)
    u[1::2] = 0.3
    energy, force, _ = solid.elastic(u)
    assert abs(energy) < 1e-12 and abs(force).max() < 1e-9
    u[1::2] = -2.0 * solid.nodes[:, 1]
    assert solid.elastic(u) is None


@pytest.mark.parametrize("until", [1.37, 3.0])
def test_the_enclosed_volume_has_the_derivatives_that_it_says(until):
    solid, _, top = tube(3, bulge=5e-4)
    rng = np.random.default_rng(2)
    place, way, h = (
        solid.nodes + 1e-4 * rng.standard_normal(solid.nodes.shape),
        rng.standard_normal(solid.nodes.shape),
        1e-6,
    )
    now, more, less = (enclosed(place + s * way, top, until) for s in (0.0, h, -h))
    flat = way.ravel()
    assert (more.volume - less.volume) / (2 * h) == pytest.approx(now.gradient @ flat, rel=1e-6)
    slope = (more.gradient - less.gradient) / (2 * h)
    np.testing.assert_allclose(slope, now.hessian @ flat, atol=1e-6 * abs(slope).max())


@pytest.mark.parametrize("name", ["small", "large", "S10", "round"])
def test_a_cups_section_encloses_its_cavity_and_stands_on_its_rim(name):
    design = CUPS[name]
    shape, section = design.shape, meridian(design.shape)
    solid = SolidOfRevolution(section.nodes, section.elements, design.youngs_modulus, 0.42)
    volume = enclosed(section.nodes, section.curve, section.border).volume
    if shape.profile == "straight":
        wanted = math.pi * shape.height / 3 * (shape.inner**2 + shape.inner * shape.top + shape.top**2)
        assert volume == pytest.approx(wanted, rel=1e-12)
    rim = section.nodes[section.curve[2 * section.border :]]
    assert abs(rim[:, 1]).max() < 1e-15
    assert (rim[0, 0], rim[-1, 0]) == pytest.approx((shape.inner, shape.inner + shape.rim))
    assert section.nodes[section.held, 0].max() == pytest.approx(shape.stem)
    assert solid.freedoms == 2 * len(section.nodes)
    # every node belongs to an element
    assert set(section.elements.ravel()) == set(range(len(section.nodes)))


def test_lobes_and_bad_materials_are_refused_in_words():
    with pytest.raises(InputError, match="no solid of revolution"):
        meridian(CUPS["asymmetric"].shape)
    section = meridian(CUPS["small"].shape)
    with pytest.raises(InputError, match=r"nu = 0\.5"):
        SolidOfRevolution(section.nodes, section.elements, 1e5, 0.5)
    with pytest.raises(InputError, match="inside out"):
        SolidOfRevolution(section.nodes * [1, -1], section.elements, 1e5, 0.4)
