"""`merge_all(...)`: one owner from the shards of a stream."""

from typing import Any


def merge_all(first: Any, *others: Any, since: Any = None) -> Any:
    """One model that has learned the rows of all, each counted once; none of those given changes.

    first, others: designs, bandits, or exact kernel bandits that have a method `merge`, built of equal parts. The
    result is a copy of `first` that has merged the others in their order. since: a bandit that all of them began as
    copies of. TypeError for what cannot be merged, ValueError for parts that differ, as `merge` says.

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
