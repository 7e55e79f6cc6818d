"""A hand far from the scene that it touches: two ends that make no energy, whatever lies between them.

Each end has a tank of energy, and gives out at its port no more than is in it (Franken, Stramigioli, Misra,
Secchi and Macchelli 2011, doi 10.1109/TRO.2011.2142430; the sums are those of time-domain passivity, Ryu,
Artigas and Preusche 2010, doi 10.1016/j.mechatronics.2010.07.006). Messages carry sums since the start, which
late, lost and doubled ones only make less. With what an end was paid at its port, IN, gave out there, OUT,
has passed to the other, P, and was told that the other has passed to it, G:
  E = IN + G - OUT - P >= 0                                                    at each end, hence in all.
The scene keeps FULL and passes the rest on. The hand keeps RESERVE and makes up for what the scene lacks of
FULL; while one of them is not full the hand is braked and so pays, as who feels nothing pays nothing.

What the other end says is bounded. It may hold less than it is given, but
  G <= P + ROUND F s: nobody was paid more than the largest force F did over all the way s that was told;
  OUT <= IN at the hand's end by itself: what the hand gets back it has paid there before, whoever answers.
A scene that drives its bodies is thus felt as far as the hand has paid, and whoever lies can brake the hand
and withhold its force.

Scene's end: its hand follows the other one, x' = x + d. The force f of the scene is known when d is chosen,
so its work on the scene, -f . d, is made to fit: d is shortened along f.
Hand's end: a force f over a tick does the work f . (x(k + 1) - x(k)), and x(k + 1) is not known. Forces may
change by JUMP T in a tick, so one that is sent takes f / (JUMP T) ticks to leave again, during which the hand
may go along with it, ever faster:
  cost(f) = sum_j (|f| - j JUMP T)+ (s + (j + 1) A T^2)+ + 2 r |f|_1,    s = v . f T / |f|.
A force is sent if E allows its cost, and from one that is sent the way down always is. r is the encoder's
count: the sum over counts misses the true work by at most r / 2 (sum |f(k + 1) - f(k)|_1 + |f|_1), which is
kept back. The brake takes the velocity that the counts tell (palpo.haptics.velocity), not one that
a single count makes, nor one that a hand can turn round within a tick.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.velocity import VelocityWindow, estimate_velocity, make_velocity_window
from palpo.physics.numerics.kernels import inlined, kernel

ACCELERATION = 100.0
"""Acceleration [m/s^2] along its force that no hand reaches: 10 g; a Touch let go at 3.3 N makes 73."""
JUMP = 500.0
"""Largest change of the hand's force [N/s]."""
FULL = 0.02
"""Energy [J] that is kept ready for the scene: a spring of 400 N/m pressed by 10 mm."""
RESERVE = 0.01
"""Energy [J], at most, kept for the hand: the cost of 5 N."""
CREDIT = 1e-3
"""Energy [J] that the brake may cost before anything was paid: it gives none, but for a hand that turns round
faster than one does."""
BRAKE = 10.0
"""Damping [N s/m] of a hand whose channel is empty."""
CREEP = 0.01
"""Speed [m/s] up to which it is not braked, above that of a hand at rest between two counts."""
FOLLOWING = 0.005
"""Time constant [s] with which the scene's hand follows the other one."""
SPEED = 2.0
"""Largest speed [m/s] of either hand that counts."""
ROUND = math.sqrt(2.0)
"""How much longer the way of the scene's hand may be, which slides along what it may not enter."""
SILENCE = 0.25
"""Seconds without a message after which the other end is given up."""
LARGEST = 1000.0
"""No position [m] nor force [N] is larger."""
HALVINGS = 6
"""Of the range in which the largest share of a force is sought that may be sent."""

# A message
PASSED, USED, LEAVING, VECTOR, TURN, BUTTONS = 0, 1, 2, 3, 6, 10
WORDS = 11
"""Numbers of a message, each a float64: energy passed on so far and used up so far (OUT + P - IN) [J], 1 when
it is the last one, position [m] or force [N] (3), orientation (4), buttons. Its count comes beside it."""
JOULES = np.dtype(
    [(name, np.float64) for name in ("paid", "given", "passed", "granted", "used", "blur", "way", "room")]
)  # fmt: skip
"""[J] IN, OUT, P and G as above, what the other end has used up, and by how much the encoder may be wrong of
IN - OUT; [m] the way s, and how much of a way that is told would count now."""
HEARING = np.dtype(
    [(name, np.int64) for name in ("sent", "newest", "quiet", "pressed", "placed", "left", "short")]
)  # fmt: skip
"""Count of the last message sent and of the newest heard, ticks since then, buttons, 1 once this end has a
position, 1 once the other end has left, ticks on which energy ran short."""


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
    held: NDArray[np.float64]
    """Force that was held over the last tick, shape (3,) [N]."""
    told: NDArray[np.float64]
    """Position of the other end up to which its way counts, shape (3,)."""
    words: NDArray[np.void]
    """Shape (1,) of HEARING."""
    largest: NDArray[np.float64]
    """Largest force of the hand, shape (1,) [N]."""
    window: VelocityWindow
    velocity: NDArray[np.float64]
    """Of the hand as its encoder tells it, shape (3,) [m/s]."""
    trial: NDArray[np.float64]
    """Room for forces that are tried, shape (3, 3) [N]."""
    controlled: int
    """1; 0 lets every force and motion through, which makes energy: for tests."""


def make_end(largest: float, resolution: float = 0.0, dt: float = 1e-3, controlled: bool = True) -> End:
    """An end that has heard nothing. largest: force of its hand [N]; resolution: the encoder's count [m]."""
    return End(
        joules=np.zeros(1, JOULES),
        vector=np.zeros(3),
        turn=np.array([1.0, 0.0, 0.0, 0.0]),
        position=np.zeros(3),
        held=np.zeros(3),
        told=np.zeros(3),
        words=np.zeros(1, HEARING),
        largest=np.full(1, float(largest)),
        window=make_velocity_window(resolution, dt),
        velocity=np.zeros(3),
        trial=np.zeros((3, 3)),
        controlled=int(controlled),
    )


@inlined
def _norm(v):
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@inlined
def _is_message(message):
    """Whether all fields are such as an end sends."""
    total, square = 0.0, 0.0
    for i in range(WORDS):
        total += abs(message[i])
    for i in range(4):
        square += message[TURN + i] ** 2
    pressed, leaving = message[BUTTONS], message[LEAVING]
    if not total < math.inf or not 0.98 < square < 1.02:
        return False
    for i in range(3):
        if abs(message[VECTOR + i]) > LARGEST:
            return False
    return (leaving == 0.0 or leaving == 1.0) and 0.0 <= pressed < 2.0**31 and pressed == math.floor(pressed)


@kernel
def hear(end, count, message):
    """Take a message (WORDS,) by its count; False for one that is none, or not newer than the newest."""
    words, joules = end.words[0], end.joules[0]
    if count <= words.newest or not _is_message(message):
        return False
    joules.granted = max(joules.granted, message[PASSED])
    joules.used = message[USED]
    words.quiet, words.pressed = 0, int(message[BUTTONS])
    words.left = 1 if message[LEAVING] != 0.0 else words.left
    words.newest = count
    square = 0.0
    for i in range(4):
        square += message[TURN + i] ** 2
    for i in range(3):
        end.vector[i] = message[VECTOR + i]
    for i in range(4):
        end.turn[i] = message[TURN + i] / math.sqrt(square)
    return True


@kernel
def tell(end, vector, turn, buttons, leaving, message):
    """Fill the next message (WORDS,); returns its count."""
    joules = end.joules[0]
    end.words[0].sent += 1
    message[PASSED], message[USED] = joules.passed, joules.given + joules.passed - joules.paid
    message[LEAVING], message[BUTTONS] = leaving, buttons
    for i in range(3):
        message[VECTOR + i] = vector[i]
    for i in range(4):
        message[TURN + i] = turn[i]
    return end.words[0].sent


@inlined
def _book(end, work):
    """Work [J] that went out at this end's port, or in."""
    if work > 0.0:
        end.joules[0].given += work
    else:
        end.joules[0].paid -= work


@inlined
def _stored(end):
    """Energy [J] of this end's tank, the other's claim bounded by what force and way allow."""
    joules = end.joules[0]
    believed = min(joules.granted, joules.passed + ROUND * end.largest[0] * joules.way)
    return joules.paid - joules.given - joules.blur + believed - joules.passed


@inlined
def _cost(end, force, dt):
    """Energy [J] that this force (3,) [N] may give out until it has left again."""
    size, along, step, speed_up = _norm(force), 0.0, JUMP * dt, ACCELERATION * dt * dt
    if size == 0.0:
        return 0.0
    for i in range(3):
        along += end.velocity[i] * force[i] * dt / size
    total = 2.0 * end.window.resolution * (abs(force[0]) + abs(force[1]) + abs(force[2]))
    while size > 0.0:
        along += speed_up
        total += size * max(along, 0.0)
        size -= step
    return total


@inlined
def _towards(end, start, goal, budget, dt, out):
    """out = the last force on the way from start to goal, all (3,) [N], whose cost the budget [J] allows.

    start is taken for allowed; returns whether goal is.
    """
    low, high, share = 0.0, 1.0, 1.0
    for _ in range(HALVINGS + 1):
        for i in range(3):
            out[i] = start[i] + share * (goal[i] - start[i])
        if _cost(end, out, dt) <= budget:
            low = share
        else:
            high = share
        if low == 1.0:
            return True
        share = 0.5 * (low + high)
    for i in range(3):
        out[i] = start[i] + low * (goal[i] - start[i])
    return False


@inlined
def _take_step(end, position, sent, dt):
    """Book what the force (3,) [N] of the last tick did, now that the hand is here."""
    work, way, blur = 0.0, 0.0, 0.0
    for i in range(3):
        step = position[i] - end.position[i] if end.words[0].placed else 0.0
        end.position[i] = position[i]
        work += sent[i] * step
        way += step * step
        blur += 0.5 * end.window.resolution * abs(sent[i] - end.held[i])
        end.held[i] = sent[i]
    end.words[0].placed = 1
    _book(end, work)
    end.joules[0].blur += blur
    end.joules[0].way += min(math.sqrt(way), SPEED * dt)
    estimate_velocity(end.window, position, end.velocity)


@inlined
def _brake(end, budget, lacking, reserve):
    """Damping [N s/m] by what the channel lacks, 0 for a hand that creeps."""
    missing = max(lacking / FULL, 1.0 - budget / reserve)
    speed = _norm(end.velocity)
    if end.words[0].newest == 0 or speed <= CREEP or missing <= 0.0:
        return 0.0
    return BRAKE * min(missing, 1.0) * (1.0 - CREEP / speed)


@inlined
def _reserve(end, dt):
    size = end.largest[0]
    cost = 2.0 * end.window.resolution * size + size**3 * ACCELERATION / (6.0 * JUMP * JUMP)
    return min(cost + size * size * ACCELERATION * dt / JUMP, RESERVE)


@kernel
def hand_tick(end, position, sent, dt, force):
    """A tick at the hand's end: book the last one, and the force (3,) [N] that may be held over the next.

    position (3,) [m]: of the hand now; sent (3,) [N]: force that was really held since the last tick, which
    may be `force`.
    """
    joules, ramp, wanted, zero = end.joules[0], end.trial[0], end.trial[1], end.trial[2]
    end.words[0].quiet += end.words[0].newest > 0
    _take_step(end, position, sent, dt)
    reserve, stored = _reserve(end, dt), _stored(end)
    lacking = FULL - (joules.passed - min(joules.used, joules.passed))
    passing = max(min(stored - reserve, lacking), 0.0)
    joules.passed += passing
    budget = max(min(stored - passing, joules.paid - joules.given - joules.blur), 0.0)
    held, size, step = end.held, _norm(end.vector), JUMP * dt
    left = max(1.0 - step / _norm(held), 0.0) if _norm(held) > 0.0 else 0.0
    fits = min(1.0, end.largest[0] / size) if size > 0.0 else 1.0
    for i in range(3):
        wanted[i] = fits * end.vector[i]
        zero[i] = 0.0
        ramp[i] = left * held[i]
    if not end.controlled:
        for i in range(3):
            force[i] = wanted[i]
        return
    allowed = _towards(end, zero, wanted, budget, dt, force)
    damping = _brake(end, budget, lacking - passing, reserve)
    for i in range(3):
        wanted[i] = force[i] - damping * end.velocity[i]
    size = _norm(wanted)
    fits = min(1.0, end.largest[0] / size) if size > 0.0 else 1.0
    for i in range(3):
        wanted[i] = fits * wanted[i] - held[i]
    far = _norm(wanted)
    share = step / far if far > step else 1.0
    for i in range(3):
        wanted[i] = held[i] + share * wanted[i]
    allowed = _towards(end, ramp, wanted, budget + CREDIT, dt, force) and allowed
    end.words[0].short += not allowed


@inlined
def _count_way(end, dt):
    """Add the way that was told since the last tick, as far as a hand goes in the time that it had."""
    joules, square = end.joules[0], 0.0
    for i in range(3):
        square += (end.vector[i] - end.told[i]) ** 2
        end.told[i] = end.vector[i]
    joules.room = min(joules.room + SPEED * dt, SPEED * SILENCE)
    counted = min(math.sqrt(square), joules.room)
    joules.room -= counted
    joules.way += counted


@kernel
def scene_tick(end, sent, dt, position, velocity):
    """A tick at the scene's end: move its hand toward the other one, as far as the energy allows.

    sent (3,) [N]: force that the scene has for the hand, held over this motion. Writes position (3,) [m] and
    velocity (3,) [m/s]. The first call puts it where the other one is.
    """
    joules, words = end.joules[0], end.words[0]
    words.quiet += 1
    if words.placed == 0:
        words.placed = 1
        for i in range(3):
            end.position[i] = end.told[i] = end.vector[i]
    _count_way(end, dt)
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
    budget = max(_stored(end), 0.0)
    if end.controlled and work > budget and square > 0.0:
        for i in range(3):
            velocity[i] += sent[i] * (work - budget) / square
        work = budget
        words.short += 1
    _book(end, work)
    joules.passed += max(_stored(end) - FULL, 0.0)
    for i in range(3):
        end.position[i] += velocity[i]
        position[i] = end.position[i]
        velocity[i] /= dt
