"""Start of a bandit from a log, labelled examples or another bandit, trusted only as far as it predicts well."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.evaluation.log import Log
from onepass.foundation import check, files
from onepass.foundation.check import quote
from onepass.foundation.registry import build
from onepass.model.auto import AutoModel
from onepass.model.interval.interval_model import IntervalModel
from onepass.model.records import are_records, records_of
from onepass.model.warm_start import WarmStart

Rows = tuple[Any, np.ndarray, Any]
"""Contexts, rewards and arms, as `Bandit.learn` takes them."""


def warm_start(bandit: Bandit, source: Any, *, trust: str = "earned") -> Bandit:
    """Return a bandit that starts from earlier data or from another bandit.

    With `trust="earned"` the bandit has two models: one that has learned the source, and one that starts without data.
    Both learn every reward. The prediction for an arm is the average of both, weighted by how well they have predicted
    the rewards since. So a source that fits is used at once, and one that misleads loses its weight after few rewards.
    The new bandit shows the weights of the source by arm: `bandit.trust`.

    Parameters
    ----------
    bandit : Bandit
        A bandit that has learned nothing. It stays as it is.
    source : Log, Bandit, tuple, str or Path
        - `Log`: its rows are learned. Propensities are not used, so they may be any numbers.
        - `Bandit` that has learned: its model is copied.
        - (contexts, arms, rewards): columns of decisions in this order, each as `Bandit.learn` takes it. `arms` is None
          if every row describes its arm.
        - (contexts, labels): examples with their right arms. The right arm has reward 1, and all others have reward 0.
        - Path of a saved bandit, or of a log in any format of `onepass log`, for example dsjson.
    trust : {"earned", "full"}, default "earned"
        "full" learns the source as if its rows had been learned by this bandit, without a second model.

    Returns
    -------
    Bandit
        The bandit with the exploration, seed and name of `bandit`.

    Raises
    ------
    ValueError
        If `bandit` has learned, has outcomes or has a half-life in time, if the source is empty or does not fit, or if
        it is a bandit with an `Interval` and `trust` is "earned".
    TypeError
        If `bandit` is no bandit, or the source is a bandit with a model of another kind.

    Notes
    -----
    It takes twice the time and memory of one model, until one of the two is dropped (`onepass.model.WarmStart`).

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((400, 2))
    >>> arms, best = rng.choice(["a", "b"], 400), np.where(rows[:, 0] > 0.0, "a", "b")
    >>> bandit = op.warm_start(op.ContextualBandit(), (rows, arms, arms == best))
    >>> bandit.decide([1.5, 0.0]).arm, bandit.trust
    ('a', {'a': 0.5, 'b': 0.5})
    >>> for x, arm in zip(rng.standard_normal((100, 2)), 50 * ["a", "b"]):
    ...     bandit.learn(x, float((arm == "a") == (x[0] > 0.0)), arm)
    >>> min(bandit.trust.values()) > 0.9
    True
    """
    check.choice("trust", trust, ("earned", "full"))
    _check_target(bandit)
    if isinstance(source, str | Path):
        source = _read_path(source)
    start = _adopt(bandit, source) if isinstance(source, Bandit) else _learn(bandit, source)
    if trust == "full":
        return start
    if isinstance(start.model, IntervalModel):
        raise ValueError(
            'trust must be "full" for an interval of actions: only arms are trusted each as far as it earns it'
        )
    model = WarmStart(start.model, bandit.copy().model)
    return Bandit(model, build(bandit.params()["exploration"]), seed=bandit.seed, name=bandit.name)


def _check_target(bandit: Any) -> None:
    """Raise TypeError for anything but a bandit, and ValueError for one that has learned or has outcomes or times."""
    if not isinstance(bandit, Bandit):
        raise TypeError(f"bandit must be a Bandit such as ContextualBandit(), got {quote(bandit)}")
    if bandit.n_learned:
        raise ValueError(f"bandit must have learned nothing, and it has learned {bandit.n_learned} rows")
    if bandit.outcomes or bandit.needs_time:
        raise ValueError("bandit must have no outcomes and no half-life in seconds: let it learn the source instead")


def _adopt(bandit: Bandit, source: Bandit) -> Bandit:
    """Return a bandit with a copy of the model of `source`, and the exploration, seed and name of `bandit`."""
    model = source.model
    if isinstance(model, WarmStart):  # its better model
        model = model.leader
    if not (isinstance(bandit.model, AutoModel) or type(bandit.model) is type(model)):
        kinds = type(bandit.model).__name__, type(model).__name__
        raise TypeError(f"source must be a bandit with a {kinds[0]}, got one with a {kinds[1]}")
    if source.outcomes or source.needs_time:
        raise ValueError("source must have no outcomes and no half-life in seconds")
    if not source.n_learned:
        raise ValueError("source must have learned something")
    given = build(bandit.params()["exploration"])
    return Bandit(model.copy(), given, seed=bandit.seed, name=bandit.name)


def _learn(bandit: Bandit, source: Any) -> Bandit:
    """Return a copy of a bandit that has learned the rows of a source."""
    start = bandit.copy()
    for contexts, rewards, arms in _rows(source, start.model.has_named_arms):
        if len(rewards):
            start.learn(contexts, rewards, arms)
    if not start.n_learned:
        raise ValueError("source must have at least one row")
    return start


def _read_path(path: str | Path) -> Any:
    """Return the saved bandit at a path, or the blocks of a log."""
    if Path(path).is_file():
        with open(path, "rb") as file:
            if file.read(9)[8:] == b"{":  # safetensors: a length of eight bytes, then a header in JSON
                return files.load(path)
    from onepass.evaluation.files import read_blocks  # with all formats and estimators: importing onepass stays light

    return read_blocks(path)


def _rows(source: Any, named: bool) -> Iterator[Rows]:
    """Yield the rows of a source in blocks (contexts, rewards, arms), as `Bandit.learn` takes them.

    `named` is True if arms have names. If it is False, the contexts are the rows of the chosen arms, and None takes the
    place of names.
    """
    if isinstance(source, Log):
        yield _rows_of_log(source, named)
    elif isinstance(source, tuple) and len(source) == 3:
        contexts, arms, rewards = source
        yield contexts, np.asarray(rewards, np.float64), None if arms is None else _to_list(arms)
    elif isinstance(source, tuple) and len(source) == 2:
        yield _rows_of_labels(*source)
    elif isinstance(source, Iterator):
        for block in source:
            yield _rows_of_log(block, named)
    else:
        raise ValueError(
            "source must be a Log, a Bandit, (contexts, arms, rewards), (contexts, labels) or a path, got "
            f"{quote(source)}"
        )


def _rows_of_log(log: Log, named: bool) -> Rows:
    """Return the rows of a log as (contexts, rewards, arms), for `Bandit.learn`.

    With `named`, arms are names. Without it, the contexts are the rows of the chosen arms, and the third value is None.
    """
    if log.requests is not None:
        each = list(zip(log.requests, log.arms.tolist(), strict=True))
        return [one.context for one, _ in each], log.rewards, [one.arm(place) for one, place in each]
    if log.contexts is None:
        raise ValueError("source must be a log with contexts, from which a model can learn")
    arms = log.arms.tolist() if log.names is None else [log.names[place] for place in log.arms.tolist()]
    rows = log.contexts if log.contexts.ndim == 2 else log.contexts[np.arange(len(log)), log.arms]
    return rows, log.rewards, arms if named else None


def _rows_of_labels(contexts: Any, labels: Any) -> Rows:
    """Return every example once for each label, as (contexts, rewards, arms): reward 1 with its own label, else 0.

    `labels` (n,) are the right arms of the contexts.
    """
    right = _to_list(labels)
    arms = list(dict.fromkeys(right))
    each: Any = records_of(contexts)[1] if are_records(contexts) else np.asarray(contexts, np.float64)
    if len(each) != len(right):
        raise ValueError(f"labels must have one entry for each of {len(each)} contexts, got {len(right)}")
    places = np.repeat(np.arange(len(right)), len(arms))
    rewards = np.array([float(label == arm) for label in right for arm in arms])
    repeated = each[places] if isinstance(each, np.ndarray) else [each[place] for place in places.tolist()]
    return repeated, rewards, arms * len(right)


def _to_list(column: Iterable[Any]) -> list[Any]:
    """Return a column as a list of plain values."""
    found: list[Any] = np.asarray(column).tolist() if hasattr(column, "dtype") else list(column)
    return found
