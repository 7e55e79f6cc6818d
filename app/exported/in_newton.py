# mypy: ignore-errors
"""The gripper in Newton, and for Isaac as a pattern: NumPy, Warp and Newton alone.

    builder.add_usd("lift.usda")
    model = builder.finalize()
    gripper = NewtonGripper(model)
    while ...:
        state.clear_forces()
        gripper.step(state, dt)      # before each step of the solver
        solver.step(state, after, control, contacts, dt)

What the cups grip are boxes, balls and planes of the model; `below` tells of other shapes. In the USD file
the law of each cup is in its attributes `palpo:cup:...`, too. `python in_newton.py` lifts the load.
"""

import json
from pathlib import Path

import numpy as np

from palpo.app.exported.suction_cup import CarriedCups, RigidMotion, load

HERE = Path(__file__).resolve().parent


class NewtonGripper(CarriedCups):
    """The cups of a gripper, the body whose label ends in `link`; below: (point, axis) -> (body, height)."""

    def __init__(self, model, folder=HERE, link="gripper", roughness=1e-6, below=None):
        super().__init__(folder, roughness)
        self.model = model
        told = json.loads((Path(folder) / "gripper.json").read_text("utf-8"))
        self.frames = {c["name"]: (np.array(c["rim_m"]), np.array(c["axes"])) for c in told["cups"]}
        self.body = next(k for k, label in enumerate(model.body_label) if label.rpartition("/")[2] == link)
        self.below = below or self._below
        self._mass, self._com = model.body_mass.numpy(), model.body_com.numpy()
        self._shapes = list(
            zip(
                model.shape_body.numpy().tolist(), model.shape_type.numpy().tolist(),
                model.shape_transform.numpy(), model.shape_scale.numpy(), strict=True,
            )
        )  # fmt: skip
        self._before = None

    def step(self, state, dt):
        """Add what the cups do now to the bodies' forces; after clear_forces, before the solver's step."""
        self._q, self._qd = state.body_q.numpy(), state.body_qd.numpy()
        wrenches = state.body_f.numpy()
        link = self._moving(self.body)
        if self._before is not None:
            # a kinematic body may be moved without a velocity
            link.velocity = (link.origin - self._before) / dt
        self._before = link.origin
        for name, held in self.cups.items():
            rim, axes = self.frames[name]
            origin = link.origin + link.axes @ rim
            stem = RigidMotion(origin, link.axes @ axes, link.at(origin), link.spin)
            acted = held.step(dt, stem, self.below(origin, stem.axes[:, 2]), self._moving)
            self.forces[name] = np.zeros(3)
            if acted is None:
                continue
            body, force, moment, point = acted
            self.forces[name] = force
            for on, sign in ((body, 1.0), (self.body, -1.0)):
                if on >= 0:
                    at = self._moving(on)
                    arm = point - (at.origin + at.axes @ self._com[on])
                    wrenches[on, :3] += sign * force
                    wrenches[on, 3:] += sign * (moment + np.cross(arm, force))
        state.body_f.assign(wrenches)

    def _moving(self, body):
        """Of a body by its number, -1 for the world."""
        if body < 0:
            return RigidMotion(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3))
        q, qd = self._q[body].astype(float), self._qd[body].astype(float)
        axes = _matrix(q[3:])
        velocity = qd[:3] - np.cross(qd[3:], axes @ self._com[body])  # Newton's are of the centre of mass
        mass = float(self._mass[body])
        return RigidMotion(q[:3], axes, velocity, qd[3:], mass if mass > 0.0 else np.inf)

    def _below(self, point, axis):
        """The body that a line down from above a point meets first, and the point's height over it [m]."""
        nearest, start = None, point + 0.05 * axis
        for body, kind, place, scale in self._shapes:
            if body == self.body:
                continue
            moved = self._moving(body)
            axes = moved.axes @ _matrix(place[3:].astype(float))
            middle = moved.origin + moved.axes @ place[:3].astype(float)
            way = _meets(kind, scale.astype(float), axes.T @ (start - middle), -axes.T @ axis)
            if way is not None and (nearest is None or way - 0.05 < nearest[1]):
                nearest = body, way - 0.05
        return nearest


def _meets(kind, scale, start, way):
    """How far a ray goes to a shape in its own axes [m]; None where it misses it."""
    import newton

    if kind == newton.GeoType.PLANE:
        return -start[2] / way[2] if way[2] < 0.0 else None
    if kind == newton.GeoType.SPHERE:
        along, off = -start @ way, start @ start - scale[0] ** 2
        root = along**2 - off
        return along - np.sqrt(root) if root >= 0.0 and along > 0.0 else None
    if kind == newton.GeoType.BOX:
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort((np.array([-scale, scale]) - start) / way, axis=0)
        ends[:, way == 0.0] = np.where(np.abs(start) <= scale, [[-np.inf], [np.inf]], np.nan)[:, way == 0.0]
        near, far = ends[0].max(), ends[1].min()
        return near if near <= far and far > 0.0 else None
    return None


def _matrix(quaternion):
    """(3, 3) of a unit quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def main():
    """Push the gripper on the load, lift it by 0.1 m at 0.1 m/s, and let it go."""
    import newton

    builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
    builder.add_usd(str(HERE / "lift.usda"))
    model = builder.finalize()
    solver, gripper = newton.solvers.SolverXPBD(model), NewtonGripper(model)
    state, after, control = model.state(), model.state(), model.control()
    dt, lift = 1e-3, 0.0
    low = -5e-3 - 1.2 * max(law["push_m"] for law in load(HERE).values())
    start = float(state.body_q.numpy()[gripper.body, 2])
    ways = [*np.arange(0.0, low, -0.01 * dt)]
    speed = 0.0
    while lift < 0.1:
        speed = min(speed + 0.5 * dt, 0.1)
        lift += speed * dt
        ways.append(low + lift)
    at = next(k for k, label in enumerate(model.body_label) if label.endswith("/load"))

    def step(way):
        nonlocal state, after
        q = state.body_q.numpy()
        q[gripper.body, 2] = start + way
        state.body_q.assign(q)
        state.clear_forces()
        gripper.step(state, dt)
        solver.step(state, after, control, model.collide(state), dt)
        state, after = after, state

    for way in ways:
        step(way)
    print(f"the load is at {state.body_q.numpy()[at, 2]:.3f} m, held by {sum(gripper.holding.values())} cups")
    gripper.release()
    for _ in range(500):
        step(ways[-1])
    print(f"released, it is at {state.body_q.numpy()[at, 2]:.3f} m")


if __name__ == "__main__":
    main()
