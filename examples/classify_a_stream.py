"""Classify a stream as it comes, in bounded memory. Run: python examples/classify_a_stream.py

Machines send readings on very different scales and are fine, hot or loose. Every reading is first classified, then
learned: all mistakes are counted. The recommended learner is told nothing; learners with a budget need scaled rows and
the width of their kernel.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

import onepass as op

READINGS = 10_000


def readings(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (count, 4) in four units, and what they were: fine, hot or loose."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 4))
    heat = rows[:, 0] + 0.5 * rows[:, 1]
    shake = np.hypot(rows[:, 2], rows[:, 3])
    kinds = np.where(heat**2 + 0.2 * rng.standard_normal(count) > 1.5, "hot", np.where(shake > 1.8, "loose", "fine"))
    return rows * [1.0, 300.0, 0.01, 50.0], kinds


def main() -> None:
    """Validate progressively, compare with a budget of examples, save, load, go on one by one."""
    rows, kinds = readings(READINGS, seed=0)
    for learner in (
        op.KernelNewton(),
        op.learner.FORKS(budget=100, rank=20, sample_size=40),
        op.learner.BOGD(budget=100),
    ):
        classifier = op.OnlineKernelClassifier(learner)
        scale = 1.0 if isinstance(learner, op.KernelNewton) else rows[:500].std(axis=0)
        found = op.progressive_validation(classifier, rows / scale, kinds)
        print(
            f"{type(learner).__name__:12} mistakes {100 * found.mistake_rate:4.1f}%, lately "
            f"{100 * found.mistakes[-2000:].mean():4.1f}%, {found.microseconds_per_example:4.1f} us a reading, "
            f"{classifier.memory_usage() / 1e3:5.0f} kB"
        )

    # the same for scikit-learn: searches, pipelines, partial_fit
    search = GridSearchCV(op.OnlineKernelClassifier(), {"learner__width_factor": [0.5, 1.0, 2.0]}, cv=2)
    search.fit(rows[:2000], kinds[:2000])
    print(f"chosen by cross-validation: {search.best_params_}, {100 * search.best_score_:.1f}% right")

    # a file carries on bit for bit, elsewhere and later
    classifier = op.OnlineKernelClassifier().fit(rows[: READINGS // 2], kinds[: READINGS // 2])
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder) / "classifier.onepass")
        loaded = op.load(Path(folder) / "classifier.onepass")
    right = 0
    for row, kind in zip(rows[READINGS // 2 :][:500], kinds[READINGS // 2 :], strict=False):
        right += loaded.predict_one(row) == kind
        loaded.learn_one(row, kind)
    print(f"loaded and continued one by one: {right} of 500 right")
    assert right > 430


if __name__ == "__main__":
    main()
