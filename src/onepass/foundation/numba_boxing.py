"""Conversion of compiled results to Python objects without running Python code.

numba looks up the class of every returned array and NamedTuple by a Python function, and calls the NamedTuple's class.
A pending signal (Ctrl-C, the alarm of a timeout) raises in there, and numba uses the failed result without a check:
the first Ctrl-C in a loop of `learn` was a segmentation fault. Here the classes are constants of the compiled function,
and `tuple.__new__`, which is C code, fills the tuple. Signals are handled after the call. This is also faster: `learn`
on an exact design with d = 20 takes 7 µs instead of 9.

numba's public interface cannot replace the conversion of its own types, and offers none that calls no Python. With
either, this file could go.
"""

from typing import Any

from numba import types
from numba.core.boxing import box_array, box_namedtuple, box_tuple
from numba.core.pythonapi import PythonAPI, _boxers


class _Constants(PythonAPI):
    """numba's interface to Python objects, with constants kept beside the compiled function instead of pickled."""

    def __init__(self, context: Any) -> None:
        super().__init__(context.context, context.builder)
        self.kept = context.env_manager

    def serialize_object(self, obj: Any) -> Any:
        return obj

    def unserialize(self, obj: Any) -> Any:
        return self.kept.read_const(self.kept.add_const(obj))


def _box_array(kind: Any, value: Any, context: Any) -> Any:
    return box_array(kind, value, context._replace(pyapi=_Constants(context)))


def _box_namedtuple(kind: Any, value: Any, context: Any) -> Any:
    """Convert a compiled NamedTuple to a Python object by `tuple.__new__`.

    NamedTuple classes that define more than their fields use numba's own conversion.
    """
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
