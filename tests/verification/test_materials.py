"""A body of several materials: its elements are those of one material, so many times as stiff and heavy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg

from palpo.physics.bodies.mesh_error import press_error
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.material import Material
from palpo.physics.fem.nodal_fields import element_loads
from palpo.physics.mesh.generate import block, hex_block, sphere
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.patches import patches_of
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles

NAMES = ("tet4", "tet4-patch", "tet10", "hex8")
SOFT, FIRM = 1e4, 7e4
"""Moduli [Pa]."""
SIZE, CELLS = (0.02, 0.03, 0.02), (2, 3, 2)


def mesh_of(name, size=SIZE, cells=CELLS):
    kind = ELEMENTS[name].mesh
    if kind is HexMesh:
        return hex_block(size, cells)
    return with_middles(block(size, cells))[1] if kind is QuadraticTetMesh else block(size, cells)


def centres(mesh):
    return mesh.nodes[mesh.cells].mean(axis=1)


def of_two(mesh, inside, ratio, **constants):
    """A material whose elements `inside` (m,) are firm, and as many times as heavy."""
    moduli = np.where(inside, FIRM, SOFT)
    given = {"moduli": tuple(moduli), "densities": tuple(1e3 * moduli / SOFT), **constants}
    return Material(SOFT, ratio, 1e3, **given)


def solved(body, held, given):
    """Displacements (n, 3) at rest, where freedoms `held` (n, 3) have those given (n, 3)."""
    stiffness = body.rest_stiffness().tocsr()
    free, u = ~held.ravel(), np.where(held, given, 0.0).ravel()
    inner = stiffness[free][:, free]
    scale = 1.0 / inner.diagonal()
    u[free], failed = cg(
        inner, -(stiffness @ u)[free], rtol=1e-12, M=LinearOperator(inner.shape, matvec=lambda r: scale * r)
    )
    assert not failed
    return u.reshape(-1, 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ratio", [0.0, 0.45])
def test_two_layers_under_a_press_yield_in_series(name, ratio):
    """Between smooth walls: s = p / M of each, M = E (1 - nu) / ((1 + nu) (1 - 2 nu)); the field is linear in
    each layer, which every element holds, so that the answer is exact."""
    mesh, top = mesh_of(name), 0.015
    firm = centres(mesh)[:, 1] > 0.005
    body = SoftBody("bar", mesh, of_two(mesh, firm, ratio), gravity=(0, 0, 0), elements=name)
    x, held = mesh.nodes, np.zeros_like(mesh.nodes, bool)
    held[:, [0, 2]] = True
    held[:, 1] = np.abs(np.abs(x[:, 1]) - top) < 1e-9
    pressed = np.where(x[:, 1:2] > 0.0, [[0.0, -1e-5, 0.0]], 0.0)
    u = solved(body, held, pressed)
    oedometric = (1.0 - ratio) / ((1.0 + ratio) * (1.0 - 2.0 * ratio))
    area, pressure = SIZE[0] * SIZE[2], 1e-5 * oedometric / (0.02 / SOFT + 0.01 / FIRM)
    force = (body.rest_stiffness() @ u.ravel()).reshape(-1, 3)
    assert force[x[:, 1] > top - 1e-9, 1].sum() == pytest.approx(-pressure * area, rel=1e-9)
    border = np.abs(x[:, 1] - 0.005) < 1e-9
    np.testing.assert_allclose(u[border, 1], -1e-5 * (0.02 / SOFT) / (0.02 / SOFT + 0.01 / FIRM), rtol=1e-9)
    # its stress is the pressure in both, up to what is of second order in the strain
    stress = element_loads(body.elements, body.material, x + u).stress
    np.testing.assert_allclose(stress[:, 1, 1], -pressure, rtol=2e-3)
    assert body.mass == pytest.approx(1e3 * area * (0.02 + FIRM / SOFT * 0.01), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("law", ["linear", "neo-hookean"])
def test_a_body_wholly_of_a_part_is_that_body(name, law):
    """Forces, energy, stiffness with its geometric term, stress, facets, in a shape far from rest."""
    if name == "hex8" and law != "linear":
        pytest.skip("hexahedra follow Hooke's law alone")
    mesh, rng = mesh_of(name), np.random.default_rng(1)
    usual = Material(SOFT, 0.4, 1e3, law=law)
    given = of_two(mesh, np.ones(len(mesh.cells), bool), 0.4, law=law)
    whole = replace(usual, youngs_modulus=FIRM, density=1e3 * FIRM / SOFT)
    x = mesh.nodes @ np.diag([1.1, 0.9, 1.05]) + 2e-4 * rng.standard_normal(mesh.nodes.shape)
    triangles, found = mesh.surface().triangles, []
    for material in (given, whole):
        body = SoftBody("block", mesh, material, elements=name, mass_matrix="consistent")
        body.x[:] = x
        quats = np.tile([1.0, 0.0, 0.0, 0.0], (len(mesh.cells), 1))
        found.append([
            body.undamped_force(), body.elements.energy(x, quats), body.tangent().toarray(),
            element_loads(body.elements, material, x).stress, body.facet_yield(triangles), body.M.toarray(),
        ])  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(other).max())


def test_a_part_like_the_rest_is_none():
    mesh, material = mesh_of("tet4-patch"), Material(SOFT, 0.45, 1e3, 0.0, 2e-3)
    alike = replace(material, moduli=(SOFT,) * len(mesh.cells), densities=(1e3,) * len(mesh.cells))
    one, other = (SoftBody("block", mesh, m, elements="tet4-patch") for m in (material, alike))
    for body in (one, other):
        body.x[:] += 1e-4 * np.sin(np.arange(body.x.size)).reshape(body.x.shape)
    np.testing.assert_array_equal(one.undamped_force(), other.undamped_force())
    np.testing.assert_array_equal(one.tangent_blocks(), other.tangent_blocks())
    np.testing.assert_array_equal(one.node_mass, other.node_mass)


def test_no_patch_crosses_a_border_and_all_are_of_some_elements():
    for mesh, ball_of in ((block((1, 1, 1), (6, 6, 6)), 0.3), (sphere(0.5, 4), 0.25)):
        kind = (np.linalg.norm(centres(mesh), axis=1) < ball_of).astype(float)
        patch = patches_of(mesh.nodes, mesh.tets, kind)
        sizes = np.bincount(patch)
        assert all(len(np.unique(kind[patch == p])) == 1 for p in range(len(sizes)))
        assert sizes.min() >= 2 and 4.0 < sizes.mean() < 8.0


def test_the_error_of_a_mesh_is_told_alike_where_all_is_of_a_part():
    mesh = block((0.04, 0.02, 0.04), (4, 2, 4))
    given = of_two(mesh, np.ones(len(mesh.tets), bool), 0.3)
    whole = Material(FIRM, 0.3, 1e3 * FIRM / SOFT)
    low, triangles = np.flatnonzero(mesh.nodes[:, 1] < -0.0099), mesh.surface().triangles
    found = [
        press_error(SoftBody("block", mesh, m, low), triangles, np.array([0, 0.01, 0]), 0.005, True)
        for m in (given, whole)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-3)  # the solution is one to 1e-4


def ball(shells, ratio, name, inside=2):
    """A ball of radius 1 whose inner 1 / `inside` is firm, and which of its elements are in that."""
    mesh = sphere(1.0, shells)
    firm = np.linalg.norm(mesh.nodes[mesh.tets].mean(axis=1), axis=1) < 1.0 / inside
    material = of_two(mesh, firm, ratio)
    return SoftBody("ball", mesh, material, gravity=(0, 0, 0), elements=name), firm


def strain_in_middle(body, firm, far):
    """Mean strain (3, 3) of the firm elements where the surface moves by a strain `far` (3, 3)."""
    x = body.mesh.nodes
    held = np.linalg.norm(x, axis=1) > 1.0 - 1e-9
    u = solved(body, np.repeat(held[:, None], 3, axis=1), x @ far.T)
    e = body.elements
    gradient = np.einsum("mad,mae->mde", u[e.cells], e.gradients)[firm]
    mean = np.einsum("m,mde->de", e.shares.sum(axis=1)[firm], gradient) / e.shares.sum(axis=1)[firm].sum()
    return 0.5 * (mean + mean.T)


def bulk_and_shear(modulus, ratio):
    return modulus / (3.0 * (1.0 - 2.0 * ratio)), modulus / (2.0 * (1.0 + ratio))


def error_without_cells(name, ratio, far, closed):
    """Relative error of the mean strain in a nodule of half the radius. As cells are halved twice it falls by
    2 and by 3, to 4 where they are small, by which the last two tell what is left without cells."""
    errors = [
        np.einsum("ij,ij", strain_in_middle(*ball(shells, ratio, name), far), far) / (closed * (far**2).sum())
        - 1.0
        for shells in (2, 4, 8)
    ]
    assert errors[0] > 2.0 * errors[1] > 6.0 * errors[2] > 0.0
    return errors[2] - (errors[1] - errors[2]) / 3.0


@pytest.mark.parametrize(("name", "ratio"), [("tet4", 0.3), ("tet4-patch", 0.45)])
def test_a_nodule_in_a_pressed_ball_strains_as_a_composite_sphere_does(name, ratio):
    """u = A r inside, B r + C / r^2 outside, with u and the pressure alike at the border (Hashin, J. Appl.
    Mech. 29, 1962), under a strain 1 of the surface at radius 1."""
    (k, g), (k_in, _), c = bulk_and_shear(SOFT, ratio), bulk_and_shear(FIRM, ratio), 0.125
    a, _, _ = np.linalg.solve([[0, 1, 1], [-1, 1, 1 / c], [-3 * k_in, 3 * k, -4 * g / c]], [1, 0, 0])
    assert abs(error_without_cells(name, ratio, np.eye(3), a)) < 0.02


def sheared(radius, ratio):
    """Mean strain of a firm nodule of that radius in a ball of radius 1 whose surface has a deviator 1.

    u = U(r) f n + V(r) / 2 grad f, f of the second degree: of powers of r as R. M. Christensen, K. H. Lo, J.
    Mech. Phys. Solids 27 (1979) have them; u and the traction are alike at the border.
    """
    n = 1.0 - 2.0 * ratio
    fields = [(1.0, 1.0, 1), (-6.0 * ratio / n, -(7.0 - 4.0 * ratio) / n, 3), (3.0, -2.0, -4),
              ((5.0 - 4.0 * ratio) / n, 2.0, -2)]  # fmt: skip

    def at(r, modulus):
        """U, V and the two tractions of the four fields, (4, 4)."""
        k, g = bulk_and_shear(modulus, ratio)
        rows = [
            (u, v, (k - 2 / 3 * g) * ((p + 2) * u - 3 * v) / r + 2 * g * p * u / r,
             g * ((p - 1) * v + 2 * u) / r)
            for u, v, p in fields
        ]  # fmt: skip
        return np.array([np.array(row) * r**p for row, (_, _, p) in zip(rows, fields, strict=True)]).T

    inner, outer = at(radius, FIRM)[:, :2], at(radius, SOFT)
    system = np.zeros((6, 6))
    system[:4, :2], system[:4, 2:], system[4:, 2:] = -inner, outer, at(1.0, SOFT)[:2]
    found = np.linalg.solve(system, [0, 0, 0, 0, 1, 1])[:2]
    u, v = inner[:2] @ found
    return (2.0 * u + 3.0 * v) / (5.0 * radius)


@pytest.mark.parametrize(("name", "ratio"), [("tet4", 0.3), ("tet4-patch", 0.45)])
def test_a_nodule_in_a_sheared_ball_strains_as_the_closed_form_says(name, ratio):
    """In a body without end that is Eshelby's, 1 / (1 + b (G_i / G - 1)), b = 2 (4 - 5 nu) / (15 (1 - nu))
    (Proc. R. Soc. A 241, 1957)."""
    share = 2.0 * (4.0 - 5.0 * ratio) / (15.0 * (1.0 - ratio))
    assert sheared(1e-3, ratio) == pytest.approx(1.0 / (1.0 + share * (FIRM / SOFT - 1.0)), rel=1e-6)
    far = np.diag([1.0, -0.5, -0.5])
    assert abs(error_without_cells(name, ratio, far, sheared(0.5, ratio))) < 0.02
