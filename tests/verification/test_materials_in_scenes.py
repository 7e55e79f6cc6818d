"""Layers and nodules of soft bodies in scenes: felt by a ball that presses, and by a needle."""

import meshio
import numpy as np
import pytest

import palpo
from palpo.app.visual.rest import rest_picture
from palpo.config.load import parse_scene
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.io import read_solid_mesh, write_solid_mesh
from palpo.physics.numerics.errors import InputError
from tests.verification.small_scenes import BALL_ON_BLOCK, small_scene
from tests.verification.test_needle import CUTTING, FRICTION, GEL, PUNCTURE, lead

EVERYWHERE = "box = [[-1, -1, -1], [1, 1, 1]]"


def with_materials(text, *parts):
    """A scene's text whose first soft body has these parts."""
    listed = ", ".join(f"{{ {part} }}" for part in parts)
    return text.replace('kind = "tets"\n', f'kind = "tets"\nmaterials = [{listed}]\n', 1)


def test_a_body_wholly_of_a_part_is_felt_as_that_body():
    """Contacts, puncture, cutting, friction and the slow loop: the hand cannot tell them apart."""
    one = with_materials(
        GEL, f'{EVERYWHERE}, youngs_modulus = "60 kPa", density = 1100, cutting = 0.12, friction = 30'
    )
    other = GEL.replace("15 kPa", "60 kPa").replace("1000 kg/m3", "1100 kg/m3")
    other = other.replace(f"cutting = {CUTTING}", "cutting = 0.12")
    other = other.replace(f"friction = {FRICTION}", "friction = 30")
    felt = [lead(palpo.load(text).build().start(), 0.024, -0.010) for text in (one, other)]
    np.testing.assert_allclose(felt[0], felt[1], atol=1e-6 * np.abs(felt[1]).max())


def test_a_part_like_the_rest_changes_no_bit():
    felt = [
        lead(palpo.load(text).build().start(), 0.016)
        for text in (GEL, with_materials(GEL, f'{EVERYWHERE}, youngs_modulus = "15 kPa"'))
    ]
    np.testing.assert_array_equal(*felt)


def test_the_shaft_is_rubbed_by_the_layer_that_it_is_in():
    """The slope of force over depth is the layer's friction (as tests/verification/test_needle.py has it)."""
    top = f"box = [[-1, 0.024, -1], [1, 1, 1]], friction = {2 * FRICTION}"
    state = palpo.load(with_materials(GEL, top)).build().start()
    lead(state, 0.010, rest=0.0)
    forces, lengths = [], []
    for height in np.arange(0.011, 0.031, 0.001):
        forces.append(lead(state, height, speed=0.01, rest=0.0)[-1, 1])
        [needle] = state.needles
        # the layer is 16 mm thick at rest: it ends at the ninth point, or at the tip
        above = np.linalg.norm(np.diff(needle.path[:9], axis=0), axis=1).sum()
        lengths.append((needle.depth if len(needle.path) < 9 else above, needle.depth))
    (above, depth), forces = np.array(lengths).T, np.array(forces)
    low = depth - above > 0.002
    assert (depth == above)[:10].all() and low.sum() > 5
    assert np.polyfit(above[:10], forces[:10], 1)[0] == pytest.approx(2 * FRICTION, rel=0.01)
    rest = forces - 2 * FRICTION * above
    assert np.polyfit((depth - above)[low], rest[low], 1)[0] == pytest.approx(FRICTION, rel=0.02)


def test_a_border_bears_its_strength_and_gives_way():
    strength = 2.5 * PUNCTURE
    low = f"box = [[-1, -1, -1], [1, 0.024, 1]], puncture = {strength}"
    state = palpo.load(with_materials(GEL, low)).build().start()
    lead(state, 0.012, rest=0.0)
    depths, forces = [], []
    for height in np.arange(0.0125, 0.031, 0.0005):
        forces.append(lead(state, height, speed=0.01, rest=0.0)[:, 1])
        depths.append(state.needles[0].depth)
    broke = int(np.argmax(np.diff(depths)))
    # the border is 16 mm deep at rest, and the layer above it is pressed together
    assert 0.014 < depths[broke] < 0.016 and depths[broke + 1] - depths[broke] > 0.003
    peak = np.concatenate(forces).max()
    assert peak == pytest.approx(strength + FRICTION * depths[broke], rel=0.02)
    assert forces[-1][-1] == pytest.approx(CUTTING + FRICTION * depths[-1], rel=0.06)
    # in its channel it is open
    lead(state, 0.006)
    again = lead(state, 0.028, speed=0.01, rest=0.0)[:, 1]
    assert again.max() < CUTTING + 1.02 * FRICTION * state.needles[0].depth


NODULE = """
title = "A nodule under the skin"
gravity = [0, 0, 0]
[[bodies]]
name = "tissue"
kind = "tets"
geometry = { kind = "block", size = ["80 mm", "30 mm", "50 mm"], divisions = [16, 6, 10] }
placement = { position = [0, "-15 mm", 0] }
material = { youngs_modulus = "5 kPa", poisson_ratio = 0.45, density = 1000, beta = 0.002 }
materials = [{ sphere = { centre = ["15 mm", "-12 mm", 0], radius = "8 mm" }, youngs_modulus = "50 kPa" }]
fixed = [{ box = [[-1, -0.0301, -1], [1, -0.0299, 1]] }]
[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "6 mm" }
placement = { position = [PLACE, "6.5 mm", 0] }
mass = "30 g"
[tool]
body = "ball"
[tool.hold]
orientation = true
stiffness = 500
damping = 1
"""


def pressed(place, *rates):
    """Force over time of a ball pressed 5 mm into the tissue at a place, (ticks,)."""
    state = palpo.load("\n".join([NODULE.replace("PLACE", str(place)), *rates])).build().start()
    start = state.hand.position
    run = [state.step(hand=start - np.array([0.0, d, 0.0]), ticks=t) for d, t in ((6e-3, 300), (6e-3, 200))]
    return np.concatenate([one.force[:, 1] for one in run])


def test_a_nodule_is_felt_from_above_and_alike_at_both_rates():
    over, beside = pressed(0.015), pressed(-0.015)
    assert over[-1] > 1.2 * beside[-1]
    once = pressed(0.015, "[rates]", "low_hz = 1000")
    assert np.sqrt(((over - once) ** 2).mean()) < 0.01 * np.abs(once).max()


@pytest.mark.parametrize("name", ["organ.vtu", "organ.vtk", "organ.msh"])
@pytest.mark.parametrize("make", [block, hex_block])
def test_labels_of_a_file_say_which_elements_are_of_a_part(name, make, tmp_path):
    mesh = make((0.06, 0.02, 0.06), (4, 2, 4))
    labels = np.where(mesh.nodes[mesh.cells].mean(axis=1)[:, 0] > 0.0, 7, 3)
    mesh = type(mesh)(mesh.nodes, mesh.cells, labels=labels)
    write_solid_mesh(tmp_path / name, mesh)
    np.testing.assert_array_equal(read_solid_mesh(tmp_path / name).labels, labels)
    told = f"bodies.block.geometry={{kind='file',path='{tmp_path / name}'}}"
    body = (
        small_scene(
            BALL_ON_BLOCK, told, "bodies.block.materials=[{label=7,youngs_modulus=90e3,density=2000}]"
        )
        .members[0]
        .body
    )
    stiffness = body.material.stiffness_of(len(mesh.cells))
    np.testing.assert_array_equal(stiffness, np.where(labels == 7, 3.0, 1.0))
    assert body.mass == pytest.approx(1.5e3 * mesh.volume)
    with pytest.raises(
        InputError, match=r"materials\.0\.label holds .* no element .* its labels are \[3, 7\]"
    ):
        small_scene(BALL_ON_BLOCK, told, "bodies.block.materials=[{label=8,youngs_modulus=90e3}]")


def test_labels_of_other_names_count_and_a_file_without_says_so(tmp_path):
    mesh = block((0.06, 0.02, 0.06), (2, 1, 2))
    path = tmp_path / "organ.vtu"
    told = f"bodies.block.geometry={{kind='file',path='{path}'}}"
    part = "bodies.block.materials=[{label=0,youngs_modulus=90e3}]"
    meshio.Mesh(mesh.nodes, [("tetra", mesh.cells)]).write(path)
    with pytest.raises(InputError, match=r"materials\.0\.label = 0: the file of block has no labels"):
        small_scene(BALL_ON_BLOCK, told, part)
    numbers = np.arange(len(mesh.cells)) // 10.0
    meshio.Mesh(mesh.nodes, [("tetra", mesh.cells)], cell_data={"label": [numbers]}).write(path)
    body = small_scene(BALL_ON_BLOCK, told, part).members[0].body
    assert (np.array(body.material.moduli) == 90e3).sum() == 10
    meshio.Mesh(mesh.nodes, [("tetra", mesh.cells)], cell_data={"label": [numbers + 0.5]}).write(path)
    with pytest.raises(InputError, match="labels of cells are no whole numbers"):
        small_scene(BALL_ON_BLOCK, told, part)


def test_a_part_that_holds_nothing_is_refused():
    away = "bodies.block.materials=[{sphere={centre=[1, 1, 1],radius=0.01},youngs_modulus=1e5}]"
    with pytest.raises(
        InputError, match=r"block\.materials\.0\.sphere holds the centre of no element of block"
    ):
        small_scene(BALL_ON_BLOCK, away)


def test_a_part_is_seen_where_it_ends_inside_of_the_body():
    """Its border encloses the volume of its elements, and moves with the body's nodes."""
    text = NODULE.replace("PLACE", "0").replace('"50 kPa" }', '"50 kPa", colour = [1, 1, 0] }')
    geometry, _ = rest_picture(parse_scene(text, "nodule.toml"))
    by_name = {one.name: one for one in geometry.drawables}
    border, whole = by_name["tissue, part 1"], by_name["tissue"]
    assert border.pierces and border.span == whole.span
    a, b, c = geometry.rest[border.span][border.triangles].transpose(1, 0, 2)
    model = palpo.load(text).build()
    body = model.start().rig.scene.members[0].body
    firm = np.array(body.material.moduli) > 6e3
    volume = np.einsum("ij,ij", a, np.cross(b, c)) / 6.0
    assert volume == pytest.approx(body.mesh.volumes[firm].sum(), rel=1e-9)


def test_a_needle_goes_into_an_eye_by_two_punctures():
    """Each wall bears its strength: the force before the far one is that, what cutting takes and friction."""
    model = palpo.load("eye").build()
    state, path = model.start(), np.array(model.scene.spec.device.path)
    forces, insides = [], []
    for time in np.arange(0.02, 4.2, 0.02):
        goal = np.array([np.interp(time, path[:, 0], path[:, i]) for i in (1, 2, 3)])
        forces.append(state.step(hand=goal, ticks=20).force[:, 1])
        insides.append(state.needles[0].inside)
    force, inside = np.array(forces), np.array(insides)
    entered = int(np.argmax(inside > 0.0))
    # the hand brakes the tool by its damping, 2 N s/m at 8 mm/s
    assert force[: entered + 1].max() == pytest.approx(0.5, abs=0.03)
    far = slice(np.argmax(inside > 0.01), None)
    least, most = force[far].min(), force[far].max()
    assert most - least == pytest.approx(0.5, abs=0.05)
    peak = np.unravel_index(force.argmax(), force.shape)[0]
    assert force[peak + 2].max() < most - 0.15
    assert inside[-1] > 0.022
