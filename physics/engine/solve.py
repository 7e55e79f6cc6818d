"""How the engine has a contact problem solved, within the sweeps and the time that are lent for a step.

    int32 solver(problem *, solver *)

A solver starts at the force r of the contacts' rows, in their cones, and leaves there the best that it has
found, with u = W r + b and what it tells. It is compiled and cached alone.

**Time.** A solver ends at its tolerance, at its sweeps, or when the time lent to it is over; the clock is
looked at after every CHUNK sweeps only. So a step whose sweeps a recording has kept is repeated bit for bit
without a clock, by giving it those sweeps as its limit.

A clock that a tick's driver lends to it: the physics has none, so that lock-step cannot see the time.

It is a C function `int32 f(int64 *)` that writes the time [ns] into its first word; the words after it are
its own. Without one every reading is 0, and a time limit never ends anything.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.physics.contact.laws import BIPOTENTIAL, RUNAWAY, augment, contact_status
from palpo.physics.contact.solvers.anderson import Acceleration, make_acceleration
from palpo.physics.contract.stages import PROBLEM
from palpo.physics.exchange.atomics import call_tick
from palpo.physics.exchange.handle import HandleType, of_process
from palpo.physics.exchange.port import SWEEPS_SPENT, TIME_SPENT
from palpo.physics.gas.bordered_newton import Bordered, make_bordered
from palpo.physics.numerics.kernels import callback, kernel


@of_process("address")
class LentClock(NamedTuple):
    """The clock's addresses, which its lender keeps valid, and the words that it writes."""

    address: NDArray[np.int64]  # (2,) function, 0 for none; words
    words: NDArray[np.int64]  # (8,)


def make_clock(function: int = 0) -> LentClock:
    """A clock of the C function at that address; 0 for one that stands still."""
    words = np.zeros(8, np.int64)
    return LentClock(np.array([function, words.ctypes.data], np.int64), words)


@kernel
def read_clock(clock):
    """The time [ns], or 0 where no clock is lent."""
    if clock.address[0] != 0:
        call_tick(clock.address[0], clock.address[1])
    return clock.words[0]


CHUNK = 16
"""Sweeps between two looks at the clock."""

SETTINGS = np.dtype(
    [("method", np.int64), ("sweeps", np.int64), ("tolerance", np.float64), ("seconds", np.float64),
     ("at_once", np.int64), ("local", np.int64), ("rho", np.float64), ("rho_factor", np.float64),
     ("error_kind", np.int64), ("gauss_seidel_error", np.float64), ("uzawa_error", np.float64)]
)  # fmt: skip
"""Which solver (its place in the engine's list), the most sweeps and time of a step (seconds 0: no limit),
the natural map's residual; up to how many contacts all are solved for at once, without a working set; and of
Uzawa's method: whether a visit makes steps to a stop, and not one; rho [N/m], 0 for rho_min of W, and what
multiplies either; the stop of its sweeps, RESIDUAL, RELATIVE or PHYSICAL of
palpo.physics.contact.solvers.relaxation, and the error of the last two; the stop of a visit, in shares of the
largest free gap or slip."""

TOLD = np.dtype(
    [("tolerance", np.float64), ("sweeps", np.int64), ("flags", np.int64), ("residual", np.float64),
     ("began", np.int64), ("read_at", np.int64), ("sweep_caps", np.int64), ("time_caps", np.int64),
     ("divergences", np.int64)]
)  # fmt: skip
"""The tolerance of this solve; the step's sweeps so far, flags of palpo.physics.exchange.port, and residual;
when its first solve began [ns], and the sweeps at which the clock was read last; how often any solve ended at
its sweeps, at its time, or diverged."""


class Solver(NamedTuple):
    """What solvers of up to c contacts need."""

    settings: NDArray[Any]  # (1,) of SETTINGS
    told: NDArray[Any]  # (1,) of TOLD
    acceleration: Acceleration
    """Of Anderson's method; others keep sweeps, steps, best force and residual in the same places."""
    start: NDArray[np.float64]  # (3 c,) the force at the start [N]
    work: NDArray[np.float64]  # (15, 3) scratch
    clock: LentClock
    bordered: Bordered
    """Newton's method on contacts of walls that shut in air."""


def make_solver(
    contacts: int,
    tolerance: float = 1e-8,
    sweeps: int = 1000,
    clock: int = 0,
    walls: tuple[int, int] = (0, 0),
) -> Solver:
    """Room for so many contacts; clock as palpo.physics.engine.solve.make_clock.

    walls: so many contacts and cavities for Newton's method.
    """
    settings = np.zeros(1, SETTINGS)
    settings["tolerance"], settings["sweeps"], settings["rho_factor"] = tolerance, sweeps, 1.0
    settings["gauss_seidel_error"], settings["uzawa_error"] = 1e-4, 1e-3
    return Solver(
        settings, np.zeros(1, TOLD), make_acceleration(contacts), np.zeros(3 * contacts), np.zeros((15, 3)),
        make_clock(clock), make_bordered(*walls),
    )  # fmt: skip


SOLVER = typeof(make_solver(1))


def solver(function: Callable[..., Any]) -> Any:
    """Compile a solver's function (problem, solver)."""
    return callback(types.int32(HandleType(PROBLEM), HandleType(SOLVER)))(function)


@intrinsic
def call_solver(typing_context, address, problem, solver):
    """Call the solver at an int64 address on the addresses of its arguments."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        c_type = ir.FunctionType(ir.IntType(32), [word, word])
        return builder.call(builder.inttoptr(args[0], c_type.as_pointer()), args[1:])

    return types.int32(types.int64, types.int64, types.int64), codegen


@kernel
def open_step(s):
    """A step's solving begins: nothing is spent yet."""
    told = s.told[0]
    told.sweeps = told.flags = 0
    told.read_at = -1
    told.began = read_clock(s.clock)


@kernel
def lent(s, done, chunk):
    """Sweeps that a solver may do before it asks again, `done` after the step's solving began; 0 for none.

    A chunk of them, so that the clock can be looked at. Where it is none, the step's flags say of what.
    """
    told, settings = s.told[0], s.settings[0]
    left = settings.sweeps - done
    if left <= 0:
        told.flags |= SWEEPS_SPENT
        told.sweep_caps += 1
        return 0
    if settings.seconds > 0.0 and done % chunk == 0 and done != told.read_at:
        told.read_at = done
        if read_clock(s.clock) - told.began > 1e9 * settings.seconds:
            told.flags |= TIME_SPENT
            told.time_caps += 1
            return 0
    return min(chunk - done % chunk, left)


@kernel
def bound(w, b, r, first, last):
    """|r| past which a solve has diverged [N] (palpo.physics.contact.laws.runaway)."""
    trace, free, warm = 0.0, 0.0, 0.0
    for i in range(first, last):
        trace += w[i, i]
        free += b[i] ** 2
        warm += r[i] ** 2
    scale = (last - first) / trace if trace > 0.0 else 1.0
    return RUNAWAY * (free**0.5 * scale + warm**0.5)


@kernel
def judge(w, mu, r, u, first, star, status):
    """status (n,) of the contacts in the rows from `first` on, by the branch of the natural map's projection.

    rho is that of W over those rows; star (3,): scratch.
    """
    n, trace = mu.shape[0], 0.0
    for i in range(first, first + 3 * n):
        trace += w[i, i]
    rho = 3 * n / trace if trace > 0.0 else 1.0
    for k in range(n):
        i = first + 3 * k
        augment(BIPOTENTIAL, r[i : i + 3], u[i : i + 3], mu[k], rho, rho, star)
        status[k] = contact_status(r[i], star, mu[k])
