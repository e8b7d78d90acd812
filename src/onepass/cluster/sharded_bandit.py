"""A bandit whose arms live on shards: in this process, or on many machines by Ray.

    decide   scatter the context, gather means and widths of the arms, choose here, with exact probabilities
    learn    rows go to the shards of their arms, one message a shard; arms share nothing
    the k best of all arms: each shard finds its k best, the best of these are chosen here

Models are those of one process, bit for bit, on any number of shards; so are decisions where scores are (cluster.md).
"""

import json
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import SAMPLED, Decision, Recommendation
from onepass.bandit.explanation import Explanation
from onepass.bandit.snapshot import Snapshot
from onepass.cluster.coordinator import Coordinator, shard_recipe
from onepass.cluster.journal import BANDIT, Entry, Journal, pack_entry
from onepass.cluster.journal_codec import decode_contexts, encode_arm, encode_learn
from onepass.cluster.ray_transport import RayTransport
from onepass.cluster.shard import start_shard
from onepass.cluster.shard_supervisor import ShardSupervisor
from onepass.cluster.sharded_store import ShardedStore
from onepass.cluster.top_k_search import TopKSearch
from onepass.cluster.transport import InProcessTransport, Transport
from onepass.foundation import check
from onepass.foundation.files import load
from onepass.foundation.rw_lock import SharedObject, reading, writing
from onepass.model.arms.arm_model import ArmModel

CHECKPOINT_EVERY = 1_000_000  # learned between two cuts, where there is a folder


@final
class ShardedBandit(SharedObject):
    """Models per arm, `Disjoint` or `Hybrid`, on shards.

    recipe: a bandit that has learned nothing yet, such as ``op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=20))))``: its
        estimator, exploration, features and seed are taken; without a half_life, and of an estimator whose widths are
        those of an arm by itself.
    shards: how many, at least 1 (default 2).
    ray: None (default): all in this process; an address ("auto", "ray://host:10001"): shards are actors there; "local":
        a Ray of this machine, started here.
    folder: where it is kept (default None: nowhere): changes are logged before `learn` returns, and all shards are
        written every `checkpoint_every` rows. Lost shards come back by themselves, a lost process by
        `ShardedBandit.open`.
    checkpoint_every: rows between two cuts, at least 1 (default 1,000,000).
    ValueError for what does not fit, and for a folder that holds a bandit already; ModuleNotFoundError without Ray.

    Any number of threads may decide at once; who learns does so alone. A hybrid model's shared part is here.

    >>> import numpy as np, onepass as op
    >>> from onepass.cluster import ShardedBandit
    >>> bandit = ShardedBandit(op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), op.UCB(0.5)), shards=2)
    >>> bandit.learn([[1.0, 0.0], [1.0, 0.0]], [1.0, 0.0], ["left", "right"])
    >>> bandit.decide([1.0, 0.0]).arm
    'left'
    >>> bandit.recommend([[1.0, 0.0]], k=1).arms
    [['left']]
    """

    def __init__(
        self,
        recipe: Bandit,
        shards: int = 2,
        *,
        ray: str | None = None,
        folder: str | Path | None = None,
        checkpoint_every: int = CHECKPOINT_EVERY,
    ):
        count = check.integer("shards", shards, 1)
        front = Coordinator(shard_recipe(recipe))
        checkpoint_every = check.integer("checkpoint_every", checkpoint_every, 1)
        journal = None if folder is None else Journal(folder)
        with _close_on_error(journal):
            if journal is not None and journal.has_checkpoint():
                raise ValueError(
                    "folder must hold no bandit yet: ShardedBandit.open goes on with the one that is there"
                )
            self._start(front, _make_transport(ray), journal, checkpoint_every)
            for number in range(count):
                self.supervisor.start(number)
            if journal is not None:
                self._write_checkpoint()

    def _start(self, front: Coordinator, transport: Transport, journal: Journal | None, checkpoint_every: int) -> None:
        self._coordinator, self._journal, self._every = front, journal, checkpoint_every
        store: Any = front.bandit.model.state.store
        self._store: ShardedStore = store
        self.supervisor = store.supervisor = ShardSupervisor(
            partial(start_shard, store.models), transport, journal is not None
        )
        self._search = TopKSearch(front.bandit, store)
        self._rows_since_checkpoint = 0  # rows since the last cut

    @classmethod
    def open(cls, folder: str | Path, *, ray: str | None = None, checkpoint_every: int = CHECKPOINT_EVERY) -> Self:
        """The bandit that a folder holds, after the last change that was logged; ray, checkpoint_every: as there.

        What `learn` had returned from is there, once. ValueError for a folder without a bandit, or one that is damaged.
        """
        checkpoint_every = check.integer("checkpoint_every", checkpoint_every, 1)
        journal = Journal(folder)
        with _close_on_error(journal):
            current = journal.checkpoint
            if current is None:
                raise ValueError(f"folder must hold a bandit, but {check.quote_path(folder)} does not")
            place = journal.checkpoint_folder(current.number)
            front = load(place / BANDIT)
            if not isinstance(front, Coordinator):
                raise ValueError(f"{check.quote_path(place / BANDIT)} holds no bandit on shards")
            self = cls.__new__(cls)
            self._start(front, _make_transport(ray), journal, checkpoint_every)
            for number, seq in current.shards.items():
                self.supervisor.start(number, seq, place / f"shard-{number}")
            for entry in journal.read_after(current.number):
                self._replay(entry)
        return self

    # ---- what it is ----

    @property
    def bandit(self) -> Bandit:
        """The bandit in front: `seed`, `exploration`, `dim` and the like; its models are on the shards."""
        return self._coordinator.bandit

    @property
    def model(self) -> Any:
        """What stands before the shards: names of arms, and what is asked of one (`parameter_of`, `rows_of`)."""
        return self.bandit.model

    @property
    def seq(self) -> int:
        """The number of the last change: 0 before the first, one more with every `learn`, `add_arm`, `remove_arm`."""
        return self._coordinator.seq

    @property
    def n_learned(self) -> int:
        """Rows learned."""
        return self.bandit.n_learned

    @property
    def arms(self) -> tuple[Any, ...]:
        """All known arms, in the order in which they appeared."""
        return self.bandit.arms

    @property
    def shards(self) -> list[int]:
        """The numbers of the shards."""
        return self.supervisor.numbers

    @reading
    def memory_usage(self) -> int:
        """Bytes of all arrays on all shards, spare room included, and of the numbers here."""
        return self.bandit.memory_usage() + sum(self.supervisor.ask_all("nbytes"))

    @reading
    def error_bound(self) -> float:
        """The largest certificate of all arms, as of `Bandit.error_bound`."""
        return self.bandit.error_bound()

    @reading
    def export_arm(self, arm: Hashable) -> ArmModel:
        """A copy of what an arm has learned, for any bandit; arm and errors as of `Bandit.export_arm`."""
        models: Any = self._store.models
        held = self.bandit.model.export_arm(arm).state
        return ArmModel(models, self.bandit.model.features).set_state(held)

    # ---- decisions ----

    @reading
    def decide(
        self,
        contexts: Any,
        arms: Any = None,
        k: int = 1,
        *,
        id: Any = None,
        eligible: Any = None,
        rest: str = SAMPLED,
    ) -> Decision:
        """As the bandit would decide in one process; contexts (dim,), (K, dim), arms, k, id, eligible, rest and errors
        as of `Bandit.decide`. Costs 16 bytes an arm that is offered, from shards to here: with very many, offer
        those that `recommend` found.
        """
        return self.bandit.decide(contexts, arms, k, id=id, eligible=eligible, rest=rest)

    @reading
    def score(self, contexts: Any, arms: Any = None) -> np.ndarray:
        """Scores (K,), or (n, K) for n contexts; contexts, arms and errors as of `Bandit.score`."""
        return self.bandit.score(contexts, arms)

    @reading
    def recommend(
        self, contexts: Any, k: int, arms: Any = None, exclude: Sequence[Collection[Hashable]] | None = None
    ) -> Recommendation:
        """The k best arms of every user; contexts (n, dim), k, arms, exclude, ties and errors as of `recommend` of a
        bandit. Disjoint models under rules without draws: each shard finds its k best, else scores are gathered here.
        """
        return self._search.recommend(contexts, k, arms, exclude)

    @reading
    def explain(self, contexts: Any, arm: Any = None, other: Any = None, **options: Any) -> Explanation:
        """Why; contexts (K, dim), arm, other, options (arms, names) and errors as of `Bandit.explain`."""
        return self.bandit.explain(contexts, arm, other, **options)

    @writing
    def snapshot(self) -> Snapshot:
        """What all shards know now, one consistent cut, for readers; LookupError where a shard was lost since."""
        return self.bandit.snapshot()

    # ---- changes ----

    @writing
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, allow_repeat: bool = False, seq: int | None = None
    ) -> None:
        """Learn rows, or decisions; contexts, rewards, arm, allow_repeat and errors as of `Bandit.learn`.

        seq: the number of this change, for callers that ask again when they had no answer: one that was learned already
        is not learned again. None (default): the next. ValueError for a number that leaves one out.
        """
        if not self._is_new(seq):
            return
        before, frame = self.n_learned, self._frame("learn", encode_learn, contexts, rewards, arm, allow_repeat)
        self.bandit.learn(contexts, rewards, arm, allow_repeat=allow_repeat)
        self._commit(frame)
        self._rows_since_checkpoint += self.n_learned - before
        if self._journal is not None and self._rows_since_checkpoint >= self._every:
            self._write_checkpoint()

    @writing
    def add_arm(self, arm: Hashable, *, seq: int | None = None) -> None:
        """Make an arm known; seq: as in `learn`. ValueError if it is known already or not hashable."""
        if self._is_new(seq):
            frame = self._frame("add_arm", encode_arm, arm)
            self.bandit.add_arm(arm)
            self._commit(frame)

    @writing
    def remove_arm(self, arm: Hashable, *, seq: int | None = None) -> None:
        """Forget an arm; seq: as in `learn`. ValueError if it is not known."""
        if self._is_new(seq):
            frame = self._frame("remove_arm", encode_arm, arm)
            self.bandit.remove_arm(arm)
            self._commit(frame)

    @writing
    def import_arm(self, arm: Hashable, model: ArmModel, *, seq: int | None = None) -> None:
        """Take an arm from elsewhere; arm, model and errors as of `Bandit.import_arm`, seq as in `learn`.

        With a folder all shards are written then.
        """
        if self._is_new(seq):
            self.bandit.model.import_arm(arm, model)
            self._coordinator.seq += 1
            if self._journal is not None:
                self._write_checkpoint()

    def _is_new(self, seq: int | None) -> bool:
        """Return True if a change was not made yet, once all before it are logged; OSError if they cannot be."""
        if self._journal is not None:
            self._journal.flush()
        wanted = self.seq + 1 if seq is None else check.integer("seq", seq, 1)
        if wanted > self.seq + 1:
            raise ValueError(f"seq must be {self.seq + 1}, the next, or that of a change that was made, got {seq}")
        return wanted == self.seq + 1

    def _frame(self, act: str, told: Any, *given: Any) -> bytes:
        """The next change as it is logged, before it is made. ValueError for what cannot be written."""
        if self._journal is None:
            return b""
        try:
            return pack_entry(Entry(self.seq + 1, act, *told(*given)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"contexts, rewards and arm must be such that they can be logged, but {error}") from None

    def _commit(self, frame: bytes) -> None:
        self._coordinator.seq += 1
        if self._journal is not None:
            self._journal.append(frame)

    def _replay(self, entry: Entry) -> None:
        """Make a change that was logged."""
        change, bandit = entry.change, self.bandit
        names = list(change.names)
        if entry.act != "learn":
            getattr(bandit, entry.act)(names[0])
        elif len(change.texts):
            given = [Decision.from_dict(json.loads(text)) for text in change.texts[:-1]]
            bandit.learn(given, json.loads(change.texts[-1]), allow_repeat=entry.options["again"])
        elif entry.options["single"]:
            bandit.learn(decode_contexts(change, 0), float(change.rewards[0]), names[0])
        else:
            bandit.learn(decode_contexts(change, slice(None)), change.rewards, names)
        self._coordinator.seq = entry.seq
        self._rows_since_checkpoint += len(names)

    # ---- shards ----

    @writing
    def add_shard(self) -> int:
        """A new shard, which takes its share of the arms from the others; its number. No other arm moves."""
        number = max(self.shards) + 1
        self._move_arms([*self.shards, number])
        return number

    @writing
    def remove_shard(self, number: int) -> None:
        """Let a shard go; its arms, and no others, move to those that are left. ValueError for the last one."""
        if number not in self.shards or len(self.shards) == 1:
            raise ValueError(f"number must be one of several shards {self.shards}, got {number}")
        self._move_arms([one for one in self.shards if one != number])

    def _move_arms(self, numbers: list[int]) -> None:
        self._store.move(numbers)
        if self._journal is not None:
            self._write_checkpoint()

    @writing
    def save(self) -> None:
        """Write all shards to the folder now, at one `seq`. ValueError where there is no folder."""
        if self._journal is None:
            raise ValueError("folder must be given to the class for a bandit on shards to be saved")
        self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        assert self._journal is not None
        files: dict[int, Path] = {}

        def write(place: Path) -> dict[int, int]:
            files.update(self.supervisor.save(place))
            self._coordinator.save(place / BANDIT)
            return {number: member.seq for number, member in self.supervisor.members.items()}

        self._journal.write_checkpoint(self.seq, write)
        self.supervisor.use_checkpoint(files)
        self._rows_since_checkpoint = 0

    @writing
    def close(self) -> None:
        """End all shards; what is in the folder stays. Leaving `with ShardedBandit(...) as bandit:` does it too."""
        for number in self.shards:
            self.supervisor.stop(number)
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<ShardedBandit on {len(self.shards)} shards: {self.bandit.model.estimator!r}, "
            f"{self.n_learned} rows learned>"
        )


@contextmanager
def _close_on_error(journal: Journal | None) -> Iterator[None]:
    """Close a journal where what follows raises."""
    try:
        yield
    except BaseException:
        if journal is not None:
            journal.close()
        raise


def _make_transport(ray: str | None) -> Transport:
    """How shards are reached."""
    return InProcessTransport() if ray is None else RayTransport(ray)
