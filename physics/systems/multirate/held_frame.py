"""Frames whose slots do not move with the forces: exact positions, free motion and compliance at one step.

What the paper's low and high rates share (L3 to L5 at either step), and the monolithic reference at its one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.exchange.constraint_frame import TURNS, ConstraintFrame
from palpo.physics.systems.multirate.member import Member


class Motion(NamedTuple):
    """A member's free motion at one step size."""

    member: Member
    step: float
    """h [s]"""
    factor: Factor
    velocity: NDArray[np.float64]
    """Free velocity after the step, (n_dof,)."""

    def corrected(self, load: NDArray[np.float64]) -> NDArray[np.float64]:
        """Velocity after the step under a load (n_dof,) [N]."""
        return self.velocity + self.member.body.correction_velocity(self.factor, self.step, load)


def free_motions(member: Member, steps: tuple[float, ...]) -> list[Motion]:
    """L3 of a member, once for each step size, about one linearisation."""
    body = member.body
    body.linearise()
    motions = []
    for h in steps:
        factor = body.factor(h)
        motions.append(Motion(member, h, factor, body.free_velocity(factor, h)))
    return motions


def write_held(
    frame: ConstraintFrame,
    f: int,
    low: int,
    motion: Motion,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
) -> None:
    """Positions, free displacement and exact compliance h^2 J A_h^-1 J^T of a member's slots."""
    body, h = motion.member.body, motion.step
    turns = body.turns(local)
    frame.floating[f, low] = 0
    frame.slot_body[f, slots] = low
    frame.slot_turns[f, slots] = turns
    frame.slot_x[f, slots] = np.where(turns[:, None] == TURNS, 0.0, body.positions()[local])
    frame.slot_q[f, slots] = body.orientations(local)
    frame.slot_step[f, slots] = h * body.gather(local, motion.velocity[:, None]).reshape(-1, 3)
    if len(slots):
        half = motion.factor.half_solve_many(body.columns(local))
        rows = (3 * slots[:, None] + np.arange(3)).reshape(-1)
        frame.compliance[f][np.ix_(rows, rows)] = h * h * (half.T @ half)
