"""What the servo exchanges with whoever is outside its tick, and how it asks for it.

    int32 link(int64 stage, state *, double h)

A panel, a slow loop, a picture: each is a link, which knows what it brings and what it takes, and the bodies,
detectors and holds that this is of. It is compiled and cached alone. Its stages:

    ASTRAY    LOST where a body's model has lost its shape, so that the scene's time has to stand still until
              a new frame brings another
    SETTINGS  what an operator has changed comes into force
    FRAME     the newest frame comes into force; the hands know by now where they want to be
    BOOK      after each step: what is added up over steps
    TELL      after the tick: states, logs, pictures
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from palpo.physics.exchange.handle import HandleType
from palpo.physics.numerics.kernels import callback

ASTRAY, SETTINGS, FRAME, BOOK, TELL = range(5)
"""Stages."""

LOST = 4
"""What ASTRAY returns beside the answers of palpo.physics.contract.stages."""


def link(smallest: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a link's function (stage, state, h) for states laid out like `smallest`."""
    return callback(types.int32(types.int64, HandleType(typeof(smallest)), types.float64))


@intrinsic
def call_link(typing_context, address, stage, state, h):
    """Call the link at an int64 address on the address of its state."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        c_type = ir.FunctionType(ir.IntType(32), [word, word, ir.DoubleType()])
        return builder.call(builder.inttoptr(args[0], c_type.as_pointer()), args[1:])

    return types.int32(types.int64, types.int64, types.int64, types.float64), codegen
