"""The function `merge_all`, which merges models that learned shards of one stream."""

from typing import Any


def merge_all(first: Any, *others: Any, since: Any = None) -> Any:
    """Return a new model that has learned the rows of all given models. The models do not change.

    Parameters
    ----------
    first : Design, Bandit or exact kernel bandit
        A model with a method `merge`.
    *others : same type as `first`
        Models built of equal parts, merged in this order.
    since : Bandit, default None
        If all models began as copies of one trained bandit, this bandit. Its rows then count once.

    Returns
    -------
    same type as `first`
        A copy of `first` that has merged the others.

    Raises
    ------
    TypeError
        If the models cannot be merged.
    ValueError
        If their estimators, designs or feature maps differ (docs/merging.md has all requirements).

    Examples
    --------
    >>> import onepass as op
    >>> shards = [op.OFUL(dim=2) for _ in range(3)]
    >>> for shard in shards:
    ...     shard.learn([1.0, 0.0], 1.0)
    >>> op.merge_all(*shards).n_learned
    3
    """
    if isinstance(first, type) or not (hasattr(first, "merge") and hasattr(first, "copy")):
        kind = first.__name__ if isinstance(first, type) else type(first).__name__
        raise TypeError(
            f"{kind} cannot be merged: what it learns from a row depends on the rows before it; learn all rows again, "
            "one stream after the other"
        )
    whole = first.copy()
    for other in others:
        whole = whole.merge(other) if since is None else whole.merge(other, since=since)
    return whole
