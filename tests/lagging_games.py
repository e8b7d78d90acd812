"""Logs of servers that lag behind what was learned, with all that a log may hold, and whole checkpoints."""

import random

import msgspec

from log_games import bandit, decide_round, make_join
from onepass.log import Join, Outcome
from onepass.log.records import CORRECTION, Eviction
from onepass.log.replay import Fold

LEARNED = 3  # joins of a batch


def lagging_game(store, seed, rounds, lag=3, late=0.0, placed=True, forgetting=True):
    """Play a game on a store; decisions are those of any of the last `lag` models.

    late: how likely a decision is of any model at all; placed: whether decisions say through which place their model
    had learned; forgetting: whether subjects are forgotten now and then.
    """
    coin = random.Random(seed)
    fold = Fold(store, "game", bandit())
    store.append([fold.checkpoint(0)])
    fold.advance()
    models, waiting, done, soon = [(fold.through, fold.bandit.copy())], [], [], []
    for t in range(rounds):
        through, model = coin.choice(models if coin.random() < late else models[-lag:])
        record = decide_round(model, t)
        told = [record] if not placed else [_set_through(record, through)]
        store.append([*told, Outcome(loop="game", time=1_000 * t, id=record.id, value=1.0)])
        waiting.append((t, record))
        while soon and coin.random() < 0.5:
            store.append([soon.pop(0)])
        if len(waiting) >= LEARNED + coin.randrange(4):
            coin.shuffle(waiting)
            batch, waiting = waiting[:LEARNED], waiting[LEARNED:]
            store.append([make_join(one, s, batch=t) for s, one in batch])
            done += batch
            what = coin.random() if placed else 1.0
            if what < 0.1:
                _, one = coin.choice(done)
                if not any(isinstance(found, Join) and found.how == CORRECTION for found in store.find("game", one.id)):
                    worth = [0.25 for _ in one.places]
                    store.append([Join(loop="game", time=1_000 * t + 8, id=one.id, rewards=worth, how=CORRECTION)])
            elif what < 0.15:
                store.append([Eviction(loop="game", time=1_000 * t + 8, arms=["arm 2"])])
            fold.advance()
            models.append((fold.through, fold.bandit.copy()))
            if forgetting and 0.15 < what < 0.18:
                subject = f"user {coin.randrange(7)}"
                store.forget(subject)
                done = [(s, one) for s, one in done if one.subject != subject]
                waiting = [(s, one) for s, one in waiting if one.subject != subject]
                soon.append(fold.checkpoint(1_000 * t))
            elif coin.random() < 0.3:
                made = fold.checkpoint(1_000 * t)
                soon.append(made if coin.random() < 0.5 else _strip_data(made))
    store.append([*soon])
    return fold


def _set_through(record, through):
    return msgspec.structs.replace(record, through=through)


def _strip_data(checkpoint):
    return msgspec.structs.replace(checkpoint, data=None, path="elsewhere")
