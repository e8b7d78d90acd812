"""Evaluation of policies on a file of any format, or on a store, for the command line."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onepass.evaluation.evaluate import Evaluation
from onepass.evaluation.events import logs_from_events
from onepass.evaluation.log import Log
from onepass.evaluation.policies import read_policy, reads_contexts
from onepass.evaluation.store_events import events_from_store
from onepass.evaluation.streaming import evaluate_many
from onepass.foundation.check import quote
from onepass.foundation.references import NoSuchName, import_reference


def parse_policy(text: str) -> Any:
    """Return the policy of a description: "uniform", "logged", "always:ARM", MODULE:NAME, or a saved bandit's file.

    ARM is the name of an arm, or its index from 0. MODULE:NAME is a function of contexts, an object with
    `action_probabilities`, or probabilities. Raises ValueError for another description.
    """
    name, colon, rest = text.partition(":")
    if text in ("uniform", "logged") or (name == "always" and rest) or Path(text).is_file():
        return read_policy(text)
    if colon and rest.isidentifier():
        return _import_object("policy", text)
    raise ValueError(
        f"policy must be uniform, logged, always:ARM, MODULE:NAME or the file of a saved bandit, got {quote(text)}"
    )


def _import_object(what: str, text: str) -> Any:
    """Return the object that `text`, MODULE:NAME, names, which may be in the current folder.

    Raises ValueError if it cannot be imported; `what` says in the message what the object is for.
    """
    try:
        return import_reference(text)
    except (ImportError, NoSuchName) as error:
        raise ValueError(f"{what} {text} cannot be imported: {error}") from None


def evaluate_file(
    path: str | Path,
    policies: Sequence[str],
    *,
    format: str | None = None,
    features: str | None = None,
    arms: Sequence[str] | None = None,
    bad: str = "refuse",
    report: Callable[[str, str], object] | None = None,
    progress: Callable[[int], object] | None = None,
    default: float = 0.0,
    loop: str | None = None,
    keep_probability: float | None = None,
    **options: Any,
) -> dict[str, Evaluation]:
    """Evaluate policies in one pass over a file, or a store.

    Parameters
    ----------
    path : str or Path
        File, or a store as `onepass log` names it: a file of SQLite or JSON lines (.jsonl), a folder, postgresql://...
    policies : sequence of str
        Policies as `parse_policy` takes them.
    format : str, default None
        Format of the file, as for `onepass.log.formats.read`.
    features : str, default None
        For CSV the names of columns, divided by commas. Otherwise MODULE:NAME of a function of a decision's features
        that returns its row or the rows of its arms. None takes the numbers of the contexts, if there are any.
    arms : sequence of str, default None
        Names of all arms of a CSV file. None takes those that `onepass.log.formats.table` finds.
    bad : str, default "refuse"
        "refuse" or "skip", as for `onepass.log.formats.read`.
    report : callable, default None
        Called with each line or decision that is left out, and the reason.
    progress : callable, default None
        Called with the number of rows, as for `evaluate_many`.
    default : float, default 0.0
        Reward of a decision without an outcome.
    loop : str, default None
        Loop of a store. None means all loops.
    keep_probability : float, default None
        Probability to which lines are thinned, as for `logs_from_events`.
    **options : Any
        Options of `evaluate_many`.

    Returns
    -------
    dict of str to Evaluation
        Evaluations by policy.

    Raises
    ------
    ValueError
        If a policy, the file or an option is not valid.
    """
    chosen: dict[str, Any] = {text: parse_policy(text) for text in policies}
    found = read_blocks(
        path, format=format, features=features, arms=arms, bad=bad, report=report, default=default, loop=loop,
        keep_probability=keep_probability, plain=any(map(reads_contexts, chosen.values())),
    )  # fmt: skip
    return evaluate_many(found, chosen, progress=progress, **options)


def read_blocks(
    path: str | Path,
    *,
    format: str | None = None,
    features: str | None = None,
    arms: Sequence[str] | None = None,
    bad: str = "refuse",
    report: Callable[[str, str], object] | None = None,
    default: float = 0.0,
    loop: str | None = None,
    keep_probability: float | None = None,
    plain: bool = True,
) -> Iterator[Log]:
    """Yield the decisions of the file or the store at `path`, in blocks.

    `format` is the format of the file, `features` says where features come from, `arms` are the names of all arms of a
    CSV file, and `default` is the reward of a decision without an outcome. If `bad` is "skip", bad lines are left out,
    and `report` is called with each of them and the reason. `loop` is the loop of a store (None: all), and
    `keep_probability` thins out the decisions. If `plain` is False, JSON features are not parsed, because no policy
    reads them.
    """
    from onepass.log import formats

    read: dict[str, Any] = {}
    left = None if report is None else lambda name, reason: report(f"decision {name}", reason)
    options: dict[str, Any] = {"default": default, "keep_probability": keep_probability, "bad": bad, "report": left}
    if _is_store(path, format):
        from onepass.log.open_store import open_store

        rows = None if features is None else _import_object("features", features)
        with open_store(str(path), readonly=True) as store:
            yield from logs_from_events(events_from_store(store, loop), features=rows, **options)
        return
    kind, rows = formats.format_of(path, format), None
    if kind is formats.table and arms is not None:
        read["arms"] = arms
    if kind is formats.table and features is not None:
        read["features"] = features.split(",")
    elif features is not None:
        rows = _import_object("features", features)
    if kind is formats.dsjson:
        read["lazy"] = rows is None and not plain
    told = None if report is None else lambda number, reason: report(f"line {number}", reason)
    yield from logs_from_events(kind.read(path, bad=bad, report=told, **read), features=rows, **options)


def _is_store(path: str | Path, format: str | None) -> bool:
    """Return True if a path names a store, not a file of another program."""
    from onepass.log import formats
    from onepass.log.open_store import SCHEMES

    ending = next((end for end in reversed(Path(path).suffixes) if end != ".gz"), "")
    foreign = ending in formats.ENDINGS and ending != ".jsonl"
    return format is None and (str(path).startswith(SCHEMES) or Path(path).is_dir() or not foreign)


def count_decisions(path: str | Path, format: str | None = None) -> int:
    """Estimate how many decisions a file or a store holds, at least 1, from its lines, blocks or records."""
    from onepass.log import formats
    from onepass.log.formats.lines import open_binary

    if _is_store(path, format):
        from onepass.log.open_store import open_store

        with open_store(str(path), readonly=True) as store:
            return max(len(store), 1)
    kind = formats.format_of(path, format)
    if kind is formats.obp:
        return max(sum(1 for _ in kind.read(path, bad="skip")), 1)
    lines, empty = 0, 0
    with open_binary(Path(path)) as file:
        for line in file:
            lines, empty = lines + 1, empty + (line in (b"\n", b"\r\n"))
    return max(empty if kind is formats.vw and empty else lines - empty, 1)


def to_json_lines(found: dict[str, Evaluation]) -> str:
    """Format the evaluations `found`, by policy, as lines of JSON. Numbers that are not finite become null."""

    def replace_nonfinite(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replace_nonfinite(one) for name, one in value.items()}
        if isinstance(value, list):
            return [replace_nonfinite(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = ({"policy": name, **one.to_dict()} for name, one in found.items())
    return "\n".join(json.dumps(replace_nonfinite(row), allow_nan=False) for row in rows)


def format_table(found: dict[str, Evaluation]) -> str:
    """Format the evaluations `found`, by policy, as aligned lines.

    The columns are verdict, value and its estimator, limits at any time, and effective rows. The reasons of a verdict
    stand below its line.
    """
    lines = [f"{'policy':<24} {'verdict':<8} {'value':>11} {'by':<5} {'limits at any time':>25} {'worth':>11}"]
    for name, one in found.items():
        value = "" if one.value is None else f"{one.value:.6g}"
        limits = f"{one.limits.lower:.5g} to {one.limits.upper:.5g}"
        by = "" if one.value is None else f"{one.estimator}"
        lines.append(f"{name:<24} {one.verdict:<8} {value:>11} {by:<5} {limits:>25} {one.diagnosis.effective:>11,.0f}")
        lines += [f"    {reason}" for reason in one.diagnosis.reasons]
    first = next(iter(found.values()))
    return "\n".join([*lines, f"{first.diagnosis.rows:,} decisions, which earned {first.logged:.6g} each"])
