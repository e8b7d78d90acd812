"""Kernel bandits are saved and copied bit for bit; files that do not fit are refused."""

import numpy as np
import pytest

import onepass as op
from counts import pairs
from kernel_games import BANDITS, KERNELS, SETS, SMOOTH, are_equal, are_equal_runs, learn, points, run

SAVED = [
    *({"exploration": e} for e in (None, op.UCB(0.3), op.Thompson(0.4), op.EpsilonGreedy(0.2))),
    {"normalize": True},
    {"fit_after": 20},
    {"fit_after": 20, "normalize": True, "exploration": op.Thompson(0.4)},
]


@pytest.mark.parametrize(("make", "sets", "options"), pairs(BANDITS, SETS, SAVED))
def test_saved_and_copied_bandits_continue_bit_for_bit(make, sets, options, tmp_path):
    arms = points() if sets == "fixed" else None
    kernel = SMOOTH if "fit_after" in options else 0.5 * op.Matern(2.5, 0.3) + op.RBF((0.2, 0.4)) * op.Linear(1.0)
    bandit = BANDITS[make](arms, kernel, reg=0.37, seed=8, **options)
    for rounds in (0, 3, 55):
        run(bandit, rounds, sets=SETS[sets])
        bandit.save(tmp_path / "bandit")
        copy, loaded = bandit.copy(), op.load(tmp_path / "bandit")
        assert type(loaded) is type(bandit)
        assert (
            repr(loaded).split(";")[0] == repr(bandit).split(";")[0]
        )  # bytes of what is computed when needed may differ
        assert loaded.n_learned == bandit.n_learned
        assert (loaded.model.kernel, loaded.model.reg) == (bandit.model.kernel, bandit.model.reg)
        runs = [run(b, 12, seed=9, sets=SETS[sets]) for b in (copy, loaded, bandit)]
        assert are_equal_runs(runs[0], runs[2])
        assert are_equal_runs(runs[1], runs[2])
        assert are_equal(loaded.model.posterior(points(9, 1)), bandit.model.posterior(points(9, 1)))


@pytest.mark.parametrize("make", BANDITS)
def test_a_copy_is_independent(make):
    arms = points()
    for sets in ("fixed", "rows"):
        bandit = BANDITS[make](arms if sets == "fixed" else None, SMOOTH, reg=0.37)
        learn(bandit, 0 if sets == "fixed" else arms[0], 1.0)
        before, copy = bandit.model.posterior(arms), bandit.copy()
        learn(copy, np.arange(20) if sets == "fixed" else arms[:20], np.ones(20))
        assert are_equal(bandit.model.posterior(arms), before)
        assert bandit.n_learned == 1


@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
@pytest.mark.parametrize("sets", ["fixed", "rows"])
def test_truncated_and_altered_files_are_refused(make, sets, tmp_path):
    arms = points()
    bandit = BANDITS[make](arms if sets == "fixed" else None, SMOOTH)
    learn(bandit, np.arange(10) if sets == "fixed" else arms[:10], np.ones(10))
    bandit.save(tmp_path / "bandit")
    data = (tmp_path / "bandit").read_bytes()
    bad = tmp_path / "bad"
    for broken in (data[:100], data[: len(data) // 2], data[:-1], b"", data[:-8] + b"altered."):
        bad.write_bytes(broken)
        with pytest.raises(ValueError, match="bad"):
            op.load(bad)
    rng = np.random.default_rng(0)
    for place in rng.integers(8, len(data), 60):
        bad.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ValueError, match="bad"):
            op.load(bad)


@pytest.mark.parametrize("kernel", [KERNELS["function"], KERNELS["scikit-learn"]], ids=["function", "scikit-learn"])
@pytest.mark.parametrize("make", ["GPUCB", "BKB"])
def test_kernels_that_a_file_cannot_hold_refuse_to_be_saved(make, kernel, tmp_path):
    for chosen in (kernel, op.RBF() + op.features.kernels.as_kernel(kernel)):
        bandit = BANDITS[make](points(), chosen)
        with pytest.raises(ValueError, match="kernel"):
            bandit.save(tmp_path / "bandit")
        assert not list(tmp_path.iterdir())
