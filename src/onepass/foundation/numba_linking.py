"""Linking of compiled functions, so that a function called only by compiled code is translated once, with its callers.

numba optimizes and translates every function separately, together with everything it calls, so a function five calls
deep is translated six times. Here a function stays LLVM text until its address is needed. Calls from Python need the
address; calls in compiled code do not.
"""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import _make_subtarget
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.targetconfig import ConfigStack

LLVM = "numba:llvm_lock"  # the event of its calls
ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of global variables begin that hold what code needs of Python
WRAPPER = "_python"  # how the name of the variable of a wrapper ends, which has its own


class Part(JITCodeLibrary):
    """Code of a compiled function and of everything that it calls: LLVM text, or machine code once `whole` is True."""

    whole = False

    def _optimize_final_module(self) -> None:
        """Do nothing; the code is optimized later, as a part of its callers."""

    def _finalize_final_module(self) -> None:
        if getattr(self, "_compiled_object", None) is not None:  # machine code of the cache
            self.whole = True
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, or 0 if the library has no function of that name.

        The code is translated first if it is still text.
        """
        self._ensure_finalized()
        if not self.whole and self._defines(name):
            self.whole = True
            super()._optimize_final_module()
            self._final_module.verify()
            super()._finalize_final_module()
            for variable in self._final_module.global_variables:
                environment = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT) else None
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)
        return super().get_pointer_to_function(name)

    def _defines(self, name: str) -> bool:
        try:
            return not self._final_module.get_function(name).is_declaration
        except NameError:
            return False

    @property
    def codegen(self) -> Any:
        """Object whose `set_env` numba calls to set environments of functions.

        It is numba's own for machine code, and this `Part` for text.
        """
        return self._codegen if self.whole else self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing; the variable is set when the text becomes machine code."""

    def serialize_using_object_code(self) -> tuple:
        """Return the tuple that numba's cache stores for a library.

        It holds object code, or LLVM bitcode if the library has no object code yet.
        """
        return super().serialize_using_object_code() if self.whole else self.serialize_using_bitcode()


def add_python_wrapper(result: Any, flags: Any) -> Any:
    """Return a compile result that Python can call, made of the `result` of a function without a wrapper for Python.

    Only the wrapper is lowered, with the compiler flags `flags`. The caller holds numba's compiler lock and uses
    `link_lazily`.
    """
    described = copy.copy(result.fndesc)
    described.env_name += WRAPPER
    environment = Environment.from_fndesc(described)
    context = _make_subtarget(cpu_target.target_context, flags).subtarget(environment=environment, fndesc=described)
    library = context.codegen().create_library(described.qualname)
    library.enable_object_caching()
    library.add_linking_library(rtsys.library)
    library.add_linking_library(result.library)
    with ConfigStack().enter(flags), context.push_code_library(library):
        context.create_cpython_wrapper(library, described, environment, None, release_gil=flags.release_gil)
    function = context.get_executable(library, described, environment)
    return result._replace(
        library=library, entry_point=function, fndesc=described, environment=environment, metadata={}
    )


@contextlib.contextmanager
def link_lazily() -> Iterator[None]:
    """Translate functions that are compiled in this block only when they are called, as a context manager.

    Each function becomes a `Part`. The caller holds numba's compiler lock. numba's timers, which listen to every call
    of LLVM, are switched off meanwhile.
    """
    codegen, heard = cpu_target.target_context.codegen(), event._registered[LLVM]
    usual, listeners = codegen._library_class, list(heard)
    codegen._library_class = Part
    heard[:] = [listener for listener in listeners if not isinstance(listener, event.TimingListener)]
    try:
        yield
    finally:
        codegen._library_class = usual
        heard[:] = listeners
