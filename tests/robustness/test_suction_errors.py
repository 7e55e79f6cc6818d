"""A suction scene or mesh that cannot be used is refused in one sentence: what, its value, what is right."""

import math
import re

import numpy as np
import pytest

from palpo.config.load import parse_scene
from palpo.config.schema.geometry import CupModel, Resolution
from palpo.config.words import ConfigError
from palpo.physics.mesh.cups import CUPS, GRIDS, cup, require_opening
from palpo.physics.mesh.generate import box_surface, sphere_surface
from palpo.physics.mesh.partners import require_closed
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from tests.robustness.refusals import refused

SCENE = """
system = "suction"
title = "A cup lifts a cube"

[[bodies]]
name = "cup"
kind = "cup"
geometry = { kind = "cup", model = "small" }
drive = { kind = "scripted", path = [[0, 0, 0, 0], [2, 0, "-1 mm", 0]] }

[[bodies]]
name = "partner"
kind = "rigid"
geometry = { kind = "block", size = [0.1, 0.1, 0.1] }
mass = "50 g"
ground = 0

[gas]
kind = "passive"
"""

REVOLVED = "bodies.cup.geometry={kind='revolved',top=0.008,height=0.009,rim=0.004,stem=0.009,opening=%s}"

DRAWN = "bodies.cup.geometry={kind='drawn',wall=0.001,rim=0.002,stem=0.008,points=[%s]%s}"
BELLOWS = (
    "bodies.cup.geometry={kind='bellows',wall=0.001,rim=0.0015,stem=0.014,opening=0.026,neck=%s,belly=0.028,"
    "folds=%s,pitch=0.008,lip=0.005}"
)

HELD = ["tool={body='cup',hold={mode='direct'}}"]

REFUSED = [
    # what a cup is cut into
    ("bodies.cup.elements='cubes'", 'bodies.cup.elements = "cubes"'),
    (
        "bodies.cup={name='cup',kind='cup',elements='hexahedra',geometry={kind='arm'},drive={kind='cables'}}",
        'bodies.cup.elements = "hexahedra": the arm brings tetrahedra, and no cells to take whole; leave',
    ),
    # the air
    (
        "gas={kind='airtight',max_pressure='100 kPa'}",
        'gas.max_pressure = "100 kPa": air would leave by itself; give more than',
    ),
    (
        "gas={kind='airtight',atmosphere='102 kPa'}",
        "gas.max_pressure: air would leave by itself; give more than atmosphere = 102000",
    ),
    ("gas={kind='active',gauge='-102 kPa'}", 'gas.gauge = "-102 kPa": no pump goes below a vacuum'),
    ("gas={kind='active',table=[[0,0],[1,-2e5]]}", "gas.table[1][1] = -200000.0: no pump goes below"),
    ("gas={kind='active',table=[[1,0],[1,-5]]}", "has t = 1 s in row 1 after 1 s; times must increase"),
    ("gas={kind='active',leak=1}", "gas.leak = 1: unknown key"),
    ("gas={kind='vacuum'}", 'gas.kind = "vacuum": choose "passive", "airtight", "active" or "pumped"'),
    (
        "gas={kind='pumped',manifold={pump={speed='5 l/min',lowest='20 kPa'}}}",
        'gas.manifold.pump.lowest = "20 kPa": a pump reaches a pressure below the atmosphere\'s',
    ),
    (
        "gas={kind='pumped',manifold={pump={speed='5 m',lowest='-20 kPa'}}}",
        "is a length where a flow is needed",
    ),
    ("gas={kind='pumped'}", "gas.manifold: the key is missing"),
    ("bodies.cup.line={}", 'bodies.cup.line: a line leads to a pump; give [gas] kind = "pumped"'),
    ("bodies.cup.drive={kind='same',cup='cap'}", "no cup of that name has a scripted drive"),
    (
        "gas={kind='passive',leak='5 um'}",
        'gas.leak = "5 um": unknown key; the seal says how air gets by; rims that are tight by',
    ),
    (
        "gas={kind='passive',max_pressure=103000}",
        "gas.max_pressure = 103000: unknown key; the seal says how air gets by",
    ),
    ("gas={kind='passive',seal={rms=0}}", "gas.seal.rms = 0 is too small; it must be above 0"),
    ("gas={kind='passive',seal={rms='2 um',wavelength=0}}", "gas.seal.wavelength = 0 is too small"),
    (
        "gas={kind='airtight',seal={rms=1e-6}}",
        "gas.seal: unknown key; these rims are tight by themselves",
    ),
    ("gas={kind='airtight',leak=-1e-6}", "gas.leak = -1e-06 is too small; it must be at least 0"),
    ("gas.atmosphere=1 mm", "is a length where a pressure is needed"),
    ("gas.temperature=0", "gas.temperature = 0 is too small; it must be above 0"),
    # what it is set on, place by place
    ("bodies.partner.regions=[{box=[[0,0,0],[1,1,1]]}]", "partner.regions[0].seal: the key is missing (or"),
    (
        "bodies.partner.regions=[{permeability=1e-13,thickness='2 mm'}]",
        "bodies.partner.regions[0]: exactly one of box or sphere is needed",
    ),
    (
        "bodies.partner.regions=[{box=[[0,0,0],[1,1,1]],permeability=1e-13}]",
        "bodies.partner.regions[0].thickness: the key is missing: air goes through the pores by both",
    ),
    # the three distances
    ("contact.sealing=3 mm", 'contact.sealing = "3 mm": it must not exceed alarm = 0.002 m'),
    ("contact.distance=1 mm", 'contact.distance = "1 mm": it must not exceed sealing = 0.0005 m'),
    ("contact.alarm=0", "contact.alarm = 0 is too small"),
    ("contact.tolerance=1", "contact.tolerance = 1: unknown key"),
    # cups
    ("bodies=[]", "bodies = []: a cup is missing"),
    ("bodies.partner={kind='cup',name='b',geometry={kind='arm'},drive={kind='free'}}", "set on is missing"),
    (REVOLVED % "0", "cup.geometry.opening = 0: a cup without an opening has no cavity"),
    (
        REVOLVED % "0.007",
        "cup.geometry.top = 0.008: a cavity narrows upward; give at most its opening",
    ),
    (REVOLVED % "0.032", "bodies.cup.material: the key is missing (a material's name, or a table)"),
    (
        DRAWN % ("[0.016,0.001],[0.012,0.01]", ""),
        "geometry.points[0][1] = 0.001: it is at the rim's inner edge",
    ),
    (DRAWN % ("[0.016,0]", ""), "bodies.cup.geometry.points"),
    (DRAWN % ("[0.016,0],[0.012,0.01]", ",walls=[0.001]"), "walls = [0.001]: give one for each of the 2"),
    (DRAWN % ("[0.016,0],[0.012,0.01]", ""), "bodies.cup.material: the key is missing (a material's name"),
    (BELLOWS % ("0.03", 1), "bodies.cup.geometry.opening = 0.026: it must be wider than the neck, 0.03 m"),
    (BELLOWS % ("0.016", 0), "bodies.cup.geometry.folds = 0 is too small"),
    ("bodies.cup.geometry.model=S40", 'bodies.cup.geometry.model = "S40": did you mean "S'),
    ("bodies.cup.geometry.resolution=577", "bodies.cup.geometry.resolution = 577: choose 76, 125, 141"),
    ("bodies.cup.geometry={kind='dish'}", 'bodies.cup.geometry.kind = "dish": choose "cup", "revolved"'),
    ("bodies.cup.geometry={kind='file',path='no.msh',held=[{end='last'}]}", '"no.msh" is not there'),
    ("bodies.cup.drive={kind='cables'}", "bodies.cup.drive: only an arm has cables"),
    ("bodies.cup.drive={kind='scripted'}", "bodies.cup.drive.path: the key is missing"),
    ("bodies.cup.drive={kind='figure',push=[[0,'1 mm']]}", "is a length where a force is needed"),
    ("bodies.cup.seed=-1", "bodies.cup.seed = -1 is too small"),
    ("bodies.cup.fixed=[]", "bodies.cup.fixed = []: unknown key; a cup is held by its drive"),
    ("bodies.cup.mass=0", "bodies.cup.mass = 0 is too small; it must be above 0"),
    ("bodies.cup.name=partner", 'bodies.partner.name = "partner": another body has this name already'),
    # the partner
    ("bodies.partner.kind=mesh", "bodies.partner.mass = "),
    ("bodies.partner.density=1000", "bodies.partner: density and mass exclude each other"),
    ("bodies.partner.material=steel", "a rigid body has density or mass instead"),
    (
        "bodies.partner.geometry={kind='plate',bump=0.01}",
        "geometry.bump = 0.01: bumps must be below half",
    ),
    (
        "bodies.partner.geometry={kind='tunnel',width=0.02}",
        "geometry.width = 0.02: the holes overlap",
    ),
    (
        "bodies.partner.geometry={kind='tunnel',depth=0.2}",
        "geometry.depth = 0.2: it must lie between",
    ),
    ("bodies.partner.geometry={kind='tunnel',spacing=0.12}", "the holes do not fit a cube of side = 0.115 m"),
    ("bodies.partner.roughness=-1", "bodies.partner.roughness = -1 is too small"),
    (
        "bodies.partner={kind='tets',name='partner',geometry={kind='bunny'},material='silicone'}",
        'geometry.kind = "bunny": choose',
    ),
    # the rest
    ("friction.rough=-1", "friction.rough = -1 is too small"),
    ("solver.stop=time", 'solver.stop = "time": choose "residual" or "sweeps"'),
    ("solver.sweeps=0", "solver.sweeps = 0 is too small"),
    ("rates.low_hz=30", "rates.low_hz = 30: 1000/30 is no integer"),
    (
        "connector={}",
        'connector: unknown key; it belongs to a scene of snap, and system = "suction" makes',
    ),
    ("refine=1", "refine = 1 is not true or false"),
]


def test_a_cup_from_a_file_brings_no_cells_to_take_whole(tmp_path):
    (tmp_path / "cup.msh").touch()
    cup = (
        f"bodies.cup={{name='cup',kind='cup',elements='hexahedra',material='silicone',geometry={{kind='file',"
        f"path='{tmp_path}/cup.msh',held=[{{nodes=[0]}}]}},drive={{kind='scripted',path=[[0,0,0,0]]}}}}"
    )
    said = 'bodies.cup.elements = "hexahedra": a file brings tetrahedra, and no cells to take whole'
    assert said in refused(SCENE, "lift.toml", cup)


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=[override for override, _ in REFUSED])
def test_a_refused_key_is_told_with_its_file_path_and_value(override, said):
    assert said in refused(SCENE, "lift.toml", override)


def test_a_cup_is_moved_by_the_hand_or_by_its_drive():
    led = parse_scene(SCENE.replace("drive =", "# "), "lift.toml", HELD)
    assert led.cups[0].drive is None and led.tool.hold.mode == "direct"
    for text, overrides, said in (
        (SCENE, HELD, "bodies.cup.drive: the hand moves this cup; leave the drive out"),
        (SCENE.replace("drive =", "# "), [], "bodies.cup.drive: the key is missing (what moves the cup"),
        (SCENE, ["tool.body=partner"], 'tool.body = "partner": the hand holds a cup; choose "cup"'),
    ):
        with pytest.raises(ConfigError, match=re.escape(said)):
            parse_scene(text, "lift.toml", overrides)


def test_a_scene_of_defaults_steps_every_10_ms_below_a_servo_of_1_khz():
    scene = parse_scene(SCENE, "lift.toml")
    assert scene.rates.low_dt == pytest.approx(0.01) and scene.rates.ratio == 10
    assert scene.contact.distance <= scene.contact.sealing <= scene.contact.alarm
    airtight = parse_scene(SCENE, "lift.toml", ["gas={kind='airtight'}"])
    assert airtight.gas.max_pressure >= airtight.gas.atmosphere


def test_a_surface_has_waves_of_50_times_its_height_unless_they_are_given():
    assert parse_scene(SCENE, "lift.toml", ["gas.seal.rms=3 um"]).gas.seal.longest == pytest.approx(150e-6)
    given = ["gas.seal={rms='3 um',wavelength='1 mm'}"]
    assert parse_scene(SCENE, "lift.toml", given).gas.seal.longest == pytest.approx(1e-3)


def test_friction_falls_with_roughness_half_way_at_the_half_depth():
    scene = parse_scene(
        SCENE,
        "lift.toml",
        ["friction={default=0.8,rough=0.2,half_depth='20 um'}", "bodies.partner.roughness=15 um"],
    )
    assert scene.roughness(scene.cups[0]) == pytest.approx(20e-6)
    assert scene.mu(scene.cups[0]) == pytest.approx(0.5)
    assert scene.friction.at(0.0) == 0.8 and scene.friction.at(1.0) == pytest.approx(0.2, abs=1e-4)
    assert parse_scene(SCENE, "lift.toml").mu(scene.cups[0]) == 0.6


def test_every_model_and_resolution_of_a_scene_can_be_made():
    models = CupModel.model_fields["model"].annotation.__args__
    assert set(models) == set(CUPS) and set(Resolution.__args__) == set(GRIDS)


@pytest.mark.parametrize(
    "surface",
    [
        pytest.param(box_surface((0.04, 0.02, 0.04), (4, 2, 4)), id="block"),
        pytest.param(sphere_surface(0.02, 2), id="ball"),
        pytest.param(
            cup(CUPS["small"].shape, GRIDS[203])
            .mesh.surface()
            .with_vertices(cup(CUPS["small"].shape, GRIDS[203]).mesh.nodes * [1.0, -1.0, -1.0]),
            id="cup-upside-down",
        ),
    ],
)
def test_a_cup_without_an_opening_below_is_refused(surface):
    with pytest.raises(InputError, match=r"^lid\.msh: the cup has no opening: .*; turn its op") as refusal:
        require_opening(surface, 5e-4, "lid.msh")
    assert "\n" not in str(refusal.value)


def test_a_hollow_ball_encloses_air_but_has_no_opening():
    ball = sphere_surface(0.02, 2)
    hollow = SurfaceMesh.from_triangles(
        np.concatenate([ball.vertices, 0.8 * ball.vertices]),
        np.concatenate([ball.triangles, ball.triangles[:, ::-1] + len(ball.vertices)]),
    )
    with pytest.raises(InputError, match="no opening"):
        require_opening(hollow, 5e-4, "ball")


def test_an_open_partner_is_refused_at_the_edge_where_it_ends():
    closed = sphere_surface(0.05, 2)
    require_closed(closed, "bowl.obj")
    bowl = SurfaceMesh.from_triangles(closed.vertices, closed.triangles[1:])
    with pytest.raises(InputError, match=r"^bowl\.obj: the surface is open at the edge of nodes \d+ and \d+"):
        require_closed(bowl, "bowl.obj")
    assert math.isfinite(bowl.signed_volume)  # refused for its hole, not for its volume
