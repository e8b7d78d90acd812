"""Bandits that need no tuning, for rows and records: ContextualBandit and InteractionBandit."""

from collections.abc import Sequence

from onepass.bandit.bandit import Bandit
from onepass.exploration.exploration import Exploration
from onepass.features.records import Records
from onepass.model.auto import AutoModel
from onepass.model.averaged.averaged_models import MEGABYTES, PATIENCE, WARM_UP
from onepass.model.averaged.forest import N_TREES
from onepass.model.interaction.interaction_model import RECENT, InteractionModel


def InteractionBandit(
    context: Records | None = None,
    item: Records | None = None,
    exploration: Exploration | None = None,
    *,
    recent: int = RECENT,
    seed: int = 0,
    name: str = "InteractionBandit",
    outcomes: Sequence[str] | None = None,
) -> Bandit:
    """Make a bandit with one model of all arms, for requests and arms that are records.

    A decision is made by `decide({"hour": 9}, {"a1": {"topic": "sport"}})`. The model has weights for terms of the
    request and of the arm, and for their pairs.

    Parameters
    ----------
    context : Records, default None
        Feature map of requests. The bandit learns with a copy of it. The default has 256 columns and standardizes
        numbers.
    item : Records, default None
        Feature map of arms. The bandit learns with a copy of it. None means 256 columns with standardized numbers. A
        number that takes 3 to 16 different values then also has a weight for each value (`bands=16`). A number with
        more values has a linear effect only.
    exploration : Exploration, default None
        Any rule without `Theory`. Its multiplier is in units of the typical prediction error. None means
        `OptimisticGap(0.8, scale=30.0, uniform_share=0.001)`.
    recent : int, default 1000
        Number of arms, at least 1, for which the model also keeps how good the arm is beyond its features. It keeps
        this for the arms learned last.
    seed : int, default 0
        Seed of ties and draws, at least 0.
    name : str, default "InteractionBandit"
        Name shown by repr.
    outcomes : sequence of str, default None
        Names of outcomes that are learned beside the reward. Each takes as much memory as the reward.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    With p columns of requests and q columns of arms, memory is 80 p q bytes. The operations of a decision are the
    number of the request's terms times the number of all arms' terms. A reward costs the number of the request's terms
    times the number of one arm's terms. The bandit forgets nothing, except how good single arms are beyond their
    features.

    Examples
    --------
    >>> import onepass as op
    >>> bandit = op.InteractionBandit()
    >>> arms = {"a1": {"topic": "sport"}, "a2": {"topic": "news"}}
    >>> decision = bandit.decide({"hour": 9, "country": "de"}, arms=arms)
    >>> bandit.learn(decision, 1.0)
    >>> bandit.n_learned, bandit.model.item.n_names
    (1, 1)
    """
    model = InteractionModel(context, item, recent=recent)
    return Bandit(model, exploration, seed=seed, name=name, outcomes=outcomes)


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
    n_trees: int = N_TREES,
    model: str | None = None,
    context: Records | None = None,
    item: Records | None = None,
    outcomes: Sequence[str] | None = None,
) -> Bandit:
    """Make the bandit that needs no tuning.

    Contexts are rows of numbers in any units, or records. Arms come and go. Rewards are clicks, counts or numbers
    of any unit.

    A context is a row (dim,), the same for all arms, or (K, dim), a row for each arm. n decisions take (n, 1, dim) or
    (n, K, dim). A context may also be a dictionary, or a frame of one row. n decisions then take a list or a frame.
    Arms are any hashable values: they appear when they are learned from or added, and leave by `remove_arm`. Arms may
    have features: {name: dictionary or row}, or a list of dictionaries if they have no names.

    The first data it learns from fixes the model, `bandit.model`. If arms have features, or more than 20 arms are
    offered for a dictionary context, all arms share one `InteractionModel`, as in `InteractionBandit`. Otherwise
    each arm has its own model, in `AveragedModels`. `repr` and `choices` name the model.

    Parameters
    ----------
    dim : int, default None
        Number of columns of row contexts, from 1 to 27,777 at the default `memory_limit`. None takes the width
        of the first row learned.
    exploration : Exploration, default None
        Any rule without `Theory`. Its multiplier of widths is in units of the typical prediction error. None means
        `OptimisticGap()`, and `OptimisticGap(0.8, scale=30.0, uniform_share=0.001)` for the interaction model. These
        rules give every arm a probability. `UCB(1.0)` always plays the arm with the best bound.
    n_landmarks : int, default 150
        Number of landmarks, from 0 to 2,000. Landmarks are past rows; how similar a row is to each of them makes
        further features. 0 uses the columns alone. `memory_limit` may reduce the number.
    reg : float, default 0.1
        Penalty on every parameter, above 0.
    warm_up : int, default 256
        Number of first rows, at least 1, from which scales and landmarks are made. Until then they are made anew after
        1, 2, 4, ... rows.
    memory_limit : float, default 64.0
        Megabytes (10^6 bytes), above 0, that the models of all known arms may take when landmarks are chosen. Arms that
        come later take more, and so do columns of records. Rows of more than 300 columns are projected to at most 64
        directions for most models; one model learns all columns on a sketch. If over 90% of their entries are zeros,
        the sketch is the only model.
    alarm_threshold : float, default 50.0
        Threshold, above 0, of the alarm that forgets the arms' models after a change for the worse. It is compared with
        a CUSUM of the squared prediction errors, in units of their mean so far. None means no alarm.
    seed : int, default 0
        Seed of landmarks, trees, ties and draws, at least 0.
    name : str, default "ContextualBandit"
        Name shown by repr.
    n_trees : int, default 30
        Number of trees, from 0 to 1,000, that are averaged with the other models where rows have at most 32 columns.
    model : {"disjoint", "interaction"}, default None
        "disjoint" keeps a model for each arm and ignores features of arms. "interaction" is one model of all
        arms. None lets the first data choose.
    context : Records, default None
        Feature map of requests. The bandit learns with a copy of it. None means 256 columns. More than 300 columns need
        the interaction model.
    item : Records, default None
        Feature map of arms. The bandit learns with a copy of it. None means 256 columns.
    outcomes : sequence of str, default None
        Names of outcomes that are learned beside the reward, such as `["dollars"]` (docs/how/budgets.md). They need a
        model for each arm. None learns the reward alone.

    Returns
    -------
    Bandit
        The bandit, which has learned nothing yet.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    `n_landmarks`, `n_trees`, `reg`, `warm_up`, `memory_limit` and `alarm_threshold` apply only when each arm has its
    own model.

    Examples
    --------
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
        alarm_threshold=alarm_threshold, seed=seed, n_trees=n_trees, model=model, context=context, item=item,
    )  # fmt: skip
    return Bandit(learner, exploration, seed=seed, name=name, outcomes=outcomes)
