"""Named studies of recommenders. Source: Shustova et al. (PSI-LinUCB)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from onepass.lab.definition import Study
from onepass.lab.recommender.figures import ARMS, BATCH, SIZE, WIDTH
from onepass.lab.recommender.interactions import load
from onepass.lab.recommender.policies import (
    CBRAP,
    ItemHeadsPolicy,
    ItemModelsPolicy,
    LinUCBFull,
    Popularity,
    PSILinUCBFull,
    Random,
    Recommender,
    RecommenderPolicy,
    SVDScores,
)
from onepass.lab.recommender.study import RecommenderStudy
from onepass.lab.recommender.synthetic import implicit_interactions

RULE = {"reg": 1.0, "exploration": -0.1}  # as in Shustova et al.; ALGORITHMS section 7

FADING = (500, 2000, 15_000)  # rows
PER_ARM = {"model": "disjoint"}
AS_PRINTED: dict[str, Any] = {"integrator": True, "factor": "cholesky"}  # Shustova et al. algorithms 2 to 4
UNTUNED = (
    Recommender("Recommender", RecommenderPolicy),
    Recommender("ItemModels", ItemModelsPolicy),
    Recommender("ItemHeads", ItemHeadsPolicy),
    Recommender("ItemHeads, half-life 5,000", ItemHeadsPolicy, {"half_life": 5000.0}),
    Recommender("Popularity", Popularity),
    *(Recommender(f"Popularity, half-life {rows:,}", Popularity, {"half_life": float(rows)}) for rows in FADING),
    Recommender("SVD", SVDScores),
    Recommender("Random", Random),
)


def _per_arm_policy(label: str, recipe: str, **params: object) -> Recommender:
    return Recommender(label, recipe, {**PER_ARM, **RULE, **params})


def _full_psi_policy(rank: int) -> Recommender:
    return Recommender(f"PSILinUCB rank={rank}", PSILinUCBFull, {"rank": rank, **RULE}, "PSILinUCB")


def _integrator_policy(rank: int) -> Recommender:
    """Return PSI-LinUCB as its paper prints it, with the integrator and the triangular factor of a batch.

    `rank` is the rank of the sketches.
    """
    label = f"PSILinUCB as printed rank={rank}"
    return replace(_per_arm_policy(label, "PSILinUCB", rank=rank, **AS_PRINTED), group="PSILinUCB as printed")


def recommenders(ranks: Sequence[int], size: int, **rule: float) -> tuple[Recommender, ...]:
    """Return all policies with one model per arm, and the policies that need no tuning.

    `ranks` are the ranks of sketches of PSI-LinUCB, `size` is the number of rows of other sketches, and `rule` has
    values of `exploration` and `reg` that replace the usual ones.
    """
    found = (
        _per_arm_policy("LinUCB", "LinUCB"),
        replace(_per_arm_policy("LinUCB row by row", "LinUCB"), batch=1),
        *(_full_psi_policy(rank) for rank in ranks),
        *(_integrator_policy(rank) for rank in ranks),
        _per_arm_policy("CBSCFD", "CBSCFD", size=size),
        Recommender("CBRAP", CBRAP, {"size": 2 * size, **RULE}),
        _per_arm_policy("DBSLinUCB", "DBSLinUCB", size=size, error=8.0),
    )
    return (*(replace(policy, params={**policy.params, **rule}) for policy in found), *UNTUNED)


def _default_policy(label: str, recipe: str, **params: object) -> Recommender:
    """Return a policy named `label` that plays the bandit `recipe` with one model per arm.

    The bandit has its defaults except for `params`.
    """
    return Recommender(label, recipe, {**PER_ARM, **params})


def sweep(group: Recommender, **values: Sequence[int]) -> tuple[Recommender, ...]:
    """Return variants of the policy `group`, one for each value of a parameter, for example `rank=(4, 8)`.

    The parameter is one of the bandit, or a field of `Recommender` such as `factors`. Labels show the value.
    """
    ((name, many),) = values.items()
    where = name in group.overrides
    return tuple(
        replace(
            group,
            label=f"{group.label} {name}={value}",
            group=group.label,
            params=group.params if where else {**group.params, name: value},
            **cast(dict[str, Any], {name: value} if where else {}),
        )
        for value in many
    )


def _sweep_problem(full: Sequence[int], **values: Sequence[int]) -> tuple[Recommender, ...]:
    """Return the policies for every value of one parameter of the problem, for example `factors=(4, 8)`.

    LinUCB on all columns is included only at the values in `full`.
    """
    group = (
        _per_arm_policy("LinUCB", "LinUCB"),
        replace(_per_arm_policy("LinUCB row by row", "LinUCB"), batch=1),
        replace(_full_psi_policy(16), label="PSILinUCB", group=""),
        _per_arm_policy("CBSCFD", "CBSCFD", size=16),
        Recommender("CBRAP", CBRAP, {"size": 32, **RULE}),
    )
    ((name, _),) = values.items()
    wide = sweep(Recommender("LinUCB in full width", LinUCBFull, RULE), **{name: full})
    return (*(policy for own in group for policy in sweep(own, **values)), *wide)


ELSEWHERE = (  # data sets whose files are not here, with the factors of Shustova et al.
    ("movielens-1m", 13, "3,706 films (MovieLens 1M), Shustova et al. figures 8a, 13a, 14a, 15a", (4, 8, 16), 4),
    ("health-2023", 37, "health and personal care (Amazon 2023), Shustova et al. tables 3 to 5", (8, 16, 48), 16),
    ("beauty-2023", 51, "beauty (Amazon 2023), Shustova et al. tables 4, 5", (8, 16, 48), 16),
    ("magazine-2023", 41, "magazines (Amazon 2023), Shustova et al. tables 4, 5", (8, 16, 48), 16),
)
MAGAZINE, MOVIELENS = partial(load, "magazine"), partial(load, "movielens-100k")
RANKS = (2, 4, 8, 12, 16, 24, 32, 48)

SUITES: tuple[Study, ...] = (
    RecommenderStudy(
        "magazine",
        "top ten of 2,257 magazines for known users, by month, features of the warm-up (Shustova et al. tables 4, 5)",
        MAGAZINE,
        41,
        recommenders((8, 16, 48), size=16),
        rounds=26,
    ),
    RecommenderStudy(
        "movielens-100k",
        "the same of 1,616 films, week by week (MovieLens 100K)",
        MOVIELENS,
        13,
        (*recommenders((4, 8, 16), size=4, reg=10.0), Recommender("HvtUCB", "HvtUCB", {**PER_ARM, "reg": 10.0})),
        rounds=7,
        unit="week",
    ),
    *(
        RecommenderStudy(
            name,
            f"top ten for known users, month by month: {what}",
            partial(load, name),
            factors,
            recommenders(ranks, size=size),
            rounds=60,
        )
        for name, factors, what, ranks, size in ELSEWHERE
    ),
    *(
        RecommenderStudy(
            f"{name}-rank",
            f"quality against rank, sketch size and projection: {what} (figures 6 to 8, 13 to 15)",
            partial(load, name),
            factors,
            (
                _per_arm_policy("LinUCB", "LinUCB"),
                *sweep(replace(_full_psi_policy(16), label="PSILinUCB"), rank=RANKS),
                *sweep(_per_arm_policy("PSILinUCB as printed", "PSILinUCB", rank=16, **AS_PRINTED), rank=RANKS),
                *sweep(_per_arm_policy("CBSCFD", "CBSCFD", size=16), size=RANKS),
                *sweep(Recommender("CBRAP", CBRAP, {"size": 32, **RULE}), size=RANKS),
            ),
            rounds=60,
            figure=SIZE,
        )
        for name, factors, what, _, _ in ELSEWHERE
    ),
    RecommenderStudy(
        "health-2023-width",
        "time, memory and quality against the dimension of contexts (Shustova et al. figures 1, 9, table 3)",
        partial(load, "health-2023"),
        37,
        _sweep_problem((5, 10), factors=(30, 50, 70, 130)),
        rounds=60,
        figure=WIDTH,
        timed=True,
    ),
    RecommenderStudy(
        "beauty-2023-arms",
        "time and memory against the number of arms, the most frequent first (Shustova et al. figures 2, 10)",
        partial(load, "beauty-2023"),
        51,
        _sweep_problem((50,), arms=(100, 1_000, 10_000, 50_000)),
        rounds=60,
        figure=ARMS,
        timed=True,
    ),
    *(
        RecommenderStudy(
            f"{name}-2023-batch",
            "batch size against rank for PSI-LinUCB (Shustova et al. figure 17)",
            partial(load, f"{name}-2023"),
            factors,
            tuple(
                policy
                for rank in (8, 16, 48)
                for policy in sweep(replace(_full_psi_policy(rank), group=""), batch=(1, 4, 16, 64, 256))
            ),
            rounds=60,
            figure=BATCH,
            timed=True,
        )
        for name, factors in (("health", 37), ("beauty", 51))
    ),
    RecommenderStudy(
        "implicit",
        "top ten of 1,200 generated items, month by month, of which only is known who took them; recipes at defaults",
        implicit_interactions,
        16,
        (
            _default_policy("LinUCB", "LinUCB"),
            _default_policy("PSILinUCB", "PSILinUCB", rank=8, compensate=False),
            _default_policy("PSILinUCB compensated", "PSILinUCB", rank=8, compensate=True),
            _default_policy("CBSCFD", "CBSCFD", size=8),
            *UNTUNED,
        ),
        rounds=6,
    ),
    RecommenderStudy(
        "magazine-leaking",
        "as magazine, but features, users and arms of all data, the test included: Shustova et al.'s published figures",
        MAGAZINE,
        41,
        recommenders((48,), size=16),
        rounds=26,
        leaking=True,
    ),
    RecommenderStudy(
        "magazine-rank",
        "quality against rank and sketch size on magazine (Shustova et al. figures 6, 7)",
        MAGAZINE,
        41,
        (
            _per_arm_policy("LinUCB", "LinUCB"),
            *sweep(replace(_full_psi_policy(16), label="PSILinUCB"), rank=RANKS),
            *sweep(_per_arm_policy("PSILinUCB compensated", "PSILinUCB", rank=16, compensate=True), rank=RANKS),
            *sweep(_per_arm_policy("PSILinUCB by its integrator", "PSILinUCB", integrator=True, rank=16), rank=RANKS),
            *sweep(_per_arm_policy("CBSCFD", "CBSCFD", size=16), size=RANKS),
        ),
        rounds=26,
        figure=SIZE,
    ),
    RecommenderStudy(
        "magazine-projection",
        "quality against the size of the projection on magazine (Shustova et al. figure 13)",
        MAGAZINE,
        41,
        (
            _per_arm_policy("LinUCB", "LinUCB"),
            *sweep(Recommender("CBRAP", CBRAP, {"size": 32, **RULE}), size=(4, 8, 16, 32, 64, 96)),
        ),
        rounds=26,
        seeds=5,
        figure=SIZE,
    ),
    RecommenderStudy(
        "magazine-width",
        "time and memory against the dimension of contexts on magazine (Shustova et al. figure 1)",
        MAGAZINE,
        41,
        _sweep_problem((5, 10), factors=(5, 10, 20, 41, 70)),
        rounds=26,
        figure=WIDTH,
        timed=True,
    ),
    RecommenderStudy(
        "magazine-arms",
        "time and memory against the number of arms, the most frequent first, on magazine (Shustova et al. figure 2)",
        MAGAZINE,
        41,
        _sweep_problem((50, 100), arms=(100, 250, 500, 1000, 2257)),
        rounds=26,
        figure=ARMS,
        timed=True,
    ),
    RecommenderStudy(
        "magazine-batch",
        "batch size against rank for PSI-LinUCB on magazine (Shustova et al. figure 17)",
        MAGAZINE,
        41,
        tuple(
            policy
            for rank in (8, 16, 48)
            for policy in sweep(replace(_full_psi_policy(rank), group=""), batch=(1, 4, 16, 64, 256))
        ),
        rounds=26,
        figure=BATCH,
        timed=True,
    ),
)
