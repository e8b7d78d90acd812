"""Named experiments with online kernel learners, and their policies.

Source: Wen, Zhang et al. = the paper on FORKS. The settings of its program (ALGORITHMS, "published") are: raw features,
kernels of width 8 for first-order methods and 50 for the others, updates of the sketch after 0.3 N losses, k = B / 10.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onepass import FrequentDirections, KernelNewton
from onepass.lab.definition import Study
from onepass.lab.learners import tisvd
from onepass.lab.learners.figures import BUDGET, UPDATES
from onepass.lab.learners.kuairec import KuaiRec
from onepass.lab.learners.streams import TUNING_SHARE, WatchRatios, flipped_blocks_factory, random_order_factory
from onepass.lab.learners.study import Constant, LearnerStudy, RepeatLast
from onepass.lab.policy import Policy

BASELINES = (Policy("constant", Constant, tuned=False), Policy("repeat the last label", RepeatLast, tuned=False))


def KernelNewtonFD(*, size: int = 100, sketch: int = 30, reg: float = 0.1, seed: int = 0) -> KernelNewton:
    """Return `KernelNewton` on `size` Nystrom features, with a Frequent Directions sketch of `sketch` rows.

    `reg` is the ridge penalty.
    """
    return KernelNewton(size=size, design=FrequentDirections(dim=size + 2, size=sketch, reg=reg), seed=seed)


RECOMMENDED = (
    Policy("KernelNewton", "KernelNewton", tuned=False),
    Policy("KernelNewton Fourier 400", "KernelNewton", {"features": "fourier", "size": 400}, tuned=False),
    Policy("KernelNewton FD 30", KernelNewtonFD, tuned=False),
)


def learner_policies(budget: int) -> dict[str, Policy]:
    """Return the learners of Wen, Zhang et al.'s comparison, and variants of them, as policies by name.

    `budget` is the largest number of stored examples.
    """
    sized = {"budget": budget}
    larger = {"budget": 50, "sketch_size": 100}
    found = (
        Policy("RBP", "RBP", sized),
        Policy("BPA-S", "BPAS", sized),
        Policy("Projectron", "Projectron", sized),
        Policy("Projectron++", "Projectron", {**sized, "margins": True}),
        Policy("BOGD", "BOGD", sized),
        Policy("FOGD", "FOGD", sized),  # 4 B features
        Policy("FOGD 8 B", "FOGD", {**sized, "features": 8 * budget}),  # 4 B frequencies, as in LIBOL's program
        Policy("NOGD", "NOGD", sized),
        Policy("SkeGD", "SkeGD", sized),
        Policy("PROS-N-KONS", "PROSNKONS", {}),
        Policy("PROS-N-KONS 100", "PROSNKONS", {"budget": 100}),  # 101 in the program of Wen, Zhang et al.'s figures
        Policy("PROS-N-KONS without resets", "PROSNKONS", {"reset": False}),
        Policy("KOGD", "KOGD", {}),
        Policy("FORKS", "FORKS", sized),
        Policy("FORKS 100/50/30", "FORKS", {**larger, "sample_size": 50, "rank": 30}),
        Policy("FORKS 100/100/50", "FORKS", {**larger, "sample_size": 100, "rank": 50}),
    )
    return {policy.label: policy for policy in found}


SETS = {"german": (1_000, 50), "svmguide3": (1_243, 50), "spambase": (4_601, 50), "ijcnn1": (49_990, 100)}
ELSEWHERE = {"cod-rna": (59_535, 100), "w7a": (24_692, 100)}  # sets whose files are not here: widths are ijcnn1's
RAW = ("ijcnn1", "w7a")  # sets that are not standardized
WIDTHS = {  # the best widths of `onepass tune` are 2^(i / 2) for these i, in the order of SETS
    "RBP": (5, 4, 3, 0),
    "BPA-S": (4, 3, 4, 0),
    "Projectron": (4, 1, 3, 0),
    "Projectron++": (4, 1, 4, 1),
    "BOGD": (4, 2, 1, 0),
    "FOGD": (4, 4, 5, 0),
    "FOGD 8 B": (5, 4, 5, 0),
    "NOGD": (4, 4, 4, 1),
    "SkeGD": (7, 4, 4, 0),
    "PROS-N-KONS": (17, 18, 10, 11),
    "PROS-N-KONS 100": (17, 18, 4, 0),
    "PROS-N-KONS without resets": (9, 9, 6, 1),
    "KOGD": (4, 2, 3, -10),
    "FORKS": (10, 12, 6, 4),
    "FORKS 100/50/30": (10, 12, 6, 2),
    "FORKS 100/100/50": (9, 12, 4, 2),
}


def policies_at_best_width(name: str, budget: int, examples: int) -> tuple[Policy, ...]:
    """Return every learner with the kernel width that `onepass tune` found best on other examples of the data set.

    `name` is the data set; cod-rna and w7a take the widths of ijcnn1. `budget` is the largest number of stored
    examples. Sketches are updated each time that 0.3 * `examples` examples had a loss, as in the paper.
    """
    place, found = list(SETS).index(name if name in SETS else "ijcnn1"), []
    for label, policy in learner_policies(budget).items():
        params: dict[str, Any] = {"width": 2.0 ** (WIDTHS[label][place] / 2)}
        if policy.accepts("update_every"):
            params["update_every"] = int(0.3 * examples)
        found.append(Policy(label, policy.recipe, {**policy.params, **params}))
    return (*found, *RECOMMENDED, *BASELINES)


SECOND = {"PROS-N-KONS", "PROS-N-KONS 100", "SkeGD", "FORKS"}
VARIANTS = {
    "Projectron++", "FOGD 8 B", "PROS-N-KONS without resets", "KOGD", "FORKS 100/50/30", "FORKS 100/100/50"
}  # fmt: skip


def policies_of_paper(budget: int, update_every: int, only: Sequence[str] = (), **sizes: int) -> tuple[Policy, ...]:
    """Return the learners with the settings of Wen, Zhang et al.'s program.

    `budget` is the largest number of stored examples, and `update_every` the number of examples between updates of a
    sketch. `only` names the learners to return; empty returns all. `sizes` are further sizes of sketches.
    """
    found = []
    for label, policy in learner_policies(budget).items():
        if label in VARIANTS or (only and label not in only):
            continue
        params: dict[str, Any] = {"width": 50.0 if label in SECOND else 8.0}
        if label == "NOGD":
            params["rank"] = budget // 10
        if policy.accepts("update_every"):
            params |= {"update_every": update_every, **sizes}
        found.append(Policy(label, policy.recipe, {**policy.params, **params}, tuned=False))
    return (*found, *BASELINES)


HOSTILE = ("BOGD", "NOGD", "SkeGD", "PROS-N-KONS", "FORKS")
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
LENGTH = 4_500_000


def _adversarial_policies(rounds: int) -> tuple[Policy, ...]:
    sizes = {"sketch_size": 75, "sample_size": 15, "rank": 10}
    return (*policies_of_paper(100, int(0.005 * (rounds - 100)), HOSTILE, **sizes)[:-2], RECOMMENDED[0], *BASELINES)


def _policies_over_shares(policy: Policy, examples: int) -> tuple[Policy, ...]:
    """Return the policy once per share in `SHARES`: its sketch is updated after every share * `examples` losses.

    `examples` is the number of all examples. Losses are examples with a loss.
    """
    changed = ((share, {**policy.params, "update_every": int(share * examples)}) for share in SHARES)
    return tuple(Policy(f"{policy.label} {share:g}", policy.recipe, own, policy.label, False) for share, own in changed)


DRIFT_WIDTHS = {  # for hinge and squared hinge: the best of the grid at B = 100, on 60,000 examples of two other seeds
    "BOGD": (1.0, 2.0),
    "FOGD": (4.0, 4.0),
    "NOGD": (2.0, 2.0),
    "SkeGD": (16.0, 4.0),
    "FORKS": (16.0, 32.0),
    "PROS-N-KONS 100": (8.0, 8.0),
}
DRIFT_LOSSES = ("hinge", "squared_hinge")
DRIFT_GRID = {"width": tuple(2.0**i for i in range(-1, 7))}


def _policies_over_budgets(loss: str, budgets: Sequence[int] = (100, 200, 300, 400, 500)) -> tuple[Policy, ...]:
    """Return the learners of Wen, Zhang et al.'s comparison on KuaiRec, at several budgets.

    `loss` is "hinge" or "squared_hinge", and a budget is the largest number of stored examples. Sketches are updated on
    their default schedule.
    """
    found = []
    for budget in budgets:
        for label, policy in learner_policies(budget).items():
            capped = label == "PROS-N-KONS 100"
            if label in DRIFT_WIDTHS and not (capped and budget > 100):
                width = DRIFT_WIDTHS[label][DRIFT_LOSSES.index(loss)]
                params = {**policy.params, "width": width, "loss": loss}
                name = label if capped else f"{label} B={budget}"
                found.append(Policy(name, policy.recipe, params, "" if capped else label, budget == 100))
    return (*found, *RECOMMENDED[:2], *BASELINES)


def _dataset_study(name: str, part: str, examples: int, budget: int) -> LearnerStudy:
    """Return the study of the learners on one part of the data set `name`.

    `part` is an argument of `random_order_factory`, `examples` the number of examples in the whole data set, and
    `budget` the largest number of examples that a learner stores.
    """
    return LearnerStudy(
        f"learners-{name}",
        f"online kernel learners on {name}, tuned on 30% of the examples, counted on 70% (Wen, Zhang et al. table 1)",
        random_order_factory(name, standardized=name not in RAW, part=part),
        policies_at_best_width(name, budget, examples),
        rounds=round(TUNING_SHARE * examples) if part == "tuning" else examples,
        seeds=20,
    )


SUITES: tuple[Study, ...] = (
    *(
        replace(_dataset_study(name, "evaluated", *sizes), tuning=_dataset_study(name, "tuning", *sizes))
        for name, sizes in (SETS | ELSEWHERE).items()
    ),
    *(
        LearnerStudy(
            f"learners-{name}-published",
            f"as its authors' program has it: raw features, mistakes while the buffer fills left out ({name})",
            random_order_factory(name, standardized=False),
            policies_of_paper(budget, int(0.3 * examples)),
            rounds=examples,
            seeds=20,
            grid={},
            buffering=True,
        )
        for name, (examples, budget) in (SETS | ELSEWHERE).items()
    ),
    *(
        LearnerStudy(
            f"learners-{name}-{number}",
            f"500 examples of {name}, each repeated {repeats} times, labels flipped in every other block ({source})",
            flipped_blocks_factory(name, repeats),
            _adversarial_policies(500 * repeats),
            rounds=500 * repeats,
            seeds=20,
            grid={},
            buffering=True,
        )
        for number, repeats, source in ((1, 10, "Wen, Zhang et al. table 2"), (2, 20, "Wen, Zhang et al. table 3"))
        for name in ("german", "cod-rna")
    ),
    *(
        LearnerStudy(
            f"learners-updates{suffix}",
            f"mistakes and time over how often the sketch is updated, on {name} (Wen, Zhang et al. figure 2 on codrna)",
            random_order_factory(name, part="evaluated"),
            tuple(
                policy
                for known in policies_at_best_width(name, budget, examples)
                if known.label in ("FORKS", "FORKS 100/50/30", "SkeGD")
                for policy in _policies_over_shares(known, examples)
            ),
            rounds=examples,
            seeds=20,
            figure=UPDATES,
            timed=True,
            grid={},
        )
        for name, suffix, examples, budget in (("spambase", "", 4_601, 50), ("cod-rna", "-cod-rna", 59_535, 100))
    ),
    *(
        LearnerStudy(
            f"learners-kuairec{'' if loss == 'hinge' else '-squared-hinge'}",
            f"4,494,578 watch ratios of KuaiRec in the order of time, budgets of 100 to 500, {loss.replace('_', ' ')} "
            f"({source})",
            KuaiRec,
            _policies_over_budgets(loss),
            rounds=4_494_578,
            seeds=1,
            figure=BUDGET,
            grid=DRIFT_GRID,
        )
        for loss, source in zip(DRIFT_LOSSES, ("Wen, Zhang et al. figures 3a and 5", "Wen, Zhang et al. figure 3b"))
    ),
    *(
        LearnerStudy(
            f"learners-drift{'' if loss == 'hinge' else '-squared-hinge'}",
            f"4,500,000 generated watch ratios with drift, budgets of 100 to 500, {loss.replace('_', ' ')} ({source})",
            partial(WatchRatios, length=LENGTH),
            _policies_over_budgets(loss),
            rounds=LENGTH,
            seeds=1,
            figure=BUDGET,
            grid=DRIFT_GRID,
        )
        for loss, source in zip(DRIFT_LOSSES, ("Wen, Zhang et al. figures 3a and 5", "Wen, Zhang et al. figure 3b"))
    ),
    *tisvd.SUITES,
)
