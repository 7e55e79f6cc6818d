"""A plug led into its socket along a scripted path of its target, off line."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import ArrayLike, NDArray

from palpo.physics.exchange.port import OK
from palpo.physics.exchange.snap_frame import ENERGY
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_from_rotvec, quat_multiply
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.step import step


@kernel
def run_steps(s, positions, orientations, out, books):
    """A step for each target (n, 3), (n, 4), in rows of out (n, COLUMNS) and books; how many went well."""
    engine, plug = s.engine, s.plug
    for k in range(positions.shape[0]):
        if step(s, positions[k], orientations[k]) != OK:
            return k
        row, depth, normal = out[k], 0.0, 0.0
        for c in range(engine.contacts.count[0].found):
            depth = max(depth, -s.search.found.gap[c])
            normal += engine.r[3 * c]
        row[0:3] = plug.motion.position
        row[3:7] = plug.motion.orientation
        row[7:13] = plug.hand
        row[13:19] = plug.wrench
        row[19:22] = s.floor
        row[22] = engine.contacts.count[0].found
        row[23] = s.search.active[0]
        row[24] = engine.count[0].sweeps
        row[25] = engine.solver.told[0].residual
        row[26] = depth
        row[27] = normal
        row[28] = plug.motion.work[0].damping
        books[k] = s.books[0]
    return positions.shape[0]


COLUMNS = 29


class Series(NamedTuple):
    """What happened in each of n steps."""

    time: NDArray[np.float64]  # (n,) at the step's end [s]
    travel: NDArray[np.float64]  # (n,) of the plug along the push [m]
    position: NDArray[np.float64]  # (n, 3) of the plug [m]
    orientation: NDArray[np.float64]  # (n, 4)
    hand: NDArray[np.float64]  # (n, 6) of the hold on the hand [N], [N m]
    wrench: NDArray[np.float64]  # (n, 6) of the contacts on the plug [N], [N m]
    floor: NDArray[np.float64]  # (n, 3) of the prongs on the floor [N]
    contacts: NDArray[np.float64]  # (n,)
    active: NDArray[np.float64]  # (n,) points that touch, before clustering
    sweeps: NDArray[np.float64]  # (n,)
    residual: NDArray[np.float64]  # (n,)
    depth: NDArray[np.float64]  # (n,) largest penetration of a contact at the step's start [m]
    normal: NDArray[np.float64]  # (n,) sum of the normal forces [N]
    energy: NDArray[np.float64]  # (n, 4) kinetic, elastic, of couplings, of the plug and its hold [J]
    work: NDArray[np.float64]  # (n, 4) of normal forces, of friction, of gaps, of the target [J]
    lost: NDArray[np.float64]  # (n,) taken by all dampings [J]

    @property
    def balance(self) -> NDArray[np.float64]:
        """E less works plus losses [J], shape (n,): constant, to rounding."""
        return self.energy.sum(axis=1) - self.work[:, [0, 1, 3]].sum(axis=1) + self.lost


class Insertion:
    """A plug led along a scripted path of its target, off line.

    speed: of the target along the push [m/s]. offset (3,) [m] and tilt (3,) [rad]: of the target's path and
    axes all along, about the plug's centre. The plug starts at rest on its target.
    """

    def __init__(
        self,
        model: SnapModel,
        speed: float = 0.05,
        offset: ArrayLike = (0.0, 0.0, 0.0),
        tilt: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Raises InputError for a speed that is not positive."""
        if not speed > 0.0:
            raise InputError(f"the speed of an insertion is {speed} m/s, expected a positive number.")
        self.model, self.speed = model, float(speed)
        self.origin = model.start + np.asarray(offset, float)
        self.axes = np.zeros(4)
        quat_from_rotvec(np.asarray(tilt, float), turn := np.zeros(4))
        quat_multiply(turn, model.upright, self.axes)
        model.place(self.origin, self.axes)
        self.target, self.steps = 0.0, 0

    def run(self, travel: float | None = None, rest: float = 0.0) -> Series:
        """Lead the target to `travel` [m] from the start, by default the stroke, and let it rest [s].

        May be called again, to go further or back out. Stops at a step that fails.
        """
        model, T = self.model, self.model.numerics.step
        travel = model.connector.stroke if travel is None else travel
        n = max(1, round(abs(travel - self.target) / (self.speed * T)))
        way = np.concatenate([np.linspace(self.target, travel, n + 1)[1:], np.full(round(rest / T), travel)])
        self.target = travel
        return self.follow(self.origin + way[:, None] * model.connector.push)

    def follow(self, positions: NDArray, orientations: Sequence | NDArray | None = None) -> Series:
        """Lead the target along positions (n, 3) [m] and orientations (n, 4), by default the insertion's."""
        n, model = len(positions), self.model
        q = np.tile(self.axes, (n, 1)) if orientations is None else np.ascontiguousarray(orientations, float)
        out, books = np.zeros((n, COLUMNS)), np.zeros(n, ENERGY)
        n = run_steps(model.handle, np.ascontiguousarray(positions, float), q, out, books)
        out, first = out[:n], self.steps + 1
        told = structured_to_unstructured(books[:n])
        self.steps += n
        return Series(
            time=model.numerics.step * np.arange(first, first + n),
            travel=(out[:, 0:3] - self.origin) @ model.connector.push,
            position=out[:, 0:3],
            orientation=out[:, 3:7],
            hand=out[:, 7:13],
            wrench=out[:, 13:19],
            floor=out[:, 19:22],
            contacts=out[:, 22],
            active=out[:, 23],
            sweeps=out[:, 24],
            residual=out[:, 25],
            depth=out[:, 26],
            normal=out[:, 27],
            energy=told[:, 0:4],
            work=told[:, 4:8],
            lost=out[:, 28] + told[:, 8],
        )
