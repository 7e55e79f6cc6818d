"""Which versions of numba this program works with, and each name beyond its documentation that it uses.

What is compiled here differs from numba's own way in two points: it is found by content, and kernels that
kernels call are linked without being emitted. Both rest on names that numba may change in any release. So
another version is refused in words, and a test holds that NAMES has them all and that each is there.

To try a new version: widen BELOW and the range of pyproject.toml, run `pytest tests/architecture`, and for
each name that is missing do what stands beside it.
"""

import re
from importlib.metadata import version

from palpo.physics.numerics.errors import InputError

OLDEST, BELOW = (0, 63, 1), (0, 69, 0)
"""Versions from the first, and before the second."""

NAMES = {
    # the cache: without these, keep the machine code of wholes by `compile_result.library` alone
    "numba.core.caching.FunctionCache": "base of KernelCache; write load_overload and save_overload instead",
    "numba.core.caching.CompileResultCacheImpl": "rebuilds a whole; its two lines can be written out",
    "numba.core.serialize.dumps": "pickles functions by value; cloudpickle does",
    "numba.core.ccallback.CFunc": "what numba.cfunc makes, with our cache; numba.cfunc compiles each time",
    "numba.core.errors.NumbaWarning": "a category of warnings; any other serves",
    # parts: without these, `kernel` is numba.njit, and compiling takes three times as long
    "numba.core.codegen.JITCodeLibrary": "base of PartLibrary, which leaves out optimising and emitting",
    "numba.core.compiler.Compiler": "the pipeline that is given a PartLibrary",
    "numba.core.compiler.CompileResult": "what a restored part is",
    "numba.core.compiler.Flags": "options of one function, by which calls are told apart",
    "numba.core.dispatcher._FunctionCompiler": "compiles a part with other flags",
    "numba.core.registry.CPUDispatcher": "base of KernelDispatcher; numba.njit's own class",
    "numba.core.typing.make_concrete_template": "types a call of a part; see Dispatcher.get_call_template",
    "numba.core.targetconfig.ConfigStack": "flags that types of calls hang on; drop _remember_calls",
    "numba.core.compiler_lock.global_compiler_lock": "one compilation at a time; any lock that numba takes",
    "numba.core.environment.lookup_environment": "finds the globals of a part; see `connect`",
    "numba.core.dispatcher.Dispatcher": "tells kernels from state in checkpoints; type(numba.njit(f))",
    # what compiled code is made for and of
    "numba.core.config": "DISABLE_JIT alone, which is the variable NUMBA_DISABLE_JIT",
    "numba.core.sigutils": "normalises a signature; numba.types has what it gives",
    "numba.core.registry.cpu_target": "the processor's name and target data; llvmlite.binding has both",
    "numba.core.event": "tells what is compiled, and when; without it the panel says nothing of it",
    # code in LLVM's language, beside numba.extending
    "numba.core.cgutils": "alloca_once, is_not_null, get_item_pointer: each a few lines of llvmlite",
    "numba.core.typing.templates.AttributeTemplate": "base for the fields of a handle; overload_attribute",
    "numba.np.arrayobj.make_array": "an array's pointer in atomics; numba.carray the other way round",
}
"""Each with what it does here, or what to do once it is gone."""


def require_numba() -> None:
    """Raise InputError for a numba that this program does not work with."""
    has = version("numba")
    if not OLDEST <= tuple(map(int, re.findall(r"\d+", has)[:3])) < BELOW:
        oldest, below = ".".join(map(str, OLDEST)), ".".join(map(str, BELOW[:2]))
        raise InputError(
            f"numba {has} does not fit this program, which needs {oldest} or later, before {below}: "
            f"python -m pip install 'numba>={oldest},<{below}'"
        )
