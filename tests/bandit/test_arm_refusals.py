"""Wrong calls of models per arm get one clear sentence, and nothing has changed."""

import numpy as np
import pandas as pd
import pytest

import onepass as op
from arm_games import DIM, LEFT, RIGHT, disjoint, example_bandit, fingerprint, outer

# ---- wrong calls ----


def bad(value):
    rows = np.ones((5, DIM))
    rows[3, 2] = value
    return rows


FIVE = ["a", "brand new", 7, "d", "a"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b: b.remove_arm("nobody"), "arm 'nobody' is not known"),
        (lambda b: b.model.parameter_of("nobody"), "arm 'nobody' is not known"),
        (lambda b: b.model.rows_of("nobody"), "arm 'nobody' is not known"),
        (lambda b: b.remove_arm(["a"]), "arm must be hashable"),
        (lambda b: b.add_arm("a"), "arm must be a new one, but 'a' is known already"),
        (lambda b: b.add_arm(["x"]), "arm must be hashable"),
        (lambda b: b.add_arm(float("nan")), "arm must equal itself, got nan"),
        (lambda b: b.score(np.ones(DIM), ["a", "d", "a"]), "arms must name every arm once, but 'a'"),
        (lambda b: b.decide(np.ones(DIM), ["x", "y", "x"]), "arms must name every arm once, but 'x'"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, ["x", "x"]), "arms must name every arm once"),
        (lambda b: b.decide(np.ones(DIM), []), "arms must name at least one arm"),
        (lambda b: b.decide(np.ones(DIM), "a"), "arms must be a sequence of names"),
        (lambda b: b.decide(np.ones(DIM), 3), "arms must be a sequence of names"),
        (lambda b: b.decide(np.ones(DIM), [["a"]]), "arm must be hashable"),
        (lambda b: b.decide(np.ones(DIM), ["x", np.nan]), "arm must equal itself"),
        (lambda b: b.decide(np.ones(DIM), ["x", "y"], k=3), "k must be an integer from 1 to 2"),
        (lambda b: b.decide(np.ones(DIM), ["x", "y"], k=0), "k must be an integer"),
        (lambda b: b.decide(np.ones((3, DIM)), ["x", "y"]), "contexts must have one row, or one per arm"),
        (lambda b: b.decide(np.ones((1, DIM)), ["x", "y"]), "contexts must have one row, or one per arm"),
        (lambda b: b.decide(np.ones((4, 3, DIM)), ["x", "y"]), "contexts must have one row, or one per arm"),
        (lambda b: b.decide(np.ones(DIM + 1), ["x", "y"]), "contexts must have rows of length 8"),
        (lambda b: b.decide(np.ones((0, 2, DIM)), ["x", "y"]), "contexts must have at least one row"),
        (lambda b: b.decide(np.full(DIM, np.nan), ["x", "y"]), "contexts must be finite"),
        (lambda b: b.decide(np.full((2, DIM), np.inf), ["x", "y"]), "contexts must be finite"),
        (lambda b: b.decide(op.Factors(np.ones(2), np.ones((2, 4))), ["x", "y"]), "contexts must be"),
        (lambda b: b.learn(np.ones(DIM), 1.0), "arm must name the arm"),
        (lambda b: b.learn(np.ones(DIM), 1.0, ["x"]), "arm must be hashable"),
        (lambda b: b.learn(np.ones(DIM), np.nan, "x"), "rewards must be finite"),
        (lambda b: b.learn(np.ones(DIM), [1.0], "x"), "rewards must have 0 dimension"),
        (lambda b: b.learn(np.ones(DIM - 1), 1.0, "x"), "contexts must have rows of length 8"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(5), FIVE[:4]), "arm must have one name per row of contexts"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(4), FIVE), "rewards must have one entry per row of contexts"),
        (lambda b: b.learn(np.ones((5, DIM)), 1.0, FIVE), "rewards must have 1 dimension"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(5), "brand"), "arms? must be a sequence of names"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(5), [*FIVE[:4], ["x"]]), "arm must be hashable"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(5), [*FIVE[:4], np.nan]), "arm must equal itself"),
        (lambda b: b.learn(np.ones((5, DIM)), np.ones(5), [*FIVE[:4], pd.NA]), "arm must equal itself"),
        (lambda b: b.learn(bad(np.nan), np.ones(5), FIVE), "contexts must be finite"),
        (lambda b: b.learn(bad(np.inf), np.ones(5), FIVE), "contexts must be finite"),
        (lambda b: b.learn(bad(1e200), np.ones(5), FIVE), "contexts must be finite"),
        (lambda b: b.learn(np.ones((5, DIM)), bad(np.nan)[3, :5], FIVE), "rewards must be finite"),
        (lambda b: b.play(np.ones((2, 3, DIM)), np.ones((2, 4))), "rewards must have shape"),
        (lambda b: b.play(np.ones((3, DIM)), np.ones((2, 4))), "contexts must have 3 dimension"),
        (lambda b: b.recommend(np.ones(DIM), 1), "contexts must have 2 or 3 dimension"),
        (lambda b: b.recommend([[1.0], [1.0, 2.0]], 1), "contexts"),
        (lambda b: b.recommend(np.ones((2, DIM)), 0), "k must be an integer at least 1"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude=[["a"]]), "exclude must have one collection per user"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude=[None, ["a"]]), "exclude"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude=[[["a"]], []]), "exclude"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude=["a", "b"]), "exclude must hold a collection of names"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude={0: ["a"], 1: []}), "exclude must be a sequence"),
        (lambda b: b.recommend(np.ones((2, DIM)), 1, exclude=(["a"] for _ in range(2))), "exclude must be a sequence"),
    ],
)
@pytest.mark.parametrize("kind", ["Exact", "separate", "Hybrid"])
def test_wrong_calls_get_one_clear_sentence_and_change_nothing(kind, call, says):
    bandit = example_bandit(kind).copy()
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=says) as error:
        call(bandit)
    assert "\n" not in str(error.value)
    assert fingerprint(bandit) == before


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b: b.learn(np.ones(LEFT * RIGHT), 1.0, "x"), r"contexts must be onepass\.Factors"),
        (
            lambda b: b.learn(op.Factors(np.ones(RIGHT), np.ones(LEFT)), 1.0, "x"),
            r"contexts\.left must have rows of length",
        ),
        (
            lambda b: b.learn(op.Factors(np.ones(LEFT), np.ones(2)), 1.0, "x"),
            r"contexts\.right must have rows of length",
        ),
        (
            lambda b: b.learn(op.Factors(np.ones((3, LEFT)), np.ones((2, RIGHT))), np.ones(3), "xyz"),
            "one row per reward",
        ),
        (
            lambda b: b.learn(op.Factors(np.full(LEFT, np.nan), np.ones(RIGHT)), 1.0, "x"),
            r"contexts\.left must be finite",
        ),
        (
            lambda b: b.learn(op.Factors(np.ones(LEFT), np.full(RIGHT, np.inf)), 1.0, "x"),
            r"contexts\.right must be finite",
        ),
        (
            lambda b: b.learn(op.Factors(np.full(LEFT, 1e149), np.full(RIGHT, 1e149)), 1.0, "x"),
            "contexts must have factors whose norms",
        ),
        (
            lambda b: b.score(op.Factors(np.ones(LEFT), np.ones((2, RIGHT))), ["x"]),
            r"contexts\.right must have one row per arm",
        ),
        (lambda b: b.score(op.Factors(np.ones((0, LEFT)), np.ones((1, RIGHT))), ["x"]), "contexts"),
        (
            lambda b: b.recommend(op.Factors(np.ones(LEFT), np.ones((1, RIGHT))), 1, ["x"]),
            r"contexts\.left must have 2 dimension",
        ),
        (lambda b: b.play(np.ones((1, 1, LEFT * RIGHT)), np.ones((1, 1))), "play takes full contexts"),
    ],
)
@pytest.mark.parametrize("reduce", [True, False])
def test_wrong_factors_get_one_clear_sentence_and_change_nothing(reduce, call, says):
    bandit = outer(reduce)
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=says):
        call(bandit)
    assert fingerprint(bandit) == before


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: op.Disjoint(op.Exact(dim=2)), "estimator must be"),
        (lambda: op.Disjoint(op.Ridge(op.Exact(dim=2)), compact="yes"), "compact must be one of"),
        (
            lambda: op.Disjoint(op.Ridge(op.Dyadic(dim=4, size=1, error=1.0)), compact=True),
            "compact must be None or False",
        ),
        (lambda: op.Disjoint(op.Ridge(op.Exact(dim=2)), threads=0), "threads must be an integer at least 1"),
        (lambda: op.Hybrid(shared=op.Exact(dim=2), arms=op.Ridge(op.Exact(dim=2))), "shared must be"),
        (lambda: op.Hybrid(shared=op.Ridge(op.Exact(dim=2)), arms=None), "arms must be"),
        (
            lambda: op.Hybrid(shared=op.Ridge(op.Exact(dim=2)), arms=op.Ridge(op.Exact(dim=2, dtype="float32"))),
            "shared and arms must have one dtype",
        ),
        (
            lambda: op.Bandit(op.Hybrid(shared=op.Ridge(op.Exact(dim=2)), arms=op.Ridge(op.Exact(dim=3)))),
            "must have dim",
        ),
        (lambda: op.features.OuterProduct(left=0, right=2), "left must be an integer at least 1"),
        (lambda: op.features.OuterProduct(left=1, right=2, reduce="no"), "reduce must be one of"),
        (lambda: outer(True, op.Exact(dim=LEFT * RIGHT)), "designs must have dim=4"),
        (lambda: outer(False, op.Exact(dim=LEFT)), "designs must have dim=12"),
        (lambda: op.LinUCB(dim=2, model="separate"), "model must be one of 'shared', 'disjoint', 'hybrid'"),
        (lambda: op.LinUCB(dim=(2, 3, 4), model="disjoint"), "dim must be a width, or the widths"),
        (lambda: op.LinUCB(dim=2, model="hybrid", exploration=op.Theory()), "exploration must be a number"),
    ],
)
def test_wrong_models_get_one_clear_sentence(make, says):
    with pytest.raises(ValueError, match=says) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_request_without_any_known_arm_is_refused():
    bandit = disjoint(op.Exact(dim=DIM))
    for call in (bandit.decide, bandit.score):
        with pytest.raises(ValueError, match="arms must be given"):
            call(np.ones(DIM))
    with pytest.raises(ValueError, match="arms must be given"):
        bandit.recommend(np.ones((2, DIM)), 1)
    bandit.learn(np.zeros((0, DIM)), [], [])  # nothing to learn, nobody to know
    assert bandit.arms == ()
    assert bandit.n_learned == 0


def test_scores_that_overflow_are_raised_not_returned():
    bandit = disjoint(op.Exact(dim=2, reg=1e-300), op.UCB(1e308))
    bandit.add_arm("a")
    for call in (bandit.decide, bandit.score, lambda x, arms: bandit.recommend(x[None], 1, arms)):
        with pytest.raises(FloatingPointError, match="not finite"):
            call(np.full(2, 1e100), ["a", "b"])
    assert bandit.arms == ("a",)


def test_a_duplicate_among_many_arms_is_found_at_once():
    """Each name beside each other one would be 2 x 10^8 comparisons."""
    compared = [0]

    class Name(int):
        __hash__ = int.__hash__

        def __eq__(self, other):
            compared[0] += 1
            return int(self) == int(other)

    names = [Name(number) for number in (*range(20_000), 19_999)]
    with pytest.raises(ValueError, match="19999 is there twice"):
        disjoint(op.Exact(dim=DIM)).score(np.ones(DIM), names)
    assert 0 < compared[0] < 10 * len(names)
