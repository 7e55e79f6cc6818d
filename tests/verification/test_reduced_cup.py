"""A cup's law of few numbers: what it is taken from, the margins of loads, and a lift replayed in MuJoCo."""

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from palpo.app.report.lift_page import as_data, as_mjcf, write_lift
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.reduced_cup import GRAVITY, HeldLoad, margin, margins, reduce_cup


@pytest.fixture(scope="module")
def law():
    return reduce_cup("small", 1e-3, 0.6, (1e-6, 2e-5))


def test_a_cup_s_force_grows_with_the_pull_and_a_line_tells_it(law):
    assert (np.diff(law.pull) > 0.0).all() and (np.diff(law.force) > 0.0).all()
    assert (law.pressed > 0.0).all()
    # neo-Hookean and gas both soften over a pull of a third of the cup's height, by a few percent
    assert law.misfit < 0.05
    # the rim is pressed somewhere on its width
    assert 15e-3 < law.radius < 20e-3
    assert all((law.leak_time[2e-5] < times).all() for times in (law.leak_time[1e-6],))


def test_each_margin_is_what_is_there_over_what_is_asked(law):
    mass = 0.5 * law.limit / GRAVITY
    plain = margins(law, HeldLoad(mass))
    assert plain["pull"] == pytest.approx(2.0)
    assert plain["slip"] == plain["peel"] == plain["lie"] == 1e9
    pressed = float(np.interp(0.5 * law.limit, law.force, law.pressed))
    once, twice = (margins(law, HeldLoad(mass, offset=offset))["peel"] for offset in (1e-3, 2e-3))
    assert once == pytest.approx(2.0 * twice)
    assert once == pytest.approx(0.5 * pressed * law.radius / (0.5 * law.limit * 1e-3))
    tilted = HeldLoad(mass, tilt=0.3, below=0.02)
    axial = float(np.interp(mass * GRAVITY * math.cos(0.3), law.force, law.pressed))
    assert margins(law, tilted)["slip"] == pytest.approx(law.mu * axial / (mass * GRAVITY * math.sin(0.3)))
    # a cylinder's drop is r^2 / D: half the diameter, half the margin
    wide, narrow = (margins(law, HeldLoad(mass, diameter=d))["lie"] for d in (0.8, 0.4))
    assert wide == pytest.approx(2.0 * narrow)
    assert margin(law, HeldLoad(2.0 * mass * 1.01))[1] in ("pull", "leak")


def test_an_unknown_cup_and_a_push_of_nothing_are_refused():
    with pytest.raises(InputError, match="cup 'big' is unknown; there are small"):
        reduce_cup("big", 1e-3, 0.6, ())
    with pytest.raises(InputError, match=r"push = 0\.0"):
        reduce_cup("small", 0.0, 0.6, ())
    with pytest.raises(InputError, match="no solid of revolution"):
        reduce_cup("asymmetric", 1e-3, 0.6, ())


def test_the_page_has_the_map_the_law_and_the_tendon(law, tmp_path):
    page = write_lift(tmp_path, law, HeldLoad(0.05, rms=1e-6))
    text = page.read_text("utf-8")
    assert "data:image/png;base64," in text and "decides" in text
    data = json.loads((tmp_path / "cup.json").read_text("utf-8"))
    assert data == json.loads(json.dumps(as_data(law)))
    assert data["force_N"][-1] == data["limit_N"] and len(data["pull_m"]) == len(data["peel_Nm"])
    rows = (tmp_path / "map.csv").read_text("utf-8").splitlines()
    assert rows[0].endswith("least_margin,decides") and len(rows) == 1 + 25 * (25 + 25 + 25 + 2)
    tendon = ET.fromstring((tmp_path / "cup.xml").read_text("utf-8")).find("tendon/spatial")
    assert float(tendon.get("stiffness")) == pytest.approx(law.stiffness, rel=1e-5)


def lifted(mujoco, law, mass):
    """How high the load hangs in the end [m], and the largest pull of the tendon [N]."""
    world = (
        '<mujoco><option timestep="0.001" gravity="0 0 -9.81"/><worldbody>'
        '<geom type="plane" size="1 1 0.1"/>'
        '<body name="gripper" mocap="true" pos="0 0 0.1001"><site name="cup_gripper"/></body>'
        f'<body pos="0 0 0.05"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="{mass}"/>'
        '<site name="cup_load" pos="0 0 0.05"/></body></worldbody></mujoco>'
    )
    tree = ET.fromstring(world)
    tree.extend(ET.fromstring(as_mjcf(law)))
    model = mujoco.MjModel.from_xml_string(ET.tostring(tree, encoding="unicode"))
    data = mujoco.MjData(model)
    most = 0.0
    for step in range(8000):
        data.mocap_pos[0, 2] = 0.1001 + min(0.01 * step * 1e-3, 0.06)
        mujoco.mj_step(model, data)
        length = float(data.ten_length[0])
        most = max(most, law.stiffness * length)
        if length > law.pull[-1]:
            model.tendon_stiffness[0] = 0.0
    return float(data.qpos[2]) - 0.05, most


def test_a_lift_replayed_in_mujoco_holds_what_the_law_holds(law):
    mujoco = pytest.importorskip("mujoco")
    height, most = lifted(mujoco, law, 0.8 * law.limit / GRAVITY)
    # 60 mm less the tendon's length under the weight, which the law's curve gives to its misfit
    at = float(np.interp(0.8 * law.limit, law.force, law.pull))
    assert height == pytest.approx(0.06 - at, abs=2 * law.misfit * law.pull[-1] + 5e-4)
    assert most == pytest.approx(0.8 * law.limit, rel=0.1)
    height, _ = lifted(mujoco, law, 1.2 * law.limit / GRAVITY)
    assert abs(height) < 1e-3


def lifted_in_drake(folder, law, mass):
    """How high the load hangs in the end [m], and whether the cup holds still."""
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import PrismaticJoint, SpatialInertia
    from pydrake.systems.analysis import Simulator

    scope = {}
    exec((folder / "cup_drake.py").read_text("utf-8"), scope)
    plant = MultibodyPlant(time_step=1e-3)
    gripper = plant.AddRigidBody("gripper", SpatialInertia.SolidBoxWithMass(1.0, 0.1, 0.1, 0.1))
    load = plant.AddRigidBody("load", SpatialInertia.SolidBoxWithMass(mass, 0.1, 0.1, 0.1))
    rail, ground = (
        plant.AddJoint(
            PrismaticJoint(name, plant.world_frame(), body.body_frame(), np.array([0.0, 0.0, 1.0]))
        )
        for name, body in (("rail", gripper), ("ground", load))
    )
    ground.set_position_limits([0.0], [1.0])
    cup = scope["add_cup"](plant, gripper.body_frame(), load.body_frame())
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    holds = True
    for step in range(8000):
        rail.set_translation(context, min(0.01 * step * 1e-3, 0.06))
        rail.set_translation_rate(context, 0.01 if step < 6000 else 0.0)
        simulator.AdvanceTo(1e-3 * (step + 1))
        holds = scope["let_go_if_pulled_off"](context, cup)
    return float(ground.get_translation(context)), holds


def test_a_lift_replayed_in_drake_holds_what_the_law_holds(law, tmp_path):
    pytest.importorskip("pydrake")
    write_lift(tmp_path, law, HeldLoad(0.05, rms=1e-6))
    height, holds = lifted_in_drake(tmp_path, law, 0.8 * law.limit / GRAVITY)
    at = float(np.interp(0.8 * law.limit, law.force, law.pull))
    assert holds and height == pytest.approx(0.06 - at, abs=2 * law.misfit * law.pull[-1] + 5e-4)
    height, holds = lifted_in_drake(tmp_path, law, 1.2 * law.limit / GRAVITY)
    assert not holds and abs(height) < 1e-3
