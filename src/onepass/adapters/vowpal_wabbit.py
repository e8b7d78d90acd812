"""Vowpal Wabbit: its arguments as a bandit of ours, or one sentence that says what is missing.

    bandit = bandit_of("--cb_explore_adf --squarecb --gamma_scale 100")

    --cb_explore_adf --epsilon e          Greedy, uniform_share e (0.05 where it is not said)
    --squarecb --gamma_scale g [--elim]   InverseGap, scale g; plausible arms only with --elim
    --softmax --lambda l                  Softmax, temperature 1 / l
    --bag n                               Thompson of n draws
    --regcbopt                            OptimisticGap
    onepass {"kind": "Thompson"}          an exploration as files have it

All of them learn by regression and second order: what only sets steps, hashes or pairs of namespaces is passed over.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.foundation.check import quote
from onepass.foundation.registry import build
from onepass.recipes.records import InteractionBandit

OURS = "onepass"
LONGEST = 1024  # characters of arguments, as Personalizer has them
EPSILON = 0.05  # Vowpal Wabbit's, where it is not said
GAMMA_EXPONENT = 0.5  # the one that gamma grows by here
STRENGTH = 0.5  # of draws, in deviations: of 0.03, 0.3, 0.5 and 1 the best in a small game of InteractionBandit
FLOOR = 0.001  # of rules that always leave something to every arm

PASSED = {  # what changes nothing here, and how many words follow it
    "--cb_explore_adf": 0, "--ccb_explore_adf": 0, "--cb_adf": 0, "-q": 1, "--quadratic": 1, "-l": 1,
    "--learning_rate": 1, "--power_t": 1, "--initial_t": 1, "--decay_learning_rate": 1, "-b": 1, "--bit_precision": 1,
    "--adaptive": 0, "--normalized": 0, "--invariant": 0, "--sgd": 0, "--coin": 0, "--nounif": 0, "--random_seed": 1,
    "--quiet": 0, "--save_resume": 0, "--preserve_performance_counters": 0, "--chain_hash": 0, "--hash": 1,
}  # fmt: skip
TAKEN = {
    "--epsilon": 1, "--squarecb": 0, "--gamma_scale": 1, "--gamma_exponent": 1, "--elim": 0, "--softmax": 0,
    "--lambda": 1, "--bag": 1, "--regcbopt": 0, "--cb_type": 1, "--interactions": 1,
}  # fmt: skip
REFUSED = {
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
    "--loss_function": "rewards are regressed in squares: leave it out",
    "--link": "rewards are regressed in squares: leave it out",
    "--boosting": "there is one model: leave it out",
    "--nn": "there are no hidden units: leave it out",
    "--rank": "features are crossed in full: leave it out",
    "--lrq": "features are crossed in full: leave it out",
    "--automl": "let an evaluation with enablePolicyOptimization look for a policy",
    "--epsilon_decay": "epsilon stays as it is said: take --squarecb, which explores less and less",
    "-d": "files are read by `onepass log`, not by a policy",
    "--data": "files are read by `onepass log`, not by a policy",
    "-i": "models of Vowpal Wabbit cannot be read: learn from its log (`onepass log import`)",
    "-f": "models are exported by GET /model",
}


def exploration_of(arguments: str) -> dict[str, Any]:
    """The exploration that learning settings say, as plain data; ValueError with one sentence for what cannot be."""
    if len(arguments) > LONGEST:
        raise ValueError(f"arguments must have at most {LONGEST} characters, got {len(arguments)}")
    words = arguments.strip()
    if words.startswith(f"{OURS} "):
        return checked(json.loads(words[len(OURS) :]))
    said = dict(flags(words))
    rules = [name for name in ("--squarecb", "--softmax", "--bag", "--regcbopt") if name in said]
    if len(rules) > 1:
        raise ValueError(f"{rules[0]} and {rules[1]} are two ways to explore: take one")
    rule = rules[0] if rules else ""
    for name, needed in (("--gamma_scale", "--squarecb"), ("--elim", "--squarecb"), ("--lambda", "--softmax")):
        if name in said and rule != needed:
            raise ValueError(f"{name} belongs to {needed}: add it, or leave {name} out")
    if said.get("--cb_type", "mtr") != "mtr":
        raise ValueError(f"--cb_type {said['--cb_type']} has no counterpart: rewards are regressed, which is mtr")
    if len(said.get("--interactions", "::")) > 2:
        raise ValueError("--interactions of three and more have no counterpart: features are crossed in pairs")
    if number(said, "--gamma_exponent", GAMMA_EXPONENT) != GAMMA_EXPONENT:
        raise ValueError(f"--gamma_exponent must be {GAMMA_EXPONENT}: gamma grows with the root of what was learned")
    floor = number(said, "--epsilon", FLOOR if rule else EPSILON)
    if rule == "--squarecb":
        plausible = {} if "--elim" in said else {"exploration": None}
        return checked(
            {"kind": "InverseGap", "scale": number(said, "--gamma_scale", 10.0), "uniform_share": floor, **plausible}
        )
    if rule == "--softmax":
        rate = number(said, "--lambda", 1.0)
        if not rate > 0.0:
            raise ValueError(f"--lambda must be above 0, got {rate:g}")
        return checked({"kind": "Softmax", "temperature": 1.0 / rate, "uniform_share": floor})
    if rule == "--bag":
        draws = round(number(said, "--bag", 1.0))
        return checked({"kind": "Thompson", "exploration": STRENGTH, "draws": draws, "uniform_share": floor})
    if rule == "--regcbopt":
        return checked({"kind": "OptimisticGap", "uniform_share": floor})
    return checked({"kind": "Greedy", "uniform_share": floor})


def flags(text: str) -> Iterator[tuple[str, str]]:
    """Flags with what follows them; ValueError for those that are refused or not known."""
    words = shlex.split(text)
    if not words:
        raise ValueError("arguments must say how to explore: --cb_explore_adf --epsilon 0.2")
    at = 0
    while at < len(words):
        name, given, value = words[at].partition("=")
        at += 1
        if name in REFUSED:
            raise ValueError(f"{name} is refused: {REFUSED[name]}")
        count = TAKEN.get(name, PASSED.get(name))
        if count is None:
            raise ValueError(f"{quote(name)} is not known here; docs/from_vowpal_wabbit.md lists what is")
        if count and not given:
            if at == len(words):
                raise ValueError(f"{name} must be followed by a value")
            value = words[at]
            at += 1
        yield name, value


def number(said: dict[str, str], name: str, default: float) -> float:
    """What follows a flag, as a number."""
    try:
        return float(said.get(name, default))
    except ValueError:
        raise ValueError(f"{name} must be followed by a number, got {quote(said[name])}") from None


def checked(exploration: Any) -> dict[str, Any]:
    """An exploration as plain data; ValueError for what is none."""
    try:
        found = build(exploration)
    except TypeError as error:
        raise ValueError(f"the exploration does not fit: {error}") from None
    if not isinstance(found, Exploration):
        raise ValueError(f"the exploration must be one, with its kind, got {quote(exploration)}")
    return dict(exploration)


def bandit_of(arguments: str, seed: int = 0) -> Bandit:
    """The bandit of Vowpal Wabbit's arguments: records of any keys for the context and for every arm.

    arguments: what stands behind `vw`, at most 1,024 characters. seed: at least 0 (default 0).
    ValueError with one sentence for what has no counterpart.

    >>> bandit_of("--cb_explore_adf --softmax --lambda 4").exploration
    Softmax(temperature=0.25, scale=0.1, uniform_share=0.001)
    """
    return InteractionBandit(exploration=build(exploration_of(arguments)), seed=seed)
