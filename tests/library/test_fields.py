"""What a body feels at its vertices is in balance with its loads, and goes to other programs as it is."""

from functools import cache

import meshio
import numpy as np
import pytest

import palpo

HEIGHT, DENSITY, G = 0.02, 1000.0, 9.81


@cache
def standing():
    """A soft block that has come to rest on a plane, a tool far away."""
    material = palpo.SoftMaterial(
        youngs_modulus=20e3, poisson_ratio=0.3, density=DENSITY, alpha=20.0, beta=0.01
    )
    block = palpo.Soft(
        name="block", material=material, geometry=palpo.Block(size=(0.04, HEIGHT, 0.04), divisions=(4, 3, 4)),
        placement=palpo.Placement(position=(0.0, HEIGHT / 2, 0.0)),
    )  # fmt: skip
    ball = palpo.Rigid(
        name="ball", rate="high", mass=0.03, geometry=palpo.Sphere(radius=0.008),
        placement=palpo.Placement(position=(0.0, 0.2, 0.0)),
    )  # fmt: skip
    ground = palpo.Plane(name="ground")
    scene = palpo.Scene(title="standing", bodies=[ground, block, ball], tool=palpo.Tool(body="ball"))
    state = scene.build().start()
    state.step(hand=state.hand.position, ticks=1500)
    return state


def test_the_contact_pressure_under_a_standing_block_bears_its_weight():
    """sum p A = m g; 1% are left of what friction holds and of its coming to rest."""
    state = standing()
    found = state.fields("block")
    weight = state.model.masses["block"] * G
    assert found.contact_pressure @ found.areas == pytest.approx(weight, rel=0.01)
    pressed = found.contact_pressure > 0.0
    assert found.positions[pressed, 1].max() < 0.1 * HEIGHT


def test_the_mean_stress_of_a_standing_block_is_half_its_weight_over_its_area():
    """int s_yy dV = - int y rho g dV for a body in balance whose foot is at y = 0, whatever its material;
    2%: stress is that of small strain, forces act where the body is."""
    found = standing().fields("block")
    mesh = standing().mesh("block")
    corners = found.positions[mesh.cells_dict["tetra"]]
    volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6.0
    nodal = np.bincount(mesh.cells_dict["tetra"].ravel(), np.repeat(volumes / 4.0, 4))
    mean = nodal @ found.stress[:, 1, 1] / nodal.sum()
    assert mean == pytest.approx(-DENSITY * G * HEIGHT / 2, rel=0.02)


def test_the_air_of_a_cavity_follows_the_gas_law_and_is_told_where_its_walls_are():
    """(P_atm + p) V = n R T."""
    state = palpo.load("suction-cube").build().start()
    state.step(1600)
    (cavity,) = state.cavities
    gas = state.model.scene.spec.gas
    assert abs(cavity.pressure) > 500.0
    pressure = gas.atmosphere + cavity.pressure
    # the picture's pressure is that of the last step, solved to the scene's tolerance
    assert pressure * cavity.volume == pytest.approx(8.314462618 * gas.temperature * cavity.amount, rel=1e-3)
    for body in ("cup", "cube"):
        found = state.fields(body)
        walls = found.cavity_pressure != 0.0
        assert 0 < walls.sum() < len(walls)
        assert set(found.cavity_pressure[walls]) == {cavity.pressure}
    # what presses the cup presses the cube's top; the lip's facets are inclined by a few degrees
    cup, cube = (state.fields(body) for body in ("cup", "cube"))
    top = cube.positions[:, 1] > cube.positions[:, 1].mean()
    pushed = (cube.contact_pressure * cube.areas)[top].sum()
    assert cup.contact_pressure @ cup.areas == pytest.approx(pushed, rel=0.1)


def test_a_rigid_body_has_no_strain_and_an_unknown_one_is_refused():
    found = standing().fields("ball")
    assert found.strain is None and found.stress is None and found.von_mises is None
    with pytest.raises(palpo.Refusal, match="the scene has no such body; "):
        standing().fields("blok")


def test_a_mesh_is_read_again_with_all_its_fields(tmp_path):
    made, found = standing().mesh("block"), standing().fields("block")
    made.write(tmp_path / "block.vtu")
    read = meshio.read(tmp_path / "block.vtu")
    np.testing.assert_array_equal(read.points, found.positions)
    np.testing.assert_array_equal(read.cells_dict["tetra"], made.cells_dict["tetra"])
    np.testing.assert_array_equal(read.point_data["stress"].reshape(-1, 3, 3), found.stress)
    np.testing.assert_array_equal(read.point_data["contact_pressure"], found.contact_pressure)
    assert set(standing().mesh("ball").cells_dict) == {"triangle"}


def test_pyvista_sees_the_same_body():
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    seen = standing().pyvista("block")
    np.testing.assert_array_equal(seen["von_mises"], standing().fields("block").von_mises)
    assert seen.volume == pytest.approx(0.04 * HEIGHT * 0.04, rel=0.02)
