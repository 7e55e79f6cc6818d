"""What the low loop keeps of each member from frame to frame: the source of its reduced models."""

from concurrent.futures import Executor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.body import Factor
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.systems.multirate.reduced.drawn_model import DrawnModel
from palpo.physics.systems.multirate.reduced.handing_on import BodyModel, no_model
from palpo.physics.systems.multirate.reduced.large_reduction import LargeReduction
from palpo.physics.systems.multirate.reduced.members import (
    BeamMember,
    Member,
    Past,
    RigidMember,
    TetMember,
)
from palpo.physics.systems.multirate.reduced.reduced_frame import (
    Grams,
    Page,
    write_compliance,
    write_modes,
    write_motion,
    write_points,
)
from palpo.physics.systems.multirate.reduced.tet_reduction import OWN_TICKS, TAIL, TetReduction


class MemberReduction(Protocol):
    """The reduced models of one member."""

    own_ticks: int
    """Ticks at the end of a period that the full body is to integrate itself."""

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

    @property
    def model(self) -> BodyModel:
        """The last one."""
        ...

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """A field (n_dof, m) times the matrix in which its modes are orthogonal."""
        ...

    def drawn(self) -> DrawnModel:
        """The model as it was last written, for the picture; it stays as it is when the next one is made."""
        ...

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """L6: the full body over the past ticks.

        model: the state of the last frame's model at the end of all but the past's `tail` of them, under the
        forces that it heard. Without a tail it is where the body is, even if its own steps cost nothing:
        joints are known to the model alone.
        """
        ...


def make_reduction(member: Member, shifts: list[float], spanned: list[int], columns: int) -> MemberReduction:
    """The reduction of a member: factors at those step sizes [s], the servo's and the low rate's first.

    spanned: numbers of the shifts at which A_h^-1 J^T is in the basis of a body of many freedoms, with so
    many columns altogether.
    """
    if isinstance(member, TetMember) and member.body.hierarchy is not None:
        return LargeReduction(member, shifts, columns)
    if isinstance(member, TetMember):
        return TetReduction(member, shifts, spanned, columns)
    if isinstance(member, BeamMember):
        return BeamReduction(member, shifts, columns)
    assert isinstance(member, RigidMember)
    return RigidReduction(member, shifts[0])


class RigidReduction:
    """A rigid body is its own model, and its full steps cost nothing."""

    own_ticks = OWN_TICKS

    def __init__(self, member: RigidMember, h: float) -> None:
        self.member, self.h = member, h

    def afford(self, shifts: list[float], columns: int) -> None:
        """It has none."""

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """Nothing to prepare."""

    def need(self, points: int) -> int:
        """It moves as a whole."""
        return 0

    def write(self, page: Page, pool: Executor) -> None:
        """The state of the body."""
        member = self.member
        centre, velocity, spin, inertia = member.rigid_state()
        points = np.vstack([member.points, np.zeros((1, 3))])
        identity = np.tile([1.0, 0.0, 0.0, 0.0], (len(page.local), 1))
        write_points(page, member, (member.body.model.alpha, 0.0), points[page.local], identity)
        write_motion(page, member.body.mass, centre, velocity, spin, inertia, member.body.q[0])
        page.frame.slot_rest[page.f, page.run] = 0.0
        write_compliance(page, np.zeros((3 * len(page.slots), 0)))

    @property
    def model(self) -> BodyModel:
        """Rigid motions alone."""
        return no_model(0, floats=True)

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """There are no modes."""
        return field

    def drawn(self) -> DrawnModel:
        """The surface in body axes, without modes."""
        points = np.vstack([self.member.points, np.zeros((1, 3))])
        return DrawnModel(self.member, points, np.zeros((6, 0)), np.zeros((0, 0)), slice(0, 0))

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """Every tick anew, or where the model is."""
        if past.tail:
            self.member.integrate(self.h, past.forces, past.local)
            return
        state = self.member.body.state
        state.x[0], state.q[0] = model.centre[low], model.q[low]
        state.v[0], state.w[0] = model.velocity[low], model.spin[low]


class BeamReduction:
    """A beam has few freedoms: all is made anew for each frame, and the full body makes every step."""

    own_ticks = OWN_TICKS

    def __init__(self, member: BeamMember, shifts: list[float], columns: int) -> None:
        self.member = member
        self.afford(shifts, columns)
        self.columns = np.zeros((member.body.n_dof, 0))
        self.factors: list[Factor] = []
        self._model = no_model(member.body.n_dof, floats=False)
        self._places = member.positions()

    def afford(self, shifts: list[float], columns: int) -> None:
        """Columns of so many points."""
        self.shifts, self.points = shifts, columns // (3 * len(shifts))

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """Factors at each shift and A_h^-1 J^T."""
        body = self.member.body
        body.linearise()
        load = self.member.columns(near[: self.points])
        load = np.ascontiguousarray(load[:, load.any(axis=0)])
        self.factors = [body.factor(shift) for shift in self.shifts]
        self.columns = np.hstack([factor.solve_many(load.copy()) for factor in self.factors])

    def need(self, points: int) -> int:
        """Three columns a point and step, the velocity and the free accelerations."""
        return 3 * len(self.shifts) * min(points, self.points) + TAIL

    def write(self, page: Page, pool: Executor) -> None:
        """The model on those columns, the velocity and the free accelerations."""
        member, (alpha, beta) = self.member, self.member.damping
        body, local = member.body, page.local
        body.linearise()
        x = np.where(member.turns(local)[:, None] == 1, 0.0, member.positions()[local])
        write_points(page, member, member.damping, x, member.orientations(local))
        v, force, tangent = body.v, body.undamped_force(), body.tangent()
        residual = force - alpha * (body.M @ v) - beta * (tangent @ v)
        solved = [factor.solve(residual) for factor in self.factors[:2]]
        basis = np.column_stack([self.columns, v, *solved])
        diagonal = body.M.diagonal(), tangent.diagonal()
        velocity = self.columns.shape[1]
        grams = Grams(basis, basis.T @ body.M @ basis, basis.T @ tangent @ basis, force, velocity, diagonal)
        modes, span = write_modes(page, member, grams)
        none = np.zeros((body.n_dof, 0))
        self._model, self._places = BodyModel(basis, modes, span, none, none.T), member.positions()

    @property
    def model(self) -> BodyModel:
        """The last one."""
        return self._model

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """See Reduction."""
        body, h, (alpha, beta) = self.member.body, self.shifts[0], self.member.damping
        heavy = body.M @ field
        if self._model.modes is not None and not self._model.modes.triangular:
            return heavy
        return (1.0 + h * alpha) * heavy + h * (beta + h) * (body.tangent() @ field)

    def drawn(self) -> DrawnModel:
        """The last model."""
        basis, modes, span = self._model[:3]
        assert modes is not None
        return DrawnModel(self.member, self._places, basis, modes.transform, span)

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """Every tick anew, or where the model is."""
        if past.tail:
            self.member.integrate(self.shifts[0], past.forces, past.local)
            return
        body = self.member.body
        moved, rate = self._model.field(model.z, model.rate).T
        body.x[body.free] += moved.reshape(-1, 6)[:, :3]
        turns = Rotation.from_rotvec(moved.reshape(-1, 6)[:, 3:])
        before = Rotation.from_quat(body.q[body.free], scalar_first=True)
        body.q[body.free] = (turns * before).as_quat(scalar_first=True)
        body.v = rate
