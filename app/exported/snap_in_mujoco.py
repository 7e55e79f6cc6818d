# mypy: ignore-errors
"""The connector in MuJoCo: NumPy and MuJoCo alone. `python snap_in_mujoco.py` pushes the plug in.

    connector = MujocoConnector(model, data)
    connector.step()                 # before each mj_step

The plug's slide joint is called travel: 0 where it starts, the stroke where it has arrived.
"""

from pathlib import Path

import mujoco

from palpo.app.exported.snap_joint import SnapJoint, load

HERE = Path(__file__).resolve().parent


class MujocoConnector:
    """The force of the socket on the plug's joint; prefix: of its name, where it was attached with one."""

    def __init__(self, model, data, folder=HERE, prefix=""):
        self.data, self.law = data, load(folder)
        joint = model.joint(prefix + "travel")
        self.at, self.dof = int(joint.qposadr[0]), int(joint.dofadr[0])
        mass = float(model.body_subtreemass[joint.bodyid[0]])
        self.joint, self.force = SnapJoint(self.law, model.opt.timestep, mass), 0.0

    @property
    def latched(self):
        """Whether the plug is behind the click."""
        return self.joint.latched(float(self.data.qpos[self.at]))

    def step(self):
        """Apply the socket's force as it is now; before each mj_step."""
        self.data.qfrc_applied[self.dof] -= self.force
        self.force = self.joint.step(float(self.data.qpos[self.at]), float(self.data.qvel[self.dof]))
        self.data.qfrc_applied[self.dof] += self.force


def main():
    """Push ever harder until the plug has clicked in."""
    model = mujoco.MjModel.from_xml_path(str(HERE / "connector.xml"))
    data = mujoco.MjData(model)
    connector, push = MujocoConnector(model, data), 0.0
    while not connector.latched:
        push += 20.0 * model.opt.timestep
        data.ctrl[0] = push
        connector.step()
        mujoco.mj_step(model, data)
    print(f"it clicked in at {push:.1f} N; the law says {max(connector.law['inward_N']):.1f} N")


if __name__ == "__main__":
    main()
