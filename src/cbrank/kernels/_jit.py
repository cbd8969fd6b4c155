"""Numba's decorators, set up once for all kernels.

``@jit`` is for functions that other compiled functions call, and ``@allocating_jit`` for those of them
that make or return arrays; ``@kernel`` is for the entry points that Python alone calls, whose machine
code is kept on disk. A failing disk cache never fails a fit:
with an unwritable folder, a damaged file or a full disk the kernel is compiled in memory.
"""

import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger("cbrank")

_OPTIONS: dict[str, Any] = {
    "nogil": True,  # other threads read ahead, or score, while one learns
    "error_model": "numpy",  # a division by zero gives inf: no branch in the inner loops
    # Sums may be reordered (SIMD) and multiply-adds fused. "nnan" and "ninf" must stay off: the
    # kernels tell NaN and infinity apart from numbers by comparisons such as `not a >= b`.
    "fastmath": {"reassoc", "contract"},
}


class _InnerCode(JITCodeLibrary):
    """The code of a function that kernels call: optimised in full only as a part of each kernel.

    Numba optimises every function by itself, and once more with each function that it is linked into. That makes a
    first fit longer, and the copies in kernels, optimised again and again, are longer and slower than those that
    were optimised once.
    """

    def _optimize_final_module(self) -> None:
        codegen = self._codegen
        try:
            passes, builder = codegen._module_pass_manager(
                loop_vectorize=codegen._loopvect,
                slp_vectorize=False,
                opt=codegen._opt_level,
                cost="cheap",
            )
        except (AttributeError, TypeError):  # another version of Numba
            super()._optimize_final_module()
        else:
            passes.run(self._final_module, builder)


class _KernelCode(JITCodeLibrary):
    """The code of a kernel, with names of its own for its copies of the functions that it calls.

    Otherwise the process that compiles a kernel would call copies that were optimised apart from it, and a process
    that loads the kernel from disk would call its own: their sums are rounded differently.
    """

    def _optimize_final_module(self) -> None:
        defined = [each for each in self._final_module.functions if not each.is_declaration]
        [entry, *_] = [each.name for each in defined if each.linkage is llvm.Linkage.external]
        for function in defined:
            if function.linkage is llvm.Linkage.linkonce_odr:
                function.name = f"{function.name}.{entry}"
        super()._optimize_final_module()


class _InnerCompiler(Compiler):
    """Compiles a function that kernels call."""

    code: type[JITCodeLibrary] = _InnerCode

    def compile_extra(self, func: Any) -> Any:
        if self.state.library is None:
            self.state.library = self.code(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _KernelCompiler(_InnerCompiler):
    """Compiles a kernel."""

    code = _KernelCode


def allocating_jit(function: Function, **others: Any) -> Function:
    """Compile a function that kernels call, and that makes or returns arrays.

    One with a private name, or of a private module, gets no wrapper for calls from Python: a
    wrapper takes about as long to compile as the function itself.
    """
    private = function.__name__.startswith("_") or "._" in function.__module__
    wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": private}
    inner = {"_nrt": True, "forceinline": False, "pipeline_class": _InnerCompiler}
    options = _OPTIONS | wrappers | inner | others
    return numba.njit(**options)(function)  # type: ignore[no-any-return]


def jit(function: Function, **others: Any) -> Function:
    """Compile a function that kernels call into those that call it.

    It borrows its arrays: no references are counted, which in a sweep over rows of fifty numbers would
    take longer than all else. So it cannot make arrays, and returns views only to functions that count
    none either. To pass arrays, each of
    which is seven numbers and more, would take as long; hence no calls are left.
    """
    return allocating_jit(function, **{"_nrt": False, "forceinline": True} | others)


def outlined_jit(function: Function) -> Function:
    """Compile a function that kernels call once for many of them, where it is large and takes long."""
    return jit(function, forceinline=False)


def exact_jit(function: Function) -> Function:
    """Compile a function that kernels call, rounded as NumPy rounds: no multiply-adds are fused."""
    return jit(function, fastmath=False)


def exact_kernel(function: Function) -> Function:
    """Compile an entry point of that kind."""
    return kernel(function, fastmath=False)


def kernel(function: Function, **others: Any) -> Function:
    """Compile an entry point at its first call, and keep its machine code on disk if possible."""
    kept = {"no_cpython_wrapper": False, "pipeline_class": _KernelCompiler}
    compiled = allocating_jit(function, **(kept | others))
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        try:
            compiled._cache = _KernelCache(function)  # type: ignore[attr-defined]
        except Exception as reason:  # noqa: BLE001
            _note_no_cache(reason)
    return compiled


class _MachineCode(CompileResultCacheImpl):
    """What is kept of a kernel: its machine code, and little else.

    Numba keeps its LLVM code as well, in case another function would have it inlined, and the modules
    of all functions that were; to parse the one and import the others takes several times as long as
    to load machine code. Nothing but Python calls a kernel.
    """

    def reduce(self, compiled: Any) -> tuple[Any, ...]:
        (name, kind, (code, _)), *facts, environments = super().reduce(compiled)
        described = compiled.fndesc
        entries = described.llvm_func_name, described.llvm_cpython_wrapper_name
        names = llvm.parse_assembly("\n".join(f'@"{entry}" = global i8 0' for entry in entries))
        in_use = tuple(each for each in environments if each.consts)
        return (name, kind, (code, names.as_bitcode())), *facts, in_use


class _KernelCache(FunctionCache):
    """Numba's disk cache, with another key and without errors.

    Numba recompiles a function when its own file has changed, but not when a function that it
    calls in another file has. So the key is a digest of all files of this package: it also
    survives a reinstallation, which changes times of files and not their text.
    """

    _impl_class = _MachineCode

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _sources_digest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code, without all that Numba imports first in case it has to compile.

        That takes longer than to load ten kernels. Machine code needs the runtime alone; where it
        must be compiled after all, Numba imports the rest then.
        """
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as reason:  # noqa: BLE001
            _note_no_cache(reason)


@functools.cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


@functools.cache
def _note_once(message: str) -> None:
    log.warning(message)


def _note_no_cache(reason: Exception) -> None:
    _note_once(
        "cbrank: compiled kernels cannot be kept on disk, so every new process compiles again; "
        "set NUMBA_CACHE_DIR to a writable folder to avoid it."
    )
    log.debug("cbrank: no kernel cache: %s", reason)


class _FirstCompilation(event.Listener):
    """Says once per process why the first call takes seconds."""

    def on_start(self, happening: event.Event) -> None:
        function = happening.data["dispatcher"].py_func
        if function.__module__.startswith("cbrank."):
            _note_once(
                "cbrank: compiling for this machine; the first run takes about half a minute."
            )

    def on_end(self, happening: event.Event) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
