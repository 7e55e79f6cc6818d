"""A scene in motion: stepped without a clock, read as arrays, copied, saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from palpo.app.devices.hands import Paths
from palpo.app.library.blas import single_threaded
from palpo.app.library.fields import CavityReading, Fields, fields_of, meshio_mesh
from palpo.app.library.refusals import refusing
from palpo.app.runtime.rigs import NeedleReading, Rig
from palpo.config.words import Refusal
from palpo.haptics.control import finished_reason, tick_count
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_lead, servo_run
from palpo.haptics.reasons import REASONS, RUNNING
from palpo.haptics.row import COLUMNS, NAMES, OWN
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.snapshot import CONTACT_STATES, COUNTERS, SceneState

if TYPE_CHECKING:
    from palpo.app.library.model import Model

Floats = NDArray[np.float64]


class Pose(NamedTuple):
    """A place and an orientation."""

    position: Floats
    """[m], shape (3,)."""
    orientation: Floats
    """Unit quaternion (w, x, y, z), shape (4,)."""


class HandReading(NamedTuple):
    """A hand of the scene, and what it feels."""

    pose: Pose
    """Where it is."""
    held: Floats
    """Where the point that it holds is [m], shape (3,)."""
    force: Floats
    """On it, before its device's limits [N], shape (3,)."""
    torque: Floats
    """On it [N m], shape (3,)."""


class Contacts(NamedTuple):
    """The contacts of a tick."""

    points: Floats
    """[m], shape (n, 3)."""
    forces: Floats
    """On body 1, which is the tool where it takes part [N], shape (n, 3)."""
    status: tuple[str, ...]
    """"open", "stick", "slip" or "bilateral"."""


class Ticks(NamedTuple):
    """What happened in n ticks, a row each."""

    time: Floats
    """At the tick's start [s], shape (n,)."""
    hand: Floats
    """Where the hand was [m], shape (n, 3)."""
    held: Floats
    """Where the tool's held point came to be [m], shape (n, 3)."""
    force: Floats
    """On the hand, before the device's limits [N], shape (n, 3)."""
    torque: Floats
    """On the hand [N m], shape (n, 3)."""
    contacts: NDArray[np.int64]
    """Number of active contacts, shape (n,)."""
    sweeps: NDArray[np.int64]
    """Sweeps of the contact solver, shape (n,)."""
    residual: Floats
    """Relative residual of its solution, shape (n,)."""
    further: tuple[Ticks, ...] = ()
    """The same of each hand after the first, where the scene has several."""

    @property
    def work(self) -> float:
        """Work of the scene on the hand between the first and the last of these ticks [J].

        By the trapezoidal rule over the hand's path; of forces alone, not of torques.
        """
        return float(0.5 * ((self.force[1:] + self.force[:-1]) * np.diff(self.hand, axis=0)).sum())


class State:
    """A scene in motion, made by `Model.start`. Both rates step in one thread without a clock.

    Two states of one model never share anything: what one does, the other does not notice. Not for several
    threads at once.
    """

    def __init__(self, model: Model, rig: Rig, path: Paths) -> None:
        self.model = model
        self.rig = rig
        """The rig behind it: all there is, and no promise to stay as it is."""
        self.led = False
        """Whether a hand has been imposed, so that the scene's own cannot go on."""
        self._path = path

    # ---- going on

    @single_threaded
    def step(
        self,
        ticks: int | None = None,
        hand: ArrayLike | None = None,
        orientation: ArrayLike | None = None,
        *,
        hands: Sequence[ArrayLike | None] = (),
        orientations: Sequence[ArrayLike | None] = (),
    ) -> Ticks:
        """Go on by some ticks, one by default, and return what happened in them.

        Without a hand the scene's own simulated hands follow their paths, with their devices and limits, as
        in `palpo run --lock-step`. hand: where the tool's held point is led instead [m]: (3,) is reached
        evenly over the ticks, (n, 3) is one row a tick. orientation: of the hand, (4,) or (n, 4), unit
        quaternions (w, x, y, z), evenly or one a tick too; without it the hand does not turn. hands,
        orientations: the same for each hand of a scene with several, in their order; one that is None, or not
        told, stays where it is. What happened to the hands after the first is in `Ticks.further`.
        Raises Refusal for arrays of other shapes, and FloatingPointError or RuntimeError, in words, where the
        simulation cannot go on.
        """
        if hand is not None or orientation is not None:
            if len(hands) or len(orientations):
                raise Refusal("step: give hand= and orientation=, or hands= and orientations=")
            hands, orientations = [hand], [orientation]
        if len(hands) or len(orientations):
            rows = self._lead(*self._ways(ticks, hands, orientations))
        else:
            rows = self._follow(_count(1 if ticks is None else ticks))
        first, *further = (_told(rows[:, k]) for k in range(rows.shape[1]))
        return first._replace(further=tuple(further))

    def _follow(self, n: int) -> Floats:
        """Ticks of the scene's own hands."""
        if self.led:
            raise Refusal("this state was led by hand=; go on with hand=, or start anew")
        servo, width = self.rig.servo, len(COLUMNS)
        rows = np.zeros((n, 1 + len(servo.led), width))
        for first in range(0, n, self.rig.ratio):
            self._path.keep(int(tick_count(servo)))
            here = slice(first, min(first + self.rig.ratio, n))
            self.rig.lock.advance(here.stop - first, lambda k: servo_run(servo, k))
            self._check()
            found = drain_rows(servo)
            rows[here] = found[:, None, :width]
            for k in range(len(servo.led)):
                rows[here, k + 1, OWN] = found[:, width + k * len(OWN) : width + (k + 1) * len(OWN)]
        return rows

    def _ways(
        self,
        ticks: int | None,
        hands: Sequence[ArrayLike | None],
        orientations: Sequence[ArrayLike | None],
    ) -> tuple[Floats, Floats]:
        """Positions (n, hands, 3) and orientations (n, hands, 4), one row a tick."""
        poses = [one.pose for one in self.hands]
        for name, told in (("hands", hands), ("orientations", orientations)):
            if len(told) > len(poses):
                raise Refusal(f"{name}: {len(told)} are told, and this scene has {len(poses)}")
        ways = []
        for k, pose in enumerate(poses):
            to, turned = (told[k] if k < len(told) else None for told in (hands, orientations))
            which = "hand" if len(poses) == 1 else f"hand {k + 1}"
            ways.append(
                (
                    _rows(to, pose.position, 3, which),
                    _rows(turned, pose.orientation, 4, f"{which}, orientation"),
                )
            )
        counts = {len(a) for way in ways for a in way if a.ndim == 2}
        if ticks is not None:
            counts.add(_count(ticks))
        if len(counts) > 1:
            lengths = " and ".join(map(str, sorted(counts)))
            raise Refusal(f"hand, orientation and ticks differ in length: {lengths} ticks")
        n = counts.pop() if counts else 1
        made = [_evenly(*way, *pose, n) for way, pose in zip(ways, poses, strict=True)]
        return np.stack([to for to, _ in made], axis=1), np.stack([turned for _, turned in made], axis=1)

    def _lead(self, to: Floats, turned: Floats) -> Floats:
        """Ticks of imposed hands."""
        (n, hands), dt = to.shape[:2], self.rig.dt
        here = np.array([one.pose.position for one in self.hands])[None]
        turn = np.array([one.pose.orientation for one in self.hands])[None]
        velocities = np.diff(np.concatenate([here, to]), axis=0) / dt
        turns = np.concatenate([turn, turned])
        spins = np.zeros((n, hands, 3))
        if n:
            way = _rotation(turns[1:].reshape(-1, 4)) * _rotation(turns[:-1].reshape(-1, 4)).inv()
            spins[:] = way.as_rotvec().reshape(n, hands, 3) / dt
        if tick_count(self.rig.servo) == 0:
            velocities[:1] = spins[:1] = 0.0  # at the first tick the scene takes the hand to be where it is
        rows = np.zeros((n, hands, len(COLUMNS)))
        done, self.led = 0, True

        def make(k: int) -> None:
            nonlocal done
            here = slice(done, done + k)
            done += servo_lead(
                self.rig.servo, to[here], turned[here], velocities[here], spins[here], rows[here]
            )

        while done < n:
            span, before = min(n - done, self.rig.ratio), done
            self.rig.lock.advance(span, make)
            if done < before + span:
                raise FloatingPointError(f"the tick at {self.time:g} s failed: its state is no longer finite")
            self._check()
        return rows

    def _check(self) -> None:
        reason = int(finished_reason(self.rig.servo))
        if reason != RUNNING:
            raise RuntimeError(f"the servo stopped at {self.time:g} s: {REASONS[reason]}")
        for low in self.rig.lows:
            low.check()

    # ---- what there is to read

    @property
    def tick(self) -> int:
        """Ticks done."""
        return int(tick_count(self.rig.servo))

    @property
    def time(self) -> float:
        """Time of the scene [s]."""
        return self.tick * self.rig.dt

    @property
    def hand(self) -> Pose:
        """Where the hand is, in the scene's axes; the first, where there are several."""
        return self.hands[0].pose

    @property
    def hands(self) -> tuple[HandReading, ...]:
        """All hands of the scene, the first one first."""
        servo = self.rig.servo
        return tuple(self._hand(one.port, k == 0) for k, one in enumerate((servo, *servo.led)))

    def _hand(self, port: Port, first: bool) -> HandReading:
        position, held = port.position, port.info["held"][0]
        if not self.tick:
            position = held = self.rig.held if first else port.position
        pose = Pose(np.array(position, float), port.orientation.copy())
        return HandReading(pose, np.array(held, float), port.force.copy(), port.torque.copy())

    @property
    def tool(self) -> Pose:
        """The tool: where its held point is and how it is turned."""
        held = self.rig.servo.port.info["held"][0] if self.tick else self.rig.held
        return Pose(np.array(held, float), self.rig.turn.copy())

    @property
    def force(self) -> Floats:
        """Force on the hand, before the device's limits [N], shape (3,)."""
        return self.rig.servo.port.force.copy()

    @property
    def torque(self) -> Floats:
        """Torque on the hand [N m], shape (3,)."""
        return self.rig.servo.port.torque.copy()

    @property
    def positions(self) -> dict[str, Floats]:
        """Where the vertices of each body are [m], (n, 3) by name; `Model.triangles` joins them.

        They are of the present tick, but for soft bodies of a suction scene, which are where the last step of
        the slow loop left them.
        """
        seen = self._seen()
        return {d.name: seen.vertices[d.span].copy() for d in self.rig.visual.geometry.drawables}

    @property
    def contacts(self) -> Contacts:
        """The contacts of the last tick; of the last step of the slow loop in a suction scene."""
        seen = self._seen()
        status = tuple(CONTACT_STATES[int(k)] for k in seen.contact_state)
        return Contacts(seen.contact_point.copy(), seen.contact_force.copy(), status)

    @property
    def cavities(self) -> list[CavityReading]:
        """The cavities between bodies and their air, the oldest first: pressure above the atmosphere's [Pa],
        volume [m3], amount of air [mol], and the vertices of each body on their walls."""
        self._seen()
        return self.rig.cavities()

    @property
    def needles(self) -> list[NeedleReading]:
        """The needles of the scene and how far each is in its tissue."""
        return self.rig.needles()

    @refusing
    @single_threaded
    def fields(self, body: str) -> Fields:
        """Strain, stress, contact pressure and cavity pressure of a body at each vertex; Refusal for a name
        that the scene has not."""
        return fields_of(self, body)

    @refusing
    @single_threaded
    def mesh(self, body: str) -> Any:
        """The body where it is now as a `meshio.Mesh` with its fields as point data: `.write("body.vtu")`."""
        return meshio_mesh(self, body)

    @refusing
    def pyvista(self, body: str) -> Any:
        """The same as a mesh of PyVista, `.plot(scalars="von_mises")`; Refusal where it is not installed."""
        try:
            import pyvista
        except ImportError:
            raise Refusal("a PyVista mesh needs PyVista: pip install 'palpo[viewer]'") from None
        return pyvista.from_meshio(self.mesh(body))

    @refusing
    def problem(self) -> ContactProblem:
        """The contact problem of the last tick [m], [N], for `palpo.solve`; Refusal without a contact."""
        return self.rig.problem()

    def _seen(self) -> SceneState:
        visual = self.rig.visual
        visual.publish(visual.take_tool(), self.rig.low.tick, np.zeros(len(COUNTERS), np.int64))
        return visual.latest()[0]

    # ---- keeping it

    def copy(self) -> State:
        """Another state that goes on from here, bit for bit as this one does."""
        return self.model.copy_of(self)

    @refusing
    def save(self, path: str | Path) -> Path:
        """Write the state to a file, from which `palpo.restore` goes on, also in another process."""
        self.model.write(self, Path(path))
        return Path(path)

    def close(self) -> None:
        """End its worker threads; else they end with the program."""
        self.rig.low.close()

    @single_threaded
    def _repr_html_(self) -> str:
        from palpo.app.report.notebook import as_html, picture_of

        spec, force = self.model.scene.spec, np.linalg.norm(self.force)
        picture = picture_of(self.rig.visual.geometry, [self._seen()], spec.view)
        rows = {
            "time": f"{self.time:g} s", "force on the hand": f"{force:.3g} N",
            "contacts": len(self.contacts.points), "cavities": len(self.cavities),
        }  # fmt: skip
        return as_html(self.model.scene.title, rows, picture)

    def __repr__(self) -> str:
        return f"<palpo.State of {self.model.scene.name} at {self.time:g} s>"


def _count(ticks: int) -> int:
    if ticks < 0 or ticks != int(ticks):
        raise Refusal(f"ticks = {ticks}: give a whole number, zero or more")
    return int(ticks)


def _rows(told: ArrayLike | None, here: Floats, width: int, name: str) -> Floats:
    """The array that was told, or where the hand is."""
    values = here if told is None else np.asarray(told, float)
    if values.shape != (width,) and not (values.ndim == 2 and values.shape[1] == width):
        raise Refusal(f"{name}: an array of shape {values.shape}; give ({width},) or (ticks, {width})")
    if not np.isfinite(values).all():
        raise Refusal(f"{name}: a value is not finite")
    if width == 4 and not np.linalg.norm(values, axis=-1).all():
        raise Refusal(f"{name}: a quaternion of length zero is no orientation")
    return values


def _evenly(to: Floats, turned: Floats, here: Floats, turn: Floats, n: int) -> tuple[Floats, Floats]:
    """Positions (n, 3) and unit quaternions (n, 4): as they are told, or evenly from (3,) and (4,) on."""
    share = np.arange(1, n + 1)[:, None] / max(n, 1)
    if to.ndim == 1:
        end, to = to, here + share * (to - here)
        to[-1:] = end
    if turned.ndim == 1:
        way = (_rotation(turned) * _rotation(turn).inv()).as_rotvec()
        turned = (Rotation.from_rotvec(share * way) * _rotation(turn)).as_quat(scalar_first=True)
    return to, turned / np.linalg.norm(turned, axis=1, keepdims=True)


def _rotation(quaternions: Floats) -> Rotation:
    return Rotation.from_quat(quaternions, scalar_first=True)


def _told(rows: Floats) -> Ticks:
    column = dict(zip(NAMES, rows.T, strict=True))

    def vector(*names: str) -> Floats:
        return np.stack([column[name] for name in names], axis=1)

    return Ticks(
        column["time_s"], vector("px", "py", "pz"), vector("held_x", "held_y", "held_z"),
        vector("force_x", "force_y", "force_z"), vector("torque_x", "torque_y", "torque_z"),
        column["contacts"].astype(np.int64), column["sweeps"].astype(np.int64), column["residual"],
    )  # fmt: skip
