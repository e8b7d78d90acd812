"""What policies would have earned, from parts of a long log: workers pass over their own, what they leave is joined.

Sums add (exactly those of one pass). Sequences that hold at any time go on from one part to the next: their bets begin
anew with a part, as reward models do, so limits hold as those of one pass do, and are wider: use few, long parts.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onepass.cluster.task_pool import make_pool, merge_tree
from onepass.evaluation.evaluate import Evaluation
from onepass.evaluation.files import parse_policy, read_blocks
from onepass.evaluation.log import Log
from onepass.evaluation.progressive import LearningPolicy
from onepass.evaluation.streaming import SweepResult, sweep
from onepass.foundation import check
from onepass.foundation.check import quote

_FILE_OPTIONS = ("format", "features", "bad", "default", "loop", "keep_probability")  # options of files


def evaluate(
    parts: Sequence[Log | str | Path],
    policies: Mapping[str, Any] | Sequence[str],
    *,
    workers: int = 2,
    ray: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> dict[str, Evaluation]:
    """The values of policies, from parts of one log.

    parts: in the log's order: `Log`s, or files and stores that `onepass evaluate` reads.
    policies: by name, as for `evaluate_many`: functions of a module, bandits or arrays; or texts, as the command has
        them ("uniform", MODULE:NAME, the file of a bandit).
    workers, ray: as of `fit`. progress: called with the number of rows so far, after each part (default None).
    options: of `evaluate_many` (reward_range, estimators, model, level, weight_bound), and of files (format, features,
        bad, default, loop, keep_probability).
    Returns `Evaluation` by name. ValueError as these.
    """
    count = check.integer("workers", workers, 1)
    chosen = dict(policies) if isinstance(policies, Mapping) else {text: parse_policy(text) for text in policies}
    learning = [name for name, policy in chosen.items() if isinstance(policy, LearningPolicy)]
    if learning:
        raise ValueError(f"policies must not learn, for every part would begin anew, but {quote(learning[0])} does")
    reading = {name: options.pop(name) for name in _FILE_OPTIONS if name in options}
    given = [part if isinstance(part, Log) else str(part) for part in parts]
    if not given:
        raise ValueError("parts must hold at least one part of a log")
    pool, rows = make_pool(count, ray), 0
    try:
        tasks = [pool.start(_sweep_part, part, chosen, options, reading) for part in given]
        for task in pool.as_completed(tasks):
            rows += pool.result(task).rows
            if progress is not None:
                progress(rows)
        return merge_tree(pool, tasks, SweepResult.concat).evaluations()
    finally:
        pool.close()


def _sweep_part(
    part: Any, policies: Mapping[str, Any], options: dict[str, Any], reading: dict[str, Any]
) -> SweepResult:
    """What a pass over a part leaves behind."""
    return sweep(part if isinstance(part, Log) else read_blocks(part, **reading), policies, **options)
