"""Optimistic value iteration: equal to a table's, rewards by one-pass Huber regression, few plans."""

import numpy as np
import pytest

import onepass as op
from bad_files import encode_file
from dense_processes import optimistic_values
from onepass.dynamics import OptimisticValueIteration
from onepass.dynamics.value_iteration import jin_multiplier
from onepass.estimator import contract
from onepass.foundation import files

STATES, ACTIONS, STEPS = 3, 2, 4
FEATURES = np.eye(STATES * ACTIONS).reshape(STATES, ACTIONS, -1)
OPTIONS = {"exploration": 0.7, "value_exploration": 0.2, "reg": 0.37, "reward_bound": 1.5}


def play(agent, episodes, df, seed=0, nus=None):
    """Episodes as they were played, and whether a plan was made after each."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS))
    means, played, planned = rng.random((STATES, ACTIONS)), [], []
    for _ in range(episodes):
        state, episode = 0, []
        for h in range(STEPS):
            action = agent.decide(h, FEATURES[state])
            reward = means[state, action] + (rng.standard_t(df) if df else rng.standard_normal())
            after = None if h == STEPS - 1 else int(rng.choice(STATES, p=law[state, action]))
            following = None if after is None else FEATURES[after]
            agent.learn(h, FEATURES[state, action], reward, following, None if nus is None else float(nus[h]))
            episode.append((state, action, reward, after))
            state = 0 if after is None else after
        played.append(episode)
        planned.append(agent.end_episode())
    return played, planned, means


def test_one_hot_features_are_optimistic_value_iteration_in_a_table():
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, estimator="ridge", **OPTIONS)
    played, planned, _ = play(agent, 200, None)
    last = np.flatnonzero(planned)[-1] + 1
    want = optimistic_values(
        played[:last], STATES, ACTIONS, STEPS, OPTIONS["reward_bound"], OPTIONS["reg"], OPTIONS["exploration"],
        OPTIONS["value_exploration"],
    )  # fmt: skip
    got = np.array([[agent.values(h, FEATURES[s]) for s in range(STATES)] for h in range(STEPS)])
    np.testing.assert_allclose(got, want, rtol=1e-10)
    for h in range(STEPS):
        assert [agent.decide(h, phis) for phis in FEATURES] == want[h].argmax(axis=1).tolist()


@pytest.mark.parametrize("options", [{}, {"nu": 0.8, "epsilon": 0.4}])
def test_rewards_are_estimated_by_one_pass_huber_regression(options):
    nus = np.linspace(0.5, 2.0, STEPS) if options else None
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, reg=0.37, **options)
    played, _, _ = play(agent, 150, 1.5, nus=nus)
    for h in range(STEPS):
        state = op.OnePassHuber(op.Exact(dim=STATES * ACTIONS, reg=0.37), **options).begin()
        for episode in played:
            s, a, reward, _ = episode[h]
            if nus is not None:
                state = contract.set_next_noise(state, float(nus[h]))
            state = contract.update(state, FEATURES[s, a], reward)
        np.testing.assert_array_equal(agent.reward_parameters()[h], contract.parameter(state))


def test_under_student_t_rewards_their_estimates_are_better_than_those_of_ridge_regression():
    off = np.zeros((2, 8))
    for i, kind in enumerate(("huber", "ridge")):
        for seed in range(8):
            agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, estimator=kind)
            *_, means = play(agent, 150, 1.5, seed=seed)
            off[i, seed] = np.abs(agent.reward_parameters() - means.ravel()).mean()
    assert np.median(off[0]) < 0.7 * np.median(off[1])


def test_plans_are_made_anew_as_often_as_determinants_double():
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, estimator="ridge", reg=1.0)
    _, planned, _ = play(agent, 400, None)
    assert sum(planned) <= 2 * STEPS * STATES * ACTIONS * np.log2(1 + 400)
    assert sum(planned[200:]) < sum(planned[:200]) / 2


def test_states_after_which_nothing_comes_have_value_0():
    agent = OptimisticValueIteration(2, 2, estimator="ridge", exploration=0.0, value_exploration=0.0, reg=0.5)
    for _ in range(10):
        agent.learn(0, [1.0, 0.0], 0.4, np.eye(2))
        agent.learn(1, [1.0, 0.0], 1.0)
        agent.learn(0, [0.0, 1.0], 0.5)  # ends
        agent.end_episode()
    low, high = agent.values(0, np.eye(2))[::-1]
    assert low < 0.5 < 1.0 < high


def test_a_next_state_is_stored_once():
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, estimator="ridge")
    play(agent, 50, None)
    for one in (agent, agent.copy()):
        assert files.read(op.to_bytes(one))[1]["counts"].tolist() == [ACTIONS] * STATES


def test_the_multiplier_of_the_theorem_is_that_of_jin_et_al():
    assert jin_multiplier(5, 3, 100, 0.1) == pytest.approx(3 * 5 * np.sqrt(np.log(2 * 3 * 500 / 0.1)))
    assert jin_multiplier(5, 3, 100, 0.1, constant=0.1) == pytest.approx(0.1 * jin_multiplier(5, 3, 100, 0.1))


BAD = {
    "n_steps": lambda agent: OptimisticValueIteration(0, 2),
    "estimator": lambda agent: OptimisticValueIteration(2, 2, estimator="lasso"),
    "epsilon and nu": lambda agent: OptimisticValueIteration(2, 2, estimator="ridge", nu=1.0),
    "value_exploration": lambda agent: OptimisticValueIteration(2, 2, value_exploration=-1.0),
    "step must": lambda agent: agent.decide(2, np.eye(2)),
    "phis": lambda agent: agent.decide(0, np.eye(3)),
    "at least one action": lambda agent: agent.decide(0, np.zeros((0, 2))),
    "reward": lambda agent: agent.learn(0, [1.0, 0.0], np.nan, np.eye(2)),
    "next_phis": lambda agent: agent.learn(0, [1.0, 0.0], 1.0, np.eye(3)),
    "nu must be None": lambda agent: agent.learn(0, [1.0, 0.0], 1.0, np.eye(2), 1.0),
    "delta": lambda agent: jin_multiplier(5, 3, 100, 1.0),
}


@pytest.mark.parametrize("words", BAD)
def test_a_bad_call_names_what_is_wrong_and_changes_nothing(words):
    agent = OptimisticValueIteration(2, 2, estimator="ridge")
    with pytest.raises(ValueError, match=words):
        BAD[words](agent)
    assert not agent.end_episode()


@pytest.mark.parametrize("options", [{}, {"estimator": "ridge"}, {"nu": 0.8, "epsilon": 0.4}])
def test_a_copy_and_a_file_continue_as_the_agent_does(options):
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS, reg=0.37, **options)
    for seed in range(2):  # nothing learned, and 30 episodes
        twins = [agent, agent.copy(), op.from_bytes(op.to_bytes(agent))]
        played = [play(twin, 30, 2.1, seed=seed) for twin in twins]
        for twin, (episodes, planned, _) in zip(twins, played, strict=True):
            assert (episodes, planned) == played[0][:2]
            np.testing.assert_array_equal(twin.reward_parameters(), agent.reward_parameters())
            assert repr(twin) == repr(agent)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("steps", lambda steps: steps + STEPS),
        ("places", lambda places: places + STATES * ACTIONS),
        ("counts", lambda counts: -counts),
        ("following", lambda rows: rows[1:]),
        ("rows", lambda rows: rows[1:]),
        ("gram", lambda gram: gram[1:]),
        ("value_bonus", lambda bonus: bonus[:, 1:]),
    ],
)
def test_a_file_whose_parts_disagree_is_refused(name, change):
    agent = OptimisticValueIteration(STEPS, STATES * ACTIONS)
    play(agent, 3, 2.1)
    header, arrays = files.read(op.to_bytes(agent))
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises(ValueError, match="damaged"):
        op.from_bytes(encode_file(header, arrays))
