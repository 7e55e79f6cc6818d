"""A scene that cannot be used is refused in one sentence: file, key path, value, what would be right."""

import json
import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.config.load import load_scene, parse_scene
from palpo.config.schema.base import Spec, is_tagged, kind_of
from palpo.config.words import ConfigError
from tests.robustness.refusals import refused

SCENE = """
title = "A ball, a block and a rod"

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.1, 0.1, 0.1] }
material = "liver"
fixed = [{ box = [[-1, -1, -1], [1, 0, 1]] }]

[[bodies]]
name = "rod"
kind = "beam"
geometry = { kind = "line", start = [0, 0, 0], end = [0.1, 0, 0], elements = 4, radius = "1 mm" }
material = { name = "steel", density = 8000 }

[[bodies]]
name = "floor"
kind = "plane"

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "1 cm" }
mass = "30 g"

[[friction.pairs]]
bodies = ["ball", "block"]
mu = 0.5

[[attachments]]
kind = "point"
a = { body = "rod", end = "last" }
b = { body = "block", at = [0, 0, 0] }

[tool]
body = "ball"
"""

REFUSED = [
    # keys
    ("rates.lowhz=3", 'rates.lowhz = 3: unknown key; did you mean "low_hz"?'),
    ("bodies.ball.geometry.raduis=1", 'bodies.ball.geometry.raduis = 1: unknown key; did you mean "radius"?'),
    ("tool={}", "tool.body: the key is missing (Name of the body that the hand holds"),
    ("bodies.block.geometry={kind='block'}", "bodies.block.geometry.size: the key is missing (Edge lengths"),
    ("bodies.floor.geometry={}", "bodies.floor.geometry: unknown key; a plane is given by point and normal"),
    ("bodies.floor.fixed=[]", "bodies.floor.fixed = []: unknown key; this body never moves"),
    ("bodies.ball.fixed=[]", 'a rigid body that never moves is kind = "mesh"'),
    ("bodies.ball.material=steel", "a rigid body has density or mass instead"),
    # parts of other materials
    ("bodies.block.materials=[{youngs_modulus=1e5}]", "exactly one of box, sphere or label is needed"),
    (
        "bodies.block.materials=[{sphere={centre=[0,0,0],radius=1},poisson_ratio=0.3}]",
        "materials[0].poisson_ratio = 0.3: unknown key; all parts of a body have that of its material",
    ),
    (
        "bodies.block.materials=[{sphere={centre=[0,0,0],radius=1},material='steel'}]",
        "give youngs_modulus and density; all else is that of the body's material",
    ),
    (
        "bodies.block.materials=[{label=2}]",
        "bodies.block.materials[0].label = 2: only a mesh file has labels",
    ),
    (
        "bodies.block={name='block',kind='tets',geometry={kind='block',size=[1,1,1]},material='liver',mass=1,"
        "materials=[{box=[[0,0,0],[1,1,1]],density=2000}]}",
        "bodies.block.materials[0].density = 2000: the body's mass is spread evenly",
    ),
    (
        "bodies.block={name='block',kind='tets',geometry={kind='block',size=[1,1,1]},material='liver',"
        "materials=[{box=[[0,0,0],[1,1,1]],density=2000}],incisions=[{corners=[[0,0,0],[1,0,0],[0,1,0]]}]}",
        "a body with incisions is of one material; leave the key out",
    ),
    # kinds and choices
    ("bodies.rod.kind=beem", 'bodies.rod.kind = "beem": did you mean "beam"?'),
    ("bodies.ball.geometry={radius=1}", 'bodies.ball.geometry.kind: the key is missing; choose "capsule" or'),
    ("bodies.ball.geometry=ball", 'bodies.ball.geometry = "ball": a table is needed here, with kind ='),
    ("interface.kind=paperr", 'interface.kind = "paperr": did you mean "paper"?'),
    ("interface.kind=3", 'interface.kind = 3: choose "krylov", "paper" or "extrapolated"'),
    ("interface.shifts=4", "interface.shifts = 4: choose 1, 2 or 3"),
    ("solver.name=newtonn", 'solver.name = "newtonn": choose "gauss-seidel" or "anderson"'),
    # types
    ("contact.max_contacts=1.5", "contact.max_contacts = 1.5 is not a whole number"),
    ("contact.max_contacts=true", "contact.max_contacts = true is not a whole number"),
    ("device.smooth=1", "device.smooth = 1 is not true or false"),
    ("title=3", "title = 3 is not text"),
    ("rates=3", "rates = 3: a table is needed here, with the keys servo_hz, low_hz, adapt and render_hz"),
    ("gravity=9.81", "gravity = 9.81 is not a list"),
    ("gravity=[0,-9.81]", "gravity = [0, -9.81] has too few items; give at least 3"),
    ("gravity=[0,-9.81,0,0]", "gravity = [0, -9.81, 0, 0] has too many items; give at most 3"),
    ("bodies=[]", "bodies = [] has too few items; give at least 1"),
    # quantities
    (
        "bodies.ball.geometry.radius=5 kPa",
        '"5 kPa" is a pressure where a length is needed; write a number of m',
    ),
    ("bodies.ball.geometry.radius=-1", "bodies.ball.geometry.radius = -1 is too small; it must be above 0"),
    ("bodies.rod.material.poisson_ratio=0.5", "poisson_ratio = 0.5 is too large; it must be below 0.5"),
    ("gravity=[0,nan,0]", "gravity[1] = nan is not finite"),
    ("friction.default='0.3'", 'friction.default = "0.3" is text; write the number without quotes'),
    # geometry
    ("bodies.rod.geometry.end=[0,0,0]", "bodies.rod.geometry.end = [0, 0, 0] equals start"),
    ("bodies.rod.geometry={kind='polyline',radius=1,points=[[0,0,0],[0,0,0]]}", "has equal points 0 and 1"),
    ("bodies.block.placement.rotation=[0,0,0,1]", "rotation = [0, 0, 0, 1] has a null axis"),
    ("bodies.floor.normal=[0,0,0]", "bodies.floor.normal = [0, 0, 0] has no direction"),
    (
        "bodies.block.geometry={kind='file',path='no.msh'}",
        'geometry.path = "no.msh" is not there; a relative path',
    ),
    (
        "bodies.block.geometry={kind='file',path='a.off'}",
        "ending that is not read here; use .msh, .vtk, .vtu, .stl, .obj, .ply, .glb, .gltf, .step or .stp",
    ),
    (
        "bodies.block={name='block',kind='tets',material='liver',geometry={kind='sphere',radius=1},"
        "elements='hex8'}",
        'elements = "hex8": only a block, a cup or a file can be hexahedra; use "tet10"',
    ),
    # materials, regions
    ("bodies.block.material=livr", 'bodies.block.material = "livr": no such material; did you mean "liver"?'),
    ("bodies.block.material={density=1}", "bodies.block.material.youngs_modulus: the key is missing"),
    ("bodies.block.fixed=[{}]", "bodies.block.fixed[0]: exactly one of box, sphere, nodes or end is needed"),
    ("bodies.block.fixed.0.nodes=[1]", "bodies.block.fixed[0]: box and nodes exclude each other"),
    ("bodies.block.fixed=[{nodes=[]}]", "bodies.block.fixed[0].nodes = [] has too few items"),
    ("bodies.block.fixed=[{nodes=[-1]}]", "bodies.block.fixed[0].nodes[0] = -1 is too small"),
    ("bodies.block.fixed=[{end='first'}]", 'only a beam has ends and "block" is kind = "tets"'),
    ("bodies.rod.fixed=[{nodes=[5]}]", 'there is no node 5; "rod" has nodes 0 to 4'),
    ("bodies.ball.density=1", "bodies.ball: density and mass exclude each other"),
    # rates
    ("rates.low_hz=30", "rates.low_hz = 30: 1000/30 is no integer; use 25, 40 or 50"),
    ("rates.low_hz=2000", "rates.low_hz = 2000: the slow rate is at most servo_hz = 1000"),
    # bodies that must agree
    ("bodies.rod.name=block", 'bodies.block.name = "block": another body has this name already'),
    ("bodies.rod.name=1rod", 'bodies.1rod.name = "1rod" is not a name'),
    ("tool.body=bal", 'tool.body = "bal": no such body; did you mean "ball"?'),
    (
        "tool.body=block",
        'tool.body = "block": this body is kind = "tets"; the tool must be a beam, rigid or quasi-static',
    ),
    ("tool.body=rod", 'bodies.rod.rate: the tool is computed at the servo\'s rate; write rate = "high"'),
    ("bodies.rod.rate=high", 'bodies.rod.rate = "high": only the tool, "ball", is computed at the servo'),
    ("tool.hold.node=0", 'tool.hold.node = 0: "ball" has no nodes; write at = [x, y, z]'),
    ("tool.hold.end=first", 'only a beam has ends and "ball" is kind = "rigid"'),
    (
        "friction.pairs.0.bodies=['ball','blok']",
        'friction.pairs[0].bodies[1] = "blok": no such body; did you mean',
    ),
    ("friction.pairs.0.bodies=['ball','ball']", "only a soft body touches itself; a pair is two bodies"),
    ("contact.ignore=[['ball','nil']]", 'contact.ignore[0][1] = "nil": no such body'),
    # attachments
    ("attachments.0.a.body=rood", 'attachments[0].a.body = "rood": no such body; did you mean "rod"?'),
    ("attachments.0.a={body='rod'}", 'attachments[0].a: say where on "rod": one of node, end'),
    (
        "attachments.0.a={body='rod',node=9}",
        'attachments[0].a.node = 9: there is no node 9; "rod" has nodes 0 to 4',
    ),
    ("attachments.0.a.at=[0,0,0]", "attachments[0].a: end and at exclude each other"),
    ("attachments.0.b.body=rod", 'attachments[0].b.body = "rod": an attachment joins two different bodies'),
    ("attachments.0.kind=weld", "nodes of tets have no orientation to hold"),
    ("attachments.0.kind=slide", "attachments[0].direction: the key is missing"),
    # device
    ("device.path=[[0,0,0,0],[0,1,1,1]]", "has t = 0 s in row 1 after 0 s; times must increase"),
    ("device.path=[[-1,0,0,0]]", "starts at t = -1 s; times start at 0 or later"),
    ("device.path=[[0,0,0]]", "device.path[0] = [0, 0, 0] has too few items; give at least 4"),
    ("device.model=tuch", 'device.model = "tuch": did you mean "touch"?'),
]


HAPCO = """
system = "hapco"
title = "A punch on a block"

[[bodies]]
name = "punch"
kind = "quasistatic"
geometry = { kind = "hexes", size = [0.01, 0.02, 0.01] }
placement = { position = [0, 0.03, 0] }
material = "aluminium"
clamped = [{ box = [[-1, 0.039, -1], [1, 1, 1]] }]

[[bodies]]
name = "block"
kind = "quasistatic"
geometry = { kind = "block", size = [0.05, 0.02, 0.05] }
material = "soft-tissue"
clamped = [{ nodes = [0, 1, 2] }]

[tool]
body = "punch"
"""

REFUSED_HAPCO = [
    ("system=hapcoo", 'system = "hapcoo": did you mean "hapco"?'),
    ("system=3", 'system = 3: choose "multirate", "hapco", "snap" or "suction"'),
    ("system=snap", "bodies: unknown key; it belongs to a scene of multirate, hapco or suction, and"),
    ("bodies=[]", "bodies = []"),
    ("tool={}", "tool.body: the key is missing"),
    ("tool.body=punsh", 'tool.body = "punsh": no such body; did you mean "punch"?'),
    ("gas={}", "gas: unknown key; it belongs to a scene of suction"),
    (
        "bodies.punch.fixed=[]",
        "bodies.punch.fixed = []: unknown key; nodes that follow the hand or stay where they are",
    ),
    ("bodies.block.contact=[{nodes=[1]}]", 'the hand moves "punch"; only that one chooses what may touch'),
    (
        "bodies.punch.mass=1",
        "bodies.punch.mass = 1: unknown key; a quasi-static body has the density of its material",
    ),
    (
        "bodies.block.clamped=[]",
        "bodies.block.clamped = []: the key is missing (nodes that hold the body: without them",
    ),
    (
        "bodies.block.clamped=[{end='last'}]",
        'bodies.block.clamped[0].end = "last": only a beam has ends; choose box,',
    ),
    (
        "bodies.punch.contact=[{end='last'}]",
        'bodies.punch.contact[0].end = "last": only a beam has ends; choose box,',
    ),
    ("bodies.block.name=punch", 'name = "punch": another body has this name already'),
    (
        "bodies.block={kind='quasistatic',name='a',geometry={kind='sphere',radius=1},clamped=[]}",
        "bodies.a.material: the key is missing",
    ),
    ("bodies.block.geometry={kind='hexs'}", 'bodies.block.geometry.kind = "hexs": did you mean "hexes"?'),
    ("bodies.block.geometry={kind='body',path='a.msh'}", "ending that is not read here; use .h5 or .hdf5"),
    ("bodies.block.geometry={kind='body',path='no.h5'}", 'bodies.block.geometry.path = "no.h5" is not there'),
    (
        "bodies.block.integration=half",
        'bodies.block.integration = "half": choose "bbar", "selective" or "full"',
    ),
    ("bodies.block.material.poisson_ratio=0.5", "poisson_ratio = 0.5 is too large; it must be below 0.5"),
    ("friction.default=-1", "friction.default = -1 is too small; it must be at least 0"),
    ("friction.pairs=[]", "friction.pairs = []: unknown key"),
    ("contact.tolerance=-1", "contact.tolerance = -1 is too small"),
    ("contact.normals=flat", 'contact.normals = "flat": '),
    ("solver.name=andersen", 'solver.name = "andersen": did you mean "anderson"?'),
    ("solver.time_cap=1 mm", "is a length where a time is needed"),
    ("tool.hold.mode=loose", 'tool.hold.mode = "loose": choose "coupling" or "direct"'),
    ("tool.hold.node=3", "tool.hold.node = 3: unknown key"),
    ("zoom.scale=0", "zoom.scale = 0 is too small; it must be above 0"),
    ("stylus.weigth=1", 'stylus.weigth = 1: unknown key; did you mean "weight"?'),
]


@pytest.mark.parametrize(("override", "said"), REFUSED_HAPCO, ids=[override for override, _ in REFUSED_HAPCO])
def test_a_refused_key_of_a_hapco_scene_is_told_in_the_same_way(override, said):
    assert said in refused(HAPCO, "punch.toml", override)


def test_a_body_file_brings_its_material_and_its_clamps_and_keeps_its_axes(tmp_path):
    (tmp_path / "block.h5").touch()
    file = f"geometry={{kind='body',path='{tmp_path}/block.h5'}}"
    own = f"bodies.block={{kind='quasistatic',name='block',{file}}}"
    assert parse_scene(HAPCO, "punch.toml", [own]).fixed.material is None
    for more, said in (
        ("bodies.block.material=liver", "bodies.block.material = "),
        ("bodies.block.clamped=[{nodes=[1]}]", "bodies.block.clamped: the body file has"),
        ("bodies.block.placement.scale=2", "bodies.block.placement: a body file keeps its axes and its size"),
    ):
        with pytest.raises(ConfigError, match=re.escape(said)):
            parse_scene(HAPCO, "punch.toml", [own, more])


def test_the_hapco_scene_that_refusals_start_from_is_valid():
    assert parse_scene(HAPCO, "punch.toml").mobile.name == "punch"


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=[override for override, _ in REFUSED])
def test_a_refused_key_is_told_with_its_path_its_value_and_what_would_be_right(override, said):
    assert said in refused(SCENE, "ball.toml", override)


def test_the_scene_that_all_refusals_start_from_is_valid():
    assert parse_scene(SCENE, "ball.toml").tool_body.name == "ball"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("rates.low_hz", "write key=value, such as rates.low_hz=25"),
        ("=3", "write key=value"),
        ("bodies.blok.mass=3", 'there is no "blok"; did you mean "block"?'),
        ("friction.pairs.7.mu=3", 'there is no "7"; choose "0"'),
        ("title.x.y=3", "title is a single value; it has no keys below"),
    ],
)
def test_an_override_that_names_nothing_is_refused(override, said):
    with pytest.raises(ConfigError) as refusal:
        parse_scene(SCENE, "ball.toml", [override])
    assert str(refusal.value).startswith(f"--set {override}: ") and said in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("neeedle", 'neeedle is not a scene; give a TOML file or a shipped scene: did you mean "needle"?'),
        ("no/such.toml", "no/such.toml is not there"),
    ],
)
def test_a_scene_that_is_not_there_is_refused_with_the_nearest_name(name, said):
    with pytest.raises(ConfigError) as refusal:
        load_scene(name)
    assert said in str(refusal.value)


def test_text_that_is_no_toml_is_refused_with_its_line(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("title = 'x'\nbodies = [3 4]\n")
    with pytest.raises(ConfigError, match=r"broken.toml is not valid TOML: .*line 2"):
        load_scene(broken)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    broken = tmp_path / "binary.toml"
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_scene(broken)


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats() | st.sampled_from(["", "ball", "5 mm", "block", "\n"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "name", "a"]), inner)
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.data(), VALUES)
def test_a_scene_with_anything_anywhere_is_valid_or_refused_in_one_sentence(data, value):
    scene = tomllib.loads(SCENE)
    holder, key = data.draw(st.sampled_from(list(_places(scene))))
    holder[key] = value
    text = "\n".join(f"{key} = {_toml(one)}" for key, one in scene.items())
    try:
        parse_scene(text, "ball.toml")
    except ConfigError as refusal:
        assert "\n" not in str(refusal)


def _places(table):
    """Every key and index of nested tables and lists, with what holds it."""
    for key in list(table) if isinstance(table, dict) else range(len(table)):
        yield table, key
        if isinstance(table[key], dict | list):
            yield from _places(table[key])


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else str(value)


def test_no_kind_is_also_a_key_of_its_table():
    # A refusal tells the tag of a union from a key by its name.
    for model in _below(Spec):
        if is_tagged(model):
            assert kind_of(model) not in model.model_fields


def _below(model):
    return [found for child in model.__subclasses__() for found in (child, *_below(child))]


QUASISTATIC = (
    SCENE.replace('body = "ball"\n', 'body = "lump"\n').replace('rate = "high"', 'rate = "low"')
    + """
[[bodies]]
name = "lump"
kind = "quasistatic"
geometry = { kind = "hexes", size = [0.02, 0.02, 0.02] }
placement = { position = [0, 0.1, 0] }
material = "liver"
clamped = [{ box = [[-1, 0.109, -1], [1, 1, 1]] }]
"""
)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("bodies.lump.clamped=[]", "bodies.lump.clamped = []: the key is missing (nodes that hold the body"),
        ("bodies.lump.rate=high", "unknown key; a quasi-static body always has the servo's rate"),
        ("bodies.lump.mass=1", "a quasi-static body has the density of its material"),
        ("tool.hold.orientation=false", "a quasi-static body turns with the hand; write true"),
        ("tool.hold.at=[0, 0, 0]", "a quasi-static body is held by its clamped nodes; leave it out"),
        ("interface.kind=paper", 'interface.kind = "paper": a quasi-static tool takes kind = "krylov"'),
        ("attachments.0.b.body=lump", "nothing is attached to a quasi-static body"),
        ("tool.body=floor", "the tool must be a beam, rigid or quasi-static"),
    ],
)  # fmt: skip
def test_what_a_quasistatic_tool_cannot_be_is_refused(override, said):
    with pytest.raises(ConfigError) as refusal:
        parse_scene(QUASISTATIC, "lump.toml", [override])
    assert str(refusal.value).startswith("lump.toml: ") and said in str(refusal.value)
    assert parse_scene(QUASISTATIC, "lump.toml").tool_body.kind == "quasistatic"


def test_a_quasistatic_body_that_no_hand_moves_is_refused():
    with pytest.raises(ConfigError, match=r"a quasi-static body is moved by a hand; name it in tool\.body"):
        parse_scene(QUASISTATIC, "lump.toml", ["tool.body=ball", "bodies.ball.rate=high"])
