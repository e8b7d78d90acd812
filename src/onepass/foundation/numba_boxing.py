"""Results leave compiled code without running Python code.

numba finds the class of every array and NamedTuple that it returns by a Python function, and calls the class of a
NamedTuple. A pending signal raises in there (Ctrl-C, the alarm of a timeout), and numba uses what came back without a
look: the first Ctrl-C in a loop of `learn` was a segmentation fault. Here classes are constants of the compiled
function, and `tuple.__new__`, which is C code, fills the tuple. Signals are heard after the call. It also takes less
time: `learn` on an exact design, d = 20, 7 µs instead of 9.

numba's public interface has no way to replace the boxer of a type of its own, nor one that calls no
Python; with either this file could go.
"""

from typing import Any

from numba import types
from numba.core.boxing import box_array, box_namedtuple, box_tuple
from numba.core.pythonapi import PythonAPI, _boxers


class _Constants(PythonAPI):
    """numba's interface to Python, where objects are not pickled, but kept beside the compiled function."""

    def __init__(self, context: Any):
        super().__init__(context.context, context.builder)
        self.kept = context.env_manager

    def serialize_object(self, obj: Any) -> Any:
        return obj

    def unserialize(self, obj: Any) -> Any:
        return self.kept.read_const(self.kept.add_const(obj))


def _box_array(kind: Any, value: Any, context: Any) -> Any:
    return box_array(kind, value, context._replace(pyapi=_Constants(context)))


def _box_namedtuple(kind: Any, value: Any, context: Any) -> Any:
    """Box a value as `kind.instance_class(*value)`; numba's own way is for derived classes, which may do more."""
    if kind.instance_class.__bases__ != (tuple,):
        return box_namedtuple(kind, value, context)
    api = _Constants(context)
    fields = box_tuple(kind, value, context)
    named = api.call_function_objargs(api.unserialize(tuple.__new__), (api.unserialize(kind.instance_class), fields))
    api.decref(fields)
    return named


_boxers.functions.update(
    {types.Array: _box_array, types.NamedTuple: _box_namedtuple, types.NamedUniTuple: _box_namedtuple}
)
