"""A robot of URDF or MJCF stands where its joints put it, with the masses of its file, and opens nothing."""

import itertools
import tracemalloc

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import palpo
from palpo.app.build.parts import rigid_form
from palpo.app.build.robots import HeldRobot
from palpo.app.cli.main import main
from palpo.config.words import ConfigError
from palpo.physics.numerics.errors import InputError

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[urdf]'")

RNG = np.random.default_rng(7)
LINKS = [f"link{i}" for i in range(4)]
MASSES = RNG.uniform(0.5, 2.0, 4)
CENTRES = RNG.uniform(-0.05, 0.05, (4, 3))
ORIGINS, TURNS = RNG.uniform(-0.2, 0.2, (4, 3)), RNG.uniform(-1.0, 1.0, (4, 3))
AXES = [axis / np.linalg.norm(axis) for axis in RNG.uniform(-1.0, 1.0, (4, 3))]
KINDS = ("", "revolute", "prismatic", "continuous")
SHAPES = (
    '<box size="0.02 0.03 0.05"/>', '<sphere radius="0.01"/>', '<cylinder radius="0.01" length="0.06"/>',
    '<mesh filename="meshes/part.stl" scale="0.001 0.001 0.001"/>',
)  # fmt: skip
AT = {"angles": {"joint1": 0.7, "joint3": -2.0}, "travels": {"joint2": 0.03}}


def inertia_of(number):
    """A box's."""
    a, b, c = 0.02 * (number + 1), 0.03, 0.05
    return MASSES[number] / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])


def said(vector):
    return " ".join(repr(float(x)) for x in vector)


@pytest.fixture
def urdf(tmp_path):
    """A chain of four links, their frames, joints, centres and shapes askew."""
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((20.0, 30.0, 40.0)).export(tmp_path / "meshes" / "part.stl")
    parts = ['<robot name="chain"><material name="grey"><texture filename="../secret.png"/></material>']
    for i, shape in enumerate(SHAPES):
        x, y, z = inertia_of(i)
        parts.append(
            f'<link name="{LINKS[i]}"><inertial><mass value="{MASSES[i]:.17g}"/>'
            f'<origin xyz="{said(CENTRES[i])}"/>'
            f'<inertia ixx="{x:.17g}" iyy="{y:.17g}" izz="{z:.17g}" ixy="0" ixz="0" iyz="0"/></inertial>'
            '<visual><geometry><mesh filename="/elsewhere/seen.dae"/></geometry></visual>'
            f'<collision><origin xyz="0 0 0.01"/><geometry>{shape}</geometry></collision></link>'
        )
        if i:
            parts.append(
                f'<joint name="joint{i}" type="{KINDS[i]}"><parent link="{LINKS[i - 1]}"/>'
                f'<child link="{LINKS[i]}"/>'
                f'<origin xyz="{said(ORIGINS[i])}" rpy="{said(TURNS[i])}"/><axis xyz="{said(AXES[i])}"/>'
                '<limit lower="0.01" upper="2" effort="1" velocity="1"/></joint>'
            )
    path = tmp_path / "chain.urdf"
    path.write_text("".join(parts) + "</robot>")
    return path


def frames(values):
    """Rotation and origin of each link by the chain of its joints, whose values are these."""
    found = [(np.eye(3), np.zeros(3))]
    for i in range(1, 4):
        before, at = found[-1]
        here = before @ Rotation.from_euler("xyz", TURNS[i]).as_matrix()
        origin = at + before @ ORIGINS[i]
        if KINDS[i] == "prismatic":
            found.append((here, origin + here @ AXES[i] * values[i - 1]))
        else:
            found.append((here @ Rotation.from_rotvec(values[i - 1] * AXES[i]).as_matrix(), origin))
    return found


def moments(links, values):
    """Mass, centre and inertia about it of links together, by the parallel axis theorem."""
    placed = [(i, *frames(values)[i]) for i in links]
    mass = sum(MASSES[i] for i in links)
    centres = {i: at + turn @ CENTRES[i] for i, turn, at in placed}
    centre = sum(MASSES[i] * centres[i] for i in links) / mass
    inertia = np.zeros((3, 3))
    for i, turn, _ in placed:
        off = centres[i] - centre
        inertia += turn @ np.diag(inertia_of(i)) @ turn.T
        inertia += MASSES[i] * (off @ off * np.eye(3) - np.outer(off, off))
    return mass, centre, inertia


@pytest.mark.parametrize("first", range(4))
def test_links_and_masses_are_where_the_chain_of_joints_puts_them(first, urdf):
    robot = HeldRobot(palpo.Robot(path=str(urdf), link=LINKS[first], **AT))
    values = (0.7, 0.03, -2.0)
    mass, centre, inertia = moments(range(first, 4), values)
    found = robot.masses()
    assert found.mass == pytest.approx(mass, rel=1e-9)
    np.testing.assert_allclose(found.centre, centre, atol=1e-9)
    np.testing.assert_allclose(found.inertia, inertia, atol=1e-9)
    # the last eight corners are those of the box of the mesh, in single precision
    turn, at = frames(values)[3]
    corners = np.array(list(itertools.product(*((-0.5 * a, 0.5 * a) for a in (0.02, 0.03, 0.04)))))
    there = at + (corners + np.array([0.0, 0.0, 0.01])) @ turn.T
    given = robot.surface().vertices[-8:]
    assert np.linalg.norm(given[:, None] - there, axis=2).min(axis=0).max() < 1e-7


def test_joints_that_are_not_told_are_at_zero_or_the_nearest_end(urdf):
    told = {"angles": {"joint1": 0.01, "joint3": 0.0}, "travels": {"joint2": 0.01}}
    bare = HeldRobot(palpo.Robot(path=str(urdf))).surface()
    np.testing.assert_array_equal(
        bare.vertices, HeldRobot(palpo.Robot(path=str(urdf), **told)).surface().vertices
    )


def test_what_is_left_out_and_what_hangs_there_are_the_whole(urdf):
    whole, below, above = (
        HeldRobot(palpo.Robot(path=str(urdf), **AT, **chosen)).masses()
        for chosen in ({}, {"link": "link2"}, {"without": ["link2"]})
    )
    assert below.mass + above.mass == pytest.approx(whole.mass)
    np.testing.assert_allclose(
        below.mass * below.centre + above.mass * above.centre, whole.mass * whole.centre, atol=1e-12
    )


LINK = (
    "<link name='{}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    "</inertial><collision><geometry><sphere radius='0.01'/></geometry></collision></link>"
)
FOLLOWER = (
    "<joint name='{0}' type='prismatic'><parent link='p'/><child link='{1}'/><axis xyz='{2} 0 0'/>"
    "<limit lower='0' upper='1' effort='1' velocity='1'/>{3}</joint>"
)


def test_a_joint_follows_the_one_that_its_file_names_unless_it_is_told(tmp_path):
    # of two that are written in the wrong order, the last follows the first one's follower
    ways = [("j3", "c", 1, "j2", 2.0, 0.0), ("j2", "b", -1, "j1", 0.5, 0.1), ("j1", "a", 1, "", 0.0, 0.0)]
    parts = [LINK.format(name) for name in "pabc"]
    for joint, link, side, leader, factor, offset in ways:
        follows = f"<mimic joint='{leader}' multiplier='{factor}' offset='{offset}'/>" if leader else ""
        parts.append(FOLLOWER.format(joint, link, side, follows))
    path = tmp_path / "a.urdf"
    path.write_text(f"<robot name='r'>{''.join(parts)}</robot>")
    for told, places in (
        ({"j1": 0.2}, {"a": 0.2, "b": -0.2, "c": 0.4}),
        ({"j1": 0.2, "j2": 0.3}, {"a": 0.2, "b": -0.3, "c": 0.6}),
        ({"j3": 0.5}, {"a": 0.0, "b": -0.1, "c": 0.5}),
    ):
        for link, x in places.items():
            robot = HeldRobot(palpo.Robot(path=str(path), travels=told, link=link))
            assert robot.masses().centre[0] == pytest.approx(x, abs=1e-12), (told, link)


MJCF = """
<mujoco><compiler angle="radian" meshdir="meshes"/><option timestep="1"/>
<default><geom material="steel" friction="2"/></default>
<asset><texture name="t" type="2d" file="../../secret.png"/><material name="steel" texture="t"/>
<hfield name="h" file="/etc/passwd"/><mesh file="part.stl" scale="0.001 0.001 0.001"/></asset>
<worldbody><light pos="0 0 1"/><geom type="plane" size="1 1 1"/>{bodies}</worldbody>
<actuator><motor joint="joint1"/></actuator><sensor><jointpos joint="joint1"/></sensor></mujoco>
"""
GEOMS = (
    'type="box" size="0.01 0.015 0.025"', 'type="sphere" size="0.01"', 'type="cylinder" size="0.01 0.03"',
    'type="mesh" mesh="part"',
)  # fmt: skip


def mjcf_of(number=0):
    if number > 3:
        return ""
    turn = Rotation.from_euler("xyz", TURNS[number]).as_quat()[[3, 0, 1, 2]] if number else (1, 0, 0, 0)
    kind = "slide" if KINDS[number] == "prismatic" else "hinge"
    limit = 'range="0.01 2"' if KINDS[number] != "continuous" else ""
    joint = (
        f'<joint name="joint{number}" type="{kind}" axis="{said(AXES[number])}" {limit}/>' if number else ""
    )
    return (
        f'<body name="link{number}" pos="{said(ORIGINS[number] * (number > 0))}" quat="{said(turn)}">'
        f'{joint if number else ""}<inertial pos="{said(CENTRES[number])}" mass="{MASSES[number]:.17g}" '
        f'diaginertia="{said(inertia_of(number))}"/><geom pos="0 0 0.01" {GEOMS[number]}/>'
        f'<geom type="sphere" size="9" contype="0" conaffinity="0"/>{mjcf_of(number + 1)}</body>'
    )


def test_mjcf_and_urdf_of_one_robot_are_the_same(urdf):
    path = urdf.with_suffix(".xml")
    path.write_text(MJCF.format(bodies=mjcf_of()))
    one, other = (HeldRobot(palpo.Robot(path=str(file), **AT)) for file in (urdf, path))
    np.testing.assert_allclose(one.surface().vertices, other.surface().vertices, atol=1e-9)
    for mine, theirs in zip(one.masses(), other.masses(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


VOLUMES = {
    'type="sphere" size="0.02"': 4.0 / 3.0 * np.pi * 0.02**3,
    'type="ellipsoid" size="0.01 0.02 0.03"': 4.0 / 3.0 * np.pi * 0.01 * 0.02 * 0.03,
    'type="capsule" size="0.01 0.03"': np.pi * 0.01**2 * 0.06 + 4.0 / 3.0 * np.pi * 0.01**3,
    'type="cylinder" size="0.01 0.03"': np.pi * 0.01**2 * 0.06,
    'type="box" size="0.01 0.02 0.03"': 8.0 * 0.01 * 0.02 * 0.03,
}
EXTENT = {"sphere": (0.02, 0.02, 0.02), "ellipsoid": (0.01, 0.02, 0.03), "capsule": (0.01, 0.01, 0.04),
          "cylinder": (0.01, 0.01, 0.03), "box": (0.01, 0.02, 0.03)}  # fmt: skip


@pytest.mark.parametrize("geom", VOLUMES)
def test_shapes_are_closed_and_as_large_as_they_say(geom, tmp_path):
    path = tmp_path / "one.xml"
    path.write_text(f'<mujoco><worldbody><body name="b"><geom {geom}/></body></worldbody></mujoco>')
    robot = HeldRobot(palpo.Robot(path=str(path)))
    surface = robot.surface()
    assert surface.closed
    # 24 facets around: a polygon of 24 sides has 1.14% less than its circle, and poles of 13 rings more
    assert 0.95 * VOLUMES[geom] < surface.signed_volume <= VOLUMES[geom] * (1.0 + 1e-9)
    np.testing.assert_allclose(surface.vertices.max(axis=0), EXTENT[geom.split('"')[1]], rtol=0.02)
    # a file without masses has water's density
    assert robot.masses().mass == pytest.approx(1000.0 * VOLUMES[geom], rel=1e-9)


def scene_with(path, keys="", extra=""):
    return palpo.load(
        f"""
        title = "robot"
        tool = {{ body = "hand" }}
        [[bodies]]
        kind = "rigid"
        name = "hand"
        rate = "high"
        {extra}
        geometry = {{ kind = "robot", path = "{path.name}"{keys and ", "}{keys} }}
        placement = {{ scale = 2, position = [0.1, 0, 0] }}
        """,
        folder=path.parent,
    )


def test_a_rigid_body_of_a_scene_has_the_files_mass_and_inertia(urdf):
    scene = scene_with(urdf, "angles = { joint1 = 0.7, joint3 = -2.0 }, travels = { joint2 = '30 mm' }")
    masses = rigid_form(scene.spec.body("hand"))[4]
    mass, centre, inertia = moments(range(4), (0.7, 0.03, -2.0))
    # lengths are doubled, the mass is not
    assert masses.mass == pytest.approx(mass)
    np.testing.assert_allclose(masses.centre, 2.0 * centre, atol=1e-9)
    np.testing.assert_allclose(masses.inertia, 4.0 * inertia, atol=1e-8)
    assert rigid_form(scene_with(urdf, extra="mass = 0.5").spec.body("hand"))[4].mass == pytest.approx(0.5)
    with pytest.raises(palpo.Refusal, match="density and mass"):
        scene_with(urdf, extra="mass = 0.5\ndensity = 1000")


def test_a_scene_with_a_robot_can_be_written_and_read(urdf, tmp_path):
    scene = scene_with(urdf, "angles = { joint1 = '40 deg' }, without = ['link3']")
    (tmp_path / "elsewhere").mkdir()
    scene.save(tmp_path / "elsewhere" / "scene.toml")
    assert palpo.load(tmp_path / "elsewhere" / "scene.toml").spec.body("hand") == scene.spec.body("hand")


def test_the_command_lists_links_and_joints_and_draws(urdf, tmp_path, capsys):
    assert main(["mesh", str(urdf), "--picture", str(tmp_path / "robot.png")]) == 0
    told = capsys.readouterr().out
    assert f"link link0: {MASSES[0]:.4g} kg" in told and "hinge joint3: without end" in told
    assert "slide joint2: 0.01 to 2 m" in told and (tmp_path / "robot.png").is_file()


WRONG = {
    "no joint": (
        {"angles": {"elbow": 1.0}},
        'angles.elbow; choose "joint1" or "joint3"',
    ),
    "other kind": ({"angles": {"joint2": 1.0}}, "no joint for geometry.angles.joint2"),
    "range": ({"angles": {"joint1": 3.0}}, r"geometry.angles.joint1 = 3 rad: .*from 0.01 to 2"),
    "travel": ({"travels": {"joint2": -1.0}}, r"geometry.travels.joint2 = -1 m: .*from 0.01 to 2"),
    "link": ({"link": "lnk1"}, 'no geometry.link "lnk1"; did you mean "link1"'),
    "without": ({"without": ["x"]}, 'no geometry.without "x"'),
    "nothing": ({"link": "link1", "without": ["link1"]}, "have no shape"),
}


@pytest.mark.parametrize(("keys", "words"), WRONG.values(), ids=WRONG)
def test_what_a_robot_does_not_have_is_told(keys, words, urdf):
    with pytest.raises(InputError, match=words):
        HeldRobot(palpo.Robot(path=str(urdf), **keys)).surface()


INCLUDED = "<mujocoinclude><body name='b'><geom size='0.01'/></body></mujocoinclude>"
LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
BODY = "<worldbody><body name='b'><geom size='0.01'/>{}</body></worldbody>"
HOSTILE = {
    "laughs": (f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]><mujoco>&a11;</mujoco>', "declares entities"),
    "outside": ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><mujoco>&a;</mujoco>',
                "declares entities"),
    "broken": ("<mujoco><worldbody>", "no element found|mismatched"),
    "another": ("<html/>", "its root is <html>"),
    "empty": ("", "no element found"),
    "itself": ("<mujoco><include file='a.xml'/></mujoco>", "more than 100 files, or itself"),
    "include above": ("<mujoco><include file='../b.xml'/></mujoco>", r'"\.\./b.xml" does not lie'),
    "include of the system": ("<mujoco><include file='/etc/passwd'/></mujoco>", "does not lie in the folder"),
    "mesh above": ("<mujoco><asset><mesh file='../b.stl'/></asset></mujoco>", "does not lie in the folder"),
    "folder above": ("<mujoco><compiler meshdir='..'/><asset><mesh file='b.stl'/></asset></mujoco>",
                     "does not lie"),
    "mesh of the net": ("<mujoco><asset><mesh file='http://x/b.stl'/></asset></mujoco>", "is not there"),
    "link": ("<mujoco><asset><mesh file='link.stl'/></asset></mujoco>", "does not lie in the folder"),
    "device": ("<mujoco><asset><mesh file='dir.stl'/></asset></mujoco>", "is not there"),
    "missing": ("<mujoco><asset><mesh file='no.stl'/></asset></mujoco>", '"no.stl" is not there'),
    "collada": ("<mujoco><asset><mesh file='a.dae'/></asset></mujoco>", r'the mesh "a.dae" is none of .stl'),
    "no mesh": ("<mujoco><asset><mesh file='text.stl'/></asset></mujoco>", "no robot that can be read"),
    "many": ("<mujoco>" + BODY.format("<replicate count='99999999'/>") + "</mujoco>",
             "<replicate>, which is not read"),
    "shapes": ("<mujoco>" + BODY.format("<geom size='.1'/>" * 2001) + "</mujoco>", "2002 shapes"),
    "nan": ("<mujoco><worldbody><body pos='nan 0 0'><geom size='1'/></body></worldbody></mujoco>",
            "nan|finite"),
    "deep": ("<mujoco><worldbody>" + "<body>" * 20000 + "</body>" * 20000 + "</worldbody></mujoco>", "robot"),
    "plane": ("<mujoco><worldbody><body><geom type='plane' size='1 1 1'/></body></worldbody></mujoco>",
              "no ball, capsule|plane"),
    "package": ("<robot name='r'><link name='l'><collision><geometry><mesh filename='package://etc/passwd'/>"
                "</geometry></collision></link></robot>", "is not there"),
    "file": ("<robot name='r'><link name='l'><collision><geometry><mesh filename='file:///etc/a.stl'/>"
             "</geometry></collision></link></robot>", "does not lie"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_strangers_file_is_refused_in_words(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "theirs"
    (folder / "dir.stl").mkdir(parents=True)
    (tmp_path / "b.stl").write_text("solid")
    (tmp_path / "b.xml").write_text("<mujocoinclude/>")
    (folder / "link.stl").symlink_to(tmp_path / "b.stl")
    (folder / "a.dae").write_text("<COLLADA/>")
    (folder / "text.stl").write_text("hello")
    path = folder / "a.xml"
    path.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=words) as refused:
            HeldRobot(palpo.Robot(path=str(path))).surface()
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()
    assert str(refused.value).startswith(str(path)) and len(str(refused.value)) < 600
    # nothing is written, either
    assert {item.name for item in tmp_path.iterdir()} == {"theirs", "b.stl", "b.xml"}


@pytest.mark.parametrize("data", [b"\xff\xfe<\x00m\x00", bytes(range(256)), b"<mujoco>" + b" " * 2**24])
def test_what_is_no_text_or_too_much_is_refused(data, tmp_path):
    (tmp_path / "a.xml").write_bytes(data)
    with pytest.raises(InputError, match="no robot that can be read"):
        HeldRobot(palpo.Robot(path=str(tmp_path / "a.xml")))


def test_files_of_a_folder_include_each_other(tmp_path):
    (tmp_path / "hand.xml").write_text(INCLUDED)
    path = tmp_path / "a.xml"
    path.write_text("<mujoco><worldbody><include file='hand.xml'/></worldbody></mujoco>")
    assert list(HeldRobot(palpo.Robot(path=str(path))).links) == ["b"]


def test_a_package_is_the_folder_that_the_robot_lies_in(urdf):
    folder = urdf.parent / "chain" / "urdf"
    folder.mkdir(parents=True)
    (urdf.parent / "meshes").rename(urdf.parent / "chain" / "meshes")
    moved = folder / "chain.urdf"
    moved.write_text(urdf.read_text().replace("meshes/part.stl", "package://chain/meshes/part.stl"))
    assert HeldRobot(palpo.Robot(path=str(moved))).surface().closed


def test_a_scene_names_the_key_of_a_wrong_value(urdf):
    with pytest.raises((palpo.Refusal, ConfigError), match=r"geometry\.angles\.joint1.*length"):
        scene_with(urdf, "angles = { joint1 = '3 mm' }")
