"""Rank wide contexts: a bandit on 2,000 features that fits in 2 MB, saved and resumed, with late rewards in batches.

Run: python examples/wide_contexts.py
"""

import tempfile
from pathlib import Path

import numpy as np

import onepass as op

DIM, ARMS = 2000, 8


def main() -> None:
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((10, DIM)) / DIM**0.5  # what people want lives in few directions
    taste = topics.T @ rng.standard_normal(10)
    names = [f"article-{a}" for a in range(ARMS)]
    bandit = op.CBSCFD(dim=DIM, size=30, reg=1.0, exploration=0.2, seed=0, dtype="float32")

    waiting: list[tuple[np.ndarray, float]] = []
    clicks, best = 0.0, 0.0
    for _ in range(600):
        contexts = rng.standard_normal((ARMS, 10)) @ topics
        decision = bandit.decide(contexts, arms=names, k=3)  # three to show, best first
        shown = contexts[names.index(decision.arm)]
        clicks, best = clicks + float(shown @ taste), best + float((contexts @ taste).max())
        waiting.append((shown, float(shown @ taste) + 0.05 * rng.standard_normal()))
        if len(waiting) == 20:  # rewards arrive late, twenty at a time
            rows, rewards = zip(*waiting, strict=True)
            bandit.learn(np.array(rows), np.array(rewards))
            waiting.clear()

    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "model.onepass")
        resumed = op.load(Path(folder) / "model.onepass")
    assert resumed.decide(contexts).arm == bandit.decide(contexts).arm
    print(f"{clicks / best:.0%} of the best possible reward, {bandit.memory_usage() / 1e6:.1f} MB")
    print(bandit)


if __name__ == "__main__":
    main()
