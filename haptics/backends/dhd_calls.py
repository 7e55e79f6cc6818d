"""Calls of libdhd's functions at addresses: a device's id is a char, and all return int."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from palpo.haptics.backends.foreign import BYTES, I32, I64, invoke

_I8, _F64 = ir.IntType(8), ir.DoubleType()


def _dhd(builder, address, arguments, device):
    signed = invoke(builder, address, I32, [*arguments, builder.trunc(device, _I8)])
    return builder.sext(signed, I64)


@intrinsic
def call_dhd_pointers(typing_context, address, a, b, c, d, n, device):
    """Call `int f(void *, ..., char)` with the first n, a literal, of four addresses; its result."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    count = n.literal_value

    def codegen(context, builder, signature, args):
        pointers = [builder.inttoptr(pointer, BYTES) for pointer in args[1 : 1 + count]]
        return _dhd(builder, args[0], pointers, args[6])

    return types.int64(address, types.int64, types.int64, types.int64, types.int64, n, types.int64), codegen


@intrinsic
def call_dhd_force(typing_context, address, fx, fy, fz, tx, ty, tz, device):
    """Call `int f(double x 6, double, char)`: force, torque, and no force of a gripper; its result."""

    def codegen(context, builder, signature, args):
        return _dhd(builder, args[0], [*args[1:7], ir.Constant(_F64, 0.0)], args[7])

    return types.int64(types.int64, *[types.float64] * 6, types.int64), codegen


@intrinsic
def call_dhd_byte(typing_context, address, byte, device):
    """Call `int f(unsigned char, char)`; its result."""

    def codegen(context, builder, signature, args):
        return _dhd(builder, args[0], [builder.trunc(args[1], _I8)], args[2])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_dhd_id(typing_context, address, device):
    """Call `unsigned f(char)`; its result."""

    def codegen(context, builder, signature, args):
        return builder.zext(invoke(builder, args[0], I32, [builder.trunc(args[1], _I8)]), I64)

    return types.int64(types.int64, types.int64), codegen
