"""Models per arm equal one dense model an arm, whatever the batches, the order, the threads and the design."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dense
import onepass as op
from arm_games import CUTTING, DIM, NAMES, assert_close, data, disjoint, hybrid, learn_in_batches, slices
from counts import LONG
from onepass.arena import arena
from onepass.arena import packed_store as compact
from onepass.foundation import state as states
from onepass.testing import REGS, rows_of_all_kinds

EXACT_DESIGNS = {  # name: (rank of the data, the design, which is exact on such data)
    "Exact": (DIM, lambda reg: op.Exact(dim=DIM, reg=reg)),
    "FrequentDirections": (5, lambda reg: op.FrequentDirections(dim=DIM, size=3, reg=reg)),
    "RobustFrequentDirections": (DIM, lambda reg: op.RobustFrequentDirections(dim=DIM, size=DIM, reg=reg)),
    "ProjectorSplitting": (3, lambda reg: op.ProjectorSplitting(dim=DIM, rank=3, reg=reg)),
    "ProjectorSplitting, full": (DIM, lambda reg: op.ProjectorSplitting(dim=DIM, rank=DIM, reg=reg, compensate=True)),
}


# ---- disjoint scores ----


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("kind", EXACT_DESIGNS)
def test_disjoint_scores_equal_independent_dense_models_while_arms_come_and_go(kind, reg):
    rank, design = EXACT_DESIGNS[kind]
    rows, rewards, names = data(300, rank)
    queries = np.random.default_rng(5).standard_normal((20, DIM))
    bandit, naive = disjoint(design(reg)), dense.Disjoint(DIM, reg, 0.5)
    bandit.add_arm("never learned")
    offered = [*NAMES, "never learned", "unknown"]
    for step, part in enumerate(slices(300)):
        bandit.learn(rows[part], rewards[part], names[part])
        for i in range(part.start, part.stop):
            naive.learn(rows[i], rewards[i], names[i])
        if step in (9, 20):
            bandit.remove_arm("a")
            naive.remove("a")
        if step == 20:
            bandit.add_arm("a")  # comes back without its past
            assert bandit.model.rows_of("a") == 0
        assert_close(bandit.score(queries[0], offered), naive.scores(np.tile(queries[0], (6, 1)), offered))
        assert_close(bandit.score(queries[:6], offered), naive.scores(queries[:6], offered))
    every = bandit.score(queries[:, None], offered)
    assert_close(every, np.stack([naive.scores(np.tile(x, (6, 1)), offered) for x in queries]))
    own = queries[:18].reshape(3, 6, DIM)
    assert_close(bandit.score(own, offered), np.stack([naive.scores(x, offered) for x in own]))
    assert "unknown" not in bandit.arms
    for arm in NAMES:
        theta = np.linalg.solve(naive.arms[arm].matrix, naive.arms[arm].moment)
        assert_close(bandit.model.parameter_of(arm), theta)
    assert not bandit.model.parameter_of("never learned").any()
    thetas, inverses = bandit.model.models_of(offered)
    fresh = naive.fresh()
    for arm, theta, inverse in zip(offered, thetas, inverses, strict=True):
        one = naive.arms.get(arm, fresh)
        assert_close(theta, np.linalg.solve(one.matrix, one.moment))
        assert_close(inverse, np.linalg.inv(one.matrix), 1e-8)


def test_models_are_what_arms_are_scored_by_also_where_they_forget_and_hybrid_ones_are_refused():
    rows, rewards, names = data(60)
    for half_life, dtype in ((None, "float32"), (20.0, "float64")):
        parts = op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=0.37, dtype=dtype)))
        bandit = learn_in_batches(op.Bandit(parts, op.UCB(0.5), half_life=half_life), rows, rewards, names)
        thetas, inverses = bandit.model.models_of()
        assert thetas.dtype == inverses.dtype == dtype
        seen, close = bandit.decide(rows[0]), 1e-4 if dtype == "float32" else 1e-9
        assert_close(thetas @ rows[0], seen.means, close)
        assert_close(np.sqrt(rows[0] @ inverses @ rows[0]), seen.widths, close)
    with pytest.raises(ValueError, match="not defined for hybrid models"):
        learn_in_batches(hybrid(), rows, rewards, names).model.models_of(["a"])


@pytest.mark.parametrize("kind", EXACT_DESIGNS)
def test_an_arm_without_data_is_scored_exactly_as_a_fresh_design(kind):
    design = EXACT_DESIGNS[kind][1](0.37)
    bandit, x = disjoint(design), np.random.default_rng(1).standard_normal(DIM)
    width = np.sqrt(design.inverse_quadratic(x))[0]
    bandit.learn(x, 1.0, "other")
    bandit.add_arm("known")
    decision = bandit.decide(x, ["known", "unknown"])
    np.testing.assert_allclose(decision.widths, width, rtol=1e-14)
    np.testing.assert_array_equal(decision.means, 0.0)
    np.testing.assert_array_equal(bandit.score(x, ["known", "never heard of"]), 0.5 * decision.widths)


def test_float32_errs_by_a_few_roundings_times_the_condition_number():
    rows, rewards, names = data(300)
    for kind in ("Exact", "FrequentDirections") if LONG else ("Exact",):
        design = op.Exact if kind == "Exact" else op.FrequentDirections
        size = {} if kind == "Exact" else {"size": DIM}
        bandit = learn_in_batches(disjoint(design(dim=DIM, reg=0.37, dtype="float32", **size)), rows, rewards, names)
        naive = dense.Disjoint(DIM, 0.37, 0.5)
        for row, reward, name in zip(rows, rewards, names, strict=True):
            naive.learn(row, reward, name)
        condition = max(np.linalg.cond(arm.matrix) for arm in naive.arms.values())
        # one rounding for each of DIM products in each of ~75 updates an arm; they are independent: sqrt(75)
        tolerance = condition * DIM * np.sqrt(75) * np.finfo(np.float32).eps
        assert tolerance < 0.01
        assert_close(bandit.score(rows[:4], NAMES), naive.scores(rows[:4], NAMES), tolerance)
        assert bandit.model.state.store.state.basis.dtype == np.float32
        assert bandit.model.parameter_of("a").dtype == np.float32


@pytest.mark.parametrize("kind", ["random", "unit", "low rank", "duplicated", "zeros", "badly scaled"])
@pytest.mark.parametrize("sizes", [(1,), (120,), (7, 50)])
def test_rows_of_all_kinds_are_learned_to_the_last_digits(kind, sizes):
    dim = 30  # more than one chunk of rows, and of directions
    rows = dict(rows_of_all_kinds(dim, 120))[kind]
    queries = np.vstack([np.random.default_rng(3).standard_normal((5, dim)), rows[:5], rows[-5:]])
    for design in (op.Exact(dim=dim, reg=0.37), op.ProjectorSplitting(dim=dim, rank=dim, reg=0.37)):
        bandit = learn_in_batches(disjoint(design), rows, rows[:, 0], ["a"] * 120, sizes)
        inverse = dense.inverse(rows, 0.37)
        want = np.einsum("ij,jk,ik->i", queries, inverse, queries)
        allowed = 1e-8 * np.einsum("ij,ij->i", queries, queries) * np.linalg.norm(inverse, 2)
        single = np.array([bandit.decide(x, ["a"]).widths[0] for x in queries])
        many = bandit.decide(queries[:, None], ["a"]).widths[:, 0]
        assert (np.abs(single**2 - want) <= allowed).all()
        assert (np.abs(many**2 - want) <= allowed).all()
        if kind != "badly scaled":  # there theta itself is determined to a few digits only
            theta = inverse @ rows.T @ rows[:, 0]
            np.testing.assert_allclose(bandit.model.parameter_of("a"), theta, atol=1e-8)


# ---- compact and separate ----


@pytest.mark.parametrize("design", [EXACT_DESIGNS[kind][1](0.37) for kind in EXACT_DESIGNS] + CUTTING, ids=repr)
def test_one_arena_and_one_state_an_arm_agree(design):
    rank = (
        DIM if design in CUTTING else next(r for r, make in EXACT_DESIGNS.values() if repr(make(0.37)) == repr(design))
    )
    rows, rewards, names = data(240, rank)
    theory = op.UCB(op.Theory(noise=0.3, row_bound=4.0))
    both = [learn_in_batches(disjoint(design, theory, compact=c), rows, rewards, names) for c in (True, False)]
    queries = np.random.default_rng(5).standard_normal((20, 1, DIM))
    assert_close(both[0].score(queries), both[1].score(queries))  # radii too
    assert_close(both[0].model.parameter_of("a"), both[1].model.parameter_of("a"))
    rounding = 1e-9 * np.linalg.norm(rows) ** 2  # is part of both certificates, and not the same
    np.testing.assert_allclose(both[0].error_bound(), both[1].error_bound(), rtol=1e-9, atol=rounding)
    if design in CUTTING:
        assert both[0].error_bound() > 0.0
        assert (both[0].model.state.store.state.outside >= 0).all()  # every arm was cut, many times
    for bandit in both:
        bandit.remove_arm("d")
        bandit.learn(rows[0], rewards[0], "d")
    assert_close(both[0].score(queries), both[1].score(queries))  # nothing of the first "d" is left
    for bandit in both:
        bandit.learn(rows[:9], rewards[:9], ["d"] * 9)
    assert_close(both[0].score(queries), both[1].score(queries))
    assert [bandit.model.rows_of("d") for bandit in both] == [10, 10]


@pytest.mark.parametrize("compensate", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_projector_splitting_in_the_arena_truncates_by_the_spectrum(rank, compensate):
    rows, rewards, names = data(240)
    theory = op.Theory(noise=0.3, delta=0.05)
    design = op.ProjectorSplitting(dim=DIM, rank=rank, reg=0.37, compensate=compensate)
    bandit = disjoint(design, op.UCB(theory))
    naive = {arm: dense.SpectralTruncation(DIM, rank, 0.37, compensate) for arm in NAMES}
    for part in slices(240):
        bandit.learn(rows[part], rewards[part], names[part])
        for arm, one in naive.items():
            chosen = [i for i in range(part.start, part.stop) if names[i] == arm]
            one.learn(rows[chosen], rewards[chosen])
    decision = bandit.decide(rows[:20, None], NAMES)
    for a, one in enumerate(naive.values()):
        inverse = np.linalg.inv(one.matrix)
        assert_close(decision.means[:, a], rows[:20] @ inverse @ one.moment, 1e-8)
        assert_close(decision.widths[:, a] ** 2, np.einsum("ij,jk,ik->i", rows[:20], inverse, rows[:20]), 1e-8)
        gain = max(np.linalg.slogdet(one.matrix)[1] - DIM * np.log(0.37), 0.0)
        radius = 0.3 * np.sqrt(gain + 2 * np.log(1 / 0.05)) + np.sqrt(one.ridge)
        assert_close(decision.scores[:, a] - decision.means[:, a], radius * decision.widths[:, a], 1e-8)
    assert bandit.error_bound() == np.inf


def test_dyadic_arms_equal_independent_bandits():
    rows, rewards, names = data(200)
    design = op.Dyadic(dim=DIM, size=1, error=8.0, reg=0.37)
    bandit = learn_in_batches(disjoint(design), rows, rewards, names)
    for arm in NAMES:
        chosen = [i for i, name in enumerate(names) if name == arm]
        alone = op.Bandit(op.Ridge(design), op.UCB(0.5))
        alone.learn(rows[chosen], rewards[chosen])
        assert_close(bandit.score(rows[0], [arm]), alone.score(rows[:1]))
        assert_close(bandit.model.parameter_of(arm), alone.model.parameter)
    bound = bandit.error_bound()
    assert 0.0 < bound <= 16.0
    bandit.remove_arm("a")
    assert bandit.error_bound() <= bound
    assert_close(bandit.score(rows[0], ["a"]), 0.5 * np.linalg.norm(rows[:1], axis=1) / np.sqrt(0.37))


# ---- order and threads ----


@pytest.mark.parametrize("kind", EXACT_DESIGNS)
def test_the_order_of_rows_and_batches_does_not_change_exact_members(kind):
    rank, design = EXACT_DESIGNS[kind]
    rows, rewards, names = data(200, rank)
    queries = np.random.default_rng(5).standard_normal((9, 1, DIM))
    want = learn_in_batches(disjoint(design(0.37)), rows, rewards, names).score(queries, NAMES)
    order = np.random.default_rng(2).permutation(200)
    for sizes in ((200,), (1,), (3, 50)):
        shuffled = learn_in_batches(
            disjoint(design(0.37)), rows[order], rewards[order], [names[i] for i in order], sizes
        )
        assert_close(shuffled.score(queries, NAMES), want)


@pytest.mark.parametrize("kind", ["Exact", "FrequentDirections", "ProjectorSplitting", "Hybrid"])
def test_results_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    jobs = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            jobs.append(args)
            return super().submit(*args, **kwargs)

    monkeypatch.setattr(compact, "ThreadPoolExecutor", Counting)
    monkeypatch.setattr(compact, "BLOCK_BYTES", 100_000)  # many blocks of arms
    rng = np.random.default_rng(3)
    count = 70_000
    rows, names = rng.standard_normal((count, DIM)), (rng.random(count) ** 3 * 3000).astype(int)  # few arms with many
    assert rows.size > 500_000
    ends = {}
    for threads in (1, 2, 5):
        if kind == "Hybrid":
            bandit = hybrid(threads=threads)
        elif kind == "Exact":
            bandit = disjoint(op.Exact(dim=DIM), threads=threads)
        elif kind == "FrequentDirections":
            bandit = disjoint(op.FrequentDirections(dim=DIM, size=2), threads=threads)
        else:
            bandit = disjoint(op.ProjectorSplitting(dim=DIM, rank=2), threads=threads)
        for part in (slice(0, 300), slice(300, None)):
            bandit.learn(rows[part], rows[part, 0], names[part])
        ends[threads] = dict(states.leaves(bandit.model.contents().state))
        assert (len(jobs) > 0) == (threads > 1)
        assert arena.is_consistent(bandit.model.state.store.to_state())
    assert len(jobs) > 20
    for name, value in ends[1].items():
        for threads in (2, 5):
            np.testing.assert_array_equal(ends[threads][name], value, err_msg=f"{name} with {threads} threads")
