"""Rows that a sketch has lost: directions cut of X^T X and not put back, in units of the ridge that A has there.

Ridge regression divides by A what is summed over all rows. Where A has lost n rows of a direction and b has not, a mean
is up to 1 + n / ridge times too large: the scores of a sketch that is too small beside its reg grow with the stream.
"""

from typing import Any

from onepass.design.contract import error_bound, spectrum, sums


def relative_loss(state: Any, reg: float) -> float:
    """Return the larger of all cuts and of the average eigenvalue that is missing, over the present ridge.

    0 where the certificate is at most reg: for exact designs at no cost. Else one `spectrum`.
    """
    if not error_bound(state) > reg:
        return 0.0
    values, vectors, ridge = spectrum(state)
    total = sums(state)
    missing = (total.mass - float((values - ridge).sum())) / vectors.shape[1]
    return max(float(total.shed), missing) / float(ridge)
