"""A handle to a NamedTuple of arrays: one pointer, inside compiled code and behind a C callback.

numba passes a NamedTuple by value, which for a tuple of a hundred arrays means a thousand arguments at
every call and minutes of compilation. A `Handle` passes the address of the tuple's native form instead;
inside a kernel `handle.field` loads that array only, and a nested tuple's field is a handle again. A C
callback takes `HandleType(content)` as its argument: for its caller that is a `void *`, the user data
`handle.address`; and since the type spells out the tuple's layout, a callback cached on disk can never be
given a state of another layout.

The native form is written once: fields cannot be rebound, only the arrays' contents change.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from palpo.physics.numerics.kernels import layout

T = TypeVar("T")


class Handle:
    """A tuple of arrays and the block of memory that holds its native form. Keeps both alive.

    renewable: whether another tuple, laid out alike, may take its place at the same address (`renew`).
    """

    def __init__(self, state: Any, renewable: bool = False) -> None:
        self.state, self.renewable = state, renewable
        content = typeof(state)
        self.block = np.array(_words(state), np.int64)
        _check_size(content, self.block.nbytes)
        self.address = int(self.block.ctypes.data)
        self._numba_type = HandleType(content)

    def renew(self, state: Any) -> None:
        """Hold another tuple; TypeError for one of another layout, or where none may take its place."""
        if not self.renewable or layout(typeof(state)) != layout(self._numba_type.content):
            raise TypeError("another tuple cannot take this one's place")
        self.state = state
        self.block[:] = _words(state)


def handle_for(state: Any, content: types.Type, what: str) -> Handle:
    """The handle that compiled code for tuples of type `content` is given.

    TypeError for a tuple of another layout, which an address cannot tell; what: its name in that sentence.
    """
    if layout(typeof(state)) != layout(content):
        raise TypeError(f"this {what} is not laid out as the compiled function expects")
    return Handle(state)


def _words(value: Any) -> list[int]:
    """The 64-bit words of a value's native form; TypeError for what has no such form.

    Written here and not by a compiled kernel, which would take a large tuple by value: seventeen seconds of
    compilation for that of the multi-rate tick.
    """
    if isinstance(value, np.ndarray):
        # reference count and parent stay empty: the handle keeps the array alive
        return [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    if isinstance(value, tuple):
        return [word for item in value for word in _words(item)]
    if type(value) is int or isinstance(value, np.int64):
        return [int(value)]
    if isinstance(value, np.float32):  # in the low half of a word that the next field, or the end, pads
        return [int(value.view(np.int32))]
    if isinstance(value, float):  # also float64
        return [int(np.float64(value).view(np.int64))]
    raise TypeError(f"a {type(value).__name__} has no place behind a handle: int, float, arrays and tuples")


def _check_size(content: types.Type, n: int) -> None:
    """TypeError unless numba gives the type the n bytes that were written."""
    context = cpu_target.target_context
    size = context.get_abi_sizeof(context.get_value_type(content))
    if size != n:
        raise TypeError(f"numba lays out {content} in {size} bytes, not in {n}")


class HandleType(types.Type):
    """numba's type of a Handle to a tuple of type `content`."""

    def __init__(self, content: types.Type) -> None:
        self.content = content
        super().__init__(name=f"Handle({layout(content)})")

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """How names of compiled functions tell this type: in full it is four kilobytes, in each of them."""
        return f"Handle{hashlib.sha256(self.name.encode()).hexdigest()[:16]}", ()


@typeof_impl.register(Handle)
def _typeof_handle(value: Handle, context: Any) -> HandleType:
    return value._numba_type


@register_model(HandleType)
class _HandleModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, fe_type: HandleType) -> None:
        super().__init__(data_model_manager, fe_type, ir.IntType(64))


@unbox(HandleType)
def _unbox_handle(handle_type, obj, c):
    address = c.pyapi.object_getattr_string(obj, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _HandleAttributes(AttributeTemplate):
    key = HandleType

    def generic_resolve(self, handle, attribute):
        content = handle.content
        if attribute not in content.fields:
            return None
        field = content.types[content.fields.index(attribute)]
        return HandleType(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(HandleType)
def _lower_field(context, builder, handle, value, attribute):
    content = handle.content
    index = content.fields.index(attribute)
    field = content.types[index]
    base = builder.inttoptr(value, context.get_value_type(content).as_pointer())
    zero = ir.Constant(ir.IntType(32), 0)
    place = builder.gep(base, [zero, ir.Constant(ir.IntType(32), index)], inbounds=True)
    if isinstance(field, types.BaseNamedTuple):
        return builder.ptrtoint(place, ir.IntType(64))
    loaded = builder.load(place)
    if isinstance(field, types.Array):
        # borrowed: no reference is counted, since the Handle's tuple keeps the array alive
        for counted in (0, 1):
            member = loaded.type.elements[counted]
            loaded = builder.insert_value(loaded, ir.Constant(member, None), counted)
    return loaded


@intrinsic
def handle_like(typing_context, handle, address):
    """A handle of the type of `handle` to the tuple behind another `Handle.address`.

    So a state may hold any number of tuples of one layout: one as a field, which puts the layout in the
    state's own type, and the addresses of all in an int64 array.
    """
    if not isinstance(handle, HandleType):
        return None

    def codegen(context, builder, signature, args):
        return args[1]

    return handle(handle, types.int64), codegen


def of_process(*fields: str) -> Callable[[type[T]], type[T]]:
    """Decorate a NamedTuple: these fields hold addresses of this process, or rows already read, and no state.

    A state that is copied, saved or restored leaves them as they are in the rig that it is put into.
    TypeError for a name that is none of its fields.
    """

    def marked(kind: Any) -> Any:
        if missing := set(fields).difference(kind._fields):
            raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(missing))}")
        kind.OF_PROCESS = fields
        return kind

    return marked
