"""A loop of decisions, late rewards and learning on a store, and the same without any store."""

import numpy as np

import onepass as op
from onepass.log import Decision, Join, Outcome
from onepass.log.replay import Fold

DIM, ARMS, LATE = 3, 4, 3


def bandit(kind="disjoint", reg=0.5):
    if kind == "disjoint":
        return op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=DIM, reg=reg))), op.Thompson(0.4, draws=5), seed=2)
    return op.Bandit(op.Ridge(op.Exact(dim=DIM, reg=0.7)), op.Thompson(0.4, draws=5), seed=3)


def rows(t):
    return np.random.default_rng(t).standard_normal((ARMS, DIM))


def reward(t, place):
    return float(rows(t)[place, 0] + np.random.default_rng([t, place]).standard_normal())


def names(kind):
    return [f"arm {i}" for i in range(ARMS)] if kind == "disjoint" else None


def decide_round(model, t, kind="disjoint"):
    """Decide round t, and return the record of the decision."""
    contexts = rows(t)
    decision = model.decide(contexts, names(kind), 1 + t % 2, id=f"{t}")
    fields = {"contexts": contexts, "subject": f"user {t % 7}"}
    return Decision.from_decision(decision, loop="game", time=1_000 * t, **fields)


def make_join(record, t, batch=None):
    """Return the rewards of decision t as a join."""
    paid = [reward(t, place) for place in record.places]
    return Join(loop="game", time=1_000 * t + 7, id=record.id, rewards=paid, batch=batch)


def play_game(store, rounds, kind="disjoint", fold=None, begin=0, checkpoints=False):
    """Play a game from a round on, and return the fold.

    Decisions of the store are not repeated. Joins come in batches of three, so the last three decisions never have
    rewards. With `checkpoints` there is a checkpoint every twelve rounds.
    """
    fold = Fold(store, "game", bandit(kind)) if fold is None else fold
    for t in range(begin, rounds):
        if not store.find("game", f"{t}"):
            store.append([decide_round(fold.bandit, t, kind), Outcome(loop="game", time=t, id=f"{t}", value=1.0)])
        if t >= LATE and t % LATE == 0:
            due = range(t - LATE, t)
            joins = [make_join(store.find("game", f"{s}")[0], s, batch=t) for s in due]
            store.append(joins if t % 2 else joins[::-1])
            fold.advance()
            if t % 12 == 0 and checkpoints:
                store.append([fold.checkpoint(t)])
    return fold


def resume_game(store, rounds):
    """Go on with a game that stopped at any moment."""
    fold = Fold.resume(store, "game", bandit())
    fold.advance()
    made = sum(1 for _ in store.read(kinds=["decision"], loop="game"))
    return play_game(store, rounds, fold=fold, begin=max(made - 1, 0), checkpoints=True)
