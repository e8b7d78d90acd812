"""What a bandit on shards does beside decisions: reasons by names of features, certificates, moving arms."""

import numpy as np
import pytest

import onepass as op
from onepass.cluster import ShardedBandit

DIM = 4
NAMES = ["hour", "country", "age", "price"]
MODELS = {
    "frequent directions": lambda: op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.3))),
    "hybrid": lambda: op.Hybrid(shared=op.Ridge(op.Exact(dim=DIM, reg=0.3)), arms=op.Ridge(op.Exact(dim=DIM, reg=0.9))),
}


@pytest.mark.parametrize("models", MODELS)
def test_answers_are_those_of_one_process(models):
    rng = np.random.default_rng(0)
    one, many = op.Bandit(MODELS[models](), op.UCB(0.3)), ShardedBandit(op.Bandit(MODELS[models](), op.UCB(0.3)), 2)
    rows, rewards, names = rng.standard_normal((60, DIM)), rng.random(60), [f"arm {a}" for a in rng.integers(0, 7, 60)]
    x = rng.standard_normal(DIM)
    for bandit in (one, many):
        bandit.learn(rows, rewards, names)
    for arm, other in ((None, None), ("arm 1", "arm 5")):
        mine, its = (bandit.explain(x, arm, other, names=NAMES) for bandit in (one, many))
        assert str(its) == str(mine)
        assert NAMES[0] in str(its)
    for arm in one.arms:
        np.testing.assert_array_equal(many.model.parameter_of(arm), one.model.parameter_of(arm))
        assert many.model.rows_of(arm) == one.model.rows_of(arm)
    assert many.error_bound() == one.error_bound()
    with pytest.raises(ValueError, match="names"):
        many.explain(x, names=NAMES[:-1])


def test_arms_move_between_shards_of_two_bandits_and_one_process_bit_for_bit(tmp_path):
    recipe = lambda: op.Bandit(MODELS["frequent directions"](), op.UCB(0.3))  # noqa: E731
    rng = np.random.default_rng(1)
    one, x = recipe(), rng.standard_normal((30, DIM))
    one.learn(x, rng.random(30), [f"arm {a}" for a in rng.integers(0, 5, 30)])
    with ShardedBandit(recipe(), 3, folder=tmp_path) as many:
        for arm in one.arms:
            many.import_arm(arm, one.model.export_arm(arm))
    with ShardedBandit.open(tmp_path) as again:
        assert (again.n_learned, again.arms) == (one.n_learned, one.arms)
        back = recipe()
        for arm in again.arms:
            back.model.import_arm(arm, again.export_arm(arm))
        for bandit in (again, back):
            np.testing.assert_array_equal(bandit.score(x[0]), one.score(x[0]))
            assert [bandit.model.rows_of(arm) for arm in one.arms] == [one.model.rows_of(arm) for arm in one.arms]
        with pytest.raises(ValueError, match="learned"):
            again.import_arm("arm 1", one.model.export_arm("arm 2"))
