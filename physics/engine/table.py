"""What a step reads and writes, and how the bodies are asked: a table of addresses, one row a body."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import Contacts
from palpo.physics.contract.memory import Memory
from palpo.physics.contract.stages import DONE, NOT_FINITE, NOT_OFFERED, Batch, Problem, address_of, call_unit
from palpo.physics.engine.cavities import Cavities
from palpo.physics.engine.joints import Joints
from palpo.physics.engine.solve import Solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.handle import of_process
from palpo.physics.numerics.kernels import inlined, kernel

COUNT = np.dtype(
    [("failed", np.int64), ("lost", np.int64), ("rounds", np.int64), ("sweeps", np.int64),
     ("members", np.int64)]
)  # fmt: skip
"""The body whose stage failed last, plus one; contacts lost to the capacity so far; this step's rounds of
detection, and the solver's sweeps in all of them; and contacts solved for."""


class Bodies(NamedTuple):
    """The table: addresses of each of n bodies."""

    unit: NDArray[np.int64]  # (n,)
    state: NDArray[np.int64]  # (n,)
    batch: NDArray[np.int64]  # (n,) its points in joints and contacts
    part: NDArray[np.int64]  # (n,) those of the working set
    whole: NDArray[np.int64]  # (n,) all of its points; 0 where nobody looks at them
    springs_back: NDArray[np.bool_]  # (n,) see palpo.physics.contract.stages.Kind
    held: NDArray[np.bool_]  # (n,) whether a hand feels it


@of_process("bodies", "detector", "detector_state", "solvers", "pressing")
class Engine(NamedTuple):
    """What a step reads and writes beside the bodies' states, for c contacts, j joints and k cavities."""

    bodies: Bodies
    batch: Batch  # of the first body; of all, the layout
    detector: NDArray[np.int64]  # (k,) addresses
    detector_state: NDArray[np.int64]  # (k,)
    solvers: NDArray[np.int64]  # (m,) addresses; the settings' method is a place here
    pressing: NDArray[np.int64]  # (1,) address of the solver of a step that has cavities
    contacts: Contacts
    joints: Joints
    cavities: Cavities
    memory: Memory
    at: NDArray[np.int32]  # (j + c + k, 2) where the sides of each block stand in their bodies' batches
    b: NDArray[np.float64]  # (3 (j + c + k),) of all blocks [m], see Problem
    r: NDArray[np.float64]  # (3 (j + c + k),) [N]
    u: NDArray[np.float64]  # (3 (j + c + k),) [m]
    gap: NDArray[np.float64]  # (c,) [m] of each contact as it is foreseen, or known to be
    inside: NDArray[np.bool_]  # (c,) the working set
    member: NDArray[np.int32]  # (c,)
    offered: NDArray[np.float64]  # (s, 9 c^2) W of all contacts found, if frames bring it [m/N]; see `offers`
    offer: NDArray[np.int64]  # (1,) which of the s is in force, -1 for none
    problem: Problem  # of the working set
    factor: NDArray[np.float64]  # (3 j, 3 j)
    solver: Solver
    now: NDArray[np.int64]  # (1,) steps done
    wants: NDArray[Any]  # (1,) see palpo.physics.contract.stages.WANTS
    step: NDArray[np.float64]  # (1,) h [s]
    count: NDArray[Any]  # type: ignore[assignment]  # (1,) of COUNT
    vectors: NDArray[np.float64]  # (4, 4) scratch


@inlined
def offers(e):
    """Whether W of the contacts found came with a frame; such contacts stand alone, without joints or air."""
    return e.offer[0] >= 0


@inlined
def offered(e):
    """That W, shape (3 n, 3 n), over the frame's memory."""
    return view_square(e.offered[e.offer[0]], 3 * e.contacts.count[0].found)


@kernel
def ask(e, b, stage, batch):
    """A stage of body b on the batch at that address; DONE, or what is wrong."""
    code = call_unit(e.bodies.unit[b], stage, e.bodies.state[b], batch, address_of(e.problem), e.step[0])
    if code in (DONE, NOT_OFFERED):
        return DONE
    e.count[0].failed = b + 1
    return NOT_FINITE


@kernel
def ask_all(e, stage, batches):
    """A stage of all bodies on their batches (n,); DONE, or what is wrong with the first that fails."""
    for b in range(batches.shape[0]):
        if batches[b] != 0 and ask(e, b, stage, batches[b]) != DONE:
            return NOT_FINITE
    return DONE


@kernel
def ask_held(e, stage):
    """A stage of the bodies that a hand holds."""
    for b in range(e.bodies.held.shape[0]):
        if e.bodies.held[b] and ask(e, b, stage, e.bodies.batch[b]) != DONE:
            return NOT_FINITE
    return DONE
