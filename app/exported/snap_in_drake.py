# mypy: ignore-errors
"""The connector in Drake: NumPy and pydrake alone. `python snap_in_drake.py` pushes the plug in.

    Parser(plant).AddModels("connector.sdf")
    plant.SetUseSampledOutputPorts(False)
    connector = add_connector(builder, plant)   # after plant.Finalize()

The plug's joint is called travel. The connector's input port `push` takes the force of the hand along it [N].
"""

import copy
from pathlib import Path

import numpy as np
from pydrake.common.value import Value
from pydrake.systems.framework import BasicVector, LeafSystem

from palpo.app.exported.snap_joint import SnapJoint, load

HERE = Path(__file__).resolve().parent
STEP = 2e-4
"""[s]"""


class DrakeConnector(LeafSystem):
    """Generalized forces of a plant: the socket's and the hand's on the plug's joint."""

    def __init__(self, plant, folder=HERE):
        super().__init__()
        joint = plant.GetJointByName("travel")
        self._place, self._speed = joint.position_start(), plant.num_positions() + joint.velocity_start()
        self._dof, self._size = joint.velocity_start(), plant.num_velocities()
        mass = joint.child_body().default_mass()
        self._state = self.DeclareAbstractState(
            Value({"joint": SnapJoint(load(folder), plant.time_step(), mass), "force": 0.0})
        )
        self.DeclareVectorInputPort("state", BasicVector(plant.num_positions() + plant.num_velocities()))
        self.DeclareVectorInputPort("push", BasicVector(1))
        self.DeclareVectorOutputPort("forces", BasicVector(self._size), self._give)
        self.DeclarePeriodicUnrestrictedUpdateEvent(plant.time_step(), 0.0, self._step)

    def _give(self, context, output):
        forces = np.zeros(self._size)
        forces[self._dof] = context.get_abstract_state(int(self._state)).get_value()["force"]
        forces[self._dof] += self.get_input_port(1).Eval(context)[0]
        output.SetFromVector(forces)

    def _step(self, context, state):
        value = state.get_mutable_abstract_state(int(self._state))
        joint, x = copy.copy(value.get_value()["joint"]), self.get_input_port(0).Eval(context)
        force = joint.step(float(x[self._place]), float(x[self._speed]))
        value.set_value({"joint": joint, "force": force})


def add_connector(builder, plant, folder=HERE):
    """The connector of a finalized plant, wired into a diagram that is being built."""
    if plant.has_sampled_output_ports():
        raise ValueError("plant.SetUseSampledOutputPorts(False) before plant.Finalize(), or forces lag")
    connector = builder.AddSystem(DrakeConnector(plant, folder))
    builder.Connect(plant.get_state_output_port(), connector.get_input_port(0))
    builder.Connect(connector.get_output_port(0), plant.get_applied_generalized_force_input_port())
    return connector


def main():
    """Push ever harder until the plug has clicked in."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder, law = DiagramBuilder(), load(HERE)
    plant, _ = AddMultibodyPlantSceneGraph(builder, STEP)
    Parser(plant).AddModels(HERE / "connector.sdf")
    plant.SetUseSampledOutputPorts(False)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    plant.Finalize()
    connector = add_connector(builder, plant)
    simulator = Simulator(builder.Build())
    context = simulator.get_mutable_context()
    own, pushed, push = plant.GetMyContextFromRoot(context), connector.GetMyContextFromRoot(context), 0.0
    travel = plant.GetJointByName("travel")
    while travel.get_translation(own) <= law["click_m"]:
        push += 20.0 * STEP
        connector.get_input_port(1).FixValue(pushed, [push])
        simulator.AdvanceTo(context.get_time() + STEP)
    print(f"it clicked in at {push:.1f} N; the law says {max(law['inward_N']):.1f} N")


if __name__ == "__main__":
    main()
