"""Vowpal Wabbit: make a bandit of onepass from the arguments of a `vw` command.

An argument without a counterpart raises an error that names it.

The arguments of Vowpal Wabbit on the left become the exploration rules on the right:

    bandit = bandit_from_arguments("--cb_explore_adf --squarecb --gamma_scale 100")

    --cb_explore_adf --epsilon e          Greedy, uniform_share e (0.05 by default)
    --squarecb --gamma_scale g [--elim]   InverseGap, scale g; plausible arms only with --elim
    --softmax --lambda l                  Softmax, temperature 1 / l
    --bag n                               Thompson of n draws, n at most 10,000
    --regcbopt                            OptimisticGap
    onepass {"kind": "Thompson"}          an exploration rule as plain data

All of them learn by second-order regression. Flags that only set learning rates, hashes or pairs of namespaces are
ignored.
"""

import json
import math
import shlex
from collections.abc import Iterator
from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.foundation.check import quote
from onepass.foundation.registry import build
from onepass.recipes.records import InteractionBandit

PLAIN_COMMAND = "onepass"
MAX_CHARACTERS = 1024  # as for Personalizer
EPSILON = 0.05  # default of Vowpal Wabbit
GAMMA_EXPONENT = 0.5  # the only exponent supported: gamma grows with its square root
DRAW_SCALE = 0.5  # standard deviations of draws; the best of 0.03, 0.3, 0.5 and 1 in a small game of InteractionBandit
MOST_DRAWS = 10_000  # which take 80 MB for 1,000 arms
MIN_UNIFORM_SHARE = 0.001  # for rules whose own probabilities are above 0 for every arm

IGNORED_FLAGS = {  # flags without an effect here, and the number of words that follow each
    "--cb_explore_adf": 0, "--ccb_explore_adf": 0, "--cb_adf": 0, "-q": 1, "--quadratic": 1, "-l": 1,
    "--learning_rate": 1, "--power_t": 1, "--initial_t": 1, "--decay_learning_rate": 1, "-b": 1, "--bit_precision": 1,
    "--adaptive": 0, "--normalized": 0, "--invariant": 0, "--sgd": 0, "--coin": 0, "--nounif": 0, "--random_seed": 1,
    "--quiet": 0, "--save_resume": 0, "--preserve_performance_counters": 0, "--chain_hash": 0, "--hash": 1,
}  # fmt: skip
USED_FLAGS = {
    "--epsilon": 1, "--squarecb": 0, "--gamma_scale": 1, "--gamma_exponent": 1, "--elim": 0, "--softmax": 0,
    "--lambda": 1, "--bag": 1, "--regcbopt": 0, "--cb_type": 1, "--interactions": 1,
}  # fmt: skip
REFUSED_FLAGS = {
    "--cover": "online cover has no counterpart: take --bag n or --squarecb",
    "--first": "to explore first and then never again leaves nothing to evaluate later: take --epsilon e",
    "--rnd": "exploration by noise predictions has no counterpart: take --bag n",
    "--regcb": "uniform play among plausible arms has no counterpart: take --regcbopt or --squarecb --elim",
    "--synthcover": "cover by synthetic predictions has no counterpart: take --bag n",
    "--large_action_space": "large sets of actions need no approximation here: leave it out",
    "--cb": "fixed arms have no features: take --cb_explore_adf",
    "--cb_explore": "fixed arms have no features: take --cb_explore_adf",
    "--cats": "actions are not a number on a line here",
    "--cats_pdf": "actions are not a number on a line here",
    "--slates": "slates have one reward for all slots, which no bandit here takes",
    "--cubic": "features are crossed in pairs: leave it out",
    "--ignore": "send no features that shall be ignored: names that begin with _ are passed over",
    "--ignore_linear": "every feature counts alone too: leave it out",
    "--keep": "send no features that shall be ignored: names that begin with _ are passed over",
    "--noconstant": "there is a constant always: leave it out",
    "--l1": "the prior is chosen by the bandit: leave it out",
    "--l2": "the prior is chosen by the bandit: leave it out",
    "--loss_function": "rewards are learned by least squares: leave it out",
    "--link": "rewards are learned by least squares: leave it out",
    "--boosting": "there is one model: leave it out",
    "--nn": "there are no hidden units: leave it out",
    "--rank": "features are crossed in full: leave it out",
    "--lrq": "features are crossed in full: leave it out",
    "--automl": "let an evaluation with enablePolicyOptimization look for a policy",
    "--epsilon_decay": "epsilon is constant: take --squarecb, which explores less and less",
    "-d": "files are read by `onepass log`, not by a policy",
    "--data": "files are read by `onepass log`, not by a policy",
    "-i": "models of Vowpal Wabbit cannot be read: learn from its log (`onepass log import`)",
    "-f": "models are exported by GET /model",
}


def exploration_from_arguments(arguments: str) -> dict[str, Any]:
    """Return the exploration rule of Vowpal Wabbit's arguments as plain data.

    Parameters
    ----------
    arguments : str
        Arguments of Vowpal Wabbit, at most 1,024 characters.

    Returns
    -------
    dict
        Exploration rule, as `onepass.foundation.registry.build` takes it.

    Raises
    ------
    ValueError
        If a flag is unknown, refused, or contradicts another one.
    """
    if len(arguments) > MAX_CHARACTERS:
        raise ValueError(f"arguments must have at most {MAX_CHARACTERS} characters, got {len(arguments)}")
    words = arguments.strip()
    if words.startswith(f"{PLAIN_COMMAND} "):
        return validate_exploration(json.loads(words[len(PLAIN_COMMAND) :]))
    values = dict(_parse_flags(words))
    rules = [name for name in ("--squarecb", "--softmax", "--bag", "--regcbopt") if name in values]
    if len(rules) > 1:
        raise ValueError(f"{rules[0]} and {rules[1]} are two ways to explore: take one")
    rule = rules[0] if rules else ""
    for name, owner in (("--gamma_scale", "--squarecb"), ("--elim", "--squarecb"), ("--lambda", "--softmax")):
        if name in values and rule != owner:
            raise ValueError(f"{name} belongs to {owner}: add it, or leave {name} out")
    if values.get("--cb_type", "mtr") != "mtr":
        raise ValueError(f"--cb_type {values['--cb_type']} has no counterpart: rewards are regressed, which is mtr")
    if len(values.get("--interactions", "::")) > 2:
        raise ValueError("--interactions of three and more have no counterpart: features are crossed in pairs")
    if _number_of_flag(values, "--gamma_exponent", GAMMA_EXPONENT) != GAMMA_EXPONENT:
        raise ValueError(
            f"--gamma_exponent must be {GAMMA_EXPONENT}: gamma grows with the square root of the examples learned"
        )
    share = _number_of_flag(values, "--epsilon", MIN_UNIFORM_SHARE if rule else EPSILON)
    if rule == "--squarecb":
        plausible = {} if "--elim" in values else {"exploration": None}
        return validate_exploration(
            {
                "kind": "InverseGap",
                "scale": _number_of_flag(values, "--gamma_scale", 10.0),
                "uniform_share": share,
                **plausible,
            }
        )
    if rule == "--softmax":
        rate = _number_of_flag(values, "--lambda", 1.0)
        if not rate > 0.0:
            raise ValueError(f"--lambda must be above 0, got {rate:g}")
        return validate_exploration({"kind": "Softmax", "temperature": 1.0 / rate, "uniform_share": share})
    if rule == "--bag":
        draws = round(_number_of_flag(values, "--bag", 1.0))
        if not 1 <= draws <= MOST_DRAWS:
            raise ValueError(f"--bag must be followed by a number from 1 to {MOST_DRAWS:,}, got {quote(draws)}")
        return validate_exploration(
            {"kind": "Thompson", "exploration": DRAW_SCALE, "draws": draws, "uniform_share": share}
        )
    if rule == "--regcbopt":
        return validate_exploration({"kind": "OptimisticGap", "uniform_share": share})
    return validate_exploration({"kind": "Greedy", "uniform_share": share})


def _parse_flags(text: str) -> Iterator[tuple[str, str]]:
    """Yield flags with their values. Raises ValueError for flags that are refused or unknown."""
    words = shlex.split(text)
    if not words:
        raise ValueError("arguments must say how to explore: --cb_explore_adf --epsilon 0.2")
    position = 0
    while position < len(words):
        name, equals, value = words[position].partition("=")
        position += 1
        if name in REFUSED_FLAGS:
            raise ValueError(f"{name} is refused: {REFUSED_FLAGS[name]}")
        count = USED_FLAGS.get(name, IGNORED_FLAGS.get(name))
        if count is None:
            raise ValueError(f"{quote(name)} is not known here; docs/from_vowpal_wabbit.md lists what is")
        if count and not equals:
            if position == len(words):
                raise ValueError(f"{name} must be followed by a value")
            value = words[position]
            position += 1
        yield name, value


def _number_of_flag(values: dict[str, str], name: str, default: float) -> float:
    """Return the value of the flag `name` as a number, `default` if it is not among the flags `values`.

    `values` maps flags to their values. Raises ValueError for a value that is not a finite number.
    """
    try:
        number = float(values.get(name, default))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be followed by a finite number, got {quote(values[name])}")
    return number


def validate_exploration(exploration: Any) -> dict[str, Any]:
    """Return an exploration rule as plain data, after a check that it can be built.

    Parameters
    ----------
    exploration : dict
        Exploration rule as plain data.

    Returns
    -------
    dict
        Copy of it.

    Raises
    ------
    ValueError
        If it is no exploration rule, or has more than 10,000 draws.
    """
    try:
        rule = build(exploration)
    except TypeError as error:
        raise ValueError(f"exploration cannot be built from its arguments: {error}") from None
    if not isinstance(rule, Exploration):
        raise ValueError(f"exploration must be a dictionary with the kind of a rule, got {quote(exploration)}")
    draws = getattr(rule, "draws", 1)
    if draws > MOST_DRAWS:
        raise ValueError(f"draws must be at most {MOST_DRAWS:,}, got {quote(draws)}: more would take too much memory")
    return dict(exploration)


def bandit_from_arguments(arguments: str, seed: int = 0) -> Bandit:
    """Return the bandit of Vowpal Wabbit's arguments, with dictionaries for the context and for every arm.

    Parameters
    ----------
    arguments : str
        Arguments of `vw`, at most 1,024 characters.
    seed : int, default 0
        Seed of all draws, at least 0.

    Returns
    -------
    Bandit
        `onepass.InteractionBandit` with the exploration rule of the arguments.

    Raises
    ------
    ValueError
        If an argument has no counterpart. The message is one sentence.

    Examples
    --------
    >>> bandit_from_arguments("--cb_explore_adf --softmax --lambda 4").exploration
    Softmax(temperature=0.25, scale=0.1, uniform_share=0.001)
    """
    return InteractionBandit(exploration=build(exploration_from_arguments(arguments)), seed=seed)
