# mypy: ignore-errors
"""The gripper in Drake: NumPy and pydrake alone. `python in_drake.py` lifts the load of lift.sdf.

    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModels("gripper.sdf")
    plant.SetUseSampledOutputPorts(False)
    cups = add_cups(builder, plant, scene_graph)   # after plant.Finalize()

Frames of the gripper's link are the cups' rims at rest, z their axes, away from what they grip.
"""

import copy
from pathlib import Path

import numpy as np
from pydrake.common.value import Value
from pydrake.geometry import QueryObject
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce, SpatialVelocity
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, ExternallyAppliedSpatialForce
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import LeafSystem

from palpo.app.exported.suction_cup import CarriedCup, RigidMotion, load

HERE = Path(__file__).resolve().parent
CLEARANCE = 5e-3
"""Height of the lowest cup over the load in lift.sdf at first [m]."""
NEAR = 0.05
"""Distance within which a cup looks for what it touches [m]."""


class Cups(LeafSystem):
    """The cups of a plant's gripper: forces on its bodies, found anew at each of the plant's steps."""

    def __init__(self, plant, folder=HERE, link="gripper", roughness=1e-6):
        super().__init__()
        self.plant, self.link = plant, plant.GetBodyByName(link)
        self.frames = {name: plant.GetFrameByName(name) for name in load(folder)}
        held = {name: CarriedCup(law, roughness) for name, law in load(folder).items()}
        self._state = self.DeclareAbstractState(Value({"cups": held, "forces": []}))
        bodies = plant.num_bodies()
        self.DeclareAbstractInputPort("poses", Value([RigidTransform()] * bodies))
        self.DeclareAbstractInputPort("velocities", Value([SpatialVelocity()] * bodies))
        self.DeclareAbstractInputPort("query", Value(QueryObject()))
        self.DeclareAbstractOutputPort(
            "forces", lambda: Value([ExternallyAppliedSpatialForce()]), self._give,
            {self.abstract_state_ticket(self._state)},
        )  # fmt: skip
        self.DeclarePeriodicUnrestrictedUpdateEvent(plant.time_step(), 0.0, self._step)

    def holding(self, context):
        """Which cups hold something, by name; of the diagram's or of this system's context."""
        return {name: held.holds for name, held in self._cups(context).items()}

    def release(self, context):
        """Open the valves."""
        for held in self._cups(context).values():
            held.cup.release()

    def grip(self, context):
        """Shut the valves, or switch the pump on."""
        for held in self._cups(context).values():
            held.cup.grip()

    def _cups(self, context):
        own = self.GetMyContextFromRoot(context)
        return own.get_abstract_state(int(self._state)).get_value()["cups"]

    def _give(self, context, output):
        made = []
        for body, point, moment, force in context.get_abstract_state(int(self._state)).get_value()["forces"]:
            one = ExternallyAppliedSpatialForce()
            one.body_index, one.p_BoBq_B, one.F_Bq_W = BodyIndex(body), point, SpatialForce(moment, force)
            made.append(one)
        output.set_value(made)

    def _step(self, context, state):
        value = state.get_mutable_abstract_state(int(self._state))
        told = copy.deepcopy(value.get_value()["cups"])
        poses, velocities, query = (self.get_input_port(k).Eval(context) for k in range(3))
        forces = []

        def body_of(index):
            pose, velocity = poses[index], velocities[index]
            mass = self.plant.get_body(BodyIndex(index)).default_mass() if index else np.inf
            return RigidMotion(
                pose.translation(), pose.rotation().matrix(), velocity.translational(),
                velocity.rotational(), mass,
            )  # fmt: skip

        link = int(self.link.index())
        gripper = body_of(link)
        for name, held in told.items():
            placed = self.frames[name].GetFixedPoseInBodyFrame()
            origin = gripper.origin + gripper.axes @ placed.translation()
            axes = gripper.axes @ placed.rotation().matrix()
            stem = RigidMotion(origin, axes, gripper.at(origin), gripper.spin)
            acted = held.step(self.plant.time_step(), stem, self._below(query, origin), body_of)
            if acted is not None:
                index, force, moment, point = acted
                for body, sign in ((index, 1.0), (link, -1.0)):
                    at = body_of(body)
                    forces.append((body, at.axes.T @ (point - at.origin), sign * moment, sign * force))
        value.set_value({"cups": told, "forces": forces})

    def _below(self, query, origin):
        """The body nearest to a cup's rim that is none of the gripper's, and the rim's height over it."""
        nearest = None
        for found in query.ComputeSignedDistanceToPoint(origin, NEAR):
            frame = query.inspector().GetFrameId(found.id_G)
            body = int(self.plant.GetBodyFromFrameId(frame).index())
            if body != int(self.link.index()) and (nearest is None or found.distance < nearest[1]):
                nearest = body, found.distance
        return nearest


def add_cups(builder, plant, scene_graph, folder=HERE, link="gripper", roughness=1e-6):
    """The cups of a finalized plant, wired into a diagram that is being built."""
    if plant.has_sampled_output_ports():
        raise ValueError("plant.SetUseSampledOutputPorts(False) before plant.Finalize(), or forces lag")
    cups = builder.AddSystem(Cups(plant, folder, link, roughness))
    builder.Connect(plant.get_body_poses_output_port(), cups.get_input_port(0))
    builder.Connect(plant.get_body_spatial_velocities_output_port(), cups.get_input_port(1))
    builder.Connect(scene_graph.get_query_output_port(), cups.get_input_port(2))
    builder.Connect(cups.get_output_port(0), plant.get_applied_spatial_force_input_port())
    return cups


def main():
    """Push the gripper on the load, lift it by 0.1 m at 0.1 m/s, and let it go."""
    from pydrake.multibody.parsing import Parser
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModels(HERE / "lift.sdf")
    plant.SetUseSampledOutputPorts(False)
    plant.Finalize()
    cups = add_cups(builder, plant, scene_graph)
    simulator = Simulator(builder.Build())
    context = simulator.get_mutable_context()
    own, rail = plant.GetMyContextFromRoot(context), plant.GetJointByName("rail")
    low = -CLEARANCE - 1.2 * max(law["push_m"] for law in load(HERE).values())

    def lead(place, speed):
        rail.set_translation(own, place)
        rail.set_translation_rate(own, speed)
        simulator.AdvanceTo(simulator.get_context().get_time() + 1e-3)

    def said():
        return plant.EvalBodyPoseInWorld(own, plant.GetBodyByName("load")).translation()[2]

    place, speed = 0.0, 0.0
    while place > low:
        place -= 0.01e-3
        lead(place, -0.01)
    while place < 0.1:
        speed = min(speed + 0.5e-3, 0.1)
        place += speed * 1e-3
        lead(place, speed)
    print(f"the load is at {said():.3f} m, held by {sum(cups.holding(context).values())} cups")
    cups.release(context)
    for _ in range(500):
        lead(place, 0.0)
    print(f"released, it is at {said():.3f} m")


if __name__ == "__main__":
    main()
