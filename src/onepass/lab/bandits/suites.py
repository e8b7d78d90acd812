"""The named experiments with contextual bandits. Source: Wen, Yin et al. (DBSLinUCB).

Experiments with heavy-tailed rewards are in heavy.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from onepass import OFUL, UCB, Bandit, InverseGap, OnlineNewton, SingleDrawThompson, Softmax, Thompson
from onepass.lab.bandits import heavy
from onepass.lab.bandits.environments import Classification, Environment, Linear
from onepass.lab.bandits.figures import BOUND, PARETO, REG
from onepass.lab.bandits.study import EXPLORATIONS, Experiment
from onepass.lab.datasets import Dataset, load
from onepass.lab.definition import Study
from onepass.lab.errors import ExperimentError
from onepass.lab.policy import Policy, policies_over_reg, policy_variant

MOST_ROWS = 50  # largest number of rows of a sketch, as on MNIST


def shared_policies(size: int, blocks: int, error: float = 8.0) -> tuple[Policy, ...]:
    """Return policies with one model for all arms: with exact designs, sketches of `size` rows, and dyadic sketches.

    The first block of a dyadic sketch has `blocks` rows, and `error` is the bound of its error.
    """
    rule = {"reg": 1.0, "exploration": 0.1}
    sketch, dyadic = {"size": size, **rule}, {"size": blocks, "error": error, **rule}
    return (
        Policy("OFUL", "OFUL", rule),
        Policy("LinTS", "LinTS", rule),
        Policy("SOFUL", "SOFUL", sketch),
        Policy("SOFUL-TS", "SOFUL", {**sketch, "thompson": True}),
        Policy("CBSCFD", "CBSCFD", sketch),
        Policy("CBRAP", "CBRAP", sketch),
        Policy("DBSLinUCB", "DBSLinUCB", {**dyadic, "base": "fd"}),
        Policy("DBSLinUCB-RFD", "DBSLinUCB", {**dyadic, "base": "rfd"}),
        Policy("PSILinUCB", "PSILinUCB", {"rank": size, "compensate": False, **rule}),
        Policy("PSILinUCB-C", "PSILinUCB", {"rank": size, "compensate": True, **rule}),
    )


def policies_over_sizes(sizes: Sequence[int], dyadic: Sequence[tuple[int, float]]) -> tuple[Policy, ...]:
    """Return exact ridge regression, sketches of every size, and dyadic sketches at every pair (rows, error).

    Parameters
    ----------
    sizes : sequence of int
        Numbers of rows of sketches with a fixed size.
    dyadic : sequence of (int, float)
        Number of rows of the first block, and error bound, of dyadic sketches.

    Returns
    -------
    tuple of Policy
        Policies, grouped by kind.

    Notes
    -----
    Source: Wen, Yin et al. figure 3 c and d.
    """
    every = {policy.label: policy for policy in shared_policies(size=1, blocks=1)}
    found = [every["OFUL"]]
    for name in ("SOFUL", "CBSCFD", "CBRAP"):
        found += [policy_variant(every[name], f"size={size}", size=size) for size in sizes]
    for name in ("DBSLinUCB", "DBSLinUCB-RFD"):
        found += [
            policy_variant(every[name], f"size={size} error={error:g}", size=size, error=error)
            for size, error in dyadic
        ]
    for name in ("PSILinUCB", "PSILinUCB-C"):
        found += [policy_variant(every[name], f"rank={size}", rank=size) for size in sizes]
    return tuple(found)


def experiment_on(
    problem: Dataset | Callable[[int], Environment],
    *,
    name: str = "",
    policies: Sequence[Policy] = (),
    rounds: int = 2000,
    seeds: int = 20,
) -> Experiment:
    """Make an experiment on a data set or problem.

    Parameters
    ----------
    problem : Dataset or callable
        Data set, played as a bandit, or a function from a seed to an `Environment`.
    name : str, default ""
        Name of the experiment. An empty string takes the name of the problem.
    policies : sequence of Policy, default ()
        Policies that play. Empty takes those of the built-in experiments, with sketches of a quarter of the dimensions,
        from 2 to 50 rows.
    rounds : int, default 2000
        Number of rounds.
    seeds : int, default 20
        Number of seeds.

    Returns
    -------
    Experiment
        The experiment, for `run` and `tune`.

    Raises
    ------
    ExperimentError
        If `problem` is neither a data set nor a problem.
    """
    environment = partial(Classification, problem) if isinstance(problem, Dataset) else problem
    title = name or str(getattr(problem, "name", getattr(problem, "__name__", "own")))
    try:
        first = environment(0)
        dim, arms = first.dim, first.arms
    except (TypeError, AttributeError) as error:
        raise ExperimentError(
            f"{title} must be a problem, {title}(seed) with arms, dim and chunk(start, rounds): {error}"
        ) from error
    size = min(dim, max(2, min(MOST_ROWS, dim // 4)))
    what = f"a problem of one's own: {dim} features, {arms} arms"
    return Experiment(title, what, environment, tuple(policies) or shared_policies(size, size), rounds, seeds)


def _dataset_problem(seed: int, name: str) -> Environment:
    """Make the problem of finding the target class of the data set `name`."""
    return Classification(load(name), seed)


def classification_factory(name: str) -> Callable[[int], Environment]:
    """Return a function from a seed to the problem of finding the examples of one class of the data set `name`."""
    return partial(_dataset_problem, name=name)


def _linear_factory(normalized: bool) -> Callable[[int], Environment]:
    """Return a function from a seed to a problem with linear rewards; `normalized` is an argument of `Linear`."""
    return partial(Linear, 100, 500, normalized=normalized)


def _synthetic_policies() -> tuple[Policy, ...]:
    every = {policy.label: policy for policy in shared_policies(size=50, blocks=50)}
    fixed = [
        policy_variant(every[name], f"size={size}", size=size) for name in ("SOFUL", "CBSCFD") for size in (50, 450)
    ]
    return (every["OFUL"], *fixed, every["DBSLinUCB"], every["DBSLinUCB-RFD"])


WIDE, NARROW = shared_policies(size=50, blocks=50), shared_policies(size=10, blocks=10)
# Best points of `onepass tune mnist --seeds 5` (seeds 1000 to 1004, 2,000 rounds, the whole grid for every policy).
MNIST_BEST: dict[str, dict[str, float]] = {
    "OFUL": {"reg": 2.0, "exploration": 1e-4},
    "SOFUL": {"reg": 2.0, "exploration": 1e-3},
    "CBSCFD": {"reg": 0.2, "exploration": 1e-4},
    "CBRAP": {"reg": 0.2, "exploration": 1e-3},
    "DBSLinUCB": {"reg": 2.0, "exploration": 1e-3},
    "DBSLinUCB-RFD": {"reg": 0.2, "exploration": 0.1},
    "PSILinUCB": {"reg": 2.0, "exploration": 1e-4},
    "PSILinUCB-C": {"reg": 2.0, "exploration": 1e-2},
}
MNIST = tuple(replace(policy, params={**policy.params, **MNIST_BEST.get(policy.label, {})}) for policy in WIDE)


def Newton(*, dim: int, sketch: str, size: int, reg: float, exploration: float, seed: int = 0) -> Bandit:
    """Return a UCB bandit that takes online Newton steps on a sketch of `size` rows.

    `sketch` is a name in `heavy.SKETCHES`, `reg` the ridge penalty, and `exploration` the multiplier of the width. The
    papers on these sketches use ridge regression instead of Newton steps.
    """
    design = heavy.SKETCHES[sketch](dim, size, 8.0, reg)
    return Bandit(OnlineNewton(design), UCB(exploration), seed=seed, name="Newton")


RULES = {
    "InverseGap": InverseGap(),
    "Thompson": Thompson(),
    "Softmax": Softmax(),
    "SingleDrawThompson": SingleDrawThompson(0.03),
}


def OFULWithRule(*, dim: int, rule: str, reg: float, seed: int = 0) -> Bandit:
    """Return a bandit of exact ridge regression with the exploration rule named `rule`, at the rule's defaults.

    `dim` is the number of features, and `reg` the ridge penalty.
    """
    return OFUL(dim=dim, reg=reg, exploration=RULES[rule], seed=seed)


def _rule_policies(reg: float, exploration: float) -> tuple[Policy, ...]:
    """Return UCB with the multiplier `exploration`, and the exploration rules that draw arms at random.

    The latter keep their defaults. `reg` is the ridge penalty of all.
    """
    rules = [Policy(rule, OFULWithRule, {"rule": rule, "reg": reg}, tuned=False) for rule in RULES]
    return (Policy("UCB, tuned", "OFUL", {"reg": reg, "exploration": exploration}), *rules)


REG_STUDY = (
    *shared_policies(size=20, blocks=50),
    *(
        Policy(f"{label} Newton", Newton, {"sketch": sketch, "size": 20, "reg": 1.0, "exploration": 0.1})
        for label, sketch in {"SOFUL": "FD", "CBSCFD": "RFD", "PSILinUCB-C": "PSI"}.items()
    ),
)

SUITES: tuple[Study, ...] = (
    Experiment(
        "digits",
        "classification as a bandit (Wen, Yin et al. F.1) on scikit-learn's digits: 64 features, 10 arms",
        classification_factory("digits"),
        shared_policies(size=16, blocks=16),
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mnist",
        "the same on MNIST, every policy tuned: 784 features, 10 arms (Wen, Yin et al. figure 5)",
        classification_factory("mnist"),
        MNIST,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "cifar-10",
        "the same on CIFAR-10: 3,072 features, 10 arms (Shustova et al. figures 11, 12)",
        classification_factory("cifar-10"),
        WIDE,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "optdigits",
        "the same on optdigits: 64 features, 10 arms",
        classification_factory("optdigits"),
        shared_policies(size=16, blocks=16),
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "cnae-9",
        "the same on cnae-9: 856 word counts, 9 arms (Wen, Yin et al. F.4)",
        classification_factory("cnae-9"),
        WIDE,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "mfeat-zernike",
        "the same on mfeat-zernike: 47 features, 10 arms (Wen, Yin et al. F.4)",
        classification_factory("mfeat-zernike"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "spambase",
        "the same on spambase: 57 features, 2 arms (Wen, Yin et al. F.4)",
        classification_factory("spambase"),
        NARROW,
        rounds=2000,
        seeds=20,
    ),
    Experiment(
        "synthetic",
        "linear rewards, 100 arms of N(0, I) in 500 dimensions (Wen, Yin et al. figure 1)",
        _linear_factory(normalized=False),
        _synthetic_policies(),
        rounds=2000,
        seeds=5,
        figure=BOUND,
    ),
    Experiment(
        "synthetic-unit",
        "the same with contexts of length 1, where an error of 8 lets the dyadic sketch shrink",
        _linear_factory(normalized=True),
        _synthetic_policies(),
        rounds=2000,
        seeds=5,
        figure=BOUND,
    ),
    Experiment(
        "mnist-reg",
        "regret over reg at fixed sizes on MNIST: where fixed sketches fail",
        classification_factory("mnist"),
        policies_over_reg(REG_STUDY),
        rounds=2000,
        seeds=10,
        figure=REG,
        grid={"exploration": EXPLORATIONS},
    ),
    Experiment(
        "digits-pareto",
        "regret against time and memory on digits over sizes and errors",
        classification_factory("digits"),
        policies_over_sizes((4, 8, 12, 16, 24, 32, 48), list(product((4, 8, 16), (1.0, 4.0, 16.0)))),
        rounds=2000,
        seeds=5,
        figure=PARETO,
        timed=True,
    ),
    *(
        Experiment(
            f"rules-{name}",
            f"rules of exploration with their defaults beside tuned UCB, exact model, on {name}",
            classification_factory(name),
            _rule_policies(reg, exploration),
            rounds=2000,
            seeds=20,
        )
        for name, reg, exploration in (("mnist", 2.0, 1e-4), ("digits", 0.2, 1e-4), ("spambase", 2.0, 1e-2))
    ),
)
