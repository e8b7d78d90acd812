"""Arms that learn by Newton steps in an arena: they are the estimator's own states, and the naive dense step."""

import numpy as np
import pytest

import onepass as op
from arm_games import CUTTING, DIM, NAMES, assert_close, data, learn_in_batches, slices
from counts import LONG

THEORY = op.UCB(op.Theory(noise=0.3, row_bound=4.0))
KINDS = {
    "OnlineNewton": lambda design: op.OnlineNewton(design),
    "OnlineNewton, step 2": lambda design: op.OnlineNewton(design, step=2.0),
    "OnePassHuber": lambda design: op.OnePassHuber(design, epsilon=0.4),
    "OnePassGLM, clicks": lambda design: op.OnePassGLM(design),
}


def arms(estimator, rule=None, **options):
    return op.Bandit(op.Disjoint(estimator, **options), op.UCB(0.5) if rule is None else rule)


class DenseNewton:
    """theta <- theta + A^-1 (r - x^T theta) x; whenever `cut` says so A is another one, and theta stays."""

    def __init__(self, dim, reg, cut):
        self.data, self.ridge, self.theta, self.cut, self.mass = np.zeros((dim, dim)), reg, np.zeros(dim), cut, 0.0

    @property
    def matrix(self):
        return self.data + self.ridge * np.eye(len(self.theta))

    def learn(self, x, reward, last):
        self.data = self.data + np.outer(x, x)
        self.mass += x @ x
        self.theta = self.theta + np.linalg.solve(self.matrix, x) * (reward - x @ self.theta)
        values, vectors = np.linalg.eigh(self.data)
        kept, self.ridge = self.cut(self, values, last)
        self.data = (vectors * kept) @ vectors.T


def spectral(rank, reg, compensate):
    """Shustova et al.'s truncation: above 2 rank directions, and at the end of a batch, only `rank` of them stay."""

    def cut(arm, values, last):
        held = np.count_nonzero(values > 1e-9 * values.max())
        if held < 2 * rank and not (last and held > rank):
            return values, arm.ridge
        total, kept = values + arm.ridge, np.arange(len(values)) >= len(values) - rank
        ridge = reg
        if compensate:
            ridge += max(arm.mass - (total[kept] - reg).sum(), 0.0) / (len(values) - rank)
        return np.where(kept, np.maximum(total - ridge, 0.0), 0.0), ridge

    return cut


# ---- the same as one state an arm ----


CASES = [("OnlineNewton", design) for design in (op.Exact(dim=DIM, reg=0.37), *CUTTING[:6])]
CASES += [(kind, design) for kind in (list(KINDS)[1:] if LONG else []) for design in CUTTING[3:6:2]]


@pytest.mark.parametrize(("kind", "design"), CASES, ids=str)
def test_an_arm_of_an_arena_equals_one_state_of_its_estimator(kind, design):
    rows, rewards, names = data(240)
    rewards = (rewards > 0.0).astype(float) if kind.endswith("clicks") else rewards
    rule = THEORY if kind == "OnlineNewton" else op.UCB(0.5)
    pair = [learn_in_batches(arms(KINDS[kind](design), rule, compact=c), rows, rewards, names) for c in (None, False)]
    assert pair[0].model.estimator.compact
    queries = np.random.default_rng(5).standard_normal((20, 1, DIM))
    assert_close(pair[0].score(queries), pair[1].score(queries), 1e-8)  # radii too
    assert_close(pair[0].model.parameter_of("a"), pair[1].model.parameter_of("a"), 1e-8)
    for bandit in pair:
        bandit.remove_arm("d")
        bandit.learn(rows[:9], rewards[:9], ["d"] * 9)
    assert_close(pair[0].score(queries), pair[1].score(queries), 1e-8)  # nothing of the first "d" is left
    if not isinstance(design, op.Exact):
        assert (pair[0].model.state.store.state.outside >= 0).all()  # every arm was cut


@pytest.mark.parametrize("compensate", [False, True])
@pytest.mark.parametrize("reg", [0.02, 0.37, 20.0])
def test_arms_truncated_by_the_spectrum_equal_the_naive_dense_step(reg, compensate):
    rank = 3
    rows, rewards, names = data(240)
    design = op.ProjectorSplitting(dim=DIM, rank=rank, reg=reg, compensate=compensate)
    bandit = arms(op.OnlineNewton(design))
    naive = {arm: DenseNewton(DIM, reg, spectral(rank, reg, compensate)) for arm in NAMES}
    for part in slices(240):
        bandit.learn(rows[part], rewards[part], names[part])
        for arm, one in naive.items():
            chosen = [i for i in range(part.start, part.stop) if names[i] == arm]
            for i in chosen:
                one.learn(rows[i], rewards[i], i == chosen[-1])
    decision = bandit.decide(rows[:20, None], NAMES)
    for a, (arm, one) in enumerate(naive.items()):
        inverse = np.linalg.inv(one.matrix)
        assert_close(bandit.model.parameter_of(arm), one.theta, 1e-7)
        assert_close(decision.means[:, a], rows[:20] @ one.theta, 1e-7)
        assert_close(decision.widths[:, a] ** 2, np.einsum("ij,jk,ik->i", rows[:20], inverse, rows[:20]), 1e-7)


# ---- what an arm is: files, copies, memory, explanations ----


@pytest.fixture(scope="module")
def cut():
    """A bandit whose arms were cut, and the rows it goes on with."""
    rows, rewards, names = data(300)
    bandit = arms(op.OnlineNewton(op.FrequentDirections(dim=DIM, size=2, reg=0.37)))
    return learn_in_batches(bandit, rows[:240], rewards[:240], names[:240]), (rows[240:], rewards[240:], names[240:])


def test_arms_of_newton_steps_are_saved_moved_and_published_and_continue_exactly(cut, tmp_path):
    bandit, more = cut[0].copy(), cut[1]
    bandit.save(tmp_path / "arms")
    moved, snapshot = bandit.copy(), bandit.snapshot()
    for name in NAMES:
        model = op.from_bytes(op.to_bytes(bandit.model.export_arm(name)))
        moved.remove_arm(name)
        moved.model.import_arm(name, model)
    twins = [bandit, op.load(tmp_path / "arms"), moved]
    x = more[0][0]
    before = bandit.score(x, NAMES)
    for twin in twins:
        learn_in_batches(twin, *more)
    for twin in twins[1:]:
        assert np.array_equal(twin.score(x, NAMES), bandit.score(x, NAMES))
    assert np.array_equal(snapshot.score(x, NAMES), before)
    assert not np.array_equal(bandit.score(x, NAMES), before)


def test_what_an_arm_keeps_is_theta_and_nothing_of_the_moment(cut):
    bandit, more = cut[0].copy(), cut[1]
    other = bandit.copy()
    other.model.state.store.state.moment.fill(np.nan)
    for twin in (bandit, other):
        learn_in_batches(twin, *more)
    assert np.array_equal(bandit.score(more[0][0], NAMES), other.score(more[0][0], NAMES))


def test_newton_steps_need_no_more_memory_than_ridge_regression(cut):
    rows, rewards, names = data(300)
    ridge = learn_in_batches(
        op.Bandit(op.Disjoint(op.Ridge(op.FrequentDirections(dim=DIM, size=2, reg=0.37)))), rows, rewards, names
    )
    bandit = learn_in_batches(cut[0].copy(), *cut[1])
    own = bandit.model.state.store.state.memory.nbytes  # three numbers an arm, of the radius
    assert bandit.memory_usage() - own <= ridge.memory_usage()


def test_explanations_of_arms_that_were_cut_add_up(cut):
    x = cut[1][0][0]
    found = cut[0].explain(x, arms=NAMES)
    decision = cut[0].decide(x, NAMES)
    place = NAMES.index(found.arm)
    assert_close(sum(term.contribution for term in found.terms), decision.means[place])
    assert_close(sum(term.share for term in found.terms), decision.widths[place] ** 2)


@pytest.mark.parametrize("compact", [False, True] if LONG else [False])
def test_float32_arms_err_by_a_few_roundings(compact):
    rows, rewards, names = data(300)
    scores = []
    for dtype in ("float32", "float64"):
        design = op.FrequentDirections(dim=DIM, size=3, reg=0.02, dtype=dtype)
        bandit = op.Bandit(op.Disjoint(op.OnlineNewton(design), compact=compact), op.UCB(0.1))
        scores.append(learn_in_batches(bandit, rows, rewards, names).score(rows[:5, None]))
    assert_close(*scores, 2e-3)


# ---- merging ----


def test_arms_on_exact_designs_are_ridge_regression_and_merge():
    rows, rewards, names = data(240)
    make = lambda kind: op.Bandit(op.Disjoint(kind(op.Exact(dim=DIM, reg=0.37))), THEORY)  # noqa: E731
    parts = [
        learn_in_batches(make(op.OnlineNewton), *(v[p] for v in (rows, rewards, names)))
        for p in (slice(99), slice(99, 240))
    ]
    whole = learn_in_batches(make(op.OnlineNewton), rows, rewards, names)
    assert_close(parts[0].merge(parts[1]).score(rows[:9, None]), whole.score(rows[:9, None]))
    assert_close(
        whole.model.parameter_of("a"), learn_in_batches(make(op.Ridge), rows, rewards, names).model.parameter_of("a")
    )


def test_arms_on_sketches_do_not_merge(cut):
    with pytest.raises(TypeError, match="merge is not defined for OnlineNewton"):
        cut[0].copy().merge(cut[0].copy())
