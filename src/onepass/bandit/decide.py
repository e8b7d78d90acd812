"""Helpers of `Bandit.decide` and `Bandit.learn`: seeds and records of decisions, rewards by slot, errors."""

from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.decision import GREEDY, SAMPLED, Decision, new_id
from onepass.exploration.randomness import make_generator, make_key
from onepass.exploration.rule import Rule
from onepass.exploration.slots import NONE_LEFT, NOT_OFFERED
from onepass.foundation import check
from onepass.model.contract import non_finite_error

IS_GREEDY = {SAMPLED: False, GREEDY: True}  # whether slots after the first take the best of the rest


class DecisionSeed(NamedTuple):
    """Id and random generator of a decision, and the seed that its record reports."""

    id: str
    rng: np.random.Generator
    seed: int | str


def decision_seeds(identity: Any, count: int | None, seed: int, rng: np.random.Generator) -> list[DecisionSeed]:
    """Return the seeds of `count` decisions, or of a single one if `count` is None.

    `identity` is the id or the ids that the caller gave. A decision without an id draws from `rng`.
    """
    if identity is None:
        return [DecisionSeed(new_id(), rng, seed) for _ in range(1 if count is None else count)]
    given = [identity] if count is None else identity
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
        wanted = "a string that is not empty" if count is None else "a list of them, one per decision"
        raise ValueError(f"id must be {wanted}, got {check.quote(identity)}")
    if len(given) != (1 if count is None else count) or len(set(given)) != len(given):
        raise ValueError(f"id must have one string per decision ({count}), each once, got {check.quote(identity)}")
    keys = [make_key(seed, one) for one in given]
    return [DecisionSeed(one, make_generator(key), key) for one, key in zip(given, keys, strict=True)]


def make_decision(
    asked: DecisionSeed,
    found: Any,
    names: list[Any] | None,
    context: np.ndarray | None,
    rest: str,
    explores: Rule,
    rounds: int,
) -> Decision:
    """Make the record of a decision.

    `found` holds the indices of the chosen arms (k,), the distribution of each slot (k, K), and the scores, means and
    widths of the K arms. `asked` holds the decision's id and seed, `names` the arms' names, `context` the rows of the
    chosen arms, `explores` the exploration rule, and `rounds` the number of rewards learned. `rest` is "sampled" if
    the slots after the first were drawn, and "greedy" if they took the best of the arms that were left.
    """
    places, p, scores, means, widths = found
    chosen = places.tolist()
    if len(chosen) == 1:
        shares, slots = p[0, chosen[0] : chosen[0] + 1], None
    else:
        shares, slots = p[np.arange(len(chosen)), places], p
    arms = chosen if names is None else [names[a] for a in chosen]
    return Decision(
        arms[0],
        arms,
        scores,
        means,
        widths if explores.widths else None,
        float(shares[0]),
        p[0],
        chosen[0],
        places,
        slots,
        shares,
        rest,
        asked.id,
        context,
        names,
        rounds,
        explores.text,
        asked.seed,
    )


def pair_rewards(decisions: Any, rewards: Any) -> tuple[list[Decision], list[list[Any]]]:
    """Return the single decisions, and for each decision the rewards of its slots.

    `decisions` is a decision, a batch, or a list of them. `rewards` is the reward or the list of rewards of a single
    decision, or else has one such entry for each decision. A slot without a reward has None. Raises ValueError if the
    number of rewards is wrong.
    """
    if type(rewards) is float and -1e12 < rewards < 1e12 and type(decisions) is Decision and len(decisions.arms) == 1:
        return [decisions], [[rewards]]  # the common case, found at once
    given = [one for part in (decisions if isinstance(decisions, list) else [decisions]) for one in part.split()]
    if isinstance(decisions, Decision) and not decisions.is_batch:
        return given, check_rewards(given, [rewards])
    return given, check_rewards(given, rewards)


def check_rewards(decisions: list[Decision], rewards: Any) -> list[list[Any]]:
    """Return the rewards as a list for each decision, with one entry for each slot.

    `rewards` is a list or an array with one entry for each decision: a list or an array with one entry for each slot,
    or, if the decision has a single slot, a number. None stands for a slot without a reward, in the argument and in the
    result. Raises ValueError if the number of entries is not the number of decisions, or of a decision's slots.
    """
    rewards = rewards.tolist() if hasattr(rewards, "tolist") else rewards
    if not isinstance(rewards, list | tuple) or len(rewards) != len(decisions):
        raise ValueError(f"rewards must have one entry per decision ({len(decisions)}), got {check.quote(rewards)}")
    out = []
    for one, paid in zip(decisions, rewards, strict=True):
        k, paid = len(one.arms), paid.tolist() if hasattr(paid, "tolist") else paid
        if k == 1 and not isinstance(paid, list | tuple):
            paid = [paid]
        if not isinstance(paid, list | tuple) or len(paid) != k:
            raise ValueError(f"rewards must have one number per slot ({k}), None for none, got {check.quote(paid)}")
        out.append([None if value is None else _reward_value(value) for value in paid])
    return out


def _reward_value(value: Any) -> float:
    """Return a reward as a float; True counts as 1."""
    return float(value) if isinstance(value, bool | np.bool_) else check.real("rewards", value)


def are_decisions(value: Any) -> bool:
    """Return True for a decision, a batch of decisions, or a list of them."""
    return isinstance(value, Decision) or (type(value) is list and len(value) > 0 and isinstance(value[0], Decision))


def choice_error(place: int) -> Exception:
    """Return the error for the index `place` of an arm, which is negative because no arm could be chosen."""
    if place == NOT_OFFERED:
        return arm_not_offered_error()
    if place == NONE_LEFT:
        return ValueError(
            "eligible must leave an arm for every slot, the first one for the arm that is played until its rewards are "
            "complete: let that arm be eligible, or learn its rewards first"
        )
    return non_finite_error()


def is_greedy(rest: Any) -> bool:
    """Return True if `rest` is "greedy": the slots after the first take the best of the arms that are left."""
    return IS_GREEDY[check.choice("rest", rest, tuple(IS_GREEDY))]


def arm_not_offered_error() -> ValueError:
    """Return the error for an arm that must be played again, as the estimator demands, but that is not on offer."""
    return ValueError(
        "contexts must offer the arm being played until its rewards are complete, but it is missing; "
        "CRMM and MENU need a fixed arm set: use HvtUCB where arms change"
    )
