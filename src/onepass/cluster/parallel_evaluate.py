"""Parallel evaluation of policies on the parts of a long log: workers evaluate parts, and the results are joined.

Sums add, and equal the sums of one pass exactly. Confidence sequences, which hold at any time, continue from one part
to the next. Their bets begin without data in each part, and so do reward models. Limits therefore hold as in one pass,
but are wider, so use few, long parts.
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
    """Estimate what each policy would have earned per decision, from the parts of one log in parallel.

    Parameters
    ----------
    parts : sequence of Log, str or Path
        Parts in the order of the log: `Log` objects, or files and stores that `onepass evaluate` reads.
    policies : dict of str to policy, or sequence of str
        Policies by name, as for `evaluate_many`: functions of a module, bandits or arrays. Or texts as on the command
        line: "uniform", MODULE:NAME, or the file of a bandit.
    workers : int, default 2
        Number of threads of this process, at least 1. With `ray` it is not used: there is a worker for each core of the
        Ray cluster.
    ray : str, default None
        Address of Ray, or "local", as for `fit`. None runs in this process.
    progress : callable, default None
        Called with the number of rows so far, after each part.
    **options : dict
        Options of `evaluate_many`: `reward_range`, `estimators`, `model`, `level`, `weight_bound`. And options of
        files: `format`, `features`, `bad`, `default`, `loop`, `keep_probability`.

    Returns
    -------
    dict of str to Evaluation
        Evaluations by name. Their attribute `sample` is None, because rows are not kept.

    Raises
    ------
    ValueError
        If there are no parts, a policy learns, or `evaluate_many` or a file's reader refuses its arguments.
    ModuleNotFoundError
        If `ray` is given and Ray is missing.
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
    """Evaluate the policies, given by name, on one part of the log: a `Log` or the name of a file.

    `options` are arguments of `sweep` by name, and `reading` arguments of `read_blocks`, which reads a file.
    """
    return sweep(part if isinstance(part, Log) else read_blocks(part, **reading), policies, **options)
