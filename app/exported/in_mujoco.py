# mypy: ignore-errors
"""The gripper in MuJoCo: NumPy and MuJoCo alone. `python in_mujoco.py` lifts the load of lift.xml.

    model = mujoco.MjModel.from_xml_path("lift.xml")
    data = mujoco.MjData(model)
    gripper = MujocoGripper(model, data)
    while ...:
        gripper.step()               # before each mj_step
        mujoco.mj_step(model, data)

Sites are the cups' rims at rest, z their axes, away from what they grip.
"""

from pathlib import Path

import mujoco
import numpy as np

from palpo.app.exported.suction_cup import CarriedCups, RigidMotion, rotation_vector

HERE = Path(__file__).resolve().parent


class MujocoGripper(CarriedCups):
    """The cups of a model; prefix: of the sites' names, where the gripper was attached with one."""

    def __init__(self, model, data, folder=HERE, prefix="", roughness=1e-6):
        super().__init__(folder, roughness)
        self.model, self.data = model, data
        self.sites = {name: model.site(prefix + name).id for name in self.cups}
        self._applied = np.zeros(model.nv)
        self._before = {}

    def step(self):
        """Apply what the cups do now; before each mj_step."""
        model, data = self.model, self.data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        data.qfrc_applied -= self._applied
        self._applied = np.zeros(model.nv)
        for name, held in self.cups.items():
            site = self.sites[name]
            gripper = int(model.site_bodyid[site])
            stem = self._moving(mujoco.mjtObj.mjOBJ_SITE, site, data.site_xpos[site], data.site_xmat[site])
            if model.body_mocapid[model.body_rootid[gripper]] >= 0:
                self._by_differences(name, stem)  # of a mocap body MuJoCo knows no velocity
            acted = held.step(model.opt.timestep, stem, self._below(name, stem, gripper), self._body)
            self.forces[name] = np.zeros(3)
            if acted is not None:
                body, force, moment, point = acted
                self.forces[name] = force
                mujoco.mj_applyFT(model, data, force, moment, point, body, self._applied)
                mujoco.mj_applyFT(model, data, -force, -moment, point, gripper, self._applied)
        data.qfrc_applied += self._applied

    def _by_differences(self, name, stem):
        """The velocities of what is led, from where it was a step before."""
        origin, axes = self._before.get(name, (stem.origin, stem.axes))
        dt = self.model.opt.timestep
        stem.velocity, stem.spin = (stem.origin - origin) / dt, rotation_vector(stem.axes @ axes.T) / dt
        self._before[name] = stem.origin, stem.axes

    def _below(self, name, stem, gripper):
        """The body under a cup's rim, and the rim's height over it."""
        axis, back = stem.axes[:, 2], self.laws[name]["height_m"]
        geom = np.zeros(1, np.int32)
        distance = mujoco.mj_ray(
            self.model, self.data, stem.origin + back * axis, -axis, None, 1, gripper, geom
        )
        if geom[0] < 0:
            return None
        return int(self.model.geom_bodyid[geom[0]]), distance - back

    def _body(self, body):
        data, model = self.data, self.model
        moved = self._moving(mujoco.mjtObj.mjOBJ_BODY, body, data.xpos[body], data.xmat[body])
        fixed = model.body_weldid[body] == 0
        moved.mass = np.inf if fixed else float(model.body_subtreemass[body])
        return moved

    def _moving(self, kind, number, origin, axes):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, kind, number, velocity, 0)
        return RigidMotion(origin, axes, velocity[3:], velocity[:3])


def main():
    """Push the gripper on the load, lift it by 0.1 m at 0.1 m/s, and let it go."""
    model = mujoco.MjModel.from_xml_path(str(HERE / "lift.xml"))
    data = mujoco.MjData(model)
    gripper, dt = MujocoGripper(model, data), model.opt.timestep
    push = 1.2 * max(law["push_m"] for law in gripper.laws.values())
    start, height, speed = float(data.mocap_pos[0, 2]), 0.0, 0.0
    low = start - float(model.numeric("clearance").data[0]) - push
    z = start
    for _ in range(int((start - low) / 0.01 / dt)):
        z -= 0.01 * dt
        data.mocap_pos[0, 2] = z
        gripper.step()
        mujoco.mj_step(model, data)
    while height < 0.1:
        speed = min(speed + 0.5 * dt, 0.1)
        height += speed * dt
        data.mocap_pos[0, 2] = z + height
        gripper.step()
        mujoco.mj_step(model, data)
    load = model.body("load").id
    print(f"the load is at {data.xpos[load, 2]:.3f} m, held by {sum(gripper.holding.values())} cups")
    gripper.release()
    for _ in range(int(0.5 / dt)):
        gripper.step()
        mujoco.mj_step(model, data)
    print(f"released, it is at {data.xpos[load, 2]:.3f} m")


if __name__ == "__main__":
    main()
