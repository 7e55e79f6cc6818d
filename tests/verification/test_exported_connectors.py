"""A connector as a joint: in each simulator it latches, and is pulled out, at the force that was computed."""

import numpy as np
import pytest

from palpo.app.cli.progress import Silent
from palpo.app.exported import snap_joint
from palpo.app.report.design_export import export_joint
from tests.verification.exported_modules import module_of

RATE = 80.0
"""At which the push grows [N/s]: slow beside the joint's own motion."""
DT = 2e-4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("connector")
    export_joint("snap", (), None, made, Silent())
    return made


def in_mujoco(folder):
    """A function that makes a step under a push [N] and gives the plug's travel [m]."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[simulators]'")
    model = mujoco.MjModel.from_xml_path(str(folder / "connector.xml"))
    data = mujoco.MjData(model)
    connector = module_of(folder, "snap_in_mujoco", "snap_joint")["MujocoConnector"](model, data, folder)

    def step(push):
        data.ctrl[0] = push
        connector.step()
        mujoco.mj_step(model, data)
        return float(data.qpos[0])

    return step


def in_drake(folder):
    pytest.importorskip("pydrake", reason="Drake is not installed: pip install 'palpo[simulators]'")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
    Parser(plant).AddModels(folder / "connector.sdf")
    plant.SetUseSampledOutputPorts(False)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    plant.Finalize()
    connector = module_of(folder, "snap_in_drake", "snap_joint")["add_connector"](builder, plant, folder)
    simulator = Simulator(builder.Build())
    context = simulator.get_mutable_context()
    own, pushed = plant.GetMyContextFromRoot(context), connector.GetMyContextFromRoot(context)
    travel = plant.GetJointByName("travel")

    def step(push):
        connector.get_input_port(1).FixValue(pushed, [push])
        simulator.AdvanceTo(context.get_time() + DT)
        return float(travel.get_translation(own))

    return step


def force_at(step, sign, arrived):
    """The push [N] at which it arrives, growing evenly; inf where 200 N do not do."""
    for push in np.arange(0.0, 200.0, RATE * DT):
        if arrived(step(sign * push)):
            return float(push)
    return np.inf


@pytest.mark.parametrize("simulator", [in_mujoco, in_drake])
def test_it_clicks_in_and_comes_loose_at_the_forces_that_were_computed(simulator, folder):
    """By 3%: curves are softened until a step can follow them, and a push that grows goes on meanwhile."""
    law, step = snap_joint.load(folder), simulator(folder)
    inward = force_at(step, 1.0, lambda x: x > law["click_m"])
    assert inward == pytest.approx(law["insertion_N"], rel=0.03)
    for push in [inward] * 2500 + [0.0] * 1000:
        arrived = step(push)  # held against its stop until it is still, then left alone, it stays latched
    assert arrived > law["click_m"]
    outward = force_at(step, -1.0, lambda x: x < 0.5 * law["click_m"])
    assert outward == pytest.approx(law["retention_N"], rel=0.03)


def test_a_round_trip_costs_the_work_between_the_curves(folder):
    law = snap_joint.load(folder)
    joint = snap_joint.SnapJoint(law, 1e-5, 0.1)
    x = np.array(law["travel_m"])
    there = np.linspace(x[0], x[-1], 20001)
    way = np.concatenate([there, there[::-1]])
    speed = np.diff(way, prepend=way[0]) / 1e-5
    force = np.array([joint.step(place, v) for place, v in zip(way, speed, strict=True)])
    work = -float(np.sum(force[1:] * np.diff(way)))
    both = np.maximum(np.array(law["inward_N"]) + law["outward_N"], 0.0)
    # friction turns round within half a percent of the stroke at either end
    assert work == pytest.approx(float(np.trapezoid(both, x)), rel=0.02)


def test_usd_has_the_joint_and_its_law(folder):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdPhysics

    law = snap_joint.load(folder)
    stage = Usd.Stage.Open(str(folder / "connector.usda"))  # prims go with their stage
    joint = UsdPhysics.PrismaticJoint.Get(stage, "/world/travel")
    assert joint.GetUpperLimitAttr().Get() == pytest.approx(law["stroke_m"])
    found = joint.GetPrim().GetAttribute("palpo:snap:inward_N").Get()
    np.testing.assert_allclose(found, law["inward_N"], rtol=1e-5, atol=1e-9)
