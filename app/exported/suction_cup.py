# mypy: ignore-errors
"""A suction cup as a law of few numbers, for any simulator: NumPy alone.

The cup's own axes: z along its axis, away from what it grips. `height` is that of the stem over where the
rim first touches, negative where the cup is pushed. A cup grips once it was pushed as far as its law asks,
pulls by its curve, and lets go where it is pulled harder than the suction that is left holds, or where a
moment lifts its rim; across it slips by friction. Suction leaks out; a pump keeps it.
"""

import copy
import json
import math
from pathlib import Path

import numpy as np

SAFE = 0.2
"""Largest stiffness times dt^2 over the mass moved: a law that is stiffer is softened to it."""


class Wrench:
    """What a cup does to what it grips, in its axes: force [N], and moment [N m] about the rim's middle."""

    def __init__(self, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)):
        self.force, self.moment = np.array(force, float), np.array(moment, float)


class SuctionCup:
    """One cup; law: a cup of gripper.json. roughness [m rms]: of what it grips; the nearest that is known."""

    def __init__(self, law, roughness=1e-6):
        self.law = law
        self.pull, self.curve, self.pressed = (np.array(law[key]) for key in ("pull_m", "force_N", "rim_N"))
        known = min(law["leak_s"], key=lambda rms: abs(math.log(float(rms) / roughness)))
        self.leak = np.array(law["leak_s"][known])
        self.holds, self.open = False, False
        self.suction = 1.0
        """Share of its suction that is left."""
        self.slid = np.zeros(2)
        self.why = ""
        """Why it let go last: "pull", "peel", "leak" or "released"."""

    def grip(self):
        """Shut the valve, or switch the pump on: it grips what it is pushed on."""
        self.open = False

    def release(self):
        """Open the valve: it lets go."""
        self.open = True
        self._let_go("released")

    def _let_go(self, why):
        if self.holds:
            self.why = why
        self.holds, self.suction, self.slid = False, 1.0, np.zeros(2)

    def meets(self, height):
        """Whether it grips now, at a height over a surface [m]."""
        pushed = 0.0 if self.law["pumped"] else self.law["push_m"]
        if not self.holds and not self.open and height <= -0.99 * pushed:
            self.holds = True
        return self.holds

    def free(self, height, speed):
        """The wrench of a cup that only stands on a surface, at a height [m] and its speed [m/s]."""
        if height >= 0.0:
            return Wrench()
        law = self.law
        push = law["rim_stiffness_N_per_m"] * (-height - law["damping_s"] * speed)
        return Wrench((0.0, 0.0, -max(push, 0.0)))

    def step(self, dt, offset, speed, turn, spin, mass=math.inf):
        """The wrench on what is held, for a step dt [s]; the cup pulls with the opposite.

        offset (3,) [m]: of the stem from where the rim first touched, z the height; speed (3,) [m/s] of it;
        turn (3,) [rad] and spin (3,) [rad/s] of the stem about what is held. mass [kg] of what is held.
        """
        law, (across, height) = self.law, (np.array(offset[:2], float) - self.slid, float(offset[2]))
        soft = min(1.0, SAFE * mass / (dt * dt * law["stiffness_N_per_m"]))
        pull, stiffness = height - law["rest_m"], soft * law["stiffness_N_per_m"]
        if pull < 0.0:
            stiffness = min(law["rim_stiffness_N_per_m"], SAFE * mass / (dt * dt))
        lag = min(law["damping_s"], 0.5 * mass / (stiffness * dt))
        if pull < 0.0:
            axial = stiffness * pull
        else:
            axial = float(np.interp(soft * pull, self.pull, self.curve, left=stiffness * pull))
        axial += stiffness * lag * float(speed[2])
        limit = self.suction * law["limit_N"]
        if axial > limit or soft * pull > self.pull[-1]:
            return self._gone("pull" if self.suction > 0.5 else "leak")
        bearing = max(axial, 0.0)
        rim = self.suction * float(np.interp(bearing, self.curve, self.pressed)) + max(-axial, 0.0)
        bend = 0.5 * stiffness * law["radius_m"] ** 2
        moment = bend * (np.array(turn, float) + lag * np.array(spin, float))
        if math.hypot(moment[0], moment[1]) > 0.5 * rim * law["radius_m"]:
            return self._gone("peel")
        moment[2] = np.clip(moment[2], -law["mu"] * rim * law["radius_m"], law["mu"] * rim * law["radius_m"])
        shear = stiffness * (across + lag * np.array(speed[:2], float))
        most, size = law["mu"] * rim, math.hypot(shear[0], shear[1])
        if size > most:
            self.slid += across * (1.0 - most / size)  # the rim slides until friction holds it
            shear *= most / size
        if not law["pumped"]:
            self.suction *= 3.0 ** (-dt / float(np.interp(bearing, self.curve, self.leak)))
        return Wrench((shear[0], shear[1], axial), moment)

    def _gone(self, why):
        self._let_go(why)
        return Wrench()


class GripPlace:
    """A cup's place on what it holds, as every simulator asks for it; in axes of what is held."""

    def __init__(self, point, axes):
        """point (3,) [m]: where the rim first touched. axes (3, 3): columns are the cup's when it gripped."""
        self.point, self.axes = np.array(point, float), np.array(axes, float)


def rotation_vector(matrix):
    """Axis times angle [rad] of a rotation (3, 3)."""
    axis = 0.5 * np.array(
        [matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]]
    )
    sine = float(np.linalg.norm(axis))
    angle = math.atan2(sine, 0.5 * (float(np.trace(matrix)) - 1.0))
    return axis * (angle / sine if sine > 1e-12 else 1.0)


class RigidMotion:
    """Where a rigid body is and how it moves, in the world's axes."""

    def __init__(self, origin, axes, velocity, spin, mass=math.inf):
        """origin (3,) [m], axes (3, 3) columns, velocity (3,) of the origin [m/s], spin (3,) [rad/s]."""
        self.origin, self.axes = np.array(origin, float), np.array(axes, float).reshape(3, 3)
        self.velocity, self.spin = np.array(velocity, float), np.array(spin, float)
        self.mass = mass

    def at(self, point):
        """Velocity [m/s] of its point (3,) [m] of the world."""
        return self.velocity + np.cross(self.spin, point - self.origin)


class CarriedCup:
    """A cup on a gripper, what it touches or holds, and the wrench between them."""

    def __init__(self, law, roughness=1e-6):
        self.cup, self.body, self.grip_ = SuctionCup(law, roughness), None, None

    def __deepcopy__(self, memo):
        """Its state is copied, its law is shared: simulators that copy states call this at each step."""
        new = copy.copy(self)
        new.cup = copy.copy(self.cup)
        new.cup.slid = self.cup.slid.copy()
        return new

    @property
    def holds(self):
        """Whether it holds something."""
        return self.cup.holds

    def step(self, dt, stem, found, bodies):
        """(name of a body, force, moment, point) on it in the world's axes, or None.

        stem: a RigidMotion; its origin is the rim's middle at rest, its z the cup's axis, up from the body.
        found: (name, height [m] of the rim over it along the axis) of the nearest body below, or None.
        bodies: name -> RigidMotion, of what it touches or holds.
        """
        axis = stem.axes[:, 2]
        if not self.cup.holds and found is not None:
            name, height = found
            under = stem.origin - height * axis
            if self.cup.meets(height):
                body = bodies(name)
                point = body.axes.T @ (under - body.origin)
                self.body, self.grip_ = name, GripPlace(point, body.axes.T @ stem.axes)
            elif height < 0.0:
                body = bodies(name)
                speed = float((stem.velocity - body.at(under)) @ axis)
                return name, stem.axes @ self.cup.free(height, speed).force, np.zeros(3), under
        if not self.cup.holds:
            return None
        body = bodies(self.body)
        axes, point = body.axes @ self.grip_.axes, body.origin + body.axes @ self.grip_.point
        offset = axes.T @ (stem.origin - point)
        speed = axes.T @ (stem.velocity - body.at(stem.origin))
        turn = rotation_vector(axes.T @ stem.axes)
        spin = axes.T @ (stem.spin - body.spin)
        wrench = self.cup.step(dt, offset, speed, turn, spin, body.mass)
        # across, the stem has moved off the rim's middle, on which the pull acts
        return self.body, axes @ wrench.force, axes @ wrench.moment, point


class CarriedCups:
    """All cups of a gripper, by the laws of the gripper.json in a folder."""

    def __init__(self, folder, roughness=1e-6):
        self.laws = load(folder)
        self.cups = {name: CarriedCup(law, roughness) for name, law in self.laws.items()}
        self.forces = {name: np.zeros(3) for name in self.cups}
        """On what each cup holds, in the world's axes [N]."""

    def grip(self):
        """Shut the valves, or switch the pump on."""
        for held in self.cups.values():
            held.cup.grip()

    def release(self):
        """Open the valves."""
        for held in self.cups.values():
            held.cup.release()

    @property
    def holding(self):
        """Which cups hold something, by name."""
        return {name: held.holds for name, held in self.cups.items()}


def load(folder):
    """The laws of a gripper's cups, by their names, from its gripper.json."""
    told = json.loads((Path(folder) / "gripper.json").read_text("utf-8"))
    return {cup["name"]: cup for cup in told["cups"]}
