"""A corotational body on a rigid handle: a cup on its stem, an arm on its base, a dart on its rod.

The held nodes move as one with the handle, v_h = T w with its six velocities w (velocity [m/s], angular
velocity [rad/s], world axes), so that backward Euler (3.1 of thesis 000) reads

    A_ff v_f + G w = M v + h f_f,            G = h (beta + h) K_fh T
    G^T v_f + S_h w = M_h w_0 + h (T^T f_h + load)

The handle is *driven*, w given by where it has to be at the step's end, or *free*: then v_f is eliminated
with X = A_ff^-1 G, the six-by-six S = S_h - G^T X remains, and compliances get the term h^2 X S^-1 X^T.

The factor is kept while no element turns much. What its implicit terms then miss of the present matrix A' is
taken at the velocity v_0 of the step's start,

    A v = M v + h f - (A' - A) v_0,

so a kept factor changes a step by A^-1 (A' - A) of its *change* of velocity alone, and a steady motion not at
all: elements may then turn further, as far as what it misses is as small a part of the motion. It is stable,
as without that term, while no motion is more than twice as stiff as in the kept matrix.

Of a *large* body the kept matrix is turned node by node with the body, A = R A_0 R^T (see
palpo.physics.fem.single and node_turns): what counts is how far an element has turned against its nodes. Its
next factor is made beside its steps (palpo.physics.bodies.renewed_beside).
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.coupling import Coupled, couple, turned_coupling, uncoupled
from palpo.physics.bodies.held_factor import HeldFactor, Orders
from palpo.physics.bodies.held_motion import (
    add_held,
    add_velocities,
    gather,
    move_held,
    speed_and_change,
    spread,
    turn_nodes,
    turned_part,
)
from palpo.physics.bodies.links import add_link_forces, add_links
from palpo.physics.bodies.renewal import FactorRenewal
from palpo.physics.bodies.renewed_beside import RenewedBeside
from palpo.physics.bodies.rigid_handle import RigidHandle
from palpo.physics.fem.assembly import block_pattern
from palpo.physics.fem.material import Material
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

STEADIEST = 2.5
"""Most by which a steady motion lets elements turn further than `turn` before the factor is made anew."""


RESTING = np.zeros(6)


class HeldBody(RenewedBeside):
    """A SoftBody whose fixed nodes are those of a handle; without held nodes it floats.

    touchable: nodes that may come into contact, in the order of rising likelihood; held ones are left out.
    They are `last`. mass, inertia: of the handle; see Handle. turn [rad]: how far an element may turn before
    the factor is made anew, up to STEADIEST times as far in a steady motion. load (n, 3)
    [N]: on the nodes besides weight; written by whoever pulls cables.
    links (k, 2): nodes that something joins, and link_stiffness (k, 3, 3) [N/m]: how the load between them
    falls off as they part during a step, written like it; a held one's motion does not count.
    A step is `free_motion`, any number of `respond`, `finish`, or it is begun by `begin` and `motions` finds
    several of the first two at once. Velocities (n, 3) of all nodes go in and out.
    Raises InputError for fewer than three held nodes, about which it could turn, and as
    SoftBody.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        held: ArrayLike = (),
        touchable: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        mass: float = 0.0,
        inertia: ArrayLike | None = None,
        turn: float = 0.02,
        links: ArrayLike = (),
    ) -> None:
        self._links = np.asarray(links, dtype=np.int64).reshape(-1, 2)
        self.link_stiffness = np.zeros((len(self._links), 3, 3))
        super().__init__(name, mesh, material, held, gravity, links=self._links)
        if material.prony:
            raise InputError(f"body {name!r}: material.prony is given, but a held body remembers nothing.")
        if 0 < self.fixed.size < 3:
            raise InputError(
                f"body {name!r} is held at {self.fixed.size} nodes, about which it could turn: hold three."
            )
        self.last = np.asarray(touchable, dtype=np.int32)
        self.last = self.last[~np.isin(self.last, self.fixed)]
        self._orders = Orders(self._pattern, self.last)
        n = len(self.x)
        self.place_of = np.full(n, -1, dtype=np.int32)
        self.place_of[self.last] = np.arange(self.last.size)
        self.turn = turn
        self.load = np.zeros((n, 3))
        self._force = np.zeros((n, 3))
        self._factor: HeldFactor | None = None
        self.large = self._orders.large
        self._turns = np.tile(np.eye(3), (n if self.large else 0, 1, 1))
        self._coupled = self._coupled_then = uncoupled()
        self._from: Floats | None = None
        self._lumped = self.M.diagonal()
        self._bare = np.zeros(self.n_dof)
        self._renewal: FactorRenewal | None = None
        self._spare: HeldFactor | None = None
        self.late, self.iterations = False, 0
        self._right, self._imposed = np.zeros(self.n_dof), np.zeros(6)
        """Of the step begun: M v + h f_f without what a driven handle takes along, and its velocities; of a
        large body what changes both from the motion `_from`, with which it begins."""
        self._steadiness = 1.0
        self.single = False
        """Whether its next factors solve in single precision, as those of a large body do."""
        self.wear, self.age = 0.0, 0
        """How far elements have turned since the factor was made, over how far they may; and steps since."""
        self.renews = False
        """Whether the next step makes the factor anew, whatever has turned."""
        self._carried: NDArray[np.float64] | None = None
        self.handle: RigidHandle | None = None
        if self.fixed.size:
            self.handle = RigidHandle(self.fixed, self.x, mass, inertia)
            near = np.flatnonzero(np.isin(self._elements.cells, self.fixed).any(axis=1))
            self._near_cells = near
            self._near = self._elements.part(near)
            self._near_quats = np.tile([1.0, 0.0, 0.0, 0.0], (near.size, 1))
            self._near_pattern = block_pattern(n, self._near.cells, np.zeros(0, dtype=np.int32))
            self._near_blocks = np.empty((self._near_pattern.rows.size, 9))
            # free nodes beside held ones, the only ones that they pull at
            self._ring = np.setdiff1d(self._near.cells, self.fixed)
            self._ring_slots = self._pattern.slots[self._ring]

    def linearise(self) -> None:
        """See SoftBody; with the links."""
        super().linearise()
        add_links(self._links, self.link_stiffness, self._pattern, self._blocks)

    def free_motion(self, h: float) -> NDArray[np.float64]:
        """Velocities (n, 3) [m/s] at the end of a step of h without contact and pressure."""
        self.begin(h)
        return self.motions((), h)[0]

    def begin(self, h: float) -> None:
        """Begin a step of h under the present loads."""
        allowed = self.turn * (1.0 if self.large else self._steadiness)
        self.wear, self.age = 0.0, self.age + 1
        self.iterations, self.late = 0, False
        if self.large and self._factor is not None and h in self._factors and self._may_be_late:
            self._renew_beside(h)
        else:
            self.reused_factor(h, -1.0 if self.renews else allowed)
        self.wear, self.renews = (self.wear / allowed if allowed > 0.0 else 0.0), False
        self._force[:] = self.load
        self._force += self._weight
        self._elements.add_forces(self.x, self._quats, self._force)
        alpha = h * self.material.alpha
        if self.large:
            self._from = self.moving()
            self._elements.add_stiff(self._from, self._quats, -(self.material.beta + h), self._force)
            stiffness = (self.material.beta + h) * self.link_stiffness
            add_link_forces(self._links, stiffness, self.node_velocities(), self._force)
        else:
            self._add_what_the_factor_lacks(h)
        gather(self._force, h, self.free, self._right)
        self._right += (-alpha if self.large else 1.0) * (self._lumped * self.v)
        self._bare[:] = self._right
        handle = self.handle
        if handle is None:
            return
        mass, wrench = handle.own_mass(), handle.load.copy()
        wrench[:3] += handle.mass * self.gravity
        add_held(self.fixed, self.x, handle.position, self.node_mass, self._force, mass, wrench)
        self._impulse = mass @ handle.velocity + h * wrench
        own = (1.0 + alpha) * mass + h * handle.damping + h * h * handle.stiffness
        self._own = self._coupled.held + own
        if self.large:
            self._impulse -= own @ handle.velocity
        if handle.driven:
            self._imposed = handle.imposed_velocity(h)
            if self.large:
                self._imposed -= handle.velocity
            self._right.reshape(-1, 3)[self._ring_slots] -= self._coupled.coupling[self._ring] @ self._imposed
        else:
            self._effective_inverse = np.linalg.inv(self.handle_mass)

    def motions(self, forces: Sequence[Floats], h: float) -> tuple[Floats, list[Floats]]:
        """What `free_motion` gives of the step begun, and `respond` for each force (n, 3) [N].

        Found together, since the factor is read as often for one as for three.
        """
        assert self._factor is not None
        right = np.empty((1 + len(forces), self.n_dof))
        right[0] = self._right
        for force, line in zip(forces, right[1:], strict=True):
            gather(force, h, self.free, line)
        y = self._factor.solve_few(right)
        free = self._freely(y[0])
        if self._from is not None:
            free += self._from
        return free, [self._driven(a, f, h) for a, f in zip(y[1:], forces, strict=True)]

    def _freely(self, y: Floats) -> Floats:
        """The motion without contact, or its change, of A_ff y = the right side of the step begun."""
        if self.handle is None:
            return self._spread(y, None)
        if self.handle.driven:
            return self._spread(y, self._imposed)
        w = self._effective_inverse @ (self._impulse - self._pull(y.reshape(-1, 3)[self._ring_slots]))
        return self._spread(y + self.carried[self.free].reshape(-1, 6) @ w, w)

    def moving(self) -> NDArray[np.float64]:
        """Velocities of all nodes [m/s], shape (n, 3), of held ones as the handle moves."""
        v = self._spread(self.v, None)
        if self.handle is not None:
            move_held(self.fixed, self.x, self.handle.position, self.handle.velocity, v)
        return v

    def _add_what_the_factor_lacks(self, h: float) -> None:
        """-(A' - A) v_0 / h on the nodes, of the present matrix and the factor's."""
        since = self._factored_at[h]
        self._elements.add_turned(self.moving(), self._quats, since, -(self.material.beta + h), self._force)

    def respond(self, force: NDArray[np.float64], h: float) -> NDArray[np.float64]:
        """Change of the velocities (n, 3) [m/s] in a step of h by forces (n, 3) [N] on the nodes."""
        assert self._factor is not None
        right = np.empty(self.n_dof)
        gather(force, h, self.free, right)
        return self._driven(self._factor.solve(right), force, h)

    def responses(self, forces: Sequence[Floats], h: float) -> list[Floats]:
        """As `respond`, of several forces at once."""
        assert self._factor is not None
        if not len(forces):
            return []
        y = self._factor.solve_few(np.array([h * force[self.free].ravel() for force in forces]))
        return [self._driven(a, f, h) for a, f in zip(y, forces, strict=True)]

    def _driven(self, y: Floats, force: Floats, h: float) -> Floats:
        """The response to forces (n, 3), of A_ff y = h f_f."""
        if self.handle is None:
            return self._spread(y, None)
        if self.handle.driven:
            return self._spread(y, RESTING)
        carried = self.carried
        w = self._effective_inverse @ (h * carried.reshape(-1, 6).T @ force.ravel())
        return self._spread(y + carried[self.free].reshape(-1, 6) @ w, w)

    def compliance(self, count: int, h: float) -> NDArray[np.float64]:
        """h^2 A^-1 [m/N] of at least `count` nodes, those at the end of `last`, shape (3 c, 3 c)."""
        assert self._factor is not None
        if self.large:
            return self.compliance_at(np.arange(self.last.size - count, self.last.size), h)
        compliance = self._factor.compliance(h * h, count)
        return self._with_handle(compliance, self.last[self.last.size - len(compliance) // 3 :], h)

    def compliance_at(self, places: NDArray[np.int64], h: float) -> NDArray[np.float64]:
        """h^2 A^-1 [m/N] of a large body's nodes at these places (k,) of `last`, ascending: (3 k, 3 k)."""
        assert self._factor is not None
        out = np.empty((3 * places.size, 3 * places.size))
        if places.size:
            whole = self._factor.compliance(h * h, int(self.last.size - places[0]))
            first = self.last.size - len(whole) // 3
            turned_part(whole, places - first, self._turns[self.last[places]], out)
        return self._with_handle(out, self.last[places], h)

    def _with_handle(self, compliance: Floats, nodes: NDArray[np.int32], h: float) -> Floats:
        """With what these nodes (k,) yield since a free handle does."""
        if self.handle is None or self.handle.driven:
            return compliance
        carried = self.carried[nodes].reshape(-1, 6)
        return compliance + (h * h) * (carried @ self._effective_inverse @ carried.T)

    @property
    def carried(self) -> NDArray[np.float64]:
        """Velocity of each node per velocity of the handle, all else at rest, shape (n, 3, 6)."""
        if self._carried is None:
            assert self._factor is not None
            self._carried = self._coupled.twist.copy()
            coupling = np.ascontiguousarray(self._coupled.coupling[self.free].reshape(-1, 6))
            self._carried[self.free] = -self._factor.solve_many(coupling).reshape(-1, 3, 6)
        return self._carried

    @property
    def handle_mass(self) -> NDArray[np.float64]:
        """S (6, 6): impulse on the handle per velocity of it, with all that it carries."""
        return self._own + self._pull(self.carried[self._ring])

    def finish(self, velocities: NDArray[np.float64], h: float) -> None:
        """End a step of h with velocities (n, 3), the sum of `free_motion` and `respond`."""
        self._steadiness = self._steadiness_of(velocities)
        self.v = np.empty(self.n_dof)
        gather(velocities, 1.0, self.free, self.v)
        add_velocities(self.x, self.v, h, self.free)
        if self.handle is not None:
            self.handle.advance(self._handle_velocity(velocities), h)
            self.handle.place(self.x)

    def _steadiness_of(self, moving: NDArray[np.float64]) -> float:
        """How fast a driven body moves against its centre over how much of that a step to `moving` changes.

        moving (n, 3) [m/s]. From 1 to STEADIEST. A free handle swings and hits: 1.
        """
        if self.handle is None or not self.handle.driven:
            return 1.0
        speed, change = speed_and_change(moving, self.v, self.free, self.node_mass)
        if not speed > change:
            return 1.0
        return float(speed / change) ** 0.5 if speed < STEADIEST**2 * change else STEADIEST

    def holding_wrench(self, velocities: NDArray[np.float64], h: float) -> NDArray[np.float64]:
        """Force and moment (6,) [N, N m] by which a driven handle is held in the step to `velocities` (n, 3).

        Call it before `finish`. On a free handle it is zero, to rounding.
        """
        if self._from is None:
            w = self._handle_velocity(velocities)
            return (self._pull(velocities[self._ring]) + self._own @ w - self._impulse) / h
        # with the present stiffness: what the kept one misses may be as much as the change of force
        change, held = velocities - self._from, np.zeros_like(self.x)
        scale = h * (self.material.beta + h)
        self._near.add_stiff(change, self._quats[self._near_cells], scale, held)
        twist = self._coupled.twist[self.fixed].reshape(-1, 6)
        w = self._handle_velocity(change)
        own = self._own - self._coupled.held
        return (twist.T @ held[self.fixed].ravel() + own @ w - self._impulse) / h

    def _pull(self, motion: NDArray) -> NDArray[np.float64]:
        """G^T v (6, ...) of the velocities (k, 3, ...) of the nodes beside held ones."""
        coupling = self._coupled.coupling[self._ring].reshape(-1, 6)
        return coupling.T @ motion.reshape(3 * len(motion), *motion.shape[2:])

    def _handle_velocity(self, velocities: NDArray[np.float64]) -> NDArray[np.float64]:
        """w (6,) of the velocities (n, 3), of which the held nodes' are T w."""
        return self._coupled.untwist @ velocities[self.fixed].ravel()

    def _spread(self, y: NDArray, w: NDArray | None) -> NDArray[np.float64]:
        out = np.empty_like(self.x)
        spread(y, RESTING if w is None else w, self.free, self.fixed, self._coupled.twist, out)
        return out

    @property
    def entries(self) -> int:
        """Of a factor, about."""
        return self._orders.entries

    def _make_factor(self) -> HeldFactor:
        return HeldFactor(self._orders, self.single)

    def turned(self, h: float) -> float:
        """See SoftBody; of a large body against its nodes, with which the factor is turned."""
        self.wear = super().turned(h)
        if self.large:
            self.wear = turn_nodes(
                self._elements.cells, self._elements.shares, self._quats, self._factored_at[h], self._turns
            )
            self._turn_factor()
        return self.wear

    def _turn_factor(self) -> None:
        """Turn the factor and the coupling as the nodes and the handle have turned."""
        assert self._factor is not None and self._factor.turns is not None
        self._factor.turns[:] = self._turns[self.free]
        if self.handle is not None:
            self._carried = None
            since = self.handle.rotation() @ self._rotation_then.T
            self._coupled = turned_coupling(self._coupled_then, self._ring, self.fixed, self._turns, since)

    def factor(self, h: float) -> HeldFactor:
        """Factor of A_ff, and the handle's coupling G, from the last `linearise`."""
        self._factor = cast(HeldFactor, super().factor(h))
        self.wear, self.age, self._carried = 0.0, 0, None
        self._turns[:] = np.eye(3)
        self._rotation_then, self._coupled_then = self._couple(h)
        self._coupled = self._coupled_then
        return self._factor

    def _couple(self, h: float) -> tuple[Floats, Coupled]:
        """The handle's rotation, and how it is coupled to the free nodes, at the present positions."""
        if self.handle is None:
            return np.eye(3), uncoupled()
        self._near.assemble(self.x, self._near_quats, self._near_pattern, self._near_blocks)
        scale = h * (self.material.beta + h)
        coupled = couple(self.handle, self.x, self._near_pattern, scale * self._near_blocks)
        return self.handle.rotation(), coupled
