"""Adapters: what an interface promises, by the real package where it is installed, as `peers` installs it."""

import logging
import time
import warnings

import numpy as np
import pytest

import onepass as op
from counts import LONG

ARMS, DIM = 5, 3


def game(seed: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, the arms that a uniform logger played, and rewards."""
    rng = np.random.default_rng(seed)
    contexts, arms = rng.standard_normal((rounds, DIM)), rng.integers(ARMS, size=rounds)
    worth = contexts @ rng.standard_normal((DIM, ARMS))
    return contexts, arms, worth[np.arange(rounds), arms] + 0.1 * rng.standard_normal(rounds)


# ---- MABWiser ----


@pytest.fixture
def mabs():
    """Their class and ours."""
    pytest.importorskip("mabwiser")
    from mabwiser.mab import MAB

    from onepass.adapters import mabwiser

    return MAB, mabwiser.MAB, mabwiser.LearningPolicy


def test_expectations_and_choices_equal_mabwisers(mabs):
    theirs, ours, policy = mabs
    contexts, arms, rewards = game(0, 80)
    later, more, paid = game(1, 40)
    for kind in (policy.LinUCB(alpha=0.7, l2_lambda=0.3), policy.LinGreedy(epsilon=0.0, l2_lambda=2.0)):
        pair = [mab(list(range(ARMS)), kind, seed=7) for mab in (theirs, ours)]
        for mab in pair:
            mab.fit(arms.tolist(), rewards.tolist(), contexts)
            mab.partial_fit(more, paid, later)
        their, our = (mab.predict_expectations(later) for mab in pair)
        for one, other in zip(their, our, strict=True):
            assert one == pytest.approx(other, rel=1e-9)
        assert pair[0].predict(later) == pair[1].predict(later)
        assert pair[0].predict(later[:1]) == pair[1].predict(later[:1])


def test_every_answer_and_draw_equals_mabwisers(mabs):
    """Draws too, of arms that learned in the first call, later, or not yet; that come, go and begin anew."""
    theirs, ours, policy = mabs
    kinds = [
        policy.LinUCB(alpha=0.7, l2_lambda=0.03),
        policy.LinUCB(alpha=0.7, l2_lambda=50.0),
        policy.LinGreedy(epsilon=0.2, l2_lambda=0.3),
        policy.LinTS(alpha=0.5, l2_lambda=0.3),
        policy.LinTS(alpha=1.5, l2_lambda=4.0),
    ]
    contexts, arms, rewards = game(0, 40)
    arms = np.minimum(arms, ARMS - 3)  # two have no data
    for seed, kind in enumerate(kinds):
        said = []
        for mab in (theirs, ours):
            one, rng, answers = mab(list(range(ARMS)), kind, seed=seed), np.random.default_rng(seed), []
            one.fit(arms, rewards, contexts)
            for t in range(24):
                rows = rng.standard_normal(((1, 3, 7)[t % 3], DIM))
                chosen, found = one.predict(rows), one.predict_expectations(rows)
                chosen, found = ([chosen], [found]) if len(rows) == 1 else (chosen, found)
                answers.append((chosen, [[row[arm] for arm in one.arms] for row in found]))
                one.partial_fit(chosen, rng.standard_normal(len(rows)), rows)
                if t == 8:
                    one.add_arm(ARMS)
                if t == 12:
                    one.fit(arms, rewards, contexts)
                if t == 18:
                    one.remove_arm(0)
            said.append(answers)
        for (choice, values), (same, others) in zip(*said, strict=True):
            assert choice == same
            np.testing.assert_allclose(others, values, rtol=1e-9, atol=1e-9)


def test_rows_are_scored_in_blocks_and_bad_rows_refused(mabs, monkeypatch):
    _, ours, policy = mabs
    from onepass.adapters import mabwiser_scores

    contexts, arms, rewards = game(0, 60)
    found = []
    for block in (mabwiser_scores.BLOCK, 40):
        monkeypatch.setattr(mabwiser_scores, "BLOCK", block)
        mab = ours(list(range(ARMS)), policy.LinTS(alpha=0.7, l2_lambda=0.3), seed=3)
        mab.fit(arms, rewards, contexts)
        found.append(mab.predict_expectations(contexts))
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    for rows in (contexts[:1], contexts):
        bad = rows.copy()
        bad[0, 0] = np.nan
        with pytest.raises(ValueError, match="contexts must be finite"):
            mab.predict(bad)


def test_arms_are_added_and_removed_and_other_policies_stay_mabwisers(mabs):
    _, ours, policy = mabs
    contexts, arms, rewards = game(0, 80)
    mab = ours(list(range(ARMS)), policy.LinUCB(alpha=0.1))
    mab.fit(arms, rewards, contexts)
    mab.add_arm("new")
    mab.partial_fit(["new"] * 20, [100.0] * 20, contexts[:20] * 0.0 + 1.0)
    assert mab.predict(np.ones((1, DIM))) == "new"
    assert mab.cold_arms == []
    mab.remove_arm("new")
    assert mab.predict(np.ones((1, DIM))) in range(ARMS)
    with pytest.raises(ValueError, match="warm_start must be asked"):
        mab.warm_start({arm: [0.0, 1.0] for arm in range(ARMS)}, 0.5)
    for kind in (policy.LinUCB(scale=True), policy.LinGreedy(l2_lambda=0.0)):
        other = ours(list(range(ARMS)), kind)
        other.fit(arms, rewards, contexts)
        assert other.predict(contexts[:1]) in range(ARMS)
        assert other.learning_policy == kind
    other = ours(list(range(ARMS)), policy.EpsilonGreedy(0.1))
    other.fit(arms, rewards)
    assert other.predict() in range(ARMS)


BOOKS = (
    "arm_to_stats_total", "arm_to_stats_train", "arm_to_stats_test", "bandit_to_arm_to_stats_min",
    "bandit_to_arm_to_stats_avg", "bandit_to_arm_to_stats_max", "bandit_to_confusion_matrices",
    "bandit_to_predictions", "bandit_to_expectations", "bandit_to_neighborhood_size",
    "bandit_to_arm_to_stats_neighborhoods", "test_indices",
)  # fmt: skip


def agree(one, other) -> bool:
    """The same books: names and counts to the letter, numbers to 1e-9, NaN where the other one has it."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(agree, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return one == other or one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True)


def run_simulator(mab, kinds, names, batch, **options):
    """MABWiser's simulator after a quiet run: its handlers are those of the root logger."""
    from mabwiser.simulator import Simulator

    contexts, arms, rewards = game(3, 90)
    bandits = [(str(place), mab(list(names), *kind)) for place, kind in enumerate(kinds)]
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decided = np.array(names)[arms]
            found = Simulator(bandits, decided, rewards, contexts, test_size=0.3, batch_size=batch, seed=1, **options)
            found.run()
    finally:
        for handler in [one for one in root.handlers if one not in before]:
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    return found


def half_of_it(arms, decisions, rewards, predictions, arm_to_stats, stat, start_index, nn=False):
    return {arm: {"sum": 0.5 * predictions.count(arm) * arm_to_stats[arm][stat]} for arm in arms}


def test_mabwisers_simulator_records_the_same_results(mabs, tmp_path):
    """One by one, in batches, at once."""
    theirs, ours, policy = mabs
    from onepass.adapters.mabwiser import NeighborhoodPolicy

    linear = [(policy.LinUCB(alpha=1.25),), (policy.LinGreedy(epsilon=0.1),), (policy.LinTS(alpha=0.5, l2_lambda=0.4),)]
    free = [(policy.UCB1(alpha=1.0),), (policy.EpsilonGreedy(0.2),)]
    near = [(policy.UCB1(alpha=1.0), NeighborhoodPolicy.KNearest(5)), *linear[:1]]
    letters, numbers = list("abcde"), list(range(ARMS))
    cases = [
        (linear + free, letters, 1, {}),
        (linear, numbers, 20, {"log_file": str(tmp_path / "log")}),
        (linear + free, numbers, 0, {"is_ordered": True}),
        (linear[:1], letters, 4, {"evaluator": half_of_it}),
        (near, numbers, 9, {}),
    ]
    for kinds, names, batch, options in cases:
        right, found = (run_simulator(mab, kinds, names, batch, **options) for mab in (theirs, ours))
        for book in BOOKS:
            assert agree(getattr(right, book), getattr(found, book)), (batch, book)
    assert "confusion matrix" in (tmp_path / "log").read_text()


def test_mabwisers_simulator_plots_results_and_data_frames_are_accepted(mabs, monkeypatch):
    _, ours, policy = mabs
    pandas, pyplot = pytest.importorskip("pandas"), pytest.importorskip("matplotlib.pyplot")
    shown = []
    pyplot.close("all")  # of other tests
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(len(pyplot.gca().lines) + len(pyplot.gca().patches)))
    for batch in (0, 9):
        run_simulator(ours, [(policy.LinUCB(),)], range(ARMS), batch).plot(is_per_arm=True)
    assert shown == [ARMS, ARMS]
    contexts, arms, rewards = game(0, 40)
    mab = ours(list(range(ARMS)), policy.LinTS(alpha=0.5))
    mab.fit(pandas.Series(arms), pandas.Series(rewards), pandas.DataFrame(contexts))
    assert mab.predict(pandas.Series(contexts[0])) in range(ARMS)
    assert len(mab.predict(pandas.DataFrame(contexts))) == 40


def test_mabwisers_example_runs_with_one_changed_import(mabs):
    """Advertisements: 15 of them shown, revenues, three features of the user; what its script prints, by both."""
    theirs, ours, policy = mabs
    ads = [1, 1, 1, 2, 4, 5, 3, 3, 2, 1, 4, 5, 3, 2, 5]
    revenues = [10, 17, 22, 9, 4, 20, 7, 8, 20, 9, 50, 5, 7, 12, 10]
    users = np.random.default_rng(0).standard_normal((15, 3))
    new, paid = np.array([[0.5, 0.6, 0.0], [-1.2, 0.3, 1.0]]), [7, 13]
    for kind in (policy.LinUCB(alpha=1.25, l2_lambda=1), policy.LinGreedy(epsilon=0.0)):
        said = []
        for mab in (theirs, ours):
            one = mab([1, 2, 3, 4, 5], kind)
            one.fit(ads, revenues, users)
            chosen = one.predict(new)
            found = one.predict_expectations(new)
            one.partial_fit(chosen, paid, new)
            one.add_arm(6)
            said.append((chosen, [[round(row[arm], 9) for arm in (1, 2, 3, 4, 5)] for row in found], one.predict(new)))
        assert said[0] == said[1]


def test_recommendations_equal_mab2recs(mabs):
    theirs = pytest.importorskip("mab2rec")
    from onepass.adapters import mab2rec

    contexts, arms, rewards = game(0, 200)
    for kind in (mabs[2].LinUCB(alpha=0.5), mabs[2].LinGreedy(epsilon=0.0)):
        lists = []
        for recommender in (theirs.BanditRecommender, mab2rec.BanditRecommender):
            one = recommender(kind, top_k=3, seed=1)
            one.fit(arms, rewards, contexts)
            lists.append(one.recommend(contexts[:8]))
        assert lists[0] == lists[1]


@pytest.mark.skipif(not LONG, reason="compares seconds, which belong to a machine with nothing else to do")
def test_a_decision_and_its_reward_cost_a_twentieth_of_mabwiser_from_100_arms_on(mabs):
    theirs, ours, policy = mabs
    contexts = np.random.default_rng(0).standard_normal((100, 10))
    spent = []
    for mab in (theirs, ours):
        one = mab(list(range(100)), policy.LinUCB(alpha=1.0))
        one.fit(list(range(100)), [0.0] * 100, contexts)
        times = []
        for row in contexts[:12]:
            start = time.process_time()
            one.partial_fit([one.predict(row[None])], [0.5], row[None])
            times.append(time.process_time() - start)
        spent.append(min(times))
    assert spent[0] > 20.0 * spent[1]


# ---- River ----


@pytest.fixture
def river():
    pytest.importorskip("river")
    from onepass.adapters import river

    return river


def test_river_learns_from_dictionaries(river):
    rng, mistakes, errors = np.random.default_rng(0), 0, 0.0
    model, regressor = river.KernelClassifier(classes=("no", "yes")), river.KernelRegressor()
    for t in range(300):
        x = {"a": float(rng.standard_normal()), "b": str(rng.choice(["u", "v"]))}
        y = "yes" if (x["a"] > 0.0) == (x["b"] == "u") else "no"
        mistakes += (model.predict_one(x) != y) * (t >= 150)
        errors += (regressor.predict_one(x) - x["a"]) ** 2 * (t >= 150) / 150
        model.learn_one(x, y)
        regressor.learn_one(x, x["a"])
    assert mistakes < 30
    assert errors < 0.1
    assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)


def test_a_policy_of_river_pulls_the_best_arm_of_a_context(river):
    policy, rng, right = river.LinearPolicy(exploration=0.5), np.random.default_rng(0), 0
    for t in range(200):
        context = {"user": str(rng.choice(["ann", "bob"]))}
        arm = policy.pull(["tea", "soup"], context=context)
        reward = float((arm == "tea") == (context["user"] == "ann"))
        right += reward * (t >= 100)
        policy.update(arm, context, reward)
    assert right > 95
    assert policy.clone().pull(["tea"], context={}) == "tea"


# ---- Gymnasium ----


@pytest.fixture
def gym():
    pytest.importorskip("gymnasium")
    from onepass.adapters import gymnasium

    return gymnasium


def test_environments_pass_the_check_of_gymnasium_and_agents_play_them(gym):
    from gymnasium.utils.env_checker import check_env

    from onepass.lab.bandits.environments import Linear
    from onepass.lab.kernels.problems import NoisyFunction

    rows = np.linspace(0.0, 1.0, 20)[:, None]
    pairs = [
        (gym.ContextualEnv(lambda seed: Linear(6, 4, seed), n_rounds=120), op.OFUL(dim=4)),
        (gym.FixedArmsEnv(
            lambda seed: NoisyFunction(rows, np.sin(5.0 * rows[:, 0]), op.RBF(0.2), 0.1, seed), n_rounds=120),
         op.GPUCB(rows, op.RBF(0.2))),
    ]  # fmt: skip
    for env, bandit in pairs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(env, skip_render_check=True)
        agent, lost, over = gym.Agent(bandit), [], False
        seen, _ = env.reset(seed=3)
        while not over:
            seen, reward, _, over, info = env.step(agent.act(seen))
            agent.learn(reward)
            lost.append(info["regret"])
        assert len(lost) == 120
        assert np.mean(lost[60:]) < 0.2 * np.mean(lost[:10]) + 0.05


# ---- Coba ----


@pytest.mark.parametrize("actions", [["a", "b"], [[1, 0], [0, 1]], [{"size": 1}, {"size": 2}]])
def test_a_learner_of_coba_scores_an_action_with_its_probability(actions):
    pytest.importorskip("coba")
    from onepass.adapters.coba import BanditLearner

    learner = BanditLearner(exploration=op.InverseGap())
    for _ in range(5):
        learner.learn({"x": 1.0}, actions[0], 1.0, 0.5)
    scores = [learner.score({"x": 1.0}, actions, action) for action in actions]
    chosen, propensity, _ = learner.predict({"x": 1.0}, actions)
    assert scores[actions.index(chosen)] == propensity
    assert sum(scores) == pytest.approx(1.0)


def test_a_learner_of_coba_beats_random_in_its_own_experiment():
    pytest.importorskip("coba")
    import coba

    from onepass.adapters.coba import BanditLearner

    environments = coba.Environments.from_linear_synthetic(400, n_actions=4, n_action_features=0, seed=2)
    learner = BanditLearner(exploration=op.InverseGap())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = coba.Experiment(environments, [learner, coba.RandomLearner()]).run(quiet=True)
    rewards: dict[int, list[float]] = {}
    for row in found.interactions.to_dicts():
        rewards.setdefault(row["learner_id"], []).append(row["reward"])
    assert np.mean(rewards[0][200:]) > np.mean(rewards[1][200:]) + 0.05


# ---- Optuna ----


def test_the_sampler_finds_the_optimum_and_learns_failures():
    optuna = pytest.importorskip("optuna")
    from onepass.adapters.optuna import BanditSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        x = trial.suggest_float("x", 1e-3, 1e3, log=True)
        n = trial.suggest_int("n", 0, 20, step=5)
        kind = trial.suggest_categorical("kind", ["a", None, 3.5])
        if trial.suggest_float("y", 0.0, 1.0, step=0.25) == 1.0:
            raise ArithmeticError
        return float(np.log10(x) ** 2 + abs(n - 10) / 5.0 + (kind != 3.5) + (kind == "a"))

    study = optuna.create_study(sampler=BanditSampler(seed=1))
    study.optimize(objective, n_trials=30, catch=ArithmeticError)
    again = optuna.create_study(sampler=BanditSampler(seed=2))
    again.add_trials(study.trials)
    again.optimize(objective, n_trials=20, catch=ArithmeticError, n_jobs=2)
    assert again.best_value < 0.3
    assert (again.best_params["n"], again.best_params["kind"]) == (10, 3.5)


def test_parameters_that_only_some_trials_have_are_found_by_the_sampler():
    optuna = pytest.importorskip("optuna")
    from onepass.adapters.optuna import BanditSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        if trial.suggest_categorical("kind", ["plain", "steep"]) == "plain":
            return 1.0 + trial.suggest_float("x", 0.0, 1.0)
        return (
            abs(trial.suggest_float("rate", 1e-4, 1e2, log=True) - 0.05)
            + abs(trial.suggest_int("n", 1, 50) - 17) / 10.0
        )

    found = []
    for seed in range(5):
        study = optuna.create_study(sampler=BanditSampler(seed=seed))
        study.optimize(objective, n_trials=60)
        found.append(study.best_value)
    assert np.median(found) < 0.5  # "steep" loses on average: by the kinds alone, "plain" is the better one
