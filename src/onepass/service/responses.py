"""Answer to a decision as a function of its record, so that it is the same now and after a restart."""

import numpy as np

from onepass.foundation.check import quote
from onepass.log.records import Decision
from onepass.service.messages import ApiError, DecideAnswer, RankedArm


def decision_answer(record: Decision) -> DecideAnswer:
    """Make the API's answer to a decision from its record; raise ApiError if another system made the record."""
    if record.offered is None or record.probabilities is None or record.scores is None:
        raise ApiError(409, "EventConflict", f"id {quote(record.id)} was used by a decision of another origin")
    names, chances, scores = record.offered, record.probabilities, record.scores
    places, drawn = record.places, record.propensities or []
    predicted, prices = record.predicted, record.prices
    if record.shown is not None:
        places, drawn = record.shown, [1.0] * len(record.shown)
        chances = [float(place == places[0]) for place in range(len(names))]
        if record.showing is not None:
            chances, drawn = record.showing, [record.showing[places[0]]]
    first = set(places)
    order = np.lexsort((-np.array(scores), -np.array(chances))).tolist()  # by chance, then by score, then by place
    rest = [one for one in order if one not in first]
    ranking = [RankedArm(arm=names[one], probability=chances[one], score=scores[one]) for one in (*places, *rest)]
    return DecideAnswer(
        id=record.id, arm=names[places[0]], arms=[names[place] for place in places], propensity=drawn[0],
        propensities=drawn, ranking=ranking, mode=record.mode, rounds=record.rounds, settings=record.model or "",
        predicted=None if predicted is None else {name: each[places[0]] for name, each in predicted.items()},
        prices=None if prices is None else {name: price for name, price in prices.items() if name in (predicted or ())},
        share=None if record.mixture is None else record.mixture["share"],
    )  # fmt: skip


def check_same_request(before: str | None, now: str, identity: str) -> None:
    """Raise ApiError if the id `identity` was used before by another request.

    `before` is the fingerprint of the earlier request, None if there is none, and `now` the fingerprint of this
    request.
    """
    if before is not None and before != now:
        raise ApiError(409, "EventConflict", f"id {quote(identity)} was used by another request")
