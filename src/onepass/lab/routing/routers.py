"""Routers of prompts: a `Budgeted` bandit, the package ParetoBandit, and a fixed model for every prompt."""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass import Budget, Budgeted, ContextualBandit, Share
from onepass.lab.routing.game import Played, Prompts

LOGGED = 600  # prompts that were routed at random before
COMPONENTS = 25  # principal components that the peer is given
Router = Callable[[Prompts, float, int], Played]


def play_budgeted(
    data: Prompts, budget: float, seed: int, *, logged: int = 0, announced: bool = True, most: float = 1.0
) -> Played:
    """Route the prompts `data` with `Budgeted(ContextualBandit(outcomes=["dollars"]))`, and return the result.

    - budget: largest mean cost of a request in dollars.
    - logged: number of first prompts that are routed at random, and left out of the result.
    - announced: True if the bandit is given the mean cost of every model in the present third of the prompts, False if
      it is always given the mean cost in the first third.
    - most: largest fraction of the prompts that the most expensive model may get.
    """
    names, rng = list(data.models), np.random.default_rng([seed, 1])
    dear = names[int(data.dollars.mean(axis=0).argmax())]
    bandit = ContextualBandit(outcomes=["dollars"], seed=seed)
    thirds = [part.mean(axis=0) for part in np.array_split(data.dollars, 3)]
    if np.ptp([one[names.index(dear)] for one in thirds]) < 0.5 * thirds[0][names.index(dear)]:
        thirds = [data.dollars.mean(axis=0)] * 3
    router = Budgeted(bandit, {"dollars": Budget(budget)}, shares={dear: Share(most=most)} if most < 1.0 else None)
    played = []
    for i, row in enumerate(data.rows):
        third = min(3 * i // len(data.rows), 2) if announced else 0
        costs = {name: {"dollars": float(price)} for name, price in zip(names, thirds[third], strict=True)}
        if i < logged:
            one = names[int(rng.integers(len(names)))]
            decision = bandit.decide(row, names, costs=costs, eligible=[one])
            who: Any = bandit
        else:
            decision, who = router.decide(row, names, costs=costs, now=0.0), router
        arm = decision.index
        who.learn(decision, float(data.rewards[i, arm]), outcomes={"dollars": float(data.dollars[i, arm])})
        if i >= logged:
            played.append(arm)
    return _collect(data, played, logged)


def play_pareto_bandit(data: Prompts, budget: float, seed: int) -> Played:
    """Route the prompts with the package ParetoBandit without prior knowledge, and return the result.

    `data` are the prompts, and `budget` is the largest mean cost of a request in dollars. Contexts are whitened
    principal components of all prompts.
    """
    import json
    import logging

    from pareto_bandit import BanditRouter, EphemeralContextStore, FeatureService
    from pareto_bandit.budget_pacer import BudgetPacer
    from pareto_bandit.config import BEST_K3_TABULA_RASA_HPARAMS, DEFAULT_MODEL_REGISTRY_PATH

    logging.disable(logging.WARNING)
    with open(DEFAULT_MODEL_REGISTRY_PATH) as file:
        registry = {one["model_id"]: one for one in json.load(file)["models"]}
    centred = data.rows - data.rows.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ axes[:COMPONENTS].T / (sizes[:COMPONENTS] / np.sqrt(len(centred)))
    rows = np.hstack([scores, np.ones((len(scores), 1))])
    settings = BEST_K3_TABULA_RASA_HPARAMS
    router = BanditRouter.create(
        model_registry=registry, feature_service=FeatureService.for_precomputed(COMPONENTS + 1),
        context_store=EphemeralContextStore(), priors="none", alpha=settings["alpha"],
        forgetting_factor=settings["forgetting_factor"], cost_penalty=0.0,
        budget_pacer=BudgetPacer(target_avg_spend_usd=budget), bandit_seed=seed,
    )  # fmt: skip
    places = list(registry)
    played = []
    for i, row in enumerate(rows):
        model, log = router.route(row)
        arm = places.index(model)
        log.cost_usd = float(data.dollars[i, arm])
        router.process_feedback(log.request_id, reward=float(data.rewards[i, arm]))
        played.append(arm)
    logging.disable(logging.NOTSET)
    return _collect(data, played, 0)


def _collect(data: Prompts, played: list[int], first: int) -> Played:
    arms = np.array(played, dtype=np.int64)  # a warm-up may play nothing after the log
    rows = np.arange(first, first + len(arms))
    return Played(arms, data.rewards[rows, arms], data.dollars[rows, arms])
