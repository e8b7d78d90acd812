"""Decision drawn from a mixture of a bandit and a baseline.

    m = (1 - q) pi + q p,      q: share of the bandit, p: its probabilities, pi: those of the baseline

Both draw an arm, and a hash of the decision's id selects which of the two is shown. The verification of a log uses the
same code.
"""

from collections.abc import Callable, Sequence

import numpy as np

from onepass.bandit.decision import Decision
from onepass.exploration.random_split import hash_uniform, mix_probabilities


def mix_with_baseline(
    decision: Decision, decide: Callable[[np.ndarray], Decision], baseline: np.ndarray, place: int, share: float,
    expected: Sequence[float] | None = None,
) -> Decision:  # fmt: skip
    """Return the decision that is shown, the bandit's or the baseline's, with the probabilities of the mixture.

    `decision` is the bandit's decision. `decide` makes the same decision again with a mask of eligible arms. `baseline`
    holds the baseline's probabilities (K,), `place` is the index of the baseline's arm, and `share` is the probability
    with which the bandit's decision is shown. `expected`, the mean reward of the baseline's arm and its upper limit,
    are put into the record if they are given.
    """
    p, drawn = decision.probabilities, int(decision.index)
    index = drawn if hash_uniform(f"{decision.seed} {decision.id}", b"guarded") < share else place
    shown = decision if index == drawn else decide(np.arange(p.size) == index)
    mixture = np.array(mix_probabilities(baseline.tolist(), p.tolist(), share))
    m = float(mixture[index])
    parts = {"share": share, "place": place, "baseline": baseline, "policy": p}
    if expected is not None:
        parts["expected"] = [*expected]
    return shown._replace(probabilities=mixture, propensity=m, propensities=np.array([m]), mixture=parts)


def prediction_at(decision: Decision, place: int) -> tuple[float, float]:
    """Return the mean reward and the width of the arm at index `place` of a decision.

    The width is inf for a rule without widths.
    """
    return float(decision.means[place]), np.inf if decision.widths is None else float(decision.widths[place])
