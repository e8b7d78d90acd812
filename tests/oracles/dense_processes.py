"""Naive optimistic value iteration in a table: counts and sums for every step, state and action, no features."""

import numpy as np


def optimistic_values(episodes, n_states, n_actions, n_steps, bound, reg, exploration, following):
    """Q (H, S, A) after episodes, lists of (state, action, reward, next state or None) for every step."""
    counts, sums = np.full((n_steps, n_states, n_actions), reg), np.zeros((n_steps, n_states, n_actions))
    arrivals = np.zeros((n_steps, n_states, n_actions, n_states))
    for episode in episodes:
        for h, (s, a, reward, after) in enumerate(episode):
            counts[h, s, a] += 1.0
            sums[h, s, a] += reward
            if after is not None:
                arrivals[h, s, a, after] += 1.0
    q, value = np.zeros((n_steps, n_states, n_actions)), np.zeros(n_states)
    for h in reversed(range(n_steps)):
        bonus = (exploration + following * (n_steps - h - 1) * bound) / np.sqrt(counts[h])
        q[h] = np.minimum((sums[h] + arrivals[h] @ value) / counts[h] + bonus, (n_steps - h) * bound)
        value = q[h].max(axis=1)
    return q
