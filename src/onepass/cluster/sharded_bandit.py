"""Bandit whose arms are on shards, in this process or, with Ray, on many machines.

    decide     scatter the context, gather means and widths of the arms, choose here, with exact probabilities
    learn      send rows to the shards of their arms, one message a shard; arms share nothing
    recommend  let each shard find its k best arms, and choose the best of these here

Models equal those of one process bit for bit, on any number of shards. Decisions are equal if scores are (cluster.md).
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

CHECKPOINT_EVERY = 1_000_000  # rows between two checkpoints, if there is a folder


@final
class ShardedBandit(SharedObject):
    """Bandit with a model per arm, `Disjoint` or `Hybrid`, whose arms are spread over shards.

    Any number of threads may decide at the same time. While one thread learns, the others wait. The shared part of a
    hybrid model stays in this process.

    Parameters
    ----------
    recipe : Bandit
        A bandit that has learned nothing yet, such as ``op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=20))))``. It gives
        the estimator, the exploration, the features and the seed. It must have no half-life. The width of an arm must
        depend on that arm alone.
    shards : int, default 2
        Number of shards, at least 1.
    ray : str, default None
        Address of Ray ("auto", "ray://host:10001"), whose actors the shards are, or "local" for a Ray of this machine.
        None keeps all shards in this process.
    folder : str or Path, default None
        Folder of the bandit. Changes are logged there before `learn` returns, and all shards are written every
        `checkpoint_every` rows. A lost shard is restored automatically. After the loss of this process, use
        `ShardedBandit.open`. None stores nothing.
    checkpoint_every : int, default 1000000
        Number of rows between two checkpoints, at least 1.

    Raises
    ------
    ValueError
        If the recipe cannot be sharded, an argument is out of range, or the folder holds a bandit already.
    ModuleNotFoundError
        If `ray` is given and Ray is missing.

    Examples
    --------
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
    ) -> None:
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
        self._rows_since_checkpoint = 0
        self._needs_checkpoint = False  # a change was made that is not in the log

    @classmethod
    def open(cls, folder: str | Path, *, ray: str | None = None, checkpoint_every: int = CHECKPOINT_EVERY) -> Self:
        """Open the bandit of a folder, as it was after its last logged change.

        It contains every change that `learn` has completed, exactly once.

        Parameters
        ----------
        folder : str or Path
            Folder of a `ShardedBandit`.
        ray : str, default None
            Address of Ray, as for the class.
        checkpoint_every : int, default 1000000
            Number of rows between two checkpoints, at least 1.

        Returns
        -------
        ShardedBandit
            The bandit, which goes on writing to the folder.

        Raises
        ------
        ValueError
            If the folder holds no bandit, is damaged, or is open in another process.
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
                raise ValueError(
                    f"{check.quote_path(place / BANDIT)} holds {type(front).__name__}, expected the Coordinator of a "
                    "sharded bandit"
                )
            self = cls.__new__(cls)
            self._start(front, _make_transport(ray), journal, checkpoint_every)
            for number, seq in current.shards.items():
                self.supervisor.start(number, seq, place / f"shard-{number}")
            for entry in journal.read_after(current.number):
                self._replay(entry)
        return self

    # ---- properties ----

    @property
    def bandit(self) -> Bandit:
        """Bandit in front of the shards, with `seed`, `exploration` and `dim`; its models are on the shards."""
        return self._coordinator.bandit

    @property
    def model(self) -> Any:
        """Model in front of the shards, which knows the names of all arms and asks the shards for predictions."""
        return self.bandit.model

    @property
    def seq(self) -> int:
        """Number of the last change of rows or arms, which equals the number of changes so far."""
        return self._coordinator.seq

    @property
    def n_learned(self) -> int:
        """Number of rows learned."""
        return self.bandit.n_learned

    @property
    def arms(self) -> tuple[Any, ...]:
        """Known arms, in the order in which they appeared."""
        return self.bandit.arms

    @property
    def shards(self) -> list[int]:
        """Numbers that identify the shards."""
        return self.supervisor.numbers

    @reading
    def memory_usage(self) -> int:
        """Return the bytes of all arrays on all shards and in this process, spare room included.

        Returns
        -------
        int
            Number of bytes.
        """
        return self.bandit.memory_usage() + sum(self.supervisor.ask_all("nbytes"))

    @reading
    def error_bound(self) -> float:
        """Return the certified bound on the error ||A - A_hat||_2 of sketched designs A_hat, the largest over all arms.

        Returns
        -------
        float
            The bound; infinite if nothing is certified.
        """
        return self.bandit.error_bound()

    @reading
    def export_arm(self, arm: Hashable) -> ArmModel:
        """Copy the model of an arm, for `import_arm` of any bandit's model.

        Parameters
        ----------
        arm : hashable
            Name of a known arm.

        Returns
        -------
        ArmModel
            The model, with arrays of its own.

        Raises
        ------
        ValueError
            If the arm is not known, or the model is hybrid.
        """
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
        """Choose an arm, or a list of `k` arms, for one request or for n requests.

        The shards send 16 bytes for each arm on offer. With very many arms, offer those that `recommend` returned.

        Parameters
        ----------
        contexts : array of shape (dim,) or (K, dim), or as for `Bandit.decide`
            One row for all of the K arms on offer, or a row for each.
        arms : sequence of hashable, default None
            The arms on offer, each once. None means all known arms.
        k : int, default 1
            Number of slots to fill without replacement, from 1 to K.
        id : str or list of str, default None
            Identity of the decision, which fixes the draw. None makes an id and draws from the generator.
        eligible : array of bool, sequence of names, or one for each slot, default None
            The arms that may be chosen. None means all.
        rest : {"sampled", "greedy"}, default "sampled"
            Choice of the slots after the first. "sampled" draws each slot from the arms that are left. "greedy" takes
            the best of them.

        Returns
        -------
        Decision
            The chosen arms, their probabilities, an id, and everything `learn` needs later.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, an arm appears twice, or `k` exceeds the number of arms.
        FloatingPointError
            If a score is not finite.
        ShardLost
            If a shard is lost and the bandit has no folder from which to restart it.
        """
        return self.bandit.decide(contexts, arms, k, id=id, eligible=eligible, rest=rest)

    @reading
    def score(self, contexts: Any, arms: Any = None) -> np.ndarray:
        """Return the scores of arms, from which `decide` takes the largest. Nothing changes.

        Parameters
        ----------
        contexts : array of shape (dim,), (K, dim) or (n, K, dim), or as for `Bandit.score`
            One request or n requests.
        arms : sequence of hashable, default None
            The arms on offer. None means all known arms.

        Returns
        -------
        ndarray of shape (K,) or (n, K)
            The score of each arm, on the scale of rewards.

        Raises
        ------
        ValueError
            If a number is not finite, a shape does not fit, or an arm appears twice.
        FloatingPointError
            If a score is not finite.
        """
        return self.bandit.score(contexts, arms)

    @reading
    def recommend(
        self, contexts: Any, k: int, arms: Any = None, exclude: Sequence[Collection[Hashable]] | None = None
    ) -> Recommendation:
        """Recommend the k best arms to each of many users. Nothing changes.

        With disjoint models and a rule without draws, each shard finds its k best arms. Otherwise all scores are
        gathered in this process.

        Parameters
        ----------
        contexts : array of shape (n, dim), or as for `Bandit.recommend`
            One row for each user.
        k : int
            Length of each list, at least 1.
        arms : sequence of hashable, default None
            The candidates. None means all known arms.
        exclude : sequence of collections of names, default None
            For each user, the arms not to be recommended. None excludes nothing.

        Returns
        -------
        Recommendation
            Lists of arms and their scores, best first.

        Raises
        ------
        ValueError
            If a shape does not fit, `k` is below 1, or `exclude` does not have one collection of names for each user.
        """
        return self._search.recommend(contexts, k, arms, exclude)

    @reading
    def explain(self, contexts: Any, arm: Any = None, other: Any = None, **options: Any) -> Explanation:
        """Explain the score of an arm, feature by feature, and its difference to another arm.

        Parameters
        ----------
        contexts : Decision or array of shape (dim,) or (K, dim), or as for `Bandit.explain`
            A request, or a decision.
        arm : hashable, default None
            The arm to explain. None takes the arm with the largest score, or the first slot of a decision.
        other : hashable, default None
            The arm to compare with. None takes the arm with the largest score among the others.
        **options : dict
            Options `arms` and `names` of `Bandit.explain`.

        Returns
        -------
        Explanation
            Score, mean and width of the arm, their terms, and the difference to the other arm.

        Raises
        ------
        ValueError
            If an arm is not offered, `other` equals `arm`, or `score` would refuse the request.
        """
        return self.bandit.explain(contexts, arm, other, **options)

    @writing
    def snapshot(self) -> Snapshot:
        """Take a read-only copy of all shards at one moment.

        Returns
        -------
        Snapshot
            A copy that decides and scores, but does not learn. It raises LookupError if a shard is lost after this
            call.
        """
        return self.bandit.snapshot()

    # ---- changes ----

    @writing
    def learn(
        self, contexts: Any, rewards: Any, arm: Any = None, *, allow_repeat: bool = False, seq: int | None = None
    ) -> None:
        """Learn rows, or the rewards of decisions.

        Parameters
        ----------
        contexts : Decision, list of Decision, array of shape (dim,) or (n, dim), or Factors
            One or more decisions, or the contexts of arms.
        rewards : float or array of shape (n,)
            The reward of each row. For a decision of k slots, k numbers, with None for a slot without a reward.
        arm : hashable or sequence of n names, default None
            The arm of each row. None for decisions.
        allow_repeat : bool, default False
            Learn a second reward of a decision.
        seq : int, default None
            Number of this change. A change that was made already is not made again, so a caller without an answer can
            repeat the call. None takes the next number: a repeated call is then another change, and rows without a
            decision are learned twice.

        Raises
        ------
        ValueError
            If `Bandit.learn` would refuse the arguments, `seq` skips a number, or a value cannot be logged.
        OSError
            If the change cannot be written to the folder. The message says whether it was made. If so, repeat the call
            with the `seq` that the message gives.
        ShardLost
            If a shard is lost and the bandit has no folder from which to restart it.
        """
        if not self._is_new(seq):
            return
        before, frame = self.n_learned, self._frame("learn", encode_learn, contexts, rewards, arm, allow_repeat)
        self.bandit.learn(contexts, rewards, arm, allow_repeat=allow_repeat)
        self._commit(frame)
        self._rows_since_checkpoint += self.n_learned - before
        if self._journal is not None and self._rows_since_checkpoint >= self._every:
            self._write_made()

    @writing
    def add_arm(self, arm: Hashable, *, seq: int | None = None) -> None:
        """Make an arm known.

        Parameters
        ----------
        arm : hashable
            Name of the new arm.
        seq : int, default None
            Number of this change, by which a repeated call is recognised, as in `learn`.

        Raises
        ------
        ValueError
            If the arm is known already or not hashable.
        """
        if self._is_new(seq):
            frame = self._frame("add_arm", encode_arm, arm)
            self.bandit.add_arm(arm)
            self._commit(frame)

    @writing
    def remove_arm(self, arm: Hashable, *, seq: int | None = None) -> None:
        """Forget an arm.

        Parameters
        ----------
        arm : hashable
            Name of a known arm.
        seq : int, default None
            Number of this change, by which a repeated call is recognised, as in `learn`.

        Raises
        ------
        ValueError
            If the arm is not known.
        """
        if self._is_new(seq):
            frame = self._frame("remove_arm", encode_arm, arm)
            self.bandit.remove_arm(arm)
            self._commit(frame)

    @writing
    def import_arm(self, arm: Hashable, model: ArmModel, *, seq: int | None = None) -> None:
        """Give an arm that has not learned yet the model of an exported arm, bit for bit.

        If there is a folder, all shards are written to it.

        Parameters
        ----------
        arm : hashable
            Name of an arm without rows.
        model : ArmModel
            The model that `export_arm` of a bandit with the same parts returned.
        seq : int, default None
            Number of this change, by which a repeated call is recognised, as in `learn`.

        Raises
        ------
        ValueError
            If the parts differ, or the arm has learned already. Nothing has changed then.
        TypeError
            If `model` is no `ArmModel`.
        OSError
            If the shards cannot be written, as in `learn`. The next change, or the same call with its `seq`, writes
            them first.
        """
        if self._is_new(seq):
            self.bandit.model.import_arm(arm, model)
            self._coordinator.seq += 1
            if self._journal is not None:
                self._needs_checkpoint = True
                self._write_made()

    def _is_new(self, seq: int | None) -> bool:
        """Write unwritten changes to the folder, and return True if change number `seq` was not made yet.

        None as `seq` means the next number. Raises ValueError if `seq` skips a number.
        """
        if self._journal is not None:
            advice = f"change {self.seq}, made before, is still not in the folder, and this call changed nothing"
            with _advise(advice):
                self._journal.flush()
                if self._needs_checkpoint:
                    self._write_checkpoint()
        wanted = self.seq + 1 if seq is None else check.integer("seq", seq, 1)
        if wanted > self.seq + 1:
            raise ValueError(f"seq must be {self.seq + 1}, the next, or that of a change that was made, got {seq}")
        return wanted == self.seq + 1

    def _frame(self, act: str, encode: Any, *args: Any) -> bytes:
        """Return the bytes of the journal's entry for the next change, or b"" if the bandit has no folder.

        Raises ValueError if the change cannot be encoded.

        `act` names the change. `encode` turns `args` into the options and the arrays of the change.
        """
        if self._journal is None:
            return b""
        try:
            return pack_entry(Entry(self.seq + 1, act, *encode(*args)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"contexts, rewards and arm must be such that they can be logged, but {error}") from None

    def _commit(self, frame: bytes) -> None:
        self._coordinator.seq += 1
        if self._journal is not None:
            with _advise(self._repeat_advice()):
                self._journal.append(frame)

    def _write_made(self) -> None:
        """Write all shards to the folder after a change; an OSError says that the change was made."""
        with _advise(self._repeat_advice()):
            self._write_checkpoint()

    def _repeat_advice(self) -> str:
        return (
            f"change {self.seq} is made, but writing to the folder failed; if you repeat the call, pass "
            f"seq={self.seq}: it is then written and not made twice"
        )

    def _replay(self, entry: Entry) -> None:
        """Make the change of a log entry again."""
        change, bandit = entry.change, self.bandit
        names = list(change.names)
        if entry.act != "learn":
            getattr(bandit, entry.act)(names[0])
        elif len(change.texts):
            decisions = [Decision.from_dict(json.loads(text)) for text in change.texts[:-1]]
            bandit.learn(decisions, json.loads(change.texts[-1]), allow_repeat=entry.options["again"])
        elif entry.options["single"]:
            bandit.learn(decode_contexts(change, 0), float(change.rewards[0]), names[0])
        else:
            bandit.learn(decode_contexts(change, slice(None)), change.rewards, names)
        self._coordinator.seq = entry.seq
        self._rows_since_checkpoint += len(names)

    # ---- shards ----

    @writing
    def add_shard(self) -> int:
        """Add a shard, which takes over its share of the arms; no other arm moves.

        Returns
        -------
        int
            Number of the new shard.
        """
        number = max(self.shards) + 1
        self._move_arms([*self.shards, number])
        return number

    @writing
    def remove_shard(self, number: int) -> None:
        """Remove a shard; its arms, and no others, move to the remaining shards.

        Parameters
        ----------
        number : int
            Number of a shard.

        Raises
        ------
        ValueError
            If there is no such shard, or it is the last one.
        """
        if number not in self.shards or len(self.shards) == 1:
            raise ValueError(f"number must be one of several shards {self.shards}, got {number}")
        self._move_arms([one for one in self.shards if one != number])

    def _move_arms(self, numbers: list[int]) -> None:
        self._store.move(numbers)
        if self._journal is not None:
            self._write_checkpoint()

    @writing
    def save(self) -> None:
        """Write all shards to the folder now, all after the same change.

        Raises
        ------
        ValueError
            If the bandit has no folder.
        """
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
        self._rows_since_checkpoint, self._needs_checkpoint = 0, False

    @writing
    def close(self) -> None:
        """Stop all shards; the folder stays. Leaving `with ShardedBandit(...) as bandit:` does it too."""
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
    """Close a journal if the body raises."""
    try:
        yield
    except BaseException:
        if journal is not None:
            journal.close()
        raise


@contextmanager
def _advise(advice: str) -> Iterator[None]:
    """Add `advice` to the message of an error of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # such as a closed folder
            raise
        raise OSError(error.errno, f"{error.strerror}; {advice}") from error


def _make_transport(ray: str | None) -> Transport:
    """Make the transport of the shards: Ray at the address `ray`, or this process if it is None."""
    return InProcessTransport() if ray is None else RayTransport(ray)
