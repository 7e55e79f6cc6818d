"""The paper's interface: low steps L1 to L7 in the order and with the data of 003, section IV-A.

The low-rate problem is the high-rate tick itself, run on the proxy at DT. Rows that touch only low-rate
bodies do not appear at high rate; their L6 forces go into x_soft_free^dt (EQUATIONS.md, 1).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.topology import TOOL
from palpo.physics.engine.servo import TickState, tick
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import publish, reader_slot, ring_release
from palpo.physics.exchange.constraint_frame import (
    EXACT,
    EXTRAPOLATED,
    FROZEN,
    HELD,
)
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.math3 import rotate_by
from palpo.physics.systems.multirate.assembly import TOOL as STIFF
from palpo.physics.systems.multirate.assembly import ServoSide
from palpo.physics.systems.multirate.held_frame import Motion, free_motions, write_held
from palpo.physics.systems.multirate.high_rate import make_servo
from palpo.physics.systems.multirate.high_state import HighRate, Link
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.scene import Loop, Scene


class Paper(LowRate):
    """Low steps as printed: contact points stand still between them."""

    kind = "paper"
    motion = HELD

    def __init__(self, scene: Scene, high: HighRate, link: Link, loops: Sequence[Loop], own: int = 0) -> None:
        super().__init__(scene, high, link, loops, own)
        servo, self.side = _make_proxy(scene)
        self.proxy = self.side.high
        self.proxy_handle = Handle(servo)
        self.chosen = np.zeros(0, np.int32)
        self._slots: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        self._low: list[Motion] = []
        self._high: list[Motion] = []
        self._forces = np.zeros((0, 3))
        self._soft_only = np.zeros((0, 3))

    def make(self) -> int:
        """L1 to L7; the frame is then ready and waits for its publication."""
        with self.timed("L1 proximity"):
            self._l1_proximity()
        with self.timed("L2 impose proxy"):
            self._l2_impose_proxy()
        with self.timed("L3 free motion"):
            self._l3_free_motion()
        with self.timed("L4-L5 violation and compliance"):
            self._l4_l5_problem()
        with self.timed("L6 solve"):
            self._l6_solve()
        with self.timed("L7 correct"):
            self._shared_frame()
            self._l7_correct()
        return self.calls()

    def follow(self, tick: int) -> None:
        """The low-rate problem has moved the bodies; the servo's forces are let go."""
        ring_release(self.link.log.ring, tick - self.tick)

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """The frame that the step made ready."""
        self.link.frame.head["base_tick"][slot] = self.tick
        self.bound_speed(slot)
        return self.tick

    def set_budget(self, budget: Budget) -> None:
        """The proxy's step is the low period."""
        super().set_budget(budget)
        self.proxy.engine.step[0] = self.DT

    def _l1_proximity(self) -> None:
        """Candidates between the soft bodies and the proxy as the last L7 predicted it."""
        self.place_points(self.proxy.held.tool)
        self.find_pairs(2.0 * self.DT)
        start, stop = self.scene.tool_points.span
        speed = float(np.sqrt((self.u[start:stop] ** 2).sum(axis=1)).max())
        search = self.proxy.search
        search.bounds[:] = self.scene.numbers.reach + self.DT * speed
        # the proxy is set to where the servo is: what was seen of a pair before tells nothing
        search.count[0] = 0
        chosen, near = self.choose_slots(self.DT)
        self.chosen = chosen[:near]
        self._slots = self.member_slots(self.chosen)

    def due_of(self, gaps: ArrayLike) -> Any:
        """Every pair at once: the proxy leaps a whole low period, and the servo's contacts are frozen."""
        return np.full(np.shape(gaps), -np.inf)

    def _l2_impose_proxy(self) -> None:
        """The servo's positions, orientations and velocities, and its hold with the target of t + DT."""
        self.read_tool()
        proxy, state, k = self.proxy, self.link.state, self.tool_slot
        for own, servo in zip(proxy.held.tool, self.servo_tool(), strict=True):
            own[:] = servo
        proxy.held.hold.target[:], proxy.held.hold.target_q[:] = state.target[k], state.target_q[k]
        proxy.port.position[:] = state.target[k] + self.DT * state.target_v[k]
        proxy.port.orientation[:] = state.target_q[k]
        rotate_by(self.DT * state.target_w[k], proxy.port.orientation)
        proxy.engine.now[0] = proxy.ticks["done"][0] = max(int(state.tick[k]), 1)

    def _l3_free_motion(self) -> None:
        """Free motion of the soft bodies at both steps; the proxy's own is H2 of its tick."""
        both = list(self.pool.map(lambda m: free_motions(m, (self.DT, self.dt)), self.scene.members))
        self._low, self._high = [pair[0] for pair in both], [pair[1] for pair in both]

    def _l4_l5_problem(self) -> None:
        """The low-rate problem's frame: gaps from the present positions, W_soft^DT."""
        f = self.open_frame(EXACT, self.chosen, len(self.chosen), self.proxy.link)
        for low, (slots, local) in enumerate(self._slots):
            write_held(self.proxy.link.frame, f, low, self._low[low], slots, local)
        publish(self.proxy.link.frame_control)
        self.frame_id += 1  # the proxy's frames are counted along

    def _l6_solve(self) -> None:
        """The mixed complementarity problem at DT; its forces on every chosen point [N]."""
        tick(self.proxy_handle)
        proxy, soft, f = self.proxy, self.proxy.link.points, int(reader_slot(self.proxy.link.frame_control))
        ring_release(proxy.link.log.ring, 1)
        self._forces = np.zeros((len(self.chosen), 3))
        self._soft_only = np.zeros((len(self.chosen), 3))
        joints = len(proxy.engine.joints.what)
        for k in range(int(soft.count[0])):
            contact = int(soft.block[k]) - joints
            between_soft = contact >= 0 and STIFF not in proxy.engine.contacts.body[contact]
            for point, share in zip(soft.slots[k], soft.weights[k], strict=True):
                if share != 0.0:
                    slot = proxy.link.frame.slot_of[f, point]
                    self._forces[slot] += share * soft.f[k]
                    if between_soft:
                        self._soft_only[slot] += share * soft.f[k]
        if self.booked is not None:
            self.booked(self.chosen, self.DT * (self._forces - self._soft_only))

    def _shared_frame(self) -> None:
        """What the servo gets: x_soft_free^dt with the soft-only forces, W_soft^dt, the contacts of L1."""
        frame = self.link.frame
        f = self.open_frame(self.motion, self.chosen, len(self.chosen))
        frame.head["geometry"][f] = FROZEN
        for low, (slots, local) in enumerate(self._slots):
            motion = self._high[low]
            velocity = motion.corrected(motion.member.body.applied(local, self._soft_only[slots]))
            write_held(frame, f, low, motion._replace(velocity=velocity), slots, local)
            frame.slot_x[f, slots] += frame.slot_step[f, slots]
            frame.slot_step[f, slots] = 0.0
            if self.motion == EXTRAPOLATED:
                slow = self._low[low].corrected(motion.member.body.applied(local, self._forces[slots]))
                frame.slot_v[f, slots] = motion.member.body.gather(local, slow[:, None]).reshape(-1, 3)
        self._freeze_contacts(f)

    def _freeze_contacts(self, f: int) -> None:
        """Contacts that touch the tool, with their directions of L1."""
        frame, contacts = self.link.frame, self.proxy.search.found
        bodies = contacts.body[: contacts.count[0]["found"]]
        kept = np.flatnonzero((self.scene.topology.body_role[bodies] == TOOL).any(axis=1))
        n = len(kept)
        frame.head["n_contacts"][f] = n
        for name in ("identity", "weights", "frame", "mu", "give", "body"):
            getattr(frame, f"contact_{name}")[f, :n] = getattr(contacts, name)[kept]
        slots, weights, normal = contacts.slots[kept], contacts.weights[kept], contacts.frame[kept, 0]
        frame.contact_points[f, :n], frame.contact_arms[f, :n] = slots, contacts.arm[kept]
        along = np.einsum("kspi,ki->ksp", self.proxy.search.x[np.maximum(slots, 0)], normal)
        apart = (weights * along).sum(axis=2)  # unused places have no weight
        frame.contact_rest[f, :n] = contacts.gap[kept] - apart[:, 0] + apart[:, 1]

    def _l7_correct(self) -> None:
        """Corrected motion of the soft bodies; the proxy's own is H6 of its tick."""
        for motion, (slots, local) in zip(self._low, self._slots, strict=True):
            load = motion.member.body.applied(local, self._forces[slots])
            motion.member.body.advance(motion.corrected(load), self.DT)


class Extrapolated(Paper):
    """Contact points go on at their velocity of L7, within limits of distance and time."""

    kind = "extrapolated"
    motion = EXTRAPOLATED


def _make_proxy(scene: Scene) -> tuple[TickState, ServoSide]:
    """The low-rate copy of the tool, with a tick of its own at DT."""
    servo, side = make_servo(scene, log_ticks=16, log_points=4096)
    proxy = side.high
    proxy.engine.step[0] = scene.numbers.low_dt
    proxy.engine.solver.settings["sweeps"] = scene.numbers.sweeps_low
    # the servo's target is the frame's orientation already
    proxy.held.hold.rest[:] = [1.0, 0.0, 0.0, 0.0]
    return servo, side
