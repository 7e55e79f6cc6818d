"""Kernels that call kernels, compiled once: what numba would optimise and emit again in each of its callers.

numba makes native code of every function that compiled code calls, with a wrapper for Python around each, and
links that code, optimised already, into each caller, which optimises and emits it again: a tree of calls is
compiled as often as it is deep. Here a kernel that another one calls is a part: only typed and lowered, then
linked into its caller. What Python or C calls is a whole: all its parts are optimised at once, and emitted.
"""

import re
from typing import Any

import llvmlite.binding as ll
from numba import types
from numba.core import sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typing import make_concrete_template


class PartLibrary(JITCodeLibrary):
    """LLVM code of one function and of what it calls, neither optimised nor emitted."""

    def finalize(self) -> None:
        """Link in what it calls, and leave it at that."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """The code for a cache; there is no object code in it."""
        return self.name, "part", self._get_module_for_linking().as_bitcode()

    @classmethod
    def restored(cls, codegen: Any, kept: tuple[str, str, bytes]) -> "PartLibrary":
        """What `serialize_using_object_code` gave."""
        library = cls(codegen, kept[0])
        library._final_module = library._shared_module = ll.parse_bitcode(kept[2])
        library._finalized = True
        return library


def restored_part(context: Any, kept: tuple[Any, ...]) -> CompileResult:
    """The result of compiling a part, from what its `_reduce` gave."""
    code, fndesc, environment, signature, objectmode, lifted, annotation, reload_init, environments = kept
    return CompileResult(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=None,
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        fndesc=fndesc,
        library=PartLibrary.restored(context.codegen(), code),
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def names_alone(kept: tuple[Any, ...]) -> tuple[Any, ...]:
    """What numba keeps of a whole, less what is never read: the same code in LLVM's language, of which the
    names that it defines stay (callers are linked with parts), and its types in words."""
    (name, kind, (machine_code, code)), *known, _annotation, reload_init, environments = kept
    module = ll.parse_bitcode(code)
    lines = [f"define void {_quoted(one)}() {{ ret void }}" for one in filter(_is_seen, module.functions)]
    lines += [f"{_quoted(one)} = global i8 0" for one in filter(_is_seen, module.global_variables)]
    names = ll.parse_assembly("\n".join(lines)).as_bitcode()
    return (name, kind, (machine_code, names)), *known, "", reload_init, environments


def _is_seen(one: Any) -> bool:
    """Whether a module defines a name for others."""
    return not one.is_declaration and one.linkage not in (ll.Linkage.internal, ll.Linkage.private)


def _quoted(one: Any) -> str:
    """A global name in LLVM's text."""
    return '@"' + re.sub(r"[^ -~]|[\"\\]", lambda sign: f"\\{ord(sign[0]):02x}", one.name) + '"'


class _PartPipeline(Compiler):
    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing_context, target_context, library, *rest)
        self.state.library = PartLibrary(self.state.targetctx.codegen(), "part")


class KernelFlags(Flags):
    """numba's flags of one function, told apart by what is set: numba asks for that at each call that it
    types, and by itself looks up all of some thirty options, a sixth of the time that compiling takes."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelFlags) and bool(self._values == other._values)


def _remember_calls() -> None:
    """Have numba find the type of a call of one of its own functions, an operator say, once for each types of
    arguments and flags of the caller: it tries all forms that the function has at every call in a source."""
    found: dict[Any, Any] = {}
    plain = types.Function.get_call_type

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        known_by = function, context, args, ConfigStack.top_or_none()
        signature = None if kws else found.get(known_by)
        if signature is None:
            signature = plain(function, context, args, kws)
            if not kws:
                found[known_by] = signature
        return signature

    types.Function.get_call_type = get_call_type


_remember_calls()


class _WholeCompiler(_FunctionCompiler):
    def _customize_flags(self, flags: Any) -> Any:
        return KernelFlags(flags)


class _PartCompiler(_WholeCompiler):
    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return super()._customize_flags(flags)


class KernelDispatcher(CPUDispatcher):
    """numba's dispatcher, which gives compiled callers a part and all others a whole."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **rest: Any) -> None:
        super().__init__(py_func, locals, targetoptions, **rest)
        self._compiler = _WholeCompiler(py_func, self.targetdescr, self.targetoptions, self.locals, Compiler)
        self._part_compiler = _PartCompiler(
            py_func, self.targetdescr, self.targetoptions, self.locals, _PartPipeline
        )
        self._part_cache = self._cache

    def keep_in(self, whole: Any, part: Any) -> None:
        """Take these caches of numba's kind for both forms."""
        self._cache, self._part_cache = whole, part

    def get_call_template(self, args: Any, kws: Any) -> tuple[Any, ...]:
        """How numba types a call in compiled code: makes a part for it."""
        pysig, args = self._compiler.fold_argument_types(args, kws)
        if self._can_compile:
            self._compile_part(tuple(args))
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", name, self.nopython_signatures)
        return template, pysig, args, {}

    def compile(self, sig: Any) -> Any:
        """Compile a whole, or load it; a part of the same signature gives way to it."""
        arguments = tuple(sigutils.normalize_signature(sig)[0])
        with global_compiler_lock:
            had = self.overloads.get(arguments)
            if had is not None and not isinstance(had.library, PartLibrary):
                return had.entry_point
            self.overloads.pop(arguments, None)
            made = super().compile(sig)
            connect(self.overloads[arguments].library)
            return made

    def _compile_part(self, arguments: tuple[Any, ...]) -> None:
        """Have a part of these types. Where there is a whole, Python goes on calling that: it may have come
        from the cache, without the code that a caller is linked with."""
        with global_compiler_lock:
            had = self.overloads.get(arguments)
            if had is not None and not isinstance(had.library, PartLibrary):
                del self.overloads[arguments]
            own: tuple[Any, Any] = self._compiler, self._cache
            self._compiler, self._cache = self._part_compiler, self._part_cache
            try:
                super().compile(arguments)
            finally:
                self._compiler, self._cache = own

    def add_overload(self, cres: Any) -> None:
        """Make a result known: a part to compiled callers only."""
        if not isinstance(cres.library, PartLibrary):
            super().add_overload(cres)
            return
        # the code is looked up by its entry point, and a part has none: any object serves
        cres = cres._replace(entry_point=object())
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres


def connect(library: Any) -> None:
    """Give code just compiled the environments of its parts; code from a cache has them already."""
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        if environment is not None and library.codegen._engine.is_symbol_defined(variable.name):
            library.codegen.set_env(variable.name, environment)
