"""Relative loss of a sketch: what was cut off the eigenvalues of X^T X and not put back, divided by the ridge.

Ridge regression solves A theta = b, where b is summed over all rows. If A has lost the mass n in a direction (the sum
of squares of the rows along it) and b has not, a predicted reward is up to 1 + n / ridge times too large. The scores of
a sketch that is too small for its reg therefore grow with the stream.
"""

from typing import Any

from onepass.design.contract import error_bound, spectrum, sums


def relative_loss(state: Any, reg: float) -> float:
    """Return how much a sketch has lost, in units of its ridge: predictions may be too large by this factor.

    It is the larger of two numbers divided by the present ridge: the sum of all cuts, and the average eigenvalue that
    the sketch lacks outside the directions held. The result is 0 if the error bound is at most `reg`, which costs
    nothing for exact designs. Otherwise one `spectrum` is computed.
    """
    if not error_bound(state) > reg:
        return 0.0
    values, vectors, ridge = spectrum(state)
    total = sums(state)
    missing = (total.mass - float((values - ridge).sum())) / vectors.shape[1]
    return max(float(total.shed), missing) / float(ridge)
