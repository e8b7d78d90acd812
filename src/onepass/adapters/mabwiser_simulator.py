"""MABWiser's Simulator with its books kept by columns: the same attributes, numbers and plots.

    from onepass.adapters.mabwiser import Simulator   # was: from mabwiser.simulator import Simulator

Its own loop makes two lists of all that was predicted so far, three dictionaries by a loop over the rows and arms, a
confusion matrix by scikit-learn and their text in every batch. Here a batch costs what is in it: rows are sorted by
arm once for its statistics, which differ by rounding at most, and what is scored for `predict` serves
`predict_expectations` too where nothing is drawn.

Bandits of MABWiser are welcome; one with neighbours is simulated by MABWiser's own loop. Of batches, the log tells in
`log_file` only, not on the console.
"""

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
from mabwiser import simulator as theirs
from sklearn.metrics import confusion_matrix

from onepass.adapters.mabwiser_linear import Linear

MANY = 128  # numbers from which NumPy's `sum` goes by pairs, and `reduceat` does not
STATS = ("min", "mean", "max")  # of an arm's rewards in the training data, by which its unseen ones are guessed


def summed(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of values (n,) from each of the starts (k,) to the next; of many in pairs, which keeps digits."""
    ends = np.append(starts[1:], len(values))
    if (ends - starts).max() < MANY:
        return np.asarray(np.add.reduceat(values, starts))
    return np.array([values[a:b].sum() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])


def statistics(codes: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, dict[str, Any]]]:
    """(arm, its count, sum, min, max, mean and deviation) of values (n,) of arms (n,), for the arms that occur."""
    order = np.argsort(codes, kind="stable")
    codes, values = codes[order], values[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    counts = np.diff(np.append(starts, len(codes)))
    low, high, sums = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts), summed(values, starts)
    means = sums / counts
    deviations = np.sqrt(summed((values - np.repeat(means, counts)) ** 2, starts) / counts)
    columns = zip(codes[starts].tolist(), counts.tolist(), sums, low, high, means, deviations, strict=True)
    for arm, count, total, least, most, mean, deviation in columns:
        yield arm, {"count": count, "sum": total, "min": least, "max": most, "mean": mean, "std": deviation}


def earned(
    arms: list[Any], decisions: Any, rewards: Any, predictions: list[Any], known: Any, stats: Sequence[str]
) -> list[dict[Any, dict[str, Any]]]:
    """For each of `stats`, "min", "mean" or "max", the statistics of what every arm earned; NaN where none chose it.

    A prediction earns the reward where it is the decision that was made, else the arm's statistic in `known`.
    """
    found: list[dict[Any, dict[str, Any]]] = []
    for _ in stats:
        found.append({arm: {"count": 0, "sum": nan, "min": nan, "max": nan, "mean": nan, "std": nan} for arm in arms})
    if len(predictions) == 1:  # its mean is itself
        (arm,), paid, zero = predictions, rewards[0], np.float64(0.0)
        for each, stat in zip(found, stats, strict=True):
            got = paid if arm == decisions[0] else known[arm][stat]
            each[arm] = {"count": 1, "sum": got, "min": got, "max": got, "mean": np.float64(got), "std": zero}
    elif predictions:
        places = {arm: place for place, arm in enumerate(arms)}
        made = decisions.tolist() if isinstance(decisions, np.ndarray) else list(decisions)
        codes = np.array([places[arm] for arm in predictions], np.int64)
        right = np.array([one == other for one, other in zip(predictions, made, strict=False)])
        paid = np.asarray(rewards)[: len(right)]
        for each, stat in zip(found, stats, strict=True):
            otherwise = np.array([known[arm][stat] for arm in arms])
            got = np.where(right, paid, otherwise[codes])
            each.update((arms[arm], found) for arm, found in statistics(codes, got))
    return found


def default_evaluator(
    arms: list[Any],
    decisions: np.ndarray,
    rewards: np.ndarray,
    predictions: list[Any],
    arm_to_stats: Any,
    stat: str,
    start_index: int,
    nn: bool = False,
) -> dict[Any, dict[str, Any]]:
    """`mabwiser.simulator.default_evaluator`, for bandits without neighbours by columns."""
    if nn:
        given = (arms, decisions, rewards, predictions, arm_to_stats, stat, start_index, nn)
        return theirs.default_evaluator(*given)
    return earned(arms, decisions, rewards, predictions, arm_to_stats, (stat,))[0]


def confusion(decisions: np.ndarray, predictions: list[Any]) -> np.ndarray:
    """Counts (labels, labels) of decisions by predictions, labels in their order; of whole numbers and of strings."""
    made, chosen = np.asarray(decisions), np.asarray(predictions)
    if made.dtype.kind != chosen.dtype.kind or made.dtype.kind not in "iU":
        return np.asarray(confusion_matrix(decisions, predictions))
    if len(made) == 1:
        out = np.zeros((1, 1) if made[0] == chosen[0] else (2, 2), np.int64)
        out[int(made[0] > chosen[0]), int(chosen[0] > made[0])] = 1
        return out
    labels, codes = np.unique(np.concatenate([made, chosen]), return_inverse=True)
    size, count = len(labels), len(made)
    return np.bincount(codes[:count] * size + codes[count:], minlength=size * size).reshape(size, size)


def answers(mab: Any, contexts: Any, count: int) -> tuple[list[Any], list[dict[Any, Any]]]:
    """Predictions (count,) of a bandit, and its expectations: (count,), or one where it knows no contexts."""
    inner = vars(mab).get("_imp")  # what MABWiser's MAB and ours are made of
    if not mab.is_contextual:
        return [mab.predict() for _ in range(count)], [inner.arm_to_expectation.copy()]
    if isinstance(inner, Linear):
        return inner.both(contexts)
    predictions, expectations = mab.predict(contexts), mab.predict_expectations(contexts)
    return ([predictions], [expectations]) if count == 1 else (predictions, expectations)


class Simulator(theirs.Simulator):
    """`mabwiser.simulator.Simulator`: arguments, attributes, `run` and `plot` are its own, and so are the numbers."""

    evaluator: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.evaluator is theirs.default_evaluator:
            self.evaluator = default_evaluator

    def get_arm_stats(self, decisions: np.ndarray, rewards: np.ndarray) -> dict[Any, dict[str, Any]]:
        """{arm: {"count", "sum", "min", "max", "mean", "std"}} of decisions (n,) and rewards (n,); 0 without data."""
        places = {arm: place for place, arm in enumerate(self.arms)}
        codes = np.array([places.get(arm, -1) for arm in decisions.tolist()], np.int64)
        known = codes >= 0
        found = {arm: dict.fromkeys(("count", "sum", "min", "max", "mean", "std"), 0) for arm in self.arms}
        if known.any():
            found.update((self.arms[arm], each) for arm, each in statistics(codes[known], rewards[known]))
        for arm, each in found.items():
            if not each["count"]:
                self.logger.info("No historic data for %s", arm)
        return found

    def _by_columns(self, size: int) -> bool:
        """Whether batches of that size are asked for at once, and no bandit looks for neighbours: MABWiser's own loop
        cuts them up, and shares distances."""
        return size <= self._chunk_size and not any(isinstance(m, theirs._NeighborsSimulator) for _, m in self.bandits)

    def _detail(self, *message: Any) -> None:
        """For the log file; a line that nobody takes is not made."""
        if self.log_file is not None:
            self.logger.debug(*message)

    def _evaluated(self, name: str, decisions: Any, rewards: Any, predictions: list[Any], start: int) -> Any:
        """Keep the confusion matrix of a batch; what it earned by the least, the mean and the largest rewards."""
        matrix = confusion(decisions, predictions)
        self.bandit_to_confusion_matrices[name].append(matrix)
        known = self.arm_to_stats_train
        if self.evaluator is default_evaluator:
            found = earned(self.arms, decisions, rewards, predictions, known, STATS)
        else:
            given = (self.arms, decisions, rewards, predictions, known)
            found = [self.evaluator(*given, stat=stat, start_index=start, nn=False) for stat in STATS]
        self._detail("%s confusion matrix: %s", name, matrix)
        for stat, each in zip(STATS, found, strict=True):
            self._detail("%s %s: %s", name, stat, each)
        return found

    def _get_partial_evaluation(
        self, name: str, i: Any, decisions: Any, predictions: Any, rewards: Any, start_index: int, nn: bool = False
    ) -> None:
        if nn:
            super()._get_partial_evaluation(name, i, decisions, predictions, rewards, start_index, nn)
            return
        found = self._evaluated(name, decisions, rewards, predictions, start_index)
        self.bandit_to_arm_to_stats_min[name][i] = found[0]
        self.bandit_to_arm_to_stats_avg[name][i] = found[1]
        self.bandit_to_arm_to_stats_max[name][i] = found[2]

    def _offline_test_bandits(self, test_decisions: Any, test_rewards: Any, test_contexts: Any) -> None:
        """All rows at once, after which nothing is learned."""
        if not self._by_columns(len(test_decisions)):
            super()._offline_test_bandits(test_decisions, test_rewards, test_contexts)
            return
        for name, mab in self.bandits:
            predictions, expectations = answers(mab, test_contexts, len(test_decisions))
            self.bandit_to_predictions[name] = predictions
            self.bandit_to_expectations[name] = expectations if mab.is_contextual else expectations[0]
            found = self._evaluated(name, test_decisions, test_rewards, predictions, 0)
            self.bandit_to_arm_to_stats_min[name] = found[0]
            self.bandit_to_arm_to_stats_avg[name] = found[1]
            self.bandit_to_arm_to_stats_max[name] = found[2]

    def _online_test_bandits_chunks(self, test_decisions: Any, test_rewards: Any, test_contexts: Any) -> None:
        """Every batch is predicted, evaluated and learned."""
        if not self._by_columns(self.batch_size):
            super()._online_test_bandits_chunks(test_decisions, test_rewards, test_contexts)
            return
        for i, start in enumerate(range(0, len(test_decisions), self.batch_size)):
            rows = slice(start, start + self.batch_size)
            decisions, rewards = test_decisions[rows], test_rewards[rows]
            contexts = test_contexts[rows] if test_contexts is not None else None
            for name, mab in self.bandits:
                self._detail("%s batch %s", name, i)
                predictions, expectations = answers(mab, contexts, len(decisions))
                self.bandit_to_predictions[name].extend(predictions)
                self.bandit_to_expectations[name].extend(expectations)
                self._get_partial_evaluation(name, i, decisions, predictions, rewards, start)
                mab.partial_fit(decisions, rewards, *((contexts,) if mab.is_contextual else ()))
