"""Open Bandit Pipeline: bandits of onepass behind its arrays, without the package itself.

    policy = Policy(bandit, n_actions=10)                      # contexts (n, dim) for all actions
    actions = run_bandit_simulation(bandit_feedback, policy)   # by replay, as obp's function of that name
    action_dist = policy.action_dist(context)                  # (n, n_actions, len_list), for its estimators

The bandit has `model="disjoint"`, and its arms are the actions 0, 1, ... Its exploration determines the probabilities.
"""

from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.arms.arm_models import ArmModels


class Policy:
    """Policy for the Open Bandit Pipeline (obp): a bandit with a model per arm behind the methods of obp's policies.

    Parameters
    ----------
    bandit : Bandit
        Bandit such as `onepass.LinUCB(dim=3, model="disjoint", exploration=onepass.InverseGap())`.
    n_actions : int
        Number of actions, at least 1.
    len_list : int, default 1
        Number of actions shown at once, from 1 to `n_actions`.

    Raises
    ------
    ValueError
        If the bandit has no model per arm, or a number is out of range.
    """

    policy_type = "contextual"

    bandit: Bandit
    dim: int

    def __init__(self, bandit: Bandit, n_actions: int, len_list: int = 1) -> None:
        if not (isinstance(bandit, Bandit) and isinstance(bandit.model, ArmModels)):
            raise ValueError(f'bandit must have model="disjoint", got {quote(bandit)}')
        self.bandit, self.dim = bandit, bandit.model.dim
        self.n_actions: int = check.integer("n_actions", n_actions, 1)
        self.len_list: int = check.integer("len_list", len_list, 1, self.n_actions)
        self.policy_name: str = f"onepass {type(bandit).__name__}"
        for action in range(self.n_actions):
            if action not in bandit.arms:
                bandit.add_arm(action)

    def select_action(self, context: Any) -> np.ndarray:
        """Choose the actions to show in a context.

        Parameters
        ----------
        context : array of shape (1, dim) or (dim,)
            Context of the decision.

        Returns
        -------
        array of shape (len_list,)
            Indices of the actions, from 0.
        """
        row = check.array("context", context, np.dtype(np.float64), (1, 2)).reshape(-1)
        decision = self.bandit.decide(row, list(range(self.n_actions)), self.len_list)
        return np.array(decision.arms if self.len_list > 1 else [decision.arm])

    def update_params(self, action: int, reward: float, context: Any) -> None:
        """Learn the reward of an action in a context.

        Parameters
        ----------
        action : int
            Index of the action that was shown, from 0.
        reward : float
            Its reward.
        context : array of shape (1, dim) or (dim,)
            Context of the decision.
        """
        row = check.array("context", context, np.dtype(np.float64), (1, 2)).reshape(-1)
        self.bandit.learn(row, float(reward), int(action))

    def action_dist(self, context: Any) -> np.ndarray:
        """Return the probability of every action in every context, without a draw.

        Parameters
        ----------
        context : array of shape (n, dim)
            Contexts.

        Returns
        -------
        array of shape (n, n_actions, 1)
            Probabilities of the actions.

        Raises
        ------
        ValueError
            If `len_list` is not 1, because the probabilities of later positions depend on the first.
        """
        if self.len_list != 1:
            raise ValueError("action_dist needs a policy with len_list=1: later positions depend on the first")
        rows = check.array("context", context, np.dtype(np.float64), (2,))
        decision = self.bandit.copy().decide(rows[:, None], list(range(self.n_actions)))
        return np.asarray(decision.probabilities).reshape(len(rows), self.n_actions, 1)


def run_bandit_simulation(bandit_feedback: dict[str, Any], policy: Policy) -> np.ndarray:
    """Play logged rounds by replay, as obp's function of the same name does.

    The policy chooses in every round, and learns the rounds in which it chose the logged action.

    Parameters
    ----------
    bandit_feedback : dict
        Dictionary of obp: `n_rounds`, `context` (n_rounds, dim), `action`, `reward` and, if several actions are shown,
        `position`, from 0, of the logged action, (n_rounds,) each.
    policy : Policy
        Policy that chooses and learns.

    Returns
    -------
    array of shape (n_rounds, n_actions, len_list)
        1 for the actions chosen at each position, 0 for the others.
    """
    n_rounds = check.integer("n_rounds", bandit_feedback["n_rounds"], 1)
    positions = bandit_feedback.get("position")
    positions = np.zeros(n_rounds, np.int64) if positions is None else np.asarray(positions)
    choices = np.zeros((n_rounds, policy.n_actions, policy.len_list))
    for t in range(n_rounds):
        context, logged = np.asarray(bandit_feedback["context"][t]), int(bandit_feedback["action"][t])
        actions = policy.select_action(context)
        choices[t, actions, np.arange(policy.len_list)] = 1.0
        if actions[min(int(positions[t]), policy.len_list - 1)] == logged:
            policy.update_params(logged, float(bandit_feedback["reward"][t]), context)
    return choices
