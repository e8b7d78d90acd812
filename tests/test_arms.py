"""Models per arm: equal to one dense model an arm, whatever the batches, the threads, and the arms that come and go."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dense
import onepass as op
import onepass.bandit.bandit
from onepass.arena import arena, stores
from onepass.estimator.radii import confidence_radius
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.testing import REGS, rows_of_all_kinds

DIM, LEFT, RIGHT = 8, 4, 3
NAMES = ["a", 7, ("pair", 2), "d"]
EXACT_DESIGNS = {  # name: (rank of the data, the design, which is exact on such data)
    "Exact": (DIM, lambda reg: op.Exact(dim=DIM, reg=reg)),
    "FrequentDirections": (5, lambda reg: op.FrequentDirections(dim=DIM, size=3, reg=reg)),
    "RobustFrequentDirections": (DIM, lambda reg: op.RobustFrequentDirections(dim=DIM, size=DIM, reg=reg)),
    "ProjectorSplitting": (3, lambda reg: op.ProjectorSplitting(dim=DIM, rank=3, reg=reg)),
    "ProjectorSplitting, full": (DIM, lambda reg: op.ProjectorSplitting(dim=DIM, rank=DIM, reg=reg, compensate=True)),
}
CUTTING = [op.FrequentDirections(dim=DIM, size=s, reg=0.37, compensation=c) for s in (1, 2, 3) for c in (0.0, 0.5, 1.0)]


def data(count, rank=DIM, seed=0, names=NAMES):
    """Rows (count, DIM) of a given rank, rewards (count,), and the arm of each row."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, rank)) @ (np.eye(DIM) if rank == DIM else rng.standard_normal((rank, DIM)))
    rewards = rows @ rng.standard_normal(DIM) + 0.1 * rng.standard_normal(count)
    return rows, rewards, [names[i] for i in rng.integers(0, len(names), count)]


def slices(count, sizes=(1, 1, 17, 2, 40, 1, 5)):
    """Uneven batches of `count` rows."""
    edges, step = [0], cycle(sizes)
    while edges[-1] < count:
        edges.append(min(edges[-1] + next(step), count))
    return [slice(a, b) for a, b in pairwise(edges)]


def disjoint(design, rule=None, seed=0, **options):
    return op.Bandit(op.Disjoint(op.Ridge(design), **options), op.UCB(0.5) if rule is None else rule, seed=seed)


def learned(bandit, rows, rewards, names, sizes=(1, 1, 17, 2, 40, 1, 5)):
    for part in slices(len(rows), sizes):
        bandit.learn(rows[part], rewards[part], names[part])
    return bandit


def hybrid(reg=0.37, exploration=0.5, **options):
    parts = {"shared": op.Ridge(op.Exact(dim=DIM, reg=reg)), "arms": op.Ridge(op.Exact(dim=DIM, reg=reg))}
    return op.Bandit(op.Hybrid(**parts, **options), op.UCB(exploration))


def fingerprint(bandit):
    """Everything that learning could change, as plain bytes."""
    saved = [(name, np.asarray(value).tobytes()) for name, value in states.leaves(bandit.copy()._saved())]
    return saved, bandit.arms, bandit.rounds, bandit._rng.bit_generator.state


def assert_close(got, want, tolerance=1e-9):
    """Relative to the largest entry."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=tolerance * np.abs(want).max())


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
            assert bandit.rows_of("a") == 0
        assert_close(bandit.score(queries[0], offered), naive.scores(np.tile(queries[0], (6, 1)), offered))
        assert_close(bandit.score(queries[:6], offered), naive.scores(queries[:6], offered))
    every = bandit.score(queries[:, None], offered)
    assert_close(every, np.stack([naive.scores(np.tile(x, (6, 1)), offered) for x in queries]))
    own = queries[:18].reshape(3, 6, DIM)
    assert_close(bandit.score(own, offered), np.stack([naive.scores(x, offered) for x in own]))
    assert "unknown" not in bandit.arms
    for arm in NAMES:
        theta = np.linalg.solve(naive.arms[arm].matrix, naive.arms[arm].moment)
        assert_close(bandit.parameter_of(arm), theta)
    assert not bandit.parameter_of("never learned").any()


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
    for kind in ("Exact", "FrequentDirections"):
        design = op.Exact if kind == "Exact" else op.FrequentDirections
        size = {} if kind == "Exact" else {"size": DIM}
        bandit = learned(disjoint(design(dim=DIM, reg=0.37, dtype="float32", **size)), rows, rewards, names)
        naive = dense.Disjoint(DIM, 0.37, 0.5)
        for row, reward, name in zip(rows, rewards, names, strict=True):
            naive.learn(row, reward, name)
        condition = max(np.linalg.cond(arm.matrix) for arm in naive.arms.values())
        # one rounding for each of DIM products in each of ~75 updates an arm; they are independent: sqrt(75)
        tolerance = condition * DIM * np.sqrt(75) * np.finfo(np.float32).eps
        assert tolerance < 0.01
        assert_close(bandit.score(rows[:4], NAMES), naive.scores(rows[:4], NAMES), tolerance)
        assert bandit._learned.store.state.basis.dtype == np.float32
        assert bandit.parameter_of("a").dtype == np.float32


@pytest.mark.parametrize("kind", ["random", "unit", "low rank", "duplicated", "zeros", "badly scaled"])
@pytest.mark.parametrize("sizes", [(1,), (120,), (7, 50)])
def test_rows_of_all_kinds_are_learned_to_the_last_digits(kind, sizes):
    dim = 30  # more than one chunk of rows, and of directions
    rows = dict(rows_of_all_kinds(dim, 120))[kind]
    queries = np.vstack([np.random.default_rng(3).standard_normal((5, dim)), rows[:5], rows[-5:]])
    for design in (op.Exact(dim=dim, reg=0.37), op.ProjectorSplitting(dim=dim, rank=dim, reg=0.37)):
        bandit = learned(disjoint(design), rows, rows[:, 0], ["a"] * 120, sizes)
        inverse = dense.inverse(rows, 0.37)
        want = np.einsum("ij,jk,ik->i", queries, inverse, queries)
        allowed = 1e-8 * np.einsum("ij,ij->i", queries, queries) * np.linalg.norm(inverse, 2)
        single = np.array([bandit.decide(x, ["a"]).widths[0] for x in queries])
        many = bandit.decide(queries[:, None], ["a"]).widths[:, 0]
        assert (np.abs(single**2 - want) <= allowed).all()
        assert (np.abs(many**2 - want) <= allowed).all()
        if kind != "badly scaled":  # there theta itself is determined to a few digits only
            theta = inverse @ rows.T @ rows[:, 0]
            np.testing.assert_allclose(bandit.parameter_of("a"), theta, atol=1e-8)


# ---- compact and separate ----


@pytest.mark.parametrize("design", [EXACT_DESIGNS[kind][1](0.37) for kind in EXACT_DESIGNS] + CUTTING, ids=repr)
def test_one_arena_and_one_state_an_arm_agree(design):
    rank = (
        DIM if design in CUTTING else next(r for r, make in EXACT_DESIGNS.values() if repr(make(0.37)) == repr(design))
    )
    rows, rewards, names = data(240, rank)
    theory = op.UCB(op.Theory(noise=0.3, row_bound=4.0))
    both = [learned(disjoint(design, theory, compact=c), rows, rewards, names) for c in (True, False)]
    queries = np.random.default_rng(5).standard_normal((20, 1, DIM))
    assert_close(both[0].score(queries), both[1].score(queries))  # radii too
    assert_close(both[0].parameter_of("a"), both[1].parameter_of("a"))
    rounding = 1e-9 * np.linalg.norm(rows) ** 2  # is part of both certificates, and not the same
    np.testing.assert_allclose(both[0].error_bound(), both[1].error_bound(), rtol=1e-9, atol=rounding)
    if design in CUTTING:
        assert both[0].error_bound() > 0.0
        assert (both[0]._learned.store.state.outside >= 0).all()  # every arm was cut, many times
    for bandit in both:
        bandit.remove_arm("d")
        bandit.learn(rows[0], rewards[0], "d")
    assert_close(both[0].score(queries), both[1].score(queries))  # nothing of the first "d" is left
    for bandit in both:
        bandit.learn(rows[:9], rewards[:9], ["d"] * 9)
    assert_close(both[0].score(queries), both[1].score(queries))
    assert [bandit.rows_of("d") for bandit in both] == [10, 10]


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
    bandit = learned(disjoint(design), rows, rewards, names)
    for arm in NAMES:
        chosen = [i for i, name in enumerate(names) if name == arm]
        alone = op.Bandit(op.Ridge(design), op.UCB(0.5))
        alone.learn(rows[chosen], rewards[chosen])
        assert_close(bandit.score(rows[0], [arm]), alone.score(rows[:1]))
        assert_close(bandit.parameter_of(arm), alone.parameter)
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
    want = learned(disjoint(design(0.37)), rows, rewards, names).score(queries, NAMES)
    order = np.random.default_rng(2).permutation(200)
    for sizes in ((200,), (1,), (3, 50)):
        shuffled = learned(disjoint(design(0.37)), rows[order], rewards[order], [names[i] for i in order], sizes)
        assert_close(shuffled.score(queries, NAMES), want)


@pytest.mark.parametrize("kind", ["Exact", "FrequentDirections", "ProjectorSplitting", "Hybrid"])
def test_results_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    jobs = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            jobs.append(args)
            return super().submit(*args, **kwargs)

    monkeypatch.setattr(stores, "ThreadPoolExecutor", Counting)
    monkeypatch.setattr(stores, "BLOCK_BYTES", 100_000)  # many blocks of arms
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
        ends[threads] = dict(states.leaves(bandit._saved()))
        assert (len(jobs) > 0) == (threads > 1)
        assert arena.orderly(bandit._learned.store.state)
    assert len(jobs) > 20
    for name, value in ends[1].items():
        for threads in (2, 5):
            np.testing.assert_array_equal(ends[threads][name], value, err_msg=f"{name} with {threads} threads")


# ---- hybrid ----


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_hybrid_equals_the_joint_ridge_regression(reg, compact):
    rows, rewards, names = data(200)
    bandit, naive = hybrid(reg, compact=compact), dense.Hybrid([*NAMES, "new"], DIM, DIM, reg, 0.5)
    offered = [*NAMES, "new"]
    for part in slices(200):
        bandit.learn(rows[part], rewards[part], names[part])
        for i in range(part.start, part.stop):
            naive.learn(rows[i], rewards[i], names[i])
        assert_close(bandit.score(rows[part.start], offered), naive.scores(np.tile(rows[part.start], (5, 1)), offered))
    assert_close(bandit.score(rows[:5], offered), naive.scores(rows[:5], offered))
    want = np.stack([naive.scores(np.tile(x, (5, 1)), offered) for x in rows[:7]])
    assert_close(bandit.score(rows[:7, None], offered), want)
    own = rows[:30].reshape(6, 5, DIM)
    assert_close(bandit.score(own, offered), np.stack([naive.scores(x, offered) for x in own]))
    decision = bandit.decide(rows[0], offered)
    np.testing.assert_allclose(decision.scores, decision.means + 0.5 * decision.widths, rtol=1e-12)


def test_hybrid_does_not_depend_on_the_order_of_rows():
    rows, rewards, names = data(120)
    order = np.random.default_rng(2).permutation(120)
    one = learned(hybrid(), rows, rewards, names, (120,))
    other = learned(hybrid(), rows[order], rewards[order], [names[i] for i in order], (1, 9))
    assert_close(other.score(rows[:7, None], NAMES), one.score(rows[:7, None], NAMES))


def test_hybrid_parameters_of_an_arm_are_its_means_of_unit_contexts():
    rows, rewards, names = data(100)
    bandit = learned(hybrid(exploration=0.0), rows, rewards, names)
    for arm in NAMES:
        assert_close(bandit.parameter_of(arm), bandit.score(np.eye(DIM)[:, None], [arm])[:, 0])


@pytest.mark.parametrize("exploration", [0.5, -0.3])
def test_hybrid_with_factors_equals_the_joint_regression_on_products(exploration):
    left, right, rewards, names, arms = factor_data(120)
    make = lambda reduce: op.Bandit(  # noqa: E731
        op.Hybrid(
            shared=op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)),
            arms=op.Ridge(op.Exact(dim=LEFT if reduce else LEFT * RIGHT, reg=0.37)),
        ),
        op.UCB(exploration),
        features=op.OuterProduct(left=LEFT, right=RIGHT, reduce=reduce),
    )
    bandits, offered = (make(True), make(False)), list(arms)
    full = np.einsum("ni,nj->nij", left, right).reshape(120, -1)
    naive = dense.Hybrid(offered, LEFT * RIGHT, LEFT * RIGHT, 0.37, exploration)
    for part in slices(120):
        for bandit in bandits:
            bandit.learn(op.Outer(left[part], right[part]), rewards[part], names[part])
    for i in range(120):
        naive.learn(full[i], rewards[i], names[i])
    queries, sides = np.random.default_rng(8).standard_normal((5, LEFT)), np.stack(list(arms.values()))
    want = [naive.scores(np.einsum("i,kj->kij", u, sides).reshape(len(sides), -1), offered) for u in queries]
    for bandit in bandits:
        assert_close(bandit.score(op.Outer(queries, sides), offered), np.stack(want))
        assert_close(bandit.score(op.Outer(queries[0], sides), offered), want[0])


@pytest.mark.parametrize("compact", [True, False])
def test_a_hybrid_model_over_sketches_learns_what_is_shared(compact):
    rows, rewards, names = data(1200)  # the same parameter for all arms
    parts = {
        "shared": op.Ridge(op.FrequentDirections(dim=DIM, size=6)),
        "arms": op.Ridge(op.RobustFrequentDirections(dim=DIM, size=2)),
    }
    bandit = op.Bandit(op.Hybrid(**parts, compact=compact), op.Greedy())
    learned(bandit, rows[:1000], rewards[:1000], names[:1000])
    error = bandit.score(rows[1000:, None], [*NAMES, "new"]) - rewards[1000:, None]
    assert (error**2).mean() < 0.1 * rewards.var()
    assert bandit.error_bound() > 0.0


# ---- factors ----


def factor_data(count, seed=0, signed=True):
    """left (count, LEFT), right (count, RIGHT), rewards, names, {name: factor}; signed: each row scales its factor."""
    rng = np.random.default_rng(seed)
    arms = {name: rng.standard_normal(RIGHT) for name in (*NAMES, "e", "zero")}
    arms["zero"] = np.zeros(RIGHT)
    left, names = rng.standard_normal((count, LEFT)), [list(arms)[i] for i in rng.integers(0, len(arms), count)]
    scales = rng.uniform(-2.0, 2.0, count) if signed else np.ones(count)
    right = np.stack([arms[name] for name in names]) * scales[:, None]
    return left, right, rng.standard_normal(count), names, arms


def outer(reduce, design=None, rule=None, **options):
    width = LEFT if reduce else LEFT * RIGHT
    design = op.Exact(dim=width, reg=options.pop("reg", 0.37)) if design is None else design
    features = op.OuterProduct(left=LEFT, right=RIGHT, reduce=reduce)
    return op.Bandit(op.Disjoint(op.Ridge(design), **options), op.UCB(0.5) if rule is None else rule, features=features)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("reg", REGS)
def test_reduced_factors_give_the_scores_of_the_full_products(reg, compact):
    left, right, rewards, names, arms = factor_data(200)
    bandits = outer(True, reg=reg, compact=compact), outer(False, reg=reg, compact=compact)
    naive, full = dense.Disjoint(LEFT * RIGHT, reg, 0.5), np.einsum("ni,nj->nij", left, right).reshape(200, -1)
    for part in slices(200):
        for bandit in bandits:
            bandit.learn(op.Outer(left[part], right[part]), rewards[part], names[part])
    for bandit in bandits:
        bandit.learn(op.Outer(left[0], right[0]), rewards[0], names[0])  # a single row
    for i in (*range(200), 0):
        naive.learn(full[i], rewards[i], names[i])
    users, sides = (
        np.random.default_rng(8).standard_normal((6, LEFT)),
        -1.5 * np.stack([*arms.values(), np.ones(RIGHT)]),
    )
    offered = [*arms, "new"]
    want = [naive.scores(np.einsum("i,kj->kij", u, sides).reshape(len(sides), -1), offered) for u in users]
    for bandit in bandits:
        assert_close(bandit.score(op.Outer(users, sides), offered), np.stack(want))
        assert_close(bandit.score(op.Outer(users[0], sides), offered), want[0])
    assert bandits[0].memory_usage() < bandits[1].memory_usage() / 2


def test_sketched_products_of_enough_rank_equal_the_reduced_model():
    left, right, rewards, names, arms = factor_data(200, signed=False)
    reduced = outer(True)
    sketched = outer(False, op.ProjectorSplitting(dim=LEFT * RIGHT, rank=LEFT, reg=0.37))
    for bandit in (reduced, sketched):
        for part in slices(200):
            bandit.learn(op.Outer(left[part], right[part]), rewards[part], names[part])
    users, sides = np.random.default_rng(8).standard_normal((6, LEFT)), np.stack(list(arms.values()))
    contexts = op.Outer(users, sides)
    assert_close(sketched.score(contexts, list(arms)), reduced.score(contexts, list(arms)))
    assert sketched.error_bound() <= 1e-9 * np.linalg.norm(left) ** 2 * np.square(sides).sum()  # its rounding


def test_an_arm_that_turns_is_refused_and_nothing_changes():
    left, right, rewards, names, arms = factor_data(60)
    bandit = outer(True)
    bandit.learn(op.Outer(left, right), rewards, names)
    before = fingerprint(bandit)
    turned = right.copy()
    turned[13] = turned[13] + 1e-3 if turned[13].any() else 0.0
    turned[14] = np.ones(RIGHT)
    fresh = ["brand new" if i == 0 else name for i, name in enumerate(names)]
    for contexts, arm in (
        (op.Outer(left, turned), names),
        (op.Outer(left, turned), fresh),
        (op.Outer(left[:2], np.eye(RIGHT)[:2]), ["new", "new"]),  # turns within the batch
        (op.Outer(left[14], np.ones(RIGHT)), names[14]),
    ):
        with pytest.raises(ValueError, match=r"contexts\.right must keep the direction") as error:
            bandit.learn(contexts, np.ones(len(np.atleast_2d(contexts.left))) if isinstance(arm, list) else 1.0, arm)
        assert "\n" not in str(error.value)
        assert fingerprint(bandit) == before
    sides = np.stack(list(arms.values()))[::-1]
    with pytest.raises(ValueError, match=r"contexts\.right must keep the direction"):
        bandit.score(op.Outer(left[0], sides), list(arms))
    free = outer(False)
    free.learn(op.Outer(left, turned), rewards, names)  # the full model lets arms turn
    assert free.rounds == 60


def test_factors_in_float32_keep_their_direction_within_its_rounding():
    left, right, rewards, names, arms = factor_data(200)
    bandit, exact = outer(True, op.Exact(dim=LEFT, reg=0.37, dtype="float32")), outer(True)
    for part in slices(200):
        for one in (bandit, exact):
            one.learn(op.Outer(left[part], right[part]), rewards[part], names[part])
    contexts = op.Outer(left[:5], -1.5 * np.stack(list(arms.values())))
    # lambda_max / reg bounds the condition number; a rounding for each of LEFT products in each of ~33 updates an arm
    largest = max(np.linalg.norm(left[[a == b for b in names]], 2) ** 2 * 4.0 * v @ v for a, v in arms.items())
    tolerance = (1.0 + largest / 0.37) * LEFT * np.sqrt(33) * np.finfo(np.float32).eps
    assert tolerance < 0.02
    assert_close(bandit.score(contexts, list(arms)), exact.score(contexts, list(arms)), tolerance)


def test_a_removed_arm_may_come_back_with_another_direction():
    bandit = outer(True)
    bandit.learn(op.Outer(np.ones(LEFT), [1.0, 0.0, 0.0]), 1.0, "a")
    bandit.remove_arm("a")
    bandit.learn(op.Outer(np.ones(LEFT), [0.0, 1.0, 0.0]), 1.0, "a")
    want = dense.Disjoint(LEFT, 0.37, 0.5)
    want.learn(np.ones(LEFT), 1.0, "a")
    got = bandit.score(op.Outer(np.ones(LEFT), [[0.0, 3.0, 0.0]]), ["a"])
    assert_close(got, 3.0 * want.scores(np.ones((1, LEFT)), ["a"]))


@pytest.mark.parametrize("candidates", [RIGHT - 1, 9])
@pytest.mark.parametrize("rule", [op.UCB(0.5), op.Thompson(0.5), op.Greedy(), op.UCB(op.Theory())], ids=repr)
def test_a_shared_model_of_factors_equals_one_of_products(rule, candidates):
    rng = np.random.default_rng(4)
    left, right, rewards = rng.standard_normal((50, LEFT)), rng.standard_normal((50, RIGHT)), rng.standard_normal(50)
    features = op.OuterProduct(left=LEFT, right=RIGHT)
    factors = op.Bandit(op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)), rule, features=features, seed=2)
    products = op.Bandit(op.Ridge(op.Exact(dim=LEFT * RIGHT, reg=0.37)), rule, seed=2)
    factors.learn(op.Outer(left, right), rewards)
    products.learn(np.einsum("ni,nj->nij", left, right).reshape(50, -1), rewards)
    users, sides = left[:5], right[:candidates]
    full = np.einsum("ni,kj->nkij", users, sides).reshape(5, candidates, -1)
    assert_close(factors.score(op.Outer(users, sides)), products.score(full))
    assert_close(factors.score(op.Outer(users[0], sides)), products.score(full[0]))
    for i in range(5):  # the same stream of random numbers
        got, want = factors.decide(op.Outer(users[i], sides), k=2), products.decide(full[i], k=2)
        assert_close(got.scores, want.scores)
        assert got.arms == want.arms
    got = factors.recommend(op.Outer(users, sides), 2)
    assert got.arms == [list(np.argsort(-scores)[:2]) for scores in factors.score(op.Outer(users, sides))]


def test_recipes_take_factors_and_parameters_by_name():
    left, right, rewards, names, arms = factor_data(80)
    sides = np.stack(list(arms.values()))
    for parameters in ("disjoint", "hybrid"):
        for recipe, options in (
            (op.LinUCB, {}), (op.LinTS, {}), (op.SOFUL, {"size": 3}), (op.CBSCFD, {"size": 9}),
            (op.PSILinUCB, {"rank": 9}), (op.DBSLinUCB, {"size": 2, "error": 4.0}),
        ):  # fmt: skip
            bandit = recipe(dim=(LEFT, RIGHT), parameters=parameters, **options)
            bandit.learn(op.Outer(left, right), rewards, names)
            assert bandit.score(op.Outer(left[:2], sides), list(arms)).shape == (2, len(arms))
            assert bandit.estimator.arms.design.dim == LEFT
    bandit = op.CBRAP(dim=DIM, size=3, parameters="disjoint", seed=4)
    rows, rewards, names = data(50)
    bandit.learn(rows, rewards, names)
    naive = dense.Disjoint(3, 1.0, 0.1)
    matrix = np.random.RandomState(4).standard_normal((DIM, 3)) / np.sqrt(3.0)
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row @ matrix, reward, name)
    assert_close(bandit.score(rows[:4], NAMES), naive.scores(rows[:4] @ matrix, NAMES))
    assert bandit.error_bound() == np.inf


# ---- storage ----


@pytest.mark.parametrize(("design", "most"), [
    (op.Exact(dim=DIM), DIM),
    (op.ProjectorSplitting(dim=DIM, rank=3), 3),
    (op.FrequentDirections(dim=DIM, size=2), 3),
], ids=["Exact", "ProjectorSplitting", "FrequentDirections"])  # fmt: skip
def test_an_arm_with_n_rows_holds_at_most_n_directions_and_at_most_its_rank(design, most):
    counts = [1, 2, 3, 4, 9, 30]
    rng = np.random.default_rng(0)
    names = rng.permutation(np.repeat(np.arange(6), counts))
    bandit = disjoint(design)
    for name in names:
        bandit.learn(rng.standard_normal(DIM), 1.0, int(name))
    store = bandit._learned.store
    store.trim()
    held = [int(store.state.held[bandit._names[a]]) for a in range(6)]
    assert all(h <= min(n, most) for h, n in zip(held, counts, strict=True))
    cut = int((store.state.outside >= 0).sum())  # one more slot an arm that has lost directions
    assert store.state.top == sum(held) + cut + len(free_slots(store.state))
    assert len(free_slots(store.state)) <= 6
    assert arena.orderly(store.state)


def free_slots(state):
    slots, slot = [], state.free
    while slot != arena.NONE:
        slots.append(slot)
        slot = state.link[slot]
    return slots


def test_memory_does_not_grow_with_arms_that_have_no_data():
    rows, rewards, names = data(50)
    bandit = learned(disjoint(op.Exact(dim=DIM)), rows, rewards, names)
    before = bandit.memory_usage()
    for arm in range(100_000):
        bandit.add_arm(f"item {arm}")
    assert bandit.memory_usage() == before
    assert len(bandit.arms) == 100_004
    assert bandit.score(rows[0]).shape == (100_004,)


@pytest.mark.parametrize("sizes", [(1,), (500,)])
def test_users_that_come_again_take_no_more_room(sizes):
    rng = np.random.default_rng(0)
    users, who, arm = rng.standard_normal((3, DIM)), rng.integers(0, 3, 1000), rng.integers(0, 20, 1000)
    bandit = learned(disjoint(op.Exact(dim=DIM)), users[who], np.ones(1000), arm.tolist(), sizes)
    bandit._learned.store.trim()
    state = bandit._learned.store.state
    assert (state.held == 3).all()
    assert arena.orderly(state)


def test_a_removed_arm_leaves_its_slots_to_others():
    rng = np.random.default_rng(0)
    bandit, store = disjoint(op.ProjectorSplitting(dim=DIM, rank=3)), None
    for arm in "abcdefgh":
        bandit.learn(rng.standard_normal((12, DIM)), np.ones(12), [arm] * 12)
    store = bandit._learned.store
    top, records = store.state.top, store._count
    for arm in "bdf":
        bandit.remove_arm(arm)
    assert len(free_slots(store.state)) >= 3 * 4
    for arm in "xyz":
        bandit.learn(rng.standard_normal((12, DIM)), np.ones(12), [arm] * 12)
    assert store.state.top == top
    assert store._count == records
    store.trim()
    assert arena.orderly(store.state)


@pytest.mark.parametrize("compact", [True, False])
def test_memory_stays_bounded_while_arms_come_and_go(compact):
    rng = np.random.default_rng(0)
    bandit, sizes = disjoint(op.FrequentDirections(dim=DIM, size=2), compact=compact), []
    for cycle_ in range(60):
        names = [f"{cycle_}/{i}" for i in range(10)]
        bandit.learn(rng.standard_normal((80, DIM)), np.ones(80), names * 8)
        for name in names:
            bandit.learn(rng.standard_normal(DIM), 1.0, name)
        sizes.append(bandit.memory_usage())
        for name in names:
            bandit.remove_arm(name)
    assert sizes[-1] == sizes[2]
    assert bandit.arms == ()


# ---- files ----


def kinds():
    """Bandits that have learned, lost an arm, and know one that has not learned."""
    rows, rewards, names = data(120)
    left, right, pays, who, _ = factor_data(120)
    made = {
        "Exact": disjoint(op.Exact(dim=DIM), op.Thompson(0.3), seed=3),
        "float32": disjoint(op.Exact(dim=DIM, dtype="float32")),
        "FrequentDirections": disjoint(op.FrequentDirections(dim=DIM, size=2), op.EpsilonGreedy(0.3), threads=2),
        "ProjectorSplitting": disjoint(op.ProjectorSplitting(dim=DIM, rank=3), op.UCB(op.Theory(scale=0.1))),
        "Dyadic": disjoint(op.Dyadic(dim=DIM, size=1, error=8.0)),
        "separate": disjoint(op.Exact(dim=DIM), compact=False),
        "Hybrid": hybrid(),
        "Hybrid, separate": hybrid(compact=False),
        "factors": outer(True),
    }
    for kind, bandit in made.items():
        if kind == "factors":
            bandit.learn(op.Outer(left, right), pays, who)
        else:
            learned(bandit, rows, rewards, names)
        bandit.remove_arm(7)
        bandit.add_arm("waiting")
    return made


def continued(bandit, kind):
    """What a bandit does next: scores, choices, what it learns."""
    rows, rewards, names = data(60, seed=9)
    left, right, pays, who, arms = factor_data(60)
    seen = []
    for i in range(0, 60, 6):
        part = slice(i, i + 6)
        if kind == "factors":
            sides = np.stack([arms[a] if a in arms else np.ones(RIGHT) for a in bandit.arms])
            decision = bandit.decide(op.Outer(left[i], sides), k=2)
            bandit.learn(op.Outer(left[part], right[part]), pays[part], who[part])
        else:
            decision = bandit.decide(rows[i], k=2)
            bandit.learn(rows[part], rewards[part], names[part])
        seen.append((decision.arms, decision.scores.tobytes()))
    return seen, bandit.rounds, bandit.arms


KINDS = kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_saved_loaded_and_copied_bandits_decide_alike(kind, tmp_path):
    original = KINDS[kind].copy()
    original.save(tmp_path / "model")
    loaded, copied = op.load(tmp_path / "model"), original.copy()
    assert repr(loaded) == repr(original)
    assert fingerprint(loaded) == fingerprint(original)
    assert [loaded.rows_of(a) for a in loaded.arms] == [original.rows_of(a) for a in original.arms]
    want = continued(original, kind)
    assert continued(loaded, kind) == want
    assert continued(copied, kind) == want
    assert fingerprint(loaded) == fingerprint(original) == fingerprint(copied)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_independent(kind):
    original = KINDS[kind].copy()
    before = fingerprint(original)
    twin = original.copy()
    continued(twin, kind)
    twin.remove_arm("a")
    twin.add_arm("somebody")
    assert fingerprint(original) == before
    assert fingerprint(twin) != before
    assert len(original._learned.store._vacant) == 1


@pytest.mark.parametrize("kind", ["Exact", "Dyadic"])
def test_vacancies_survive_a_file(kind, tmp_path):
    bandit = KINDS[kind].copy()
    bandit.save(tmp_path / "model")
    loaded = op.load(tmp_path / "model")
    store = loaded._learned.store
    top = store.state.top if kind == "Exact" else len(store.state)
    assert len(store._vacant) == 1
    loaded.learn(np.ones(DIM), 1.0, "takes the free place")
    assert not store._vacant
    assert top == (store.state.top if kind == "Exact" else len(store.state))


def test_names_survive_a_file(tmp_path):
    names = ["text", "", "schön ☃", 3, -(2**70), 2.5, float("inf"), True, None, ("a", 1, (None, 2.5)), ()]
    given = [*names, np.str_("numpy"), np.int64(12), np.float64(0.1)]
    bandit = disjoint(op.Exact(dim=DIM))
    for i, name in enumerate(given):
        if i % 2:
            bandit.add_arm(name)
        else:
            bandit.learn(np.full((1, DIM), i + 1.0), [1.0], [name])
    bandit.save(tmp_path / "model")
    loaded = op.load(tmp_path / "model")
    assert loaded.arms == (*names, "numpy", 12, 0.1)
    assert [type(name) for name in loaded.arms[:-3]] == [type(name) for name in names]
    np.testing.assert_array_equal(loaded.score(np.ones(DIM), given), bandit.score(np.ones(DIM), given))
    assert bandit.arms == tuple(given)


@pytest.mark.parametrize("name", [b"bytes", frozenset({1}), 1j, object(), ("a", b"inside")], ids=type)
def test_names_that_a_file_cannot_hold_are_refused_when_saving(name, tmp_path):
    bandit = disjoint(op.Exact(dim=DIM))
    bandit.learn(np.ones(DIM), 1.0, name)
    assert bandit.decide(np.ones(DIM)).arm is name
    with pytest.raises(ValueError, match="arm names must be strings, numbers or tuples"):
        bandit.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def with_prior(state, **parts):
    return state.prior._replace(space=state.prior.space._replace(**parts))


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


STORE = {  # what is written in place of an array of the arena, and how
    "first beyond the slots": lambda s: {"first": changed(s.first, 0, s.top)},
    "first far beyond": lambda s: {"first": changed(s.first, 0, 2**62)},
    "first negative": lambda s: {"first": changed(s.first, 0, -7)},
    "no first": lambda s: {"first": changed(s.first, 0, arena.NONE)},
    "two arms on one list": lambda s: {"first": changed(s.first, 0, s.first[2])},
    "a cycle": lambda s: {"link": changed(s.link, s.first[0], s.first[0])},
    "a list that goes on": lambda s: {"link": changed(s.link, last_slot(s, 0), s.first[2])},
    "a list that ends": lambda s: {"link": changed(s.link, s.first[0], arena.NONE)},
    "a link beyond the slots": lambda s: {"link": changed(s.link, s.first[0], s.link.size + 3)},
    "more used than held": lambda s: {"used": changed(s.used, 0, s.used[0] + 1)},
    "negative counts": lambda s: {"used": changed(s.used, 0, -1), "held": changed(s.held, 0, -1)},
    "more held than there can be": lambda s: {"held": changed(s.held, 0, 99), "used": changed(s.used, 0, 99)},
    "outside beyond the slots": lambda s: {"outside": changed(s.outside, 0, s.top + 1)},
    "outside within a list": lambda s: {"outside": changed(s.outside, 0, s.first[0])},
    "free slot in use": lambda s: {"free": int(s.first[0])},
    "free beyond the slots": lambda s: {"free": s.top},
    "free negative": lambda s: {"free": -2},
    "a cycle of free slots": lambda s: {"link": changed(s.link, s.free, s.free)},
    "top beyond the slots": lambda s: {"top": s.top + 1},
    "top negative": lambda s: {"top": -1},
    "slots in no list": lambda s: {"free": arena.NONE},
    "fewer rows than directions": lambda s: {"rows": changed(s.rows, 0, 1)},
    "a vacant arm that is named": lambda s: {"rows": changed(s.rows, 0, arena.NONE)},
    "ridge zero": lambda s: {"ridge": changed(s.ridge, 0, 0.0)},
    "ridge nan": lambda s: {"ridge": changed(s.ridge, 0, np.nan)},
    "shed negative": lambda s: {"shed": changed(s.shed, 0, -1.0)},
    "a prior that is wider": lambda s: {"prior": with_prior(s, basis=np.zeros((0, DIM + 1)))},
    "a prior of directions it has not": lambda s: {"prior": with_prior(s, used=1)},
    "a prior without a ridge": lambda s: {"prior": with_prior(s, ridge=0.0)},
    "a prior that is not finite": lambda s: {"prior": with_prior(s, log_det=np.nan)},
    "a prior that cut less than nothing": lambda s: {"prior": s.prior._replace(sums=s.prior.sums._replace(shed=-1.0))},
    "another width": lambda s: {"basis": s.basis[:, :-1]},
    "too few slots": lambda s: {"root": s.root[:-1]},
    "too few records": lambda s: {"held": s.held[:-1]},
    "another dtype": lambda s: {"weight": s.weight.astype(np.float32)},
    "cross of a hybrid": lambda s: {"cross": np.zeros((len(s.link), 2))},
}
OUTSIDE_STORE = {
    "record out of range": lambda s: {"records": changed(s.records, 0, 99)},
    "record negative": lambda s: {"records": changed(s.records, 0, -3)},
    "one record for two": lambda s: {"records": changed(s.records, 0, s.records[1])},
    "record of nobody": lambda s: {"records": changed(s.records, 0, arena.NONE)},
    "fewer names": lambda s: {"names": text(["a"])},
    "a name twice": lambda s: {"names": text(["a"] * len(s.records))},
    "names that are no list": lambda s: {"names": text(3)},
    "names that are lists": lambda s: {"names": text([["a"]] * len(s.records))},
    "names that are objects": lambda s: {"names": text([{"code": "a"}] * len(s.records))},
    "names that are not JSON": lambda s: {"names": np.frombuffer(b"\xff[", np.uint8)},
    "names that never end": lambda s: {"names": np.frombuffer(b"[" * 100_000, np.uint8)},
    "directions of factors": lambda s: {"direction": np.zeros((4, 3))},
    "a shared part": lambda s: {"shared": (np.zeros(3),)},
}


def text(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def last_slot(state, record):
    slot = state.first[record]
    while state.link[slot] != arena.NONE:
        slot = state.link[slot]
    return slot


def write(path, bandit, saved):
    path.write_bytes(files.packed(type(bandit).__name__, bandit.contents()._replace(state=saved)))


@pytest.mark.parametrize("what", [*STORE, *OUTSIDE_STORE])
def test_a_crafted_file_is_refused(what, tmp_path):
    bandit = KINDS["Exact"].copy()
    saved = bandit._saved()
    write(tmp_path / "model", bandit, saved)
    assert op.load(tmp_path / "model").arms == bandit.arms  # the untouched one is good
    store = saved.store._replace(**STORE[what](saved.store)) if what in STORE else saved.store
    other = {} if what in STORE else OUTSIDE_STORE[what](saved)
    write(tmp_path / "model", bandit, saved._replace(store=store, **other))
    with pytest.raises(ValueError, match="is damaged"):
        op.load(tmp_path / "model")


@pytest.mark.parametrize("what", ["fewer states", "negative rows", "cross", "vacant"])
def test_a_crafted_file_of_separate_states_is_refused(what, tmp_path):
    bandit = KINDS["Dyadic"].copy()
    saved = bandit._saved()
    (first, cross, rows), *rest = saved.store
    store = {
        "fewer states": tuple(rest),
        "negative rows": ((first, cross, -1), *rest),
        "cross": ((first, np.zeros((DIM, 2)), rows), *rest),
        "vacant": ((first, cross, 0), *rest),
    }[what]
    write(tmp_path / "model", bandit, saved._replace(store=store))
    with pytest.raises(ValueError, match="is damaged"):
        op.load(tmp_path / "model")


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
        (lambda b: b.parameter_of("nobody"), "arm 'nobody' is not known"),
        (lambda b: b.rows_of("nobody"), "arm 'nobody' is not known"),
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
        (lambda b: b.decide(op.Outer(np.ones(2), np.ones((2, 4))), ["x", "y"]), "contexts must be"),
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
    ],
)
@pytest.mark.parametrize("kind", ["Exact", "separate", "Hybrid"])
def test_wrong_calls_get_one_clear_sentence_and_change_nothing(kind, call, says):
    bandit = KINDS[kind].copy()
    before = fingerprint(bandit)
    with pytest.raises(ValueError, match=says) as error:
        call(bandit)
    assert "\n" not in str(error.value)
    assert fingerprint(bandit) == before


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b: b.learn(np.ones(LEFT * RIGHT), 1.0, "x"), r"contexts must be onepass\.Outer"),
        (
            lambda b: b.learn(op.Outer(np.ones(RIGHT), np.ones(LEFT)), 1.0, "x"),
            r"contexts\.left must have rows of length",
        ),
        (lambda b: b.learn(op.Outer(np.ones(LEFT), np.ones(2)), 1.0, "x"), r"contexts\.right must have rows of length"),
        (lambda b: b.learn(op.Outer(np.ones((3, LEFT)), np.ones((2, RIGHT))), np.ones(3), "xyz"), "one row per reward"),
        (
            lambda b: b.learn(op.Outer(np.full(LEFT, np.nan), np.ones(RIGHT)), 1.0, "x"),
            r"contexts\.left must be finite",
        ),
        (
            lambda b: b.learn(op.Outer(np.ones(LEFT), np.full(RIGHT, np.inf)), 1.0, "x"),
            r"contexts\.right must be finite",
        ),
        (
            lambda b: b.learn(op.Outer(np.full(LEFT, 1e149), np.full(RIGHT, 1e149)), 1.0, "x"),
            "contexts must have factors whose norms",
        ),
        (
            lambda b: b.score(op.Outer(np.ones(LEFT), np.ones((2, RIGHT))), ["x"]),
            r"contexts\.right must have one row per arm",
        ),
        (lambda b: b.score(op.Outer(np.ones((0, LEFT)), np.ones((1, RIGHT))), ["x"]), "contexts"),
        (
            lambda b: b.recommend(op.Outer(np.ones(LEFT), np.ones((1, RIGHT))), 1, ["x"]),
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
        (lambda: op.OuterProduct(left=0, right=2), "left must be an integer at least 1"),
        (lambda: op.OuterProduct(left=1, right=2, reduce="no"), "reduce must be one of"),
        (lambda: outer(True, op.Exact(dim=LEFT * RIGHT)), "designs must have dim=4"),
        (lambda: outer(False, op.Exact(dim=LEFT)), "designs must have dim=12"),
        (lambda: op.LinUCB(dim=2, parameters="separate"), "parameters must be one of 'shared', 'disjoint', 'hybrid'"),
        (lambda: op.LinUCB(dim=(2, 3, 4), parameters="disjoint"), "dim must be a width, or the widths"),
        (lambda: op.LinUCB(dim=2, parameters="hybrid", exploration=op.Theory()), "exploration must be a number"),
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
    assert bandit.rounds == 0


def test_scores_that_overflow_are_raised_not_returned():
    bandit = disjoint(op.Exact(dim=2, reg=1e-300), op.UCB(1e308))
    bandit.add_arm("a")
    for call in (bandit.decide, bandit.score, lambda x, arms: bandit.recommend(x[None], 1, arms)):
        with pytest.raises(FloatingPointError, match="not finite"):
            call(np.full(2, 1e100), ["a", "b"])
    assert bandit.arms == ("a",)


def test_a_duplicate_among_many_arms_is_found_at_once():
    names = [*range(20_000), 19_999]
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(disjoint(op.Exact(dim=DIM)).score, np.ones(DIM), names)
        with pytest.raises(ValueError, match="19999 is there twice"):
            job.result(timeout=1.0)


# ---- decisions ----


def trained(rule=None, seed=0):
    rows, rewards, names = data(120)
    return learned(disjoint(op.Exact(dim=DIM, reg=0.37), rule, seed), rows, rewards, names)


def test_decisions_rank_the_best_and_come_in_batches():
    bandit, queries = trained(), np.random.default_rng(5).standard_normal((7, DIM))
    decision = bandit.decide(queries[0], NAMES, k=3)
    order = np.argsort(-bandit.score(queries[0], NAMES))
    assert decision.arms == [NAMES[i] for i in order[:3]]
    assert decision.arm == decision.arms[0]
    assert decision.propensity == 1.0
    np.testing.assert_allclose(decision.scores, decision.means + 0.5 * decision.widths, rtol=1e-14)
    for contexts in (queries[:, None], np.broadcast_to(queries[:, None], (7, 4, DIM))):
        many = bandit.decide(contexts, NAMES, k=2)
        each = [bandit.decide(x, NAMES, k=2) for x in queries]
        assert many.arm == [one.arm for one in each]
        assert many.arms == [one.arms for one in each]
        assert many.scores.shape == many.means.shape == many.widths.shape == (7, 4)
        assert_close(many.scores, np.stack([one.scores for one in each]))
        assert many.propensity.tolist() == [1.0] * 7
    default = bandit.decide(queries[0])
    assert bandit.arms == tuple(dict.fromkeys(data(120)[2]))
    assert_close(default.scores, bandit.score(queries[0], bandit.arms))


def test_all_names_are_scored_whatever_holds_them():
    bandit, x = trained(), np.ones(DIM)
    words = ["a", "d", "new"]
    want = bandit.score(x, words)
    for arms in (tuple(words), np.array(words), dict.fromkeys(words), iter(words), np.array(words, object)):
        np.testing.assert_array_equal(bandit.score(x, arms), want)
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(bandit.score(x, pl.Series(words)), want)


def test_decide_makes_arms_known_and_score_does_not():
    bandit = trained()
    before = fingerprint(bandit)
    bandit.score(np.ones(DIM), ["a", "x"])
    bandit.recommend(np.ones((2, DIM)), 1, ["a", "y"])
    assert fingerprint(bandit) == before
    bandit.decide(np.ones(DIM), ["a", "x"])
    assert bandit.arms == (*before[1], "x")
    assert bandit.score(np.ones(DIM)).shape == (5,)
    bandit.remove_arm("x")
    assert bandit.score(np.ones(DIM)).shape == (4,)
    with pytest.raises(ValueError, match="not known"):
        bandit.rows_of("x")


def test_a_request_that_is_kept_and_repeated_sees_what_was_learned_since():
    bandit, offered, x = trained(), ("a", "late", "d"), np.ones(DIM)
    first = bandit.score(x, offered)
    bandit.learn(x, 5.0, "late")
    second = bandit.score(x, offered)
    assert second[1] > first[1] + 1.0
    bandit.remove_arm("late")
    np.testing.assert_array_equal(bandit.score(x, offered), first)
    everyone = bandit.score(x)
    bandit.add_arm("later")
    np.testing.assert_array_equal(bandit.score(x)[:-1], everyone)


def test_ties_are_broken_evenly_and_by_the_seed():
    make = lambda s: disjoint(op.Exact(dim=DIM), seed=s)  # noqa: E731
    offered = ("p", "q", "r", "s")
    first = [make(s).decide(np.ones(DIM), offered).arm for s in range(400)]
    assert first == [make(s).decide(np.ones(DIM), offered).arm for s in range(400)]
    counts = np.array([first.count(arm) for arm in offered])
    assert np.abs(counts - 100).max() < 4 * np.sqrt(400 * 0.25 * 0.75)  # four standard deviations
    assert make(0).decide(np.ones(DIM), offered).propensity == 0.25
    one, many = make(3), make(3)
    assert many.decide(np.ones((9, 1, DIM)), offered).arm == [one.decide(np.ones(DIM), offered).arm for _ in range(9)]


def test_greedy_and_epsilon_greedy_explore_with_their_propensities():
    x = np.random.default_rng(5).standard_normal(DIM)
    best = trained(op.Greedy()).decide(x)
    assert best.widths is None
    assert best.propensity == 1.0
    np.testing.assert_array_equal(best.scores, best.means)
    drawn = trained(op.EpsilonGreedy(0.4), 1).decide(np.tile(x, (2000, 1, 1)))
    expected = 0.6 + 0.4 / 4
    share = np.mean([arm == best.arm for arm in drawn.arm])
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 2000)
    assert {round(p, 12) for p in drawn.propensity} == {round(expected, 12), round(0.4 / 4, 12)}


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
def test_thompson_draws_have_the_posterior_mean_and_variance(kind):
    rows, rewards, names = data(120)
    rule = op.Thompson(0.7)
    if kind == "disjoint":
        bandit = learned(disjoint(op.Exact(dim=DIM, reg=0.37), rule), rows, rewards, names)
        naive = dense.Disjoint(DIM, 0.37, 0.7)
    else:
        bandit = op.LinTS(dim=DIM, reg=0.37, exploration=0.7, parameters="hybrid")
        learned(bandit, rows, rewards, names)
        naive = dense.Hybrid([*NAMES, "new"], DIM, DIM, 0.37, 0.7)
    for row, reward, name in zip(rows, rewards, names, strict=True):
        naive.learn(row, reward, name)
    offered, count = [*NAMES, "new"], 4000
    x = np.random.default_rng(5).standard_normal(DIM)
    upper = naive.scores(np.tile(x, (5, 1)), offered)
    decisions = bandit.decide(np.tile(x, (count, 1, 1)), offered)
    mean, spread = decisions.means[0], upper - decisions.means[0]
    assert np.abs(decisions.scores.mean(axis=0) - mean).max() < 4.5 * spread.max() / np.sqrt(count)
    np.testing.assert_allclose(decisions.scores.std(axis=0), spread, rtol=4.5 / np.sqrt(2 * count))
    assert np.isnan(decisions.propensity).all()
    if kind == "disjoint":  # arms share no data, nor noise
        assert np.abs(np.corrcoef(decisions.scores.T) - np.eye(5)).max() < 4.5 / np.sqrt(count)
    again = bandit.score(x, offered)
    np.testing.assert_array_equal(bandit.score(x, offered), again)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(
    "design",
    [op.Exact(dim=DIM, reg=0.37), op.ProjectorSplitting(dim=DIM, rank=DIM, reg=0.37), CUTTING[3], CUTTING[5]],
    ids=repr,
)
def test_the_radius_of_an_arm_is_that_of_its_own_design(design, compact):
    rows, rewards, names = data(120)
    theory = op.Theory(noise=0.3, parameter_bound=2.0, row_bound=4.0, delta=0.05, scale=0.5)
    bandit = learned(disjoint(design, op.UCB(theory), compact=compact), rows, rewards, names)
    decision = bandit.decide(rows[0], [*NAMES, "new"])
    for a, arm in enumerate([*NAMES, "new"]):
        own = design.copy()
        chosen = rows[[name == arm for name in names]]
        for row in chosen:
            own.append(row)
        radius = confidence_radius(own.state, len(chosen), 0.3, 2.0, 4.0, 0.05)
        assert radius > 0.0
        np.testing.assert_allclose(decision.scores[a] - decision.means[a], 0.5 * radius * decision.widths[a], rtol=1e-9)


def test_scores_are_the_same_from_several_threads():
    bandit, queries = trained(op.Thompson(0.5)), np.random.default_rng(5).standard_normal((40, DIM))
    want = [bandit.score(x, NAMES) for x in queries]
    known = [bandit.score(x) for x in queries]
    before = fingerprint(bandit)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            got = list(pool.map(lambda x: bandit.score(x, NAMES), queries))
            every = list(pool.map(bandit.score, queries))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(every, known)
    assert fingerprint(bandit) == before


def test_an_arm_that_appears_while_others_are_scored_is_seen_from_then_on(monkeypatch):
    bandit, x = trained(), np.ones(DIM)
    fromiter = np.fromiter

    def interrupted(*args, **kwargs):  # another thread's decide comes in between
        monkeypatch.setattr(np, "fromiter", fromiter)
        bandit.decide(x, ["newcomer"])
        return fromiter(*args, **kwargs)

    monkeypatch.setattr(np, "fromiter", interrupted)
    bandit.score(x)
    assert len(bandit.score(x)) == len(bandit.arms)


@pytest.mark.parametrize("kind", ["disjoint", "hybrid", "thompson", "epsilon"])
@pytest.mark.parametrize("each", [True, False])
def test_play_equals_decide_and_learn(kind, each):
    rng = np.random.default_rng(6)
    contexts, rewards = rng.standard_normal((60, 5 if each else 1, DIM)), rng.standard_normal((60, 5))
    rules = {"thompson": op.Thompson(0.5), "epsilon": op.EpsilonGreedy(0.3)}
    make = lambda: hybrid() if kind == "hybrid" else disjoint(op.Exact(dim=DIM), rules.get(kind), seed=3)  # noqa: E731
    together, apart = make(), make()
    chosen = together.play(contexts, rewards)
    for t, arm in enumerate(chosen):
        request = contexts[t] if each else contexts[t, 0]
        assert apart.decide(request, range(5)).arm == arm
        apart.learn(contexts[t, arm if each else 0], rewards[t, arm], int(arm))
    assert fingerprint(together) == fingerprint(apart)
    assert together.rounds == 60
    assert set(together.arms) == set(range(5))


# ---- recommendations ----


def test_recommendations_are_the_best_scores_in_order():
    bandit, users = trained(), np.random.default_rng(5).standard_normal((30, DIM))
    for contexts in (users, users[:, None], np.broadcast_to(users[:, None], (30, 5, DIM))):
        offered = [*NAMES, "new"]
        scores = bandit.score(contexts if contexts.ndim == 3 else contexts[:, None], offered)
        found = bandit.recommend(contexts, 3, offered)
        order = np.argsort(-scores, axis=1)[:, :3]
        assert found.arms == [[offered[a] for a in best] for best in order]
        np.testing.assert_array_equal(np.stack(found.scores), np.take_along_axis(scores, order, axis=1))
    everyone = bandit.recommend(users, 99)
    assert all(sorted(map(str, arms)) == sorted(map(str, NAMES)) for arms in everyone.arms)
    assert bandit.recommend(np.zeros((0, DIM)), 2) == op.Recommendation([], [])


def test_excluded_arms_are_left_out_and_lists_may_be_short():
    bandit, users = trained(), np.random.default_rng(5).standard_normal((5, DIM))
    exclude = [[], {"a"}, ("a", 7, "nobody"), NAMES, np.array(["d"])]
    found = bandit.recommend(users, 3, exclude=exclude)
    scores = bandit.score(users[:, None])
    for i, out in enumerate(exclude):
        left = [(-scores[i, a], arm) for a, arm in enumerate(bandit.arms) if arm not in list(out)]
        want = [arm for _, arm in sorted(left, key=lambda pair: pair[0])[:3]]
        assert found.arms[i] == want
        assert len(found.scores[i]) == len(want)
    assert [len(arms) for arms in found.arms] == [3, 3, 2, 0, 3]


@pytest.mark.parametrize("kind", ["one row a user", "a row an arm", "factors", "thompson"])
def test_users_in_blocks_get_the_same_recommendations(kind, monkeypatch):
    if kind == "factors":
        left, right, rewards, names, arms = factor_data(120)
        bandit, offered = outer(True), list(arms)
        bandit.learn(op.Outer(left, right), rewards, names)
        contexts = op.Outer(left[:23], np.stack(list(arms.values())))
    else:
        bandit, offered = trained(op.Thompson(0.5) if kind == "thompson" else None), [*NAMES, "new"]
        contexts = np.random.default_rng(5).standard_normal((23, DIM))
        if kind == "a row an arm":
            contexts = np.random.default_rng(5).standard_normal((23, 5, DIM))
    exclude = [[offered[i % 4]] for i in range(23)]
    want = bandit.recommend(contexts, 3, offered, exclude)
    for block in (1, 30):
        monkeypatch.setattr(onepass.bandit.bandit, "BLOCK", block)
        got = bandit.recommend(contexts, 3, offered, exclude)
        assert got.arms == want.arms
        assert_close(np.stack(got.scores), np.stack(want.scores))


def test_ties_among_recommendations_are_broken_by_the_seed():
    users, offered = np.ones((3, DIM)), [f"item {i}" for i in range(50)]
    lists = [disjoint(op.Exact(dim=DIM), seed=s).recommend(users, 5, offered).arms for s in (0, 0, 1)]
    assert lists[0] == lists[1] != lists[2]
    assert lists[0][0] == lists[0][1] == lists[0][2]  # alike for every user
    assert disjoint(op.Exact(dim=DIM), seed=0).recommend(users, 3, iter(offered)).arms[0] == lists[0][0][:3]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_and_series_are_taken_as_contexts_and_names(library):
    module = pytest.importorskip(library)
    rows, rewards, names = data(60, names=["a", "b", "c"])
    frame = module.DataFrame({f"x{j}": rows[:, j] for j in range(DIM)})
    bandit, plain = disjoint(op.Exact(dim=DIM)), disjoint(op.Exact(dim=DIM))
    bandit.learn(frame, module.Series(rewards), module.Series(names))
    plain.learn(rows, rewards, names)
    assert fingerprint(bandit) == fingerprint(plain)
    offered = module.Series(["a", "b", "new"])
    got = bandit.recommend(frame, 2, offered, module.Series([["a"]] * 60))
    want = plain.recommend(rows, 2, ["a", "b", "new"], [["a"]] * 60)
    assert got.arms == want.arms
    assert bandit.decide(frame[0:3], module.Series(["a", "b", "c"])).arm == plain.decide(rows[:3], ["a", "b", "c"]).arm
    whole = module.DataFrame({f"x{j}": [1, 2] for j in range(DIM)})  # integers
    assert bandit.recommend(whole, 1).arms == plain.recommend(np.repeat([[1.0], [2.0]], DIM, axis=1), 1).arms


# ---- any sequence of operations ----

ARM = st.integers(0, 2)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), ARM),
        st.tuples(st.just("batch"), st.lists(ARM, min_size=0, max_size=25)),
        st.tuples(st.just("again"), st.lists(ARM, min_size=1, max_size=9)),  # one row, many times
        st.tuples(st.just("add"), ARM),
        st.tuples(st.just("remove"), ARM),
        st.tuples(st.just("score"), st.just(0)),
        st.tuples(st.just("copy"), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


@given(OPERATIONS, st.sampled_from(["Exact", "ProjectorSplitting", "FD", "RFD"]), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_sequence_of_operations_keeps_the_arena_orderly_and_the_scores_true(operations, kind, seed):
    rng, dim = np.random.default_rng(seed), 3
    design = {
        "Exact": lambda: op.Exact(dim=dim, reg=0.37),
        "ProjectorSplitting": lambda: op.ProjectorSplitting(dim=dim, rank=dim, reg=0.37),
        "FD": lambda: op.FrequentDirections(dim=dim, size=1, reg=0.37),  # cut all the time
        "RFD": lambda: op.RobustFrequentDirections(dim=dim, size=1, reg=0.37),
    }[kind]()
    exact = kind in ("Exact", "ProjectorSplitting")
    bandit, naive = disjoint(design), dense.Disjoint(dim, 0.37, 0.5)
    separate, known = disjoint(design, compact=False), set()
    for what, value in [*operations, ("score", 0)]:
        rows = np.zeros((0, dim))
        if what == "learn":
            rows, names = rng.standard_normal((1, dim)), [value]
        elif what == "batch":
            rows, names = rng.standard_normal((len(value), dim)) * (rng.random((len(value), 1)) < 0.8), value
        elif what == "again":
            rows, names = np.tile(rng.standard_normal(dim), (len(value), 1)), value
        elif what == "add" and value not in known:
            bandit.add_arm(value)
            known.add(value)
        elif what == "remove" and value in known:
            bandit.remove_arm(value)
            known.discard(value)
            naive.remove(value)
            if value in separate.arms:
                separate.remove_arm(value)
        elif what == "copy":
            bandit = bandit.copy()
        if len(rows):
            pays = rng.standard_normal(len(rows))
            if what == "learn":
                bandit.learn(rows[0], pays[0], names[0])
                separate.learn(rows[0], pays[0], names[0])
            else:
                bandit.learn(rows, pays, names)
                separate.learn(rows, pays, names)
            for row, pay, name in zip(rows, pays, names, strict=True):
                naive.learn(row, pay, name)
            known.update(names)
        store = bandit._learned.store
        if what in ("score", "remove"):
            store.trim()
            query = rng.standard_normal(dim)
            want = naive.scores(np.tile(query, (6, 1)), range(6)) if exact else separate.score(query, range(6))
            np.testing.assert_allclose(bandit.score(query, range(6)), want, rtol=1e-8, atol=1e-8)
        assert arena.orderly(
            store.state._replace(**{n: getattr(store.state, n)[: store._count] for n in arena.PER_ARM})
        )
        assert set(bandit.arms) == known


@pytest.mark.parametrize("make", [lambda: disjoint(op.Exact(dim=DIM)), hybrid])
def test_deepcopy_is_an_independent_bandit_that_decides_alike(make):
    rows, rewards, names = data(40)
    bandit = learned(make(), rows, rewards, names)
    before, twin = fingerprint(bandit), copy.deepcopy(bandit)
    assert fingerprint(twin) == before
    twin.learn(rows[:3], rewards[:3], ["new", "a", "d"])
    assert fingerprint(bandit) == before
    assert bandit.decide(rows[0]).arm == make_again(bandit).decide(rows[0]).arm


def make_again(bandit):
    """The same through a process boundary, as multiprocessing would send it."""
    return pickle.loads(pickle.dumps(bandit.copy()))
