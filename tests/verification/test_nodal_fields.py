"""Strain and stress at nodes: exact where they are even, turned with the body, and in balance with loads."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.fem.elements import ELEMENTS, make_elements
from palpo.physics.fem.material import Material
from palpo.physics.fem.nodal_fields import element_loads, nodal_loads
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles

SHAPES = {"neo-hookean": (), "mooney-rivlin": (0.3,), "ogden": (1.0, 5.0), "fung": (0.8,)}
TURN = Rotation.from_rotvec([0.7, -1.1, 0.4]).as_matrix()
STRETCH = np.array([[1.10, 0.03, 0.00], [0.03, 0.95, -0.02], [0.00, -0.02, 1.02]])
"""Symmetric: V of F = V R."""


def mesh_of(kind):
    made = block((0.03, 0.02, 0.02), (3, 2, 2))
    if kind is HexMesh:
        return hex_block((0.03, 0.02, 0.02), (3, 2, 2))
    return with_middles(made)[1] if kind is QuadraticTetMesh else made


@pytest.mark.parametrize("name", ELEMENTS)
def test_even_strain_is_exact_with_each_element_and_turns_with_the_body(name):
    mesh, material = mesh_of(ELEMENTS[name].mesh), Material(5e4, 0.42, 1000.0)
    lam, mu = material.lame()
    elements = make_elements(mesh, material, name)
    found = nodal_loads(elements, material, mesh.nodes @ (STRETCH @ TURN).T + [0.1, 0.2, 0.3])
    strain = STRETCH - np.eye(3)
    stress = 2.0 * mu * strain + lam * np.trace(strain) * np.eye(3)
    np.testing.assert_allclose(found.strain, np.broadcast_to(strain, found.strain.shape), atol=1e-11)
    np.testing.assert_allclose(found.stress, np.broadcast_to(stress, found.stress.shape), atol=1e-5)


@pytest.mark.parametrize("name", ["tet4", "tet4-patch", "tet10"])
@pytest.mark.parametrize("law", SHAPES)
def test_a_pulled_bar_has_the_stress_of_the_closed_form(law, name):
    """Cauchy's along the bar is the nominal one over what is left of the area; across it there is none."""
    material = Material(5e4, 0.45, 1000.0, law=law, shape=SHAPES[law])
    mesh = mesh_of(ELEMENTS[name].mesh)
    along = np.array([1.3])
    pull = float(nominal_stress(material, along)[0])
    elements = make_elements(mesh, material, name)

    def stress(across):
        return nodal_loads(elements, material, mesh.nodes * [1.3, across, across]).stress[0]

    low, high = 0.7, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stress(middle)[1, 1] > 0.0 else (middle, high)
    assert stress(low)[0, 0] == pytest.approx(pull / low**2, rel=1e-6)


@pytest.mark.parametrize("name", ["tet4", "tet4-patch", "hex8-bbar"])
def test_strain_and_stress_hold_the_energy_of_small_deformations(name):
    """1/2 sum V s:e is the elements' own where each has one strain; a hexahedron has more than its mean."""
    mesh, material = mesh_of(ELEMENTS[name].mesh), Material(5e4, 0.42, 1000.0)
    elements = make_elements(mesh, material, name)
    x = mesh.nodes + 1e-3 * np.sin(90.0 * mesh.nodes[:, [1, 2, 0]])
    quats = np.tile([1.0, 0.0, 0.0, 0.0], (len(mesh.cells), 1))
    strain, stress = element_loads(elements, material, x)
    volumes = elements.shares.sum(axis=1)
    means = 0.5 * float(np.einsum("m,mij,mij->", volumes, strain, stress))
    held = elements.energy(x, quats)
    assert means <= held * (1.0 + 1e-9)
    if name != "hex8-bbar":
        assert means == pytest.approx(held, rel=1e-9)
