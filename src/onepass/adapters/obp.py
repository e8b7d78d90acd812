"""Open Bandit Pipeline: our bandits in its arrays; the package itself is not needed.

    policy = Policy(bandit)                                    # contexts (n, dim) for all actions
    found = play(bandit_feedback, policy)                      # as obp's run_bandit_simulation: by replay
    action_dist = policy.action_dist(context)                  # (n, n_actions, len_list), for its estimators

A bandit of `model="disjoint"` whose arms are the actions 0, 1, ...; probabilities are those of its exploration.
"""

from typing import Any

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.model.arms.arm_models import ArmModels


class Policy:
    """A bandit with models per arm as obp asks for a policy.

    bandit: such as `onepass.LinUCB(dim=3, model="disjoint", exploration=onepass.InverseGap())`.
    n_actions: at least 1. len_list: actions shown at once, from 1 to n_actions (default 1). ValueError otherwise.
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
        """The actions (len_list,) to be shown in a context, (1, dim) or (dim,)."""
        row = check.array("context", context, np.dtype(np.float64), (1, 2)).reshape(-1)
        decision = self.bandit.decide(row, list(range(self.n_actions)), self.len_list)
        return np.array(decision.arms if self.len_list > 1 else [decision.arm])

    def update_params(self, action: int, reward: float, context: Any) -> None:
        """Learn what an action paid in a context, (1, dim) or (dim,)."""
        row = check.array("context", context, np.dtype(np.float64), (1, 2)).reshape(-1)
        self.bandit.learn(row, float(reward), int(action))

    def action_dist(self, context: Any) -> np.ndarray:
        """The chance of every action in every context, (n, n_actions, len_list); context (n, dim). Nothing is drawn.

        For lists only the first place is known beforehand: len_list must be 1, or ValueError.
        """
        if self.len_list != 1:
            raise ValueError("action_dist must be asked of a policy with len_list=1: later places hang on the first")
        rows = check.array("context", context, np.dtype(np.float64), (2,))
        decision = self.bandit.copy().decide(rows[:, None], list(range(self.n_actions)))
        return np.asarray(decision.probabilities).reshape(len(rows), self.n_actions, 1)


def play(feedback: dict[str, Any], policy: Policy) -> np.ndarray:
    """The choices (n, n_actions, len_list) of a policy that learns by replay, as obp's run_bandit_simulation gives.

    feedback: obp's dictionary, of which n_rounds, context, action, reward and, for lists, position are needed. Each
    round it chooses, and it learns the rounds in which it chose what was logged.
    """
    rounds = check.integer("n_rounds", feedback["n_rounds"], 1)
    positions = feedback.get("position")
    positions = np.zeros(rounds, np.int64) if positions is None else np.asarray(positions)
    found = np.zeros((rounds, policy.n_actions, policy.len_list))
    for t in range(rounds):
        context, logged = np.asarray(feedback["context"][t]), int(feedback["action"][t])
        chosen = policy.select_action(context)
        found[t, chosen, np.arange(policy.len_list)] = 1.0
        if chosen[min(int(positions[t]), policy.len_list - 1)] == logged:
            policy.update_params(logged, float(feedback["reward"][t]), context)
    return found
