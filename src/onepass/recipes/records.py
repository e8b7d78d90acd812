"""Bandits that need no tuning, for rows and records: ContextualBandit and InteractionBandit."""

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.features.records import Records
from onepass.model.auto import AutoModel
from onepass.model.averaged.averaged_models import MEGABYTES, PATIENCE, WARM_UP
from onepass.model.interaction.interaction_model import RECENT, InteractionModel


def InteractionBandit(
    context: Records | None = None,
    item: Records | None = None,
    exploration: Exploration | None = None,
    *,
    recent: int = RECENT,
    seed: int = 0,
    name: str = "InteractionBandit",
) -> Bandit:
    """One model of all arms, for requests and arms that are records: `decide({"hour": 9}, {"a1": {"topic": "sport"}})`.

    context: the `Records` of requests, learned further in a copy (default None: 256 wide, with standardized numbers).
    item: the `Records` of arms, likewise (default None: also with 16 bands a number).
    exploration: any rule but one with `Theory`, its strength in units of what rewards deviate by (default None:
        `OptimisticGap(0.8, scale=30.0, uniform_share=0.001)`).
    recent: arms whose own appeal, beside that of their features, is kept: those learned last, at least 1 (default
        1000).
    seed: at least 0 (default 0): breaks ties and draws.
    name: shown by repr (default "InteractionBandit").
    Memory 80 bytes times the product of both widths; a decision costs the product of the terms of the request and of
    all arms, a reward that of those of one. Means are expected rewards, in any unit. Nothing is forgotten but what arms
    are in themselves.
    Returns a `Bandit`. ValueError for parts that do not fit.

    >>> import onepass as op
    >>> bandit = op.InteractionBandit()
    >>> arms = {"a1": {"topic": "sport"}, "a2": {"topic": "news"}}
    >>> decision = bandit.decide({"hour": 9, "country": "de"}, arms=arms)
    >>> bandit.learn(decision, 1.0)
    >>> bandit.n_learned, bandit.model.item.n_names
    (1, 1)
    """
    return Bandit(InteractionModel(context, item, recent=recent), exploration, seed=seed, name=name)


def ContextualBandit(
    dim: int | None = None,
    *,
    exploration: Exploration | None = None,
    n_landmarks: int = 150,
    reg: float = 0.1,
    warm_up: int = WARM_UP,
    memory_limit: float = MEGABYTES,
    alarm_threshold: float | None = PATIENCE,
    seed: int = 0,
    name: str = "ContextualBandit",
    model: str | None = None,
    context: Records | None = None,
    item: Records | None = None,
) -> Bandit:
    """The bandit that needs no tuning: contexts are rows of numbers in any units, or records; arms come and go.

    A context is a row (dim,), the same for all arms, or (K, dim), a row per arm; n decisions take (n, 1, dim) or
    (n, K, dim). Or it is a dictionary, or a frame of one row; n decisions take a list or a frame. Rewards are clicks,
    counts or numbers of any unit. Arms are any hashable: they appear when they are learned from or added, and leave by
    `remove_arm`; any may be offered. Or they have features: {name: record or row}, or records without names.

    What is learned first decides which models are kept, `bandit.model`: where arms have features, and where more than
    20 without are offered for a record, the `InteractionModel` of `InteractionBandit`; else every arm has its own,
    `AveragedModels`. `repr` and `choices` say which.

    dim: of contexts that are rows, from 1 to 2,000, or to what `memory_limit` allow, 27,777 at the defaults: the first
        rows and two spans fit into them (default None: that of the first row learned).
    exploration: any rule, its multiplier of widths in units of the residual (default None: `OptimisticGap()`, where
        models are crossed `OptimisticGap(0.8, scale=30.0, uniform_share=0.001)`). These give every arm a probability;
        `UCB(1.0)` plays the best bound alone. No `Theory`.
    n_landmarks: of the kernel's features, from 0 (the columns alone) to 2,000 (default 150); fewer where
        `memory_limit` says.
    reg: penalty on every parameter, above 0 (default 0.1).
    warm_up: rows from which scales and landmarks are made, again after 1, 2, 4, ... of them, from 1 (default 256).
    memory_limit: that the models of all arms known may take when landmarks are chosen, above 0 (default 64.0); arms
        that come later, and columns of records, take more. Rows of more than 300 columns are mapped on up to 64
        directions, or, where over 90% are zeros, every arm has a sketch.
    alarm_threshold: of the alarm that forgets all after a change for the worse, above 0 (default 50.0); None: no alarm.
    seed: of landmarks, ties and draws, at least 0 (default 0).
    name: shown by repr (default "ContextualBandit").
    model: "disjoint" (of every arm, features are left out) or "interaction" (one of all arms; default None: as said
        above).
    context: the `Records` of requests, learned further in a copy (default None: 256 wide). With more than 300 places
        models are crossed.
    item: the `Records` of arms, likewise (default None: 256 wide).
    n_landmarks to alarm_threshold are of models of every arm.
    Returns a `Bandit`. ValueError for values out of range.

    >>> import numpy as np, onepass as op
    >>> bandit, rng = op.ContextualBandit(), np.random.default_rng(0)
    >>> for _ in range(300):
    ...     context = rng.uniform(0.0, 24.0, 2)
    ...     decision = bandit.decide(context, ["tea", "soup"])
    ...     bandit.learn(decision, float((decision.arm == "soup") == (11.0 < context[0] < 14.0)))
    >>> bandit.decide([12.5, 3.0], ["tea", "soup"]).means.argmax(), bandit.decide([20.0, 3.0], ["tea", "soup"]).arm
    (np.int64(1), 'tea')
    >>> other, arms = op.ContextualBandit(), {"a1": {"topic": "sport"}, "a2": {"topic": "news"}}
    >>> other.learn(other.decide({"hour": 9, "country": "de"}, arms), 1.0)
    >>> other.choices()["model"]
    'interaction'
    """
    learner = AutoModel(
        dim, n_landmarks=n_landmarks, reg=reg, warm_up=warm_up, memory_limit=memory_limit,
        alarm_threshold=alarm_threshold, seed=seed, model=model, context=context, item=item,
    )  # fmt: skip
    return Bandit(learner, exploration, seed=seed, name=name)
