"""A compiled state behind one C address, so that a C callback finds it as its user data.

`put_state` writes a NamedTuple of arrays, in numba's own layout, into a block of memory; `state_at` reads
it back inside a compiled function as a tuple of the same type. The arrays stay where they are: whoever
owns them keeps them, and the block, alive for as long as the address is in use.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, typeof
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

BLOCK_BYTES = 65536
"""Room for one state; a tuple of a few hundred arrays takes 20 kB."""


@intrinsic
def _write_at(typing_context, address, state):
    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], context.get_value_type(signature.args[1]).as_pointer())
        builder.store(args[1], pointer)
        return context.get_dummy_value()

    return types.void(types.int64, state), codegen


@intrinsic
def _size_of(typing_context, state):
    def codegen(context, builder, signature, args):
        size = context.get_abi_sizeof(context.get_value_type(signature.args[0]))
        return cgutils.intp_t(size)

    return types.intp(state), codegen


@njit(cache=True)
def _store(address, state):
    _write_at(address, state)


@njit(cache=True)
def _size(state):
    return _size_of(state)


def put_state(state: Any) -> NDArray[np.uint8]:
    """The block that holds `state`; its address is `block.ctypes.data`."""
    if _size(state) > BLOCK_BYTES:
        raise MemoryError(f"a compiled state of {_size(state)} bytes exceeds the block of {BLOCK_BYTES}")
    block = np.zeros(BLOCK_BYTES, np.uint8)
    _store(block.ctypes.data, state)
    return block


def state_reader(example: Any) -> Any:
    """An intrinsic `state_at(address)` that returns the state of the type of `example`.

    The type depends on dimensions and dtypes only, not on sizes, so that one compiled callback serves
    every scene.
    """
    state_type = typeof(example)

    @intrinsic
    def state_at(typing_context, address):
        def codegen(context, builder, signature, args):
            value_type = context.get_value_type(state_type)
            pointer = builder.inttoptr(args[0], value_type.as_pointer())
            value = builder.load(pointer)
            context.nrt.incref(builder, state_type, value)
            return value

        return state_type(types.int64), codegen

    return state_at


@intrinsic
def address_of(typing_context, pointer):
    """The int64 address of a void pointer."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(types.voidptr), codegen
