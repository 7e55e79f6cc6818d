"""Calls of C functions at addresses, for compiled code that must not enter the interpreter."""

import platform
import sys

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

I32, I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
BYTES = ir.IntType(8).as_pointer()
# HDErrorInfo, three 32-bit words, comes back in two registers, but on x86-64 Windows through a hidden pointer
_THROUGH_MEMORY = sys.platform == "win32" and platform.machine().lower() in ("amd64", "x86_64")


def invoke(builder, address, result, arguments):
    """Within an intrinsic: call the function at an address, by the types of its arguments."""
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(address, function_type.as_pointer()), arguments)


@intrinsic
def call_word(typing_context, address, word):
    """Call `void f(unsigned)`."""

    def codegen(context, builder, signature, args):
        invoke(builder, args[0], _VOID, [builder.trunc(args[1], I32)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def call_values(typing_context, address, word, values):
    """Call `void f(unsigned, void *)`; values: an address."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[2], BYTES)
        invoke(builder, args[0], _VOID, [builder.trunc(args[1], I32), pointer])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_for_word(typing_context, address):
    """Call `unsigned f(void)`."""

    def codegen(context, builder, signature, args):
        return builder.zext(invoke(builder, args[0], I32, []), I64)

    return types.int64(types.int64), codegen


@intrinsic
def call_for_number(typing_context, address):
    """Call `double f(void)`."""

    def codegen(context, builder, signature, args):
        return invoke(builder, args[0], ir.DoubleType(), [])

    return types.float64(types.int64), codegen


@intrinsic
def call_for_error(typing_context, address):
    """Call `HDErrorInfo f(void)`; the code is the low half of the result, the internal code the high half."""

    def codegen(context, builder, signature, args):
        if _THROUGH_MEMORY:
            place = cgutils.alloca_once(builder, ir.ArrayType(I64, 2))
            invoke(builder, args[0], _VOID, [builder.bitcast(place, BYTES)])
            return builder.load(builder.bitcast(place, I64.as_pointer()))
        pair = invoke(builder, args[0], ir.LiteralStructType([I64, I32]), [])
        return builder.extract_value(pair, 0)

    return types.int64(types.int64), codegen


@intrinsic
def call_for_byte(typing_context, address, word):
    """Call `unsigned char f(unsigned)`."""

    def codegen(context, builder, signature, args):
        byte = invoke(builder, args[0], ir.IntType(8), [builder.trunc(args[1], I32)])
        return builder.zext(byte, I64)

    return types.int64(types.int64, types.int64), codegen
