"""A step of any bodies that touch: the engine's functions in the order of a step, over a table of addresses.

    begin         the hand's pose, and the motion of every body as if nothing touched
    find          the contacts
    free_motion   their gaps and slips without contact force
    equilibrium   W, contact forces, and the bodies under them, of a working set that grows
    end           the step is made; what sticks is remembered
    feel          what the hands feel

With J_b the rows' map to body b, d_b its displacement without contact and C_b its compliance, the problem is

    u = b + W r,   b = g + sum_b J_b d_b,   W = sum_b J_b C_b J_b^T

with u = 0 in the rows of joints, Signorini's and Coulomb's laws in those of contacts, and a gas law in those
of cavities (palpo.physics.engine.cavities). Each body supplies d and C by itself
(palpo.physics.contract.stages), so that this holds of any two kinds. A number that is none
is found before any force is pushed: the bodies then are as they were.

The tick allocates nothing, asks nothing of the interpreter and reports by its status.
"""

from palpo.physics.contact.laws import OPEN
from palpo.physics.contract.contacts import AGAIN, FIND, KEEP, MISSED, batch_of, call_detector
from palpo.physics.contract.memory import close_memory, open_memory, remember
from palpo.physics.contract.stages import AIM, BEGIN, DONE, END, FEEL, NOT_FINITE, SHAPE, address_of
from palpo.physics.engine.cavities import keep_air
from palpo.physics.engine.equilibrium import equilibrium
from palpo.physics.engine.frames import keep_yield, see_yield
from palpo.physics.engine.rows import free_motion, place
from palpo.physics.engine.table import ask_all, ask_held
from palpo.physics.exchange.atomics import view_flat
from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.arrays import all_finite
from palpo.physics.numerics.kernels import kernel


@kernel
def begin(e):
    """The hands' poses become targets; every body moves as if nothing touched, and tells its points."""
    if aim(e) != DONE:
        return NOT_FINITE
    return let_go(e)


@kernel
def aim(e):
    """The hands' poses become targets."""
    e.count[0].rounds = 0
    e.count[0].sweeps = 0
    return ask_held(e, AIM)


@kernel
def let_go(e):
    """Every body moves as if nothing touched, and tells its points."""
    if ask_all(e, BEGIN, e.bodies.batch) != DONE:
        return NOT_FINITE
    return tell_shapes(e)


@kernel
def tell_shapes(e):
    """All points of the bodies looked at; NOT_FINITE where one is nowhere, for it would touch nothing."""
    if ask_all(e, SHAPE, e.bodies.whole) != DONE:
        return NOT_FINITE
    for b in range(e.bodies.whole.shape[0]):
        whole = e.bodies.whole[b]
        if whole != 0 and not all_finite(view_flat(handle_like(e.batch, whole).x)):
            e.count[0].failed = b + 1
            return NOT_FINITE
    return DONE


@kernel
def find(e):
    """The contacts of this step, by all detectors."""
    e.contacts.count[0].found = e.contacts.count[0].lost = 0
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], FIND, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code != DONE:
            return NOT_FINITE
    e.count[0].rounds += 1
    return DONE


@kernel
def _misses(e):
    """Whether a detector wants to look again."""
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], MISSED, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code == AGAIN:
            return True
    return False


@kernel
def end(e):
    """Every body makes its step; contacts are remembered, and the air of the cavities."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    if ask_all(e, END, e.bodies.batch) != DONE or ask_all(e, SHAPE, e.bodies.whole) != DONE:
        return NOT_FINITE
    if place(e) != DONE:
        return NOT_FINITE
    open_memory(e.memory)
    for k in range(contacts.count[0].found):
        if not contacts.anchored[k] and contacts.status[k] != OPEN:
            row = 3 * (first + k)
            q = batch_of(e, contacts.body[k, 1]).q[e.at[first + k, 1]]
            remember(e.memory, contacts, k, e.u[row : row + 3], q)
    close_memory(e.memory)
    keep_air(e)
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], KEEP, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code != DONE:
            return NOT_FINITE
    e.now[0] += 1
    return DONE


@kernel
def feel(e):
    """What the hands feel."""
    return ask_held(e, FEEL)


MOST_ROUNDS = 3
"""Of detection in one step."""


@kernel
def looks(e):
    """Whether there is another round of detection in this step: the first, or where a detector wants it."""
    rounds = e.count[0].rounds
    return rounds == 0 or (rounds < MOST_ROUNDS and _misses(e))


@kernel
def close(e):
    """The step is made under the forces found, and what the hands feel; DONE or NOT_FINITE."""
    if see_yield(e) != DONE or end(e) != DONE:
        return NOT_FINITE
    keep_yield(e)
    return feel(e)


@kernel
def step(e):
    """One step; DONE or NOT_FINITE."""
    if begin(e) != DONE:
        return NOT_FINITE
    while looks(e):
        if find(e) != DONE or free_motion(e) != DONE or equilibrium(e) != DONE:
            return NOT_FINITE
    return close(e)
