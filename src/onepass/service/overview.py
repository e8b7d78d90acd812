"""Overview of a loop: sums over its log, record by record, in memory that does not grow.

    decision -> the arm shown, with its probability -> waits        join -> its reward, against the baselines

Time is divided into at most 120 pieces of equal width, from the first decision on. When there are 120, every two are
merged. The sums can always be computed again from the log, so a file of them is only a cache.
"""

from collections import Counter, deque
from collections.abc import Callable
from operator import mul
from typing import Any, NamedTuple

import msgspec

from onepass.evaluation.reward_range import Range
from onepass.log.records import CENSORED, SECOND, Activation, Checkpoint, Decision, Join, Outcome, Settings
from onepass.log.replay_decide import first_eligible
from onepass.service.drift import EVERY, SETTLED, Drift, Expected
from onepass.service.pending_decision import deadline
from onepass.service.policy_gain import LEVEL, DecisionWeights, PolicyGain, decision_weights, verdict
from onepass.service.settings import LoopSettings, parse_logged_settings

PIECES = 120  # of the time that is drawn
NAMED = 24  # arms that a piece knows by name; those shown least are counted together
DRAWN = 6  # arms that are drawn by name
LATEST = 12  # decisions that can be looked at without knowing their ids
LAPSED = 120 * SECOND  # microseconds after a deadline: what is not joined by then, while others are, has lapsed
TOGETHER = 512  # rewards added at a time
REMEMBERED = 50_000  # decisions that wait for a reward: of those before them the log is asked
OTHERS = ""  # of shares: arms without a name of their own; no arm is called so
MINUTE = 60  # seconds over which decisions are counted, to say how many a second there are


class Piece(msgspec.Struct):
    """Sums over the decisions in a span of time; the overview divides a log's time into up to 120 equal spans.

    - decisions, rewards: numbers of decisions and of rewards.
    - arms: number of times that each arm was shown, by name.
    - apart: sum over decisions of 1 minus the largest probability, the expected number of decisions for another arm
      than the most likely one.
    - price: sum over decisions of the largest predicted mean minus the mean expected under the action probabilities.
    - earned: sum of rewards.
    - worth: (value, lower limit, upper limit) of three policies at the end of the span: what is shown, always the first
      arm, and a uniform choice.
    """

    decisions: int = 0
    arms: dict[str, int] = {}
    apart: float = 0.0
    price: float = 0.0
    earned: float = 0.0
    rewards: int = 0
    worth: list[tuple[float, float, float]] | None = None


class Sums(msgspec.Struct, kw_only=True):
    """Sums of a loop's overview over its log, as they are stored in a file.

    `through` is the sequence number of the last record counted. Time is divided into spans of `width` microseconds, the
    first of which begins at `begin`; `pieces` has the sums of each span.

    - last: time of the last record, in microseconds.
    - counts: numbers of records by kind, and under "default" the number of joins with the default reward.
    - arms: number of times that each arm was shown, by name.
    - first, steady: name of the first arm, and True if it was always the same.
    - slots: True if there were decisions of several slots.
    - left: number of joins (records of final rewards) without a reward of the first slot.
    - worth, range: state of the estimates of policy values (`PolicyGain.to_dict`), and the range of rewards.
    - version: version of the settings.
    - drift: detector of rewards that differ from predictions.
    """

    through: int = 0
    begin: int | None = None
    last: int = 0
    width: int = SECOND
    pieces: list[Piece] = []
    counts: dict[str, int] = {}
    arms: dict[str, int] = {}
    first: str | None = None
    steady: bool = True  # the first arm was always the same
    slots: bool = False  # there were decisions of several
    left: int = 0  # joins without a reward of the first slot
    worth: dict[str, Any] | None = None
    range: tuple[float, float] | None = None
    version: str = ""
    drift: Drift = msgspec.field(default_factory=Drift)


class PendingReward(NamedTuple):
    """Decision that waits for its reward, which the overview then counts.

    - due: deadline of the reward, in microseconds.
    - chance: importance weights of the decision.
    - expected: the model's predicted mean reward, or None if it has none.
    """

    due: int
    chance: DecisionWeights
    expected: Expected | None


class Overview:
    """Overview of one loop for the monitoring page: sums over its log.

    - settings: present settings of the loop.
    - sums: sums so far, which further records continue (default: none).
    - find: function from the id of a decision to its records in the log (default: it finds none).
    """

    def __init__(
        self, settings: LoopSettings, sums: Sums | None = None, find: Callable[[str], list[Any]] = lambda identity: []
    ) -> None:
        self._find = find
        self.settings, self.sums = settings, Sums() if sums is None else sums
        rewards = self.sums.range
        self.policy_gain = PolicyGain(Range(*(settings.reward.range if rewards is None else rewards)), self.sums.worth)
        self.latest: deque[str] = deque(maxlen=LATEST)
        self.waiting: dict[str, PendingReward] = {}
        self._chances: list[DecisionWeights] = []
        self._rewards: list[float] = []
        self._seconds: deque[list[int]] = deque(maxlen=MINUTE)
        self._open = max(len(self.sums.pieces) - 1, 0)  # the newest piece
        self._stale = False

    # ---- records ----

    def add_record(self, record: Any) -> None:
        """Add the next record of the log; records up to `sums.through` are only searched for decisions that wait."""
        new = record.seq > self.sums.through
        if isinstance(record, Decision):
            self._add_decision(record, new)
        elif isinstance(record, Join):
            self._add_join(record, new)
        elif isinstance(record, Settings):
            self._apply_settings(record, new)
        elif new and isinstance(record, Outcome | Activation | Checkpoint):
            self._count(type(record).__name__.lower())
        if new:
            self.sums.through = record.seq
            self.sums.last = max(self.sums.last, record.time)

    def _count(self, what: str) -> None:
        self.sums.counts[what] = self.sums.counts.get(what, 0) + 1

    def _apply_settings(self, record: Settings, new: bool) -> None:
        self.settings, said = parse_logged_settings(record), self.sums
        if not new:
            return
        self.settle()
        said.version = record.version
        if tuple(self.policy_gain.rewards) != self.settings.reward.range:  # limits rest on it: they begin anew
            self.policy_gain = PolicyGain(Range(*self.settings.reward.range))
            said.drift.reset()
            for piece in said.pieces:
                piece.worth = None

    def _add_decision(self, record: Decision, new: bool) -> None:
        names, (place, chances, eligible) = record.offered, shown_distribution(record)
        first = baseline_arm(record, eligible)
        self.waiting[record.id] = self._make_pending(record)
        if len(self.waiting) > REMEMBERED:
            del self.waiting[next(iter(self.waiting))]
        self.latest.append(record.id)
        if not new:
            return
        sums, name = self.sums, str(place if names is None else names[place])
        rival = str(first if names is None else names[first])
        if sums.first is None:
            sums.first = rival
        elif sums.first != rival:
            sums.steady = False
        sums.slots = sums.slots or len(record.places) > 1
        self._count("decision")
        piece = self._piece(record.time)
        piece.decisions += 1
        piece.apart += 1.0 - max(chances)
        if record.means is not None:
            means = record.means
            best = max(means if eligible is None else [means[each] for each in eligible])
            piece.price += best - sum(map(mul, chances, means))
        piece.arms[name] = piece.arms.get(name, 0) + 1
        sums.arms[name] = sums.arms.get(name, 0) + 1
        if len(piece.arms) > 2 * NAMED:
            piece.arms = truncate_arms(piece.arms)
        if len(sums.arms) > 2 * NAMED:
            sums.arms = truncate_arms(sums.arms)
        second = record.time // SECOND
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += 1
        else:
            self._seconds.append([second, 1])

    def _make_pending(self, record: Decision) -> PendingReward:
        """Make the `PendingReward` of a decision: its deadline, its weights, and its predicted reward."""
        place, chances, eligible = shown_distribution(record)
        told = decision_weights(chances, place, baseline_arm(record, eligible), eligible)
        expected = None if record.means is None else Expected(record.means[place], record.rounds)
        return PendingReward(deadline(record, self.settings), told, expected)

    def _look_up(self, identity: str) -> PendingReward | None:
        """Make the pending reward of a decision from the log, or return None if the log does not have it."""
        return next((self._make_pending(one) for one in self._find(identity) if isinstance(one, Decision)), None)

    def _add_join(self, record: Join, new: bool) -> None:
        if record.again:
            if new and record.how == CENSORED:
                self._piece(record.time).earned += record.rewards[0] or 0.0
            return
        waits = self.waiting.pop(record.id, None)
        if not new:
            return
        waits = self._look_up(record.id) if waits is None else waits
        self._count("join")
        if record.how == "default":
            self._count("default")
        reward = record.rewards[0]
        if waits is None or reward is None:
            self.sums.left += 1
            return
        piece = self._piece(record.time)
        piece.earned += reward
        piece.rewards += 1
        self._chances.append(waits.chance)
        self._rewards.append(reward)
        if waits.expected is not None and waits.expected.rounds >= SETTLED:
            least, span = self.policy_gain.rewards.least, self.policy_gain.rewards.span
            mean, scaled = ((value - least) / span for value in (waits.expected.mean, reward))
            self.sums.drift.add(mean, scaled, record.time)
        if len(self._rewards) >= TOGETHER:
            self.settle()
        while self.waiting:  # those that lapsed never have a join
            identity = next(iter(self.waiting))
            if self.waiting[identity].due >= waits.due - LAPSED:
                break
            del self.waiting[identity]

    def settle(self) -> None:
        """Add the rewards collected since the last call to the estimates of policy values."""
        if self._rewards:
            self.policy_gain.add(self._chances, self._rewards)
            self._chances, self._rewards, self._stale = [], [], True

    # ---- time ----

    def _piece(self, time: int) -> Piece:
        """Return the sums of the span of time that `time`, in microseconds, belongs to.

        Spans are added, or merged in pairs, as needed.
        """
        sums = self.sums
        if sums.begin is None:
            sums.begin = time
        place = max(time - sums.begin, 0) // sums.width
        if place > self._open:
            self._close()
        while place >= PIECES:
            sums.width, place = 2 * sums.width, place // 2
            sums.pieces = [merge_pieces(sums.pieces[each : each + 2]) for each in range(0, len(sums.pieces), 2)]
        while len(sums.pieces) <= place:
            sums.pieces.append(Piece(arms={}))
        self._open = max(place, len(sums.pieces) - 1)
        return sums.pieces[place]

    def _close(self) -> None:
        """Store the present value estimates in the newest piece."""
        self.settle()
        if self._stale and self.sums.pieces:
            self.sums.pieces[-1].worth = [tuple(one) for one in self._estimates()]
            self._stale = False

    def _estimates(self) -> list[Any]:
        return [self.policy_gain.shown_value(), self.policy_gain.policy_value(0), self.policy_gain.policy_value(1)]

    # ---- out ----

    def to_bytes(self) -> bytes:
        """Return all sums of the overview as the bytes of a file."""
        self._close()
        self.sums.worth, self.sums.range = (
            self.policy_gain.to_dict(),
            (self.policy_gain.rewards.least, self.policy_gain.rewards.largest),
        )
        return msgspec.json.encode(self.sums)

    def to_dict(self) -> dict[str, Any]:
        """Return what the monitoring page shows about the log, as data for JSON.

        "counts" has the numbers of records by kind, "arms" the number of arms shown (None if there are so many that
        some are counted together), "value" the estimated values of three policies, "pieces" the sums over spans of
        time (`piece_to_json`), and "drift" the alarms. The other keys are single numbers and texts.
        """
        self._close()
        sums, worth = self.sums, self.policy_gain
        word, sentence = verdict(worth, sums.first if sums.steady else None)
        names = [name for name, _ in Counter(sums.arms).most_common() if name != OTHERS][:DRAWN]
        decisions = sums.counts.get("decision", 0)
        return {
            "mode": self.settings.mode,
            "settings": sums.version,
            "through": sums.through,
            "counts": sums.counts,
            "arms": None if OTHERS in sums.arms else len(sums.arms),
            "rate": self._rate(),
            "begin": to_seconds(sums.begin),
            "last": to_seconds(sums.last or None),
            "width": sums.width / SECOND,
            "latest": [*self.latest][::-1],
            "verdict": word,
            "sentence": sentence,
            "notes": [*self._notes()],
            "level": LEVEL,
            "range": [*worth.rewards],
            "first": sums.first if sums.steady else None,
            "value": None if not worth.rows else {
                "rewards": worth.rows,
                "shown": worth.shown_value(), "first": worth.policy_value(0), "even": worth.policy_value(1),
                "over_first": worth.gain_over(0), "over_even": worth.gain_over(1),
            },
            "names": names,
            "apart": sum(piece.apart for piece in sums.pieces) / max(decisions, 1),
            "price": sum(piece.price for piece in sums.pieces) / max(decisions, 1),
            "pieces": [piece_to_json(piece, names) for piece in sums.pieces],
            "drift": {
                "alarms": sums.drift.alarms, "every": EVERY, "rewards": sums.drift.rows,
                "latest": [[to_seconds(one.time), one.more] for one in sums.drift.latest],
            },
        }  # fmt: skip

    def _rate(self) -> float:
        """Return the number of decisions per second, over the last minute with decisions."""
        if not self._seconds:
            return 0.0
        end = self.sums.last // SECOND
        recent = [count for second, count in self._seconds if second > end - MINUTE]
        passed = min(end - self._seconds[0][0] + 1, MINUTE)
        return sum(recent) / max(passed, 1)

    def _notes(self) -> Any:
        """Yield notes that explain the numbers to a reader."""
        reward = self.settings.reward
        if isinstance(reward.default, str):
            yield "Decisions without an outcome are left out (reward.default is none), so values are of the others."
        if self.settings.mode == "logging":
            yield "Nothing is learned (mode logging), so nothing is joined, and there are no values."
        if self.settings.mode == "apprentice" and self.settings.exploring == 0.0:
            yield "The first arm is always shown (mode apprentice): exploring above 0 would tell what others earn."
        if self.sums.slots:
            yield "Of decisions with several slots the first one is counted."


def shown_distribution(record: Decision) -> tuple[int, list[float], list[int] | None]:
    """Return the index of the arm shown first, the probabilities of all arms, and the eligible indices (None: all)."""
    place, chances, names, eligible = record.places[0], record.probabilities, record.offered, None
    if record.shown is not None:
        place, chances = record.shown[0], record.showing
    if chances is None or chances[place] <= 0.0:  # shown whatever was drawn, or of another origin
        count = len(record.probabilities or names or ()) or place + 1
        chances = [float(each == place) for each in range(count)]
    if record.eligible is not None and names is not None:
        eligible = first_eligible(record.eligible, names, len(names), len(record.places)) or None
    return place, chances, eligible


def baseline_arm(record: Decision, eligible: list[int] | None) -> int:
    """Return the index of the arm that would be shown without a model.

    It is the baseline's arm, if the record has one, else the first eligible arm. `eligible` holds the indices of
    eligible arms, None for all.
    """
    return record.baseline[0] if record.baseline else 0 if eligible is None else eligible[0]


def truncate_arms(arms: dict[str, int]) -> dict[str, int]:
    """Return the counts of the `NAMED` arms shown most often, and the sum of all other counts under `OTHERS`."""
    rest = arms.get(OTHERS, 0)
    most = Counter({name: count for name, count in arms.items() if name != OTHERS}).most_common(NAMED)
    return {**dict(most), OTHERS: rest + sum(arms.values()) - rest - sum(count for _, count in most)}


def merge_pieces(pieces: list[Piece]) -> Piece:
    """Return the sums over several consecutive spans of time, with the estimates of the last span that has them."""
    arms = Counter[str]()
    for piece in pieces:
        arms.update(piece.arms)
    whole = dict(arms)
    return Piece(
        decisions=sum(piece.decisions for piece in pieces),
        arms=truncate_arms(whole) if len(whole) > 2 * NAMED else whole,
        apart=sum(piece.apart for piece in pieces),
        price=sum(piece.price for piece in pieces),
        earned=sum(piece.earned for piece in pieces),
        rewards=sum(piece.rewards for piece in pieces),
        worth=next((piece.worth for piece in reversed(pieces) if piece.worth is not None), None),
    )


def piece_to_json(piece: Piece, names: list[str]) -> list[Any]:
    """Return the sums of one span of time as a JSON list of five entries.

    They are the number of decisions, a list with the number of each arm in `names`, the expected fraction of decisions
    not on the most likely arm, the mean reward, and a list of estimated values of three policies with limits. The last
    three entries are None without data.
    """
    return [
        piece.decisions,
        [piece.arms.get(name, 0) for name in names],
        round_value(piece.apart / piece.decisions if piece.decisions else None),
        round_value(piece.earned / piece.rewards if piece.rewards else None),
        None if piece.worth is None else [[round_value(each) for each in one] for one in piece.worth],
    ]


def round_value(value: float | None) -> float | None:
    """Return a number rounded to five significant digits; None stays None."""
    return None if value is None else float(f"{value:.5g}")


def to_seconds(micros: int | None) -> float | None:
    """Return the seconds of a time in microseconds."""
    return None if micros is None else micros / SECOND
