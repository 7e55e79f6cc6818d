"""What the low loop keeps of each body from frame to frame: the source of its reduced models."""

from concurrent.futures import Executor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.chain_body import BeamBody, RigidBody
from palpo.physics.bodies.low_body import LowBody
from palpo.physics.reduction.body_model import BodyModel, no_model
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.reduction.large_reduction import LargeReduction
from palpo.physics.reduction.past import Past
from palpo.physics.reduction.reduced_frame import (
    Grams,
    Page,
    write_compliance,
    write_modes,
    write_motion,
    write_points,
)
from palpo.physics.reduction.soft_reduction import TAIL, SoftReduction


class Reduction(Protocol):
    """The reduced models of one body."""

    def afford(self, shifts: list[float], columns: int) -> None:
        """From the next model on, other step sizes [s], and fewer columns or as many as at first."""
        ...

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """L3 and L5: what the next model needs of the local points `near`, likeliest contacts first."""
        ...

    def need(self, points: int) -> int:
        """Modes of a model of which so many points may touch something."""
        ...

    def write(self, page: Page, pool: Executor) -> None:
        """L7: the model about the present state into its page of a frame."""
        ...

    def renew(self, pool: Executor) -> None:
        """Once the frame is out: begin what the next model needs."""
        ...

    def wait(self) -> None:
        """For what `renew` has begun."""
        ...

    @property
    def model(self) -> BodyModel:
        """The last one."""
        ...

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """A field (n_dof, m) times the matrix in which its modes are orthogonal."""
        ...

    def drawn(self) -> BodyModel:
        """The model as it was last written, for the picture; it stays as it is when the next one is made."""
        ...

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """L6: the full body over the past ticks, to the state of the last frame's model at their end."""
        ...


def make_reduction(body: LowBody, shifts: list[float], spanned: list[int], columns: int) -> Reduction:
    """The reduction of a body: factors at those step sizes [s], the servo's and the low rate's first.

    spanned: numbers of the shifts at which A_h^-1 J^T is in the basis of a body of many freedoms, with so
    many columns altogether.
    """
    if isinstance(body, RigidBody):
        return RigidReduction(body)
    if isinstance(body, BeamBody):
        return BeamReduction(body, shifts, columns)
    if body.hierarchy is not None:
        return LargeReduction(body, shifts, columns)
    return SoftReduction(body, shifts, spanned, columns)


class RigidReduction:
    """A rigid body is its own model."""

    def __init__(self, body: RigidBody) -> None:
        self.body = body
        none = np.zeros((0, 6))
        self._model = BodyModel(body, np.zeros((0, 0)), None, slice(0, 0), none, none.T)

    def afford(self, shifts: list[float], columns: int) -> None:
        """It has none."""

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """Nothing to prepare."""

    def need(self, points: int) -> int:
        """It moves as a whole."""
        return 0

    def write(self, page: Page, pool: Executor) -> None:
        """The state of the body."""
        body = self.body
        centre, velocity, spin, inertia = body.rigid_state()
        points = np.vstack([body.points, np.zeros((1, 3))])
        identity = np.tile([1.0, 0.0, 0.0, 0.0], (len(page.local), 1))
        write_points(page, body, (body.model.alpha, 0.0), points[page.local], identity)
        write_motion(page, body.mass, centre, velocity, spin, inertia, body.q[0])
        page.frame.slot_rest[page.f, page.run] = 0.0
        write_compliance(page, np.zeros((3 * len(page.slots), 0)))

    def renew(self, pool: Executor) -> None:
        """Nothing ages."""

    def wait(self) -> None:
        """Nothing is begun."""

    @property
    def model(self) -> BodyModel:
        """Rigid motions alone: its freedoms are in no field."""
        return self._model

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """There are no modes."""
        return field

    def drawn(self) -> BodyModel:
        """The surface in body axes, without modes."""
        points = np.vstack([self.body.points, np.zeros((1, 3))])
        return self._model._replace(places=points)

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """Where the model is."""
        state = self.body.state
        state.x[0], state.q[0] = model.centre[low], model.q[low]
        state.v[0], state.w[0] = model.velocity[low], model.spin[low]


class BeamReduction:
    """A beam has few freedoms: all is made anew for each frame."""

    def __init__(self, body: BeamBody, shifts: list[float], columns: int) -> None:
        self.body = body
        self.afford(shifts, columns)
        self.columns = np.zeros((body.n_dof, 0))
        self._tangent = np.zeros((body.n_dof, body.n_dof))
        """Of the last model."""
        self.factors: list[Factor] = []
        self._model = no_model(body)

    def afford(self, shifts: list[float], columns: int) -> None:
        """Columns of so many points."""
        self.shifts, self.points = shifts, columns // (3 * len(shifts))

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """Factors at each shift and A_h^-1 J^T."""
        body = self.body
        body.linearise()
        load = self.body.columns(near[: self.points])
        load = np.ascontiguousarray(load[:, load.any(axis=0)])
        self.factors = [body.factor(shift) for shift in self.shifts]
        self.columns = np.hstack([factor.solve_many(load.copy()) for factor in self.factors])

    def need(self, points: int) -> int:
        """Three columns a point and step, the velocity and the free accelerations."""
        return 3 * len(self.shifts) * min(points, self.points) + TAIL

    def write(self, page: Page, pool: Executor) -> None:
        """The model on those columns, the velocity and the free accelerations."""
        body, (alpha, beta) = self.body, self.body.damping
        body, local = body, page.local
        body.linearise()
        x = np.where(body.turns(local)[:, None] == 1, 0.0, body.positions()[local])
        write_points(page, body, body.damping, x, body.orientations(local))
        v, force, tangent = body.v, body.undamped_force(), body.tangent()
        self._tangent = tangent
        residual = force - alpha * (body.M @ v) - beta * (tangent @ v)
        solved = [factor.solve(residual) for factor in self.factors[:2]]
        basis = np.column_stack([self.columns, v, *solved])
        diagonal = body.M.diagonal(), tangent.diagonal()
        velocity = self.columns.shape[1]
        loads = np.stack([force, np.zeros_like(force)])
        grams = Grams(basis, basis.T @ body.M @ basis, basis.T @ tangent @ basis, loads, velocity, diagonal)
        modes, span = write_modes(page, body, grams)
        none = np.zeros((body.n_dof, 0))
        self._model = BodyModel(body, basis, modes, span, none, none.T, body.positions())

    def renew(self, pool: Executor) -> None:
        """All is made anew for each frame anyway."""

    def wait(self) -> None:
        """Nothing is begun."""

    @property
    def model(self) -> BodyModel:
        """The last one."""
        return self._model

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """See Reduction."""
        body, h, (alpha, beta) = self.body, self.shifts[0], self.body.damping
        heavy = body.M @ field
        if self._model.modes is not None and not self._model.modes.triangular:
            return heavy
        return (1.0 + h * alpha) * heavy + h * (beta + h) * (self._tangent @ field)

    def drawn(self) -> BodyModel:
        """The last model."""
        return self._model

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """Where the model is."""
        body = self.body
        moved, rate = self._model.field(model.z, model.rate).T
        body.x[body.free] += moved.reshape(-1, 6)[:, :3]
        turns = Rotation.from_rotvec(moved.reshape(-1, 6)[:, 3:])
        before = Rotation.from_quat(body.q[body.free], scalar_first=True)
        body.q[body.free] = (turns * before).as_quat(scalar_first=True)
        body.v = rate
