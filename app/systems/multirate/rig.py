"""The multi-rate system ready to run: physics at rest, the exchange, and the servo on its device."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.runtime.rigs import CavityReading, NeedleReading, Rig, Solid, Start, no_contact
from palpo.app.systems.multirate.build import build_scene, change_scene
from palpo.app.systems.multirate.mesh_errors import mesh_errors
from palpo.app.systems.multirate.picture import Visual
from palpo.app.systems.multirate.rehearsal import rehearse_air
from palpo.config.schema.scene import SceneSpec
from palpo.haptics.servo import make_servo
from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.compliance.hold import held_point
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.engine.servo import servo_tick, tick_data
from palpo.physics.systems.multirate.lock_step import LockStep

LIGHT = 10.0
"""Mass of a soft body over the tool's below which held and extrapolated contact points are warned about."""


class MultirateRig(Rig):
    """One scene for one run, a `Rig`. The same object is driven in lock-step or by threads."""

    def __init__(self, spec: SceneSpec, start: Start) -> None:
        self.spec, self.kind, self._progress = spec, start.kind, start.progress
        self.scene = scene = build_scene(spec)
        self.dt = scene.numbers.dt
        self.held: NDArray[np.float64] = np.zeros(3)
        held_point(scene.hold, scene.tool, self.held)
        self.lock: LockStep = LockStep(self.scene, start.kind, spec.interface.latency)
        self.high = self.lock.high
        for name in scene.falling:
            start.progress.say(_falls(name))
        self.led = [
            make_servo(
                0, 0, held.port, own.at(held.port.position.copy()), limits_of(hand, own.spec),
                workspace_of(hand), rate_hz=spec.rates.servo_hz,
                start_at=held.port.position.copy() if own.rebased else None,
            )
            for held, own, hand in zip(self.lock.side.held[1:], start.further, spec.hands[1:], strict=True)
        ]  # fmt: skip
        """The servos of the hands after the first."""
        self.serve(start, servo_tick.address, tick_data(self.lock.servo), self.high.port, self.led)

    @cached_property
    def visual(self) -> Visual:
        """What there is to see."""
        return Visual(self.spec, self.scene, self.high, self.lock.lows)

    @cached_property
    def mesh_errors(self) -> list[str]:
        """See Rig."""
        with self._progress.stage("estimating by how much the meshes err"):
            return [str(found) for found in mesh_errors(self.scene)]

    @property
    def latency(self) -> str:
        """How old a frame is when it is first felt, in words."""
        if self.kind == "monolithic":
            return "none: the servo computes everything"
        if self.threads:
            return "one slow step"
        return "none" if self.spec.interface.latency == "none" else "one period of the slow loop"

    @property
    def turn(self) -> NDArray[np.float64]:
        """Orientation of what the hand holds (w, x, y, z), shape (4,)."""
        return self.high.held.tool.q[self.high.held.hold.frame[0]]

    def masses(self) -> dict[str, float]:
        """Mass of each moving body [kg]."""
        return self.scene.masses()

    def solids(self) -> dict[str, Solid]:
        """See Rig."""
        found = ((self.scene.names[m.number], m.body) for m in self.scene.members)
        return {
            name: Solid(body.mesh, body.elements, body.material)
            for name, body in found
            if isinstance(body, SoftBody) and not isinstance(body, CutBody)
        }

    def needles(self) -> list[NeedleReading]:
        """See Rig; as the servo has them."""
        found = []
        for path in self.scene.needles:
            now = self.high.inserted[path.number]
            needle, tissue = self.scene.topology.point_body[path.spec.points[0]], path.spec.member.number
            points = self.high.path[path.number, : now["count"]].copy()
            names = self.scene.names
            depth, inside = float(now["depth"]), float(now["inside"])
            tip, behind = self.scene.rest[path.spec.points[:2]]
            ahead = (tip - behind) / np.linalg.norm(tip - behind)
            found.append(NeedleReading(names[needle], names[tissue], depth, inside, points, ahead))
        return found

    def cavities(self) -> list[CavityReading]:
        """See Rig; those of the servo, whose walls are as the last frame found them."""
        air, told = self.scene.air, self.high.engine.cavities
        if air is None:
            return []
        names = [self.scene.names[member.number] for member in air.members]
        found = []
        for k in np.argsort(told.identity[: told.count[0]], kind="stable").tolist():
            here = np.flatnonzero(air.identity == told.identity[k])
            fields = air.field[here]
            walls = {
                name: np.flatnonzero(np.abs(wall.body.wall[fields]).sum(axis=(0, 2)))
                for name, wall in zip(names, air.walls, strict=True)
            }
            volume = float(air.walls[0].body.volume[fields].sum())
            gauge = float(told.pressure[k] - air.air.atmosphere)
            found.append(CavityReading(gauge, volume, float(told.amount[k]), walls))
        return found

    def warm_up(self, progress: Progress) -> None:
        """See Rig."""
        super().warm_up(progress)
        if self.scene.air is not None:
            with progress.stage("compiling cavities, or loading them"):
                rehearse_air()

    def change(self, spec: SceneSpec) -> None:
        """See Rig."""
        super().change(spec)
        change_scene(self.scene, spec)

    def problem(self) -> ContactProblem:
        """The contacts of the servo's last tick, attachments eliminated [m], [N]; InputError for none."""
        problem = self.high.engine.problem
        first, last = (int(row) for row in problem.rows)
        if first == last:
            raise no_contact()
        here, n = slice(first, last), (last - first) // 3
        w = problem.w[: last * last].reshape(last, last)
        return ContactProblem(w[here, here].copy(), problem.b[here].copy(), problem.mu[:n].copy())

    def warnings(self, result: Mapping[str, Any]) -> list[str]:
        """Sentences on what found no room, and on interfaces that do not suit the masses."""
        found = []
        dropped = sum(int(link.log.dropped[0]) for link in self.lock.side.links)
        if dropped:
            found.append(f"{dropped} forces were dropped from the force log: capacity full.")
        far = sum(low.lost_pairs for low in self.lock.lows)
        if far:
            found.append(f"{far} far candidate pairs were dropped: capacity full.")
        lost = int(self.high.engine.count["lost"][0])
        if lost:
            found.append(f"{lost} contacts were dropped: capacity full; raise contact.max_contacts.")
        found += [_no_room(blade.body.name) for blade in self.scene.blades if blade.lost]
        found += [_crushed(name, *told) for low in self.lock.lows for name, told in low.crushed.items()]
        return found + [_falls(name) for name in self.scene.falling] + self._mass_ratio()

    def _mass_ratio(self) -> list[str]:
        """Contact points that do not move with the forces suffer from soft bodies that are light."""
        if self.kind not in ("paper", "extrapolated"):
            return []
        masses, tool = self.masses(), float(self.scene.model.weight.sum())
        light = {self.scene.names[m.number]: m.body.mass / tool for m in self.scene.members}
        return [
            f"{name} weighs {ratio:.1f} times the tool ({masses[name]:.3g} kg): below {LIGHT:g} times, the "
            f'interface "{self.kind}" may jump or diverge; "krylov" does not.'
            for name, ratio in light.items()
            if ratio < LIGHT
        ]


def _crushed(name: str, most: int, steps: int) -> str:
    return (
        f"In {steps} slow steps {name} was crushed: up to {most} of its elements were turned inside out, and "
        "what was felt then is not its material's. Press less deep, or give it a material.law that resists."
    )


def _no_room(name: str) -> str:
    return f"{name} has no room for a longer cut: the blade goes on, and its mesh is cut no farther."


def _falls(name: str) -> str:
    return (
        f"bodies.{name}: nothing holds it and nothing lies under it, so it falls for as long as the scene "
        "runs; attach it, or put a body under it."
    )
