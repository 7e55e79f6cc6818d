"""Timoshenko beams at rest: exact nodal deflections, rigid motions, curved rest lines, balance of forces."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.chain_body import BeamBody
from palpo.physics.bodies.chain_models import beam_model
from palpo.physics.fem.beam import Section, circular_section
from palpo.physics.fem.material import Material
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.math3 import rotate_by

LENGTH, RADIUS, LOAD = 0.3, 0.02, 1e-3
STEEL = Material(youngs_modulus=2e11, poisson_ratio=0.3, density=7800.0)
SHEAR_MODULUS = STEEL.lame()[1]
STILL = (0.0, 0.0, 0.0)


def straight(n_elements: int, section: Section | None = None, fixed=(0,)) -> BeamBody:
    nodes = np.linspace(0.0, LENGTH, n_elements + 1)[:, None] * np.array([1.0, 0.0, 0.0])
    return BeamBody("beam", BeamLine(nodes, RADIUS), STEEL, fixed, STILL, section)


def tip_response(body: BeamBody, wrench) -> np.ndarray:
    """Linear displacement and rotation (6,) of the last frame under a wrench there."""
    load = np.zeros(body.n_dof)
    load[-6:] = wrench
    return np.linalg.solve(body.K, load)[-6:]


@pytest.mark.parametrize("n_elements", [1, 2, 7])
def test_tip_deflection_is_the_closed_form_with_shear(n_elements):
    s = circular_section(RADIUS, STEEL.poisson_ratio)
    tip = tip_response(straight(n_elements), [0.0, LOAD, 0.0, 0.0, 0.0, 0.0])
    EI = STEEL.youngs_modulus * s.second_moment_z
    # exact at the nodes for any number of elements; the condition number of K costs the digits
    assert tip[1] == pytest.approx(
        LOAD * LENGTH**3 / (3 * EI) + LOAD * LENGTH / (s.shear_y * SHEAR_MODULUS * s.area), rel=1e-9
    )
    assert tip[5] == pytest.approx(LOAD * LENGTH**2 / (2 * EI), rel=1e-9)


def test_stretch_twist_and_end_moment_are_the_closed_forms():
    s = circular_section(RADIUS, STEEL.poisson_ratio)
    body, e = straight(4), STEEL.youngs_modulus
    assert tip_response(body, [LOAD, 0, 0, 0, 0, 0])[0] == pytest.approx(
        LOAD * LENGTH / (e * s.area), rel=1e-9
    )
    assert tip_response(body, [0, 0, 0, LOAD, 0, 0])[3] == pytest.approx(
        LOAD * LENGTH / (SHEAR_MODULUS * s.torsion), rel=1e-9
    )
    bent = tip_response(body, [0, 0, 0, 0, LOAD, 0])
    assert bent[4] == pytest.approx(LOAD * LENGTH / (e * s.second_moment_y), rel=1e-9)
    assert bent[2] == pytest.approx(-LOAD * LENGTH**2 / (2 * e * s.second_moment_y), rel=1e-9)


def test_a_flat_section_bends_about_each_axis_with_its_own_moment():
    section = Section(1e-4, 2e-10, 8e-10, 6e-10, 5 / 6, 5 / 6)
    body, e = straight(3, section), STEEL.youngs_modulus
    shear = LOAD * LENGTH / (5 / 6 * SHEAR_MODULUS * section.area)
    for axis, second in ((1, section.second_moment_z), (2, section.second_moment_y)):
        wrench = np.zeros(6)
        wrench[axis] = LOAD
        assert tip_response(body, wrench)[axis] == pytest.approx(
            LOAD * LENGTH**3 / (3 * e * second) + shear, rel=1e-9
        )


def wild(seed: int) -> BeamBody:
    """A soft free beam of three frames, thrown into large stretches and turns of its nodes."""
    rng = np.random.default_rng(seed)
    nodes = np.array([[0.0, 0.0, 0.0], [0.1, 0.02, 0.0], [0.2, 0.0, 0.05]])
    body = BeamBody("beam", BeamLine(nodes, 0.01), Material(1e6, 0.3, 1000.0), (), STILL)
    body.x[:] += 0.02 * rng.standard_normal((3, 3))
    for q in body.q:
        rotate_by(0.4 * rng.standard_normal(3), q)
    return body


def turn(body: BeamBody, rotation: Rotation, shift: np.ndarray) -> None:
    body.x[:] = rotation.apply(body.x) + shift
    for q in body.q:
        rotate_by(rotation.as_rotvec(), q)


@pytest.mark.parametrize("seed", range(5))
def test_internal_forces_balance_in_force_and_moment(seed):
    body = wild(seed)
    f = body.force().reshape(-1, 6)
    assert np.abs(f[:, :3].sum(axis=0)).max() < 1e-12 * np.abs(f).max()
    assert np.abs((np.cross(body.x, f[:, :3]) + f[:, 3:]).sum(axis=0)).max() < 1e-12 * np.abs(f).max()


@pytest.mark.parametrize("seed", range(5))
def test_internal_force_is_minus_the_gradient_of_the_energy(seed):
    body = wild(seed)
    force = body.force()
    step, slope = 1e-5, np.zeros(body.n_dof)
    x, q = body.x.copy(), body.q.copy()
    for k in range(body.n_dof):
        energies = []
        for sign in (1.0, -1.0):
            body.x[:], body.q[:] = x, q
            if k % 6 < 3:
                body.x[k // 6, k % 6] += sign * step
            else:
                rotate_by(sign * step * np.eye(3)[k % 6 - 3], body.q[k // 6])
            energies.append(body.energy())
        slope[k] = (energies[0] - energies[1]) / (2.0 * step)
    # the roll of the element frame is shared evenly, which is exact to third order in the nodes' turns of 0.4
    assert np.abs(force + slope).max() < 2e-3 * np.abs(slope).max()


def test_force_energy_and_stiffness_turn_with_the_beam():
    a, b = wild(0), wild(0)
    rotation = Rotation.from_rotvec([1.9, -0.7, 0.4])
    turn(b, rotation, np.array([0.3, 0.1, -0.2]))
    assert b.energy() == pytest.approx(a.energy(), rel=1e-12)
    turned = rotation.apply(a.force().reshape(-1, 3)).ravel()
    assert np.abs(b.force() - turned).max() < 1e-11 * np.abs(turned).max()
    a.linearise()
    b.linearise()
    R = np.kron(np.eye(6), rotation.as_matrix())
    assert np.abs(b.K - R @ a.K @ R.T).max() < 1e-11 * np.abs(a.K).max()


def test_stiffness_is_symmetric_positive_semidefinite_with_six_rigid_modes_in_any_shape():
    body = wild(1)
    body.linearise()
    assert np.abs(body.K - body.K.T).max() < 1e-12 * np.abs(body.K).max()
    shift = [np.tile(np.r_[e, STILL], 3) for e in np.eye(3)]
    spin = [np.hstack([np.cross(e, body.x), np.tile(e, (3, 1))]).ravel() for e in np.eye(3)]
    for mode in shift + spin:
        assert np.abs(body.K @ mode).max() < 1e-9 * np.abs(body.K).max()
    eigenvalues = np.linalg.eigvalsh(body.K)
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
    assert eigenvalues[6] > 1e-6 * eigenvalues[-1]


def arc(n_elements: int, radius: float = 0.1) -> np.ndarray:
    angle = np.linspace(0.0, 0.5 * np.pi, n_elements + 1)
    return radius * np.column_stack([np.sin(angle), 1.0 - np.cos(angle), np.zeros_like(angle)])


def test_a_curved_rest_line_is_free_of_force_also_when_moved():
    body = BeamBody("hook", BeamLine(arc(8), 1e-3), STEEL, (), STILL)
    scale = STEEL.youngs_modulus * np.pi * 1e-6
    assert np.abs(body.force()).max() < 1e-12 * scale
    turn(body, Rotation.from_rotvec([0.5, 2.0, -1.0]), np.array([0.1, 0.2, 0.3]))
    assert np.abs(body.force()).max() < 1e-12 * scale


def test_a_quarter_circle_loaded_at_its_end_has_castiglianos_deflection():
    # slender quarter circle clamped at 0, load P across the free end's tangent, toward the clamp:
    # d = P R^3 pi / (4 E I); stretch and shear add (r / R)^2 = 1e-4
    R, r = 0.1, 1e-3
    EI = STEEL.youngs_modulus * np.pi * r**4 / 4.0
    errors = []
    for n in (8, 16, 32):
        body = BeamBody("hook", BeamLine(arc(n, R), r), STEEL, [0], STILL)
        load = np.zeros(body.n_dof)
        load[-6] = -1e-3
        tip = -np.linalg.solve(body.K, load)[-6]
        errors.append(abs(tip / (1e-3 * R**3 * np.pi / (4.0 * EI)) - 1.0))
    # chords for arcs: second order, down to the stretch that the formula leaves out
    assert errors[0] < 0.01
    assert errors[1] < 0.3 * errors[0]
    assert errors[2] < 1e-3


@pytest.mark.parametrize(
    ("nodes", "fixed", "words"),
    [
        ([[0, 0, 0]], (), "at least two"),
        ([[0, 0, 0], [0, 0, 0]], (), "element 0 has no length"),
        ([[0, 0, 0], [1, 0, 0]], (2,), "frame 2 is fixed"),
    ],
)
def test_beam_lines_that_cannot_be_simulated_are_refused(nodes, fixed, words):
    with pytest.raises(InputError, match=words):
        beam_model(nodes, 1e-3, STEEL, fixed)
