"""Every estimator keeps the contract that third parties are held to."""

import pytest

import onepass as op
from counts import LONG
from onepass.testing import check_estimator

ESTIMATORS = {
    "Ridge": lambda design: op.Ridge(design),
    "OnlineNewton": lambda design: op.OnlineNewton(design),
    "OnePassHuber": lambda design: op.OnePassHuber(design, nu=0.1),
}
if LONG:  # each compiles for ten seconds what no other test of `make test` asks for
    ESTIMATORS |= {
        "OnePassHuber, ball": lambda design: op.OnePassHuber(design, nu=0.1, parameter_bound=3.0),
        "AdaptiveHuber": lambda design: op.estimator.AdaptiveHuber(design, nu=0.1),
        "OnePassTruncation": lambda design: op.estimator.OnePassTruncation(design, clip=10.0),
        "OnePassMedian": lambda design: op.estimator.OnePassMedian(design, repeats=3),
        "TruncatedRidge": lambda design: op.estimator.TruncatedRidge(design, clip=10.0),
        "MedianOfMeans": lambda design: op.estimator.MedianOfMeans(design, repeats=3),
    }


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_keep_the_shipped_contract(name):
    check_estimator(ESTIMATORS[name])
