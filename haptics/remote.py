"""A hand far from the scene that it touches: a channel that makes no energy, whatever its delay and losses.

Two ends, the hand's and the scene's, send each other what they need, position or force, and the energy that
has been paid in at their port so far. Each gives out at its port no more than it was told has been paid in at
the other, which late, lost and doubled messages only make less: time-domain passivity with the energies of
both directions (Ryu, Artigas and Preusche 2010, doi 10.1016/j.mechatronics.2010.07.006), bounded before the
motion here and not made up for after it. A force f held over a tick does the work f . (x(k + 1) - x(k)).

Scene's end: the scene's hand follows the other one, x' = x + d, and f is known when d is chosen. What it does
to the scene, -f . d, must not exceed the budget B_s, else d is shortened along f until it does not:
  B_s = (1 - RHO) IN_h - OUT_s.
Hand's end: the next motion is not known, but along f it is at most s + A T^2, with s the last one along f, A
the largest acceleration of a hand. The force is the largest share of the scene's whose work cannot exceed
  B_h = RHO IN_h + IN_s - OUT_h.
RHO of what the hand pays stays at its end: holding still against a wall costs a little and earns nothing.
So OUT_h + OUT_s <= IN_h + IN_s at all times.

A channel that is empty could not begin to press, and who feels nothing pays nothing: while less than FULL is
known to be left for the scene, the hand is braked and so pays ahead, as in the two layers of Franken,
Stramigioli, Misra, Secchi and Macchelli 2011 (doi 10.1109/TRO.2011.2142430). It is not braked at speeds whose
sign a hand can change within a tick.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel

RHO = 0.1
"""Share of the energy paid by the hand that stays at its end."""
ACCELERATION = 200.0
"""Acceleration [m/s^2] that no hand gives a stylus: 20 g."""
FULL = 0.02
"""Energy [J] that is kept ready for the scene: a spring of 400 N/m pressed by 10 mm."""
BRAKE = 10.0
"""Damping [N s/m] of a hand whose channel is empty."""
CREEP = 0.01
"""Speed [m/s] up to which it is not braked."""
FOLLOWING = 0.005
"""Time constant [s] with which the scene's hand follows the other one."""
SPEED = 2.0
"""Largest speed [m/s] of the scene's hand."""
SILENCE = 0.25
"""Seconds without a message after which the other end is given up."""

# A message
MAGIC, SEQUENCE, PAID, LEAVING, VECTOR, TURN, BUTTONS, LARGEST, GIVEN = 0, 1, 2, 3, 4, 7, 11, 12, 13
WORDS = 14
"""Numbers of a message, each a float64: mark, count, energy paid in so far [J], 1 when it is the last one,
position [m] or force [N] (3), orientation (4), buttons, the hand's largest force [N], energy given out so
far [J]."""
MARK = 7.5307e-41
"""What every message begins with."""
JOULES = np.dtype([("paid", np.float64), ("given", np.float64), ("heard", np.float64), ("spent", np.float64)])
"""[J] Paid in and given out at an end's port, and both of the other's as far as is known."""
HEARING = np.dtype(
    [("sent", np.int64), ("newest", np.int64), ("quiet", np.int64), ("pressed", np.int64),
     ("placed", np.int64), ("left", np.int64), ("short", np.int64)]
)  # fmt: skip
"""Count of the last message sent and of the newest heard, ticks since then, buttons, 1 once a position is
known, 1 once the other end has left, ticks on which energy ran short."""


class End(NamedTuple):
    """One end of a channel; positions [m], the device's axes."""

    joules: NDArray[np.void]
    """Shape (1,) of JOULES."""
    vector: NDArray[np.float64]
    """What the other end sent last, position or force, shape (3,)."""
    turn: NDArray[np.float64]
    """Orientation that came with it, shape (4,)."""
    position: NDArray[np.float64]
    """Of this end's port at the last tick, shape (3,)."""
    words: NDArray[np.void]
    """Shape (1,) of HEARING."""
    controlled: int
    """1; 0 lets every force and motion through, which makes energy: for tests."""


def make_end(controlled: bool = True) -> End:
    """An end that has heard nothing."""
    return End(
        joules=np.zeros(1, JOULES),
        vector=np.zeros(3),
        turn=np.array([1.0, 0.0, 0.0, 0.0]),
        position=np.zeros(3),
        words=np.zeros(1, HEARING),
        controlled=int(controlled),
    )


@kernel
def hear(end, message):
    """Take a message (WORDS,); False for one that is none. An older one tells of energy, too."""
    total = 0.0
    for i in range(WORDS):
        total += abs(message[i])
    if message[MAGIC] != MARK or not total < math.inf:
        return False
    end.joules[0].heard = max(end.joules[0].heard, message[PAID])
    end.joules[0].spent = max(end.joules[0].spent, message[GIVEN])
    count = int(message[SEQUENCE])
    if count <= end.words[0].newest:
        return True
    end.words[0].newest, end.words[0].quiet = count, 0
    end.words[0].pressed = int(message[BUTTONS])
    if message[LEAVING] != 0.0:
        end.words[0].left = 1
    for i in range(3):
        end.vector[i] = message[VECTOR + i]
    for i in range(4):
        end.turn[i] = message[TURN + i]
    return True


@kernel
def tell(end, vector, turn, buttons, message):
    """Fill the next message (WORDS,)."""
    end.words[0].sent += 1
    message[MAGIC], message[SEQUENCE] = MARK, end.words[0].sent
    message[PAID], message[GIVEN] = end.joules[0].paid, end.joules[0].given
    for i in range(3):
        message[VECTOR + i] = vector[i]
    for i in range(4):
        message[TURN + i] = turn[i]
    message[BUTTONS] = buttons


@inlined
def _book(end, work):
    """Work [J] that went out of the channel at this end's port, or into it."""
    if work > 0.0:
        end.joules[0].given += work
    else:
        end.joules[0].paid -= work


@kernel
def hand_tick(end, position, sent, dt, force):
    """A tick at the hand's end: book the last one, and the force (3,) [N] that may be held over the next.

    position (3,) [m]: of the hand now; sent (3,) [N]: force that was really held since the last tick, which
    may be `force`.
    """
    work, along, square, way = 0.0, 0.0, 0.0, 0.0
    for i in range(3):
        step = position[i] - end.position[i] if end.words[0].placed else 0.0
        end.position[i] = position[i]
        work += sent[i] * step
        along += end.vector[i] * step
        square += end.vector[i] * end.vector[i]
        way += step * step
        force[i] = -step / dt
    end.words[0].placed = 1
    end.words[0].quiet += 1
    _book(end, work)
    share, size = 1.0, math.sqrt(square)
    if end.controlled and size > 0.0:
        farthest = along / size + ACCELERATION * dt * dt
        budget = RHO * end.joules[0].paid + end.joules[0].heard - end.joules[0].given
        if farthest > 0.0 and size * farthest > budget:
            share = max(budget, 0.0) / (size * farthest)
            end.words[0].short += 1
    speed = math.sqrt(way) / dt
    missing = FULL - (1.0 - RHO) * end.joules[0].paid + end.joules[0].spent
    brake = 0.0
    if end.controlled and speed > CREEP and missing > 0.0:
        brake = BRAKE * min(missing / FULL, 1.0) * (1.0 - CREEP / speed)
    for i in range(3):
        force[i] = share * end.vector[i] + brake * force[i]


@kernel
def scene_tick(end, sent, dt, position, velocity):
    """A tick at the scene's end: move its hand toward the other one, as far as the energy allows.

    sent (3,) [N]: force that the scene has for the hand, held over this motion. Writes position (3,) [m] and
    velocity (3,) [m/s]. The first call puts it where the other one is.
    """
    end.words[0].quiet += 1
    if end.words[0].placed == 0:
        end.words[0].placed = 1
        for i in range(3):
            end.position[i] = end.vector[i]
    gain, far, work, square = 1.0 - math.exp(-dt / FOLLOWING), 0.0, 0.0, 0.0
    for i in range(3):
        velocity[i] = gain * (end.vector[i] - end.position[i])
        far += velocity[i] * velocity[i]
        square += sent[i] * sent[i]
    if far > (SPEED * dt) ** 2:
        for i in range(3):
            velocity[i] *= SPEED * dt / math.sqrt(far)
    for i in range(3):
        work -= sent[i] * velocity[i]
    budget = max((1.0 - RHO) * end.joules[0].heard - end.joules[0].given, 0.0)
    if end.controlled and work > budget and square > 0.0:
        for i in range(3):
            velocity[i] += sent[i] * (work - budget) / square
        work = budget
        end.words[0].short += 1
    _book(end, work)
    for i in range(3):
        end.position[i] += velocity[i]
        position[i] = end.position[i]
        velocity[i] /= dt
