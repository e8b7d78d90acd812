"""What is changed in numba while code is compiled: it finds the same, and is as it was afterwards."""

import numpy as np
import pytest
from numba.core import compiler, ir

from onepass.foundation.generic import compiled
from onepass.foundation.numba_bookkeeping import REPLACED, reduce_bookkeeping


@compiled
def assign_slice(target, source):
    target[1:3] = source
    return target


def changed():
    return [getattr(owner, name) for owner, name, _ in REPLACED]


def test_an_array_that_does_not_fit_into_a_slice_is_refused_and_numba_is_as_it_was():
    before = changed()
    assert assign_slice(np.zeros(4), np.ones(2)).tolist() == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="cannot assign slice"):
        assign_slice(np.zeros(4), np.ones(3))
    assert changed() == before


def test_the_variables_of_a_statement_are_the_same_in_the_same_order():
    place, scope = ir.unknown_loc, None
    f, a, b, t = (ir.Var(scope, name, place) for name in "fabt")
    call = ir.Expr.call(f, [a, b], (("more", t),), place)
    statements = [
        ir.Assign(call, t, place),
        ir.Assign(a, b, place),
        ir.Assign(ir.Expr.build_map([(a, b), (t, f)], 2, {}, {}, place), t, place),
        ir.Return(a, place),
        ir.SetItem(f, a, b, place),
    ]
    usual = [[one.name for one in each.list_vars()] for each in statements]
    with reduce_bookkeeping():
        assert [[one.name for one in each.list_vars()] for each in statements] == usual
    assert sorted(usual[0]) == ["a", "b", "f", "t", "t"]


def test_flags_of_the_compiler_are_equal_and_hashed_as_before():
    plain, same, other = compiler.Flags(), compiler.Flags(), compiler.Flags()
    same.nrt, other.nrt = compiler.Flags().nrt, not compiler.Flags().nrt  # a default that is set equals one that is not
    each = [plain, same, other]
    usual = [[hash(one), *(one == two for two in each)] for one in each]
    with reduce_bookkeeping():
        assert [[hash(one), *(one == two for two in each)] for one in each] == usual
    assert usual[0][1:] == [True, True, False]
