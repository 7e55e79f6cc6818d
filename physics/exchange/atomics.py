"""Acquire/release atomics on int64 arrays, C function calls and address views, for kernels that hold no GIL.

A plain load in a polling loop may be hoisted out of it by LLVM, and a plain store may be seen before the
data that it announces; these intrinsics forbid both. Elements that two threads touch should lie
`CACHE_LINE` int64 apart, so that one thread's writes do not evict the other's line.
"""

from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from palpo.physics.numerics.kernels import inlined

CACHE_LINE = 8
"""int64 elements per 64-byte cache line."""

_WORD = ir.IntType(64)


def _is_word(array, index) -> bool:
    return (
        isinstance(array, types.Array)
        and array.ndim == 1
        and array.dtype == types.int64
        and isinstance(index, types.Integer)
    )


def _pointer(context, builder, signature, args):
    """Pointer to element args[1] of the array args[0]."""
    array = make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return cgutils.get_item_pointer(
        context, builder, signature.args[0], array, [index], wraparound=False, boundscheck=False
    )


@intrinsic
def load_acquire(typing_context, array, index):
    """array[index], read before anything that follows it in the program."""
    if not _is_word(array, index):
        return None

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_pointer(context, builder, signature, args), "acquire", 8, typ=_WORD)

    return types.int64(array, index), codegen


@intrinsic
def store_release(typing_context, array, index, value):
    """array[index] = value, seen by others only after all that precedes it in the program."""
    if not _is_word(array, index):
        return None

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(array, index, types.int64), codegen


@intrinsic
def exchange(typing_context, array, index, value):
    """Swap value with array[index] in one indivisible acquire-release step; returns the old value."""
    if not _is_word(array, index):
        return None

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("xchg", _pointer(context, builder, signature, args), args[2], "acq_rel")

    return types.int64(array, index, types.int64), codegen


@intrinsic
def call_tick(typing_context, address, data):
    """Call the C function `int32 f(void *)` at an int64 address on an int64 data address; returns its status.

    The caller guarantees that both addresses stay valid: keep the cfunc object and the data arrays alive.
    """
    if not (isinstance(address, types.Integer) and isinstance(data, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        c_type = ir.FunctionType(ir.IntType(32), [ir.IntType(8).as_pointer()])
        function = builder.inttoptr(args[0], c_type.as_pointer())
        return builder.call(function, [builder.inttoptr(args[1], ir.IntType(8).as_pointer())])

    return types.int32(types.int64, types.int64), codegen


def _pointer_intrinsic(dtype):
    @intrinsic
    def pointer(typing_context, address):
        if not isinstance(address, types.Integer):
            return None

        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.int64), codegen

    return pointer


pointer_f64 = _pointer_intrinsic(types.float64)
"""pointer_f64(address): the int64 address as a float64 pointer, for numba.carray with any shape."""


@inlined
def view_f64(address, n):
    """float64 array, shape (n,), over the memory at an int64 address; it owns nothing."""
    return carray(pointer_f64(address), (n,))


@inlined
def view_flat(array):
    """float64 array, shape (size,), over a contiguous one; it owns nothing. A ravel could raise."""
    return view_f64(array.ctypes.data, array.size)


@inlined
def view_square(array, n):
    """float64 array, shape (n, n), over the first n^2 entries of a contiguous one; it owns nothing.

    A reshape could raise.
    """
    return carray(pointer_f64(array.ctypes.data), (n, n))
