"""Explanations of scores: the contribution of each feature to an arm's mean, and to the square of its width.

For an arm with the row z, the two numbers are sums over the features z_j:

    mean    = theta^T z    = sum of contributions    z_j theta_j
    width^2 = z^T A^-1 z   = sum of shares           z_j (A^-1 z)_j

For arm a minus arm b the same holds for mean_a - mean_b and the width of theta^T (z_a - z_b), with terms of a minus
terms of b. If rewards have a link mu (estimator/families.py), the explained mean is theta^T z and scores are mu of it.

Both are linear functions of z once theta and s = A^-1 z are known. So both are attributed in the same way, through
feature maps, too (features/attribution.py). Shares can be negative: a feature that makes a row more like those learned
narrows the width. For two arms of one shared model, s = A^-1 (z_a - z_b). Two arms with models of their own have
independent errors, so their squared widths are added.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any, NamedTuple

import numpy as np

from onepass.bandit.decision import Decision
from onepass.features.attribution import is_constant
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.html import make_html
from onepass.model.contract import Side, Sides

SHOWN = 5  # terms that `str` shows


class Term(NamedTuple):
    """Contribution of a feature to the mean of an arm, and to the square of its width.

    Parameters
    ----------
    part : str
        Part of the model: "shared" if all arms share it, "arm" if it belongs to this arm.
    name : str
        Name of the feature.
    value : float
        Value of the feature. For a `Fourier` frequency, an angle.
    weight : float
        Weight of one unit of the feature. For a `Fourier` frequency, an amplitude.
    contribution : float
        Weight times value. For a standardized column, weight times (value - mean). For a `Fourier` frequency, the value
        of the wave at this point.
    share : float
        Part of the squared width. It may be negative.
    """

    part: str
    name: str
    value: float
    weight: float
    contribution: float
    share: float


class Gap(NamedTuple):
    """Contribution of a feature to the lead of an arm over another arm.

    Parameters
    ----------
    part : str
        Part of the model, as in `Term`.
    name : str
        Name of the feature.
    values : tuple of float
        Value of the feature for the arm and for the other arm.
    weights : tuple of float
        Weight of the feature for the arm and for the other arm.
    contribution : float
        Part of the difference of the means.
    share : float
        Part of the squared width of the difference. It may be negative.
    """

    part: str
    name: str
    values: tuple[float, float]
    weights: tuple[float, float]
    contribution: float
    share: float


class Difference(NamedTuple):
    """Difference between an arm and another arm, by the present model.

    Parameters
    ----------
    arm : hashable
        The arm.
    other : hashable
        The other arm.
    score : float
        Difference of the scores.
    mean : float
        Difference of the means, the sum of all contributions.
    width : float
        Width of the difference of the means. Its square is the sum of all shares.
    terms : tuple of Gap
        Every feature, the largest contribution first.
    """

    arm: Any
    other: Any
    score: float
    mean: float
    width: float
    terms: tuple[Gap, ...]

    def top(self, k: int) -> tuple[Gap, ...]:
        """Return the terms with the k largest contributions, of either sign.

        Parameters
        ----------
        k : int
            Number of terms, at least 0.

        Returns
        -------
        tuple of Gap
            The terms, the largest first.
        """
        return self.terms[: check.integer("k", k, 0)]

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain data for JSON.

        Returns
        -------
        dict
            The fields. A name that JSON cannot hold is replaced by its `repr`.
        """
        found = {"arm": plain_name(self.arm), "other": plain_name(self.other)}
        terms = [{**term._asdict(), "values": list(term.values), "weights": list(term.weights)} for term in self.terms]
        return {**found, "score": self.score, "mean": self.mean, "width": self.width, "terms": terms}

    def __str__(self) -> str:
        head = f"{self.arm!r} against {self.other!r}"
        said = [f"{_pair(term.values)}, weight {_pair(term.weights)}" for term in self.top(SHOWN)]
        return _table(head, self, said)

    def _repr_html_(self) -> str:
        head = ("part", "feature", "values", "weights", "contribution", "share of width^2")
        title = f"{self.arm} against {self.other}: mean {self.mean:+.4g}, width {self.width:.4g}"
        rows = [(t.part, t.name, _pair(t.values), _pair(t.weights), t.contribution, t.share) for t in self.top(SHOWN)]
        rest = len(self.terms) - len(rows)
        return make_html(title, head, rows, [f"and {rest} more"] if rest > 0 else [])


class Explanation(NamedTuple):
    """Explanation of an arm's score, mean and width for one request, by the present model.

    Parameters
    ----------
    arm : hashable
        The arm.
    score : float
        Score of the arm, on the scale of rewards.
    mean : float
        Mean of the arm, the sum of all contributions up to rounding.
    width : float
        Width of the arm: the standard error of the mean, divided by the standard deviation of the noise. Its square is
        the sum of all shares up to rounding.
    terms : tuple of Term
        Every feature, the largest contribution first.
    difference : Difference or None
        Difference to the nearest competitor, or to the arm that was asked for. None if no other arm is offered.
    link : str, default ""
        Family of the rewards, such as "logistic". Mean, width and terms then refer to theta^T z, which is the log odds
        for clicks. "" if the mean is the expected reward.
    """

    arm: Any
    score: float
    mean: float
    width: float
    terms: tuple[Term, ...]
    difference: Difference | None
    link: str = ""

    def top(self, k: int) -> tuple[Term, ...]:
        """Return the terms with the k largest contributions, of either sign.

        Parameters
        ----------
        k : int
            Number of terms, at least 0.

        Returns
        -------
        tuple of Term
            The terms, the largest first.
        """
        return self.terms[: check.integer("k", k, 0)]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data for JSON.

        Returns
        -------
        dict
            The fields. A name that JSON cannot hold is replaced by its `repr`.
        """
        difference = None if self.difference is None else self.difference.to_dict()
        numbers = {"score": self.score, "mean": self.mean, "width": self.width}
        terms = [term._asdict() for term in self.terms]
        return {"arm": plain_name(self.arm), **numbers, "terms": terms, "difference": difference, "link": self.link}

    def __str__(self) -> str:
        said = [f"{term.value:.4g}, weight {term.weight:.4g}" for term in self.top(SHOWN)]
        note = f" before the {self.link} link" if self.link else ""
        found = _table(repr(self.arm), self, said, note)
        return found if self.difference is None else f"{found}\n{self.difference}"

    def _repr_html_(self) -> str:
        head = ("part", "feature", "value", "weight", "contribution", "share of width^2")
        note = f" before the {self.link} link" if self.link else ""
        title = f"{self.arm}: mean {self.mean:.4g}, width {self.width:.4g}{note}"
        rows = [(t.part, t.name, t.value, t.weight, t.contribution, t.share) for t in self.top(SHOWN)]
        rest = len(self.terms) - len(rows)
        found = make_html(title, head, rows, [f"and {rest} more"] if rest > 0 else [])
        return found if self.difference is None else found + self.difference._repr_html_()


def make_explanation(arms: Sequence[Any], scores: Sequence[float], sides: Sides, link: str = "") -> Explanation:
    """Make the `Explanation` of one arm, or of two arms, the second being the one to compare with.

    `scores` holds the scores of `arms`. `sides(m)` returns the contributions to the score of the first arm (m = 1), or
    to the difference of the two (m = 2). `link` is the family of the rewards, such as "logistic"; "" without a link
    function.
    """
    mine = sides(1)[0]
    terms = [
        Term(side.part, *row)
        for side in mine
        for row in zip(
            side.terms.names,
            *(side.terms.values.tolist(), side.terms.slopes[0].tolist()),
            *(side.terms.parts[0].tolist(), side.terms.parts[1].tolist()),
            strict=True,
        )
    ]
    mean, width = fsum(side.mean for side in mine), _width([side.square for side in mine])
    difference = None if len(arms) == 1 else _difference(arms, scores, *sides(2))
    return Explanation(arms[0], float(scores[0]), mean, width, tuple(_sort_terms(terms)), difference, link)


def _difference(
    arms: Sequence[Any], scores: Sequence[float], mine: Sequence[Side], theirs: Sequence[Side]
) -> Difference:
    gaps = []
    for own, other in zip(mine, theirs, strict=True):
        a, b = own.terms, other.terms
        values = zip(a.values.tolist(), b.values.tolist(), strict=True)
        weights = zip(a.slopes[0].tolist(), b.slopes[0].tolist(), strict=True)
        parts = (a.parts - b.parts).tolist()
        gaps += [Gap(own.part, *row) for row in zip(a.names, values, weights, *parts, strict=True)]
    sides = [(side, sign) for sign, found in ((1.0, mine), (-1.0, theirs)) for side in found]
    mean, width = fsum(s * side.mean for side, s in sides), _width([s * side.square for side, s in sides])
    return Difference(arms[0], arms[1], float(scores[0] - scores[1]), mean, width, tuple(_sort_terms(gaps)))


def _width(squares: list[float]) -> float:
    return sqrt(max(fsum(squares), 0.0))


def _sort_terms(terms: list[Any]) -> list[Any]:
    """Sort terms by contribution, then by share, and leave out a constant without effect."""
    told = [t for t in terms if t.contribution or t.share or not is_constant(t.name)]
    return sorted(told, key=lambda term: (-abs(term.contribution), -abs(term.share)))


def rows_from_decision(decision: Decision, arms: Any, arm: Any) -> tuple[np.ndarray, tuple[Any, ...], Any]:
    """Return the rows (k, dim) and names of the k arms that a decision chose, and the name of the arm to explain.

    Raises ValueError for a batch of decisions, for `arms` beside a decision, and for a record without rows.
    """
    if decision.is_batch:
        raise ValueError("contexts must be one decision: take several at once apart with decisions.split()")
    if arms is not None:
        raise ValueError("arms must be None beside a decision, whose record has the rows of the arms it chose alone")
    if not isinstance(decision.context, np.ndarray):
        raise ValueError(f"decision {quote(decision.id)} has no context, as those of this bandit have")
    names = tuple(decision.arms)
    return decision.context.reshape(len(names), -1), names, names[0] if arm is None else arm


def arms_to_explain(
    scores: np.ndarray, offered: Sequence[Any], arm: Any, other: Any, compares: bool = True
) -> list[int]:
    """Return the index of the arm to explain, and of the arm to compare with if there is one.

    None for `arm` takes the largest score, None for `other` the largest score of the other arms. If `compares` is
    False, there is no arm to compare with, and `other` must be None. Raises ValueError if an arm is not offered or the
    two are equal.
    """
    first = int(np.argmax(scores)) if arm is None else arm_index("arm", arm, offered)
    if not compares:
        if other is not None:
            raise ValueError("other must be None for this model, which explains one arm at a time")
        return [first]
    if other is not None:
        second = arm_index("other", other, offered)
        if second == first:
            raise ValueError(f"other must be another arm than {quote(offered[first])}, which is explained")
        return [first, second]
    rest = np.array(scores, np.float64)
    rest[first] = -np.inf
    return [first, int(np.argmax(rest))] if len(rest) > 1 else [first]


def arm_index(argument: str, name: Any, offered: Sequence[Any]) -> int:
    """Return the index of a name among the arms offered.

    Raises ValueError, which mentions the name of the `argument`, if the arm is not offered.
    """
    try:
        return {one: place for place, one in reversed(list(enumerate(offered)))}[name]
    except (KeyError, TypeError):  # not among them, or not hashable
        raise ValueError(
            f"{argument} must be one of the {len(offered)} arms offered, got {check.quote(name)}"
        ) from None


def plain_name(name: Any) -> Any:
    """Convert the name of an arm to plain data for JSON."""
    name = name.item() if isinstance(name, np.generic) else name
    if isinstance(name, tuple):
        return [plain_name(part) for part in name]
    return name if name is None or isinstance(name, str | int | float | bool) else repr(name)


def _pair(two: tuple[float, float]) -> str:
    return f"{two[0]:.4g}" if two[0] == two[1] else f"{two[0]:.4g} against {two[1]:.4g}"


def _table(head: str, found: Any, said: list[str], note: str = "") -> str:
    """Format a text table: a head line, the first terms, and the sum of the other terms; `note` ends the head line.

    `found` is an explanation or a difference, and `said` lists the text of the value of each term that is shown.
    """
    square, several = found.width**2, len({term.part for term in found.terms}) > 1
    rows = [
        (term.contribution, term.share, f"{term.part + ' ' if several else ''}{term.name} = {text}")
        for term, text in zip(found.terms, said, strict=False)
    ]
    rest = found.terms[len(said) :]
    if rest:
        rows.append((fsum(t.contribution for t in rest), fsum(t.share for t in rest), f"the other {len(rest)} terms"))
    lines = [f"{head}: score {found.score:.4g}, mean {found.mean:.4g}, width {found.width:.4g}{note}"]
    for contribution, share, text in rows:
        of = f"{100.0 * share / square:.0f}%" if square > 0.0 else "-"
        lines.append(f"  {contribution:+10.4g}  {of:>6} of width^2  {text}")
    return "\n".join(lines)
