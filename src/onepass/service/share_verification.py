"""Verification of the share of the bandit beside a baseline: it is computed again from the log.

    share of a decision = share that the ledger allows after the records up to `through`, while others are reserved

`through` and the reserved decisions are in the record of the decision (ledger.py). The ledger is a function of the
log's records, so the share is the same in every bit. After a record that was forgotten it is not known any more.
"""

from collections import Counter
from typing import Any, NamedTuple

from onepass.log.records import Decision, Forgotten, Settings
from onepass.log.store import Store
from onepass.service.ledger import EVIDENCE, Evidence, Ledger

LISTED = 100  # decisions that are told
OLDER = "made without saying on which records the share depends"
FORGOTTEN = "made after a record that was forgotten"
DROPPED = "made after records that are no longer in the log"
UNKNOWN = "made beside a decision that is not in the log"


class VerifiedShares(NamedTuple):
    """Result of `verify_shares`.

    Parameters
    ----------
    decisions : int
        Number of decisions that were divided between a bandit and a baseline.
    equal : int
        Number of these decisions whose share (the probability that the bandit decided) is equal in every bit.
    wrong : tuple of int
        Sequence numbers of up to 100 decisions whose share differs.
    left : dict
        Number of shares that could not be computed, by reason.
    """

    decisions: int
    equal: int
    wrong: tuple[int, ...]
    left: dict[str, int]

    @property
    def ok(self) -> bool:
        """True if no share differs."""
        return not self.wrong


class _Share(NamedTuple):
    seq: int
    share: float
    waiting: list[str]


def verify_shares(store: Store, loop: str, until: int | None = None) -> VerifiedShares:
    """Compute the share of the bandit again in every decision that was made beside a baseline.

    Parameters
    ----------
    store : Store
        The log.
    loop : str
        Name of the loop.
    until : int, default None
        The last position. None means the end of the log.

    Returns
    -------
    VerifiedShares
        The result.
    """
    asked, left, count = dict[int, list[_Share]](), Counter[str](), 0
    settings = store.read(0, until, ("settings",), loop)
    has_baseline = any(isinstance(one, Settings) and one.settings["loop"].get("baseline") for one in settings)
    for record in store.read(0, until, ("decision",), loop) if has_baseline else ():
        if not isinstance(record, Decision) or record.mixture is None:
            continue
        count += 1
        found = (record.extra or {}).get(EVIDENCE)
        if found is None:
            left[OLDER] += 1
            continue
        evidence = Evidence(**found)
        asked.setdefault(evidence.through, []).append(_Share(record.seq, record.mixture["share"], evidence.waiting))
    ledger, equal, wrong = Ledger(), 0, list[int]()
    reason = DROPPED if store.first > 1 else None
    for record in store.read(0, until, None, loop) if asked else ():
        if isinstance(record, Forgotten):
            reason = reason or FORGOTTEN
        else:
            ledger.add_record(record)
        for one in asked.pop(record.seq, ()):
            known = [_find(store, loop, identity) for identity in one.waiting]
            if reason is not None or None in known:
                left[reason or UNKNOWN] += 1
            elif ledger.share_after([each for each in known if each is not None]) == one.share:
                equal += 1
            else:
                wrong.append(one.seq)
    left[DROPPED] += sum(len(each) for each in asked.values())
    return VerifiedShares(count, equal, tuple(wrong[:LISTED]), {name: n for name, n in left.items() if n})


def _find(store: Store, loop: str, identity: str) -> Decision | None:
    """Return the decision of an id, or None."""
    found: Any = (one for one in store.find(loop, identity) if isinstance(one, Decision))
    return next(found, None)
