"""Adapters: what an interface promises, by the real package where it is installed, as `peers` installs it."""

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


def test_expectations_and_choices_are_those_of_mabwiser(mabs):
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


def test_thompson_draws_have_the_mean_and_the_deviation_of_mabwiser(mabs):
    theirs, ours, policy = mabs
    contexts, arms, rewards = game(0, 80)
    draws = []
    for mab in (theirs, ours):
        one = mab(list(range(ARMS)), policy.LinTS(alpha=0.5), seed=7)
        one.fit(arms, rewards, contexts)
        found = one.predict_expectations(np.tile(contexts[:1], (400, 1)))
        draws.append(np.array([[row[arm] for arm in range(ARMS)] for row in found]))
    spread = draws[0].std(axis=0)
    assert (np.abs(draws[0].mean(axis=0) - draws[1].mean(axis=0)) < 5.0 * spread * (2.0 / 400.0) ** 0.5).all()
    assert (np.abs(draws[1].std(axis=0) / spread - 1.0) < 5.0 / 400.0**0.5).all()


def test_arms_come_and_go_and_other_policies_stay_theirs(mabs):
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


def test_the_simulator_of_mabwiser_pays_both_alike(mabs):
    """As in its own example: bandits by name, half of a log to learn from, the rest played in batches."""
    theirs, ours, policy = mabs
    from mabwiser.simulator import Simulator

    contexts, arms, rewards = game(3, 600)
    paid = []
    for mab in (theirs, ours):
        bandits = [("ucb", mab(list(range(ARMS)), policy.LinUCB(alpha=1.25))),
                   ("greedy", mab(list(range(ARMS)), policy.LinGreedy(epsilon=0.0)))]  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = Simulator(bandits, arms, rewards, contexts, test_size=0.5, batch_size=20, is_quick=True, seed=1)
            found.run()
        paid.append({name: found.bandit_to_arm_to_stats_avg[name] for name, _ in bandits})
    assert paid[0] == paid[1]


def test_the_example_of_mabwiser_runs_on_with_one_changed_import(mabs):
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


def test_recommendations_of_mab2rec_are_the_same(mabs):
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


def test_a_policy_of_river_pulls_the_arm_that_a_context_asks_for(river):
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

    from onepass.experiment.bandits.environments import Linear
    from onepass.experiment.kernels.problems import NoisyFunction

    rows = np.linspace(0.0, 1.0, 20)[:, None]
    pairs = [
        (gym.Rounds(lambda seed: Linear(6, 4, seed), rounds=120), op.OFUL(dim=4)),
        (gym.Points(lambda seed: NoisyFunction(rows, np.sin(5.0 * rows[:, 0]), op.RBF(0.2), 0.1, seed), rounds=120),
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


def test_the_sampler_finds_what_optuna_asks_for_and_knows_failures():
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
